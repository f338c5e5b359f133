"""What the shipped skills' scripts and the Python that stands for them return, to the word."""

import json
import random
import re

import pytest
from skill_pages import answers, cases_of, needs_node, page_of, run_scripts

from data.skill_scripts import Notes, script_output
from data.units import ALSO, SPELLINGS, UNITS, unit_of

pytestmark = needs_node

WRITTEN = {
    "mm": "mm millimeter millimetre Millimeters",
    "cm": "cm cms CM centimeter centimetre",
    "m": "m M m. meter metre Meters",
    "km": "km kms KM kilometer kilometre Kilometers",
    "inches": 'in in. IN inch Inches " ″ ”',
    "feet": "ft ft. Ft foot FOOT feet ' ′ ’",
    "yards": "yd yds yard Yards",
    "miles": "mi mile Mile miles",
    "g": "g G gm gms gram grams gramme",
    "kg": "kg Kg kgs kilo kilos kilogram kilogramme kilogrammes",
    "ounces": "oz oz. ounce Ounces",
    "pounds": "lb lb. lbs LBS pound",
    "celsius": "c C °C °c ºC ℃ °_C Celsius centigrade degree_Celsius degrees_celsius degrees_C deg_C deg._C degC",
    "fahrenheit": "f F °F ºF ℉ °_F degree_Fahrenheit Degrees_Fahrenheit degrees_F deg_F",
    "kelvin": "k K °K kelvin Kelvins degrees_Kelvin",
    "ml": "ml mL ML cc milliliter millilitre",
    "liters": "l L ltr litre liter Litres",
    "cups": "cup Cups",
    "gallons": "gal gal. gals gallon",
    "kmh": "kmh km/h KM/H km_/_h km/hr kmph kph km_per_hour kilometers_per_hour kilometre_per_hour",
    "mph": "mph MPH m.p.h. mi/h mile_per_hour miles_per_hour miles_an_hour miles/hour",
    "knots": "kn kt kts knot Knots",
    "seconds": "s S sec secs sec. second",
    "minutes": "min mins min. minute Minutes",
    "hours": "h H hr hrs hour",
    "days": "d day Days",
}


def test_units_are_read_as_people_write_them() -> None:
    assert WRITTEN.keys() == UNITS.keys() == ALSO.keys()
    written = [(text.replace("_", " "), unit) for unit, texts in WRITTEN.items() for text in texts.split(" ")]
    assert [(text, unit_of(text)) for text, _ in written] == written
    found = answers("unit-converter", *({"value": 7, "from": text, "to": unit} for text, unit in written))
    assert found == [f"7 {text} = 7 {unit}" for text, unit in written]


def test_no_spelling_is_that_of_two_units_and_the_page_has_each() -> None:
    found: dict[str, str] = {}
    for unit in UNITS:
        for spelling in (unit, *SPELLINGS[unit], *ALSO[unit]):
            plain = re.sub("[ .]", "", spelling.lower())
            assert found.setdefault(plain, unit) == unit
    (table,) = re.findall(r"const SPELLINGS = new Map\(\[(.*?)\n\]\);", page_of("unit-converter"), flags=re.DOTALL)
    on_page: dict[str, str] = {}
    for unit, others in re.findall(r"\['(.+?)', \[(.*)\]\],", table):
        on_page |= dict.fromkeys((unit, *re.sub(r"\\'", "\0", others).strip("'").split("', '")), unit)
    assert {spelling.replace("\0", "'"): unit for spelling, unit in on_page.items()} == found


def test_unknown_units_stay_unknown() -> None:
    unknown = (
        "", " ", ".", "°", "degrees", "fl oz", "fluid ounces", "nm", "stone", "ms", "m/s", "km2", "month", "ſ", "to",
        "per hour", "miles per gallon", "constructor",
    )  # fmt: skip
    errors = answers("unit-converter", *({"value": 1, "from": unit, "to": "m"} for unit in unknown))
    assert errors == [f"unknown unit: {unit}" for unit in unknown]


def converted(*rows: tuple[object, str, str]) -> list[str]:
    return answers("unit-converter", *({"value": value, "from": one, "to": other} for value, one, other in rows))


def test_nothing_is_colder_than_absolute_zero() -> None:
    cold = [(-273.16, "celsius", "kelvin"), (-300, "C", "°C"), (-459.68, "F", "celsius"), ("-0.01", "K", "fahrenheit")]
    assert converted(*cold) == ["below absolute zero"] * 4
    assert converted((-500, "celsius", "km")) == ["cannot convert celsius to km"]
    limits = [(-273.15, "celsius", "kelvin"), (-459.67, "fahrenheit", "K"), (0, "K", "fahrenheit"), (-40, "°F", "°C")]
    assert converted(*limits) == [
        "-273.15 celsius = 0 kelvin",
        "-459.67 fahrenheit = 0 K",
        "0 K = -459.67 fahrenheit",
        "-40 °F = -40 °C",
    ]


def test_a_small_number_is_not_shown_as_zero() -> None:
    assert converted((0, "km", "miles"), (-0.0, "m", "mm"), ("-0", "kg", "g"), (0, "C", "F"), (32, "F", "C")) == [
        "0 km = 0 miles", "0 m = 0 mm", "0 kg = 0 g", "0 C = 32 F", "32 F = 0 C",
    ]  # fmt: skip
    assert converted(
        (2.5e-7, "m", "m"), (-2.5e-7, "m", "km"), (1e-9, "km", "miles"), ("0.0000001", "g", "kg"),
        (1e-30, "mm", "km"), (1e-7, "C", "F"), (1e-10, "K", "K"), (0.123456789, "m", "cm"), (1e12, "days", "seconds"),
    ) == [
        "0.00000025 m = 0.00000025 m",
        "-0.00000025 m = -0.00000000025 km",
        "0.000000001 km = 0.0000000006214 miles",
        "0.0000001 g = 0.0000000001 kg",
        f"0.{'0' * 29}1 mm = 0.{'0' * 35}1 km",
        "0.0000001 C = 32 F",
        "0.0000000001 K = 0.0000000001 K",
        "0.123456789 m = 12.35 cm",
        "1000000000000 days = 86400000000000000 seconds",
    ]  # fmt: skip
    assert converted((9e-31, "m", "km"), (-5e-324, "m", "km")) == ["value is too small"] * 2
    rng = random.Random(9)
    units = sorted(unit for unit, (kind, _) in UNITS.items() if kind in ("length", "temperature"))
    values = [rng.uniform(-2, 9) * 10 ** rng.randint(-31, 2) for _ in range(500)]
    for text in converted(*((value, rng.choice(units), rng.choice(units)) for value in values)):
        assert re.match(r"(-?[0-9]+(\.[0-9]*[1-9])? |cannot|below|value is)", text) and "-0 " not in text


def noted(*rows: dict[str, object]) -> list[dict[str, str]]:
    """What the steps return, on which script and Python agree."""
    notes = Notes()
    (outputs,) = run_scripts({"inputs": cases_of("note-keeper", *rows)})
    assert outputs == [script_output("note-keeper", json.dumps(row), notes=notes) for row in rows]
    return outputs


def test_no_note_forges_another() -> None:
    texts = ("one\nNote 9: two", " a\r\n\r\nb \u2028", "x; 9: y", "p\x0bq\x0cr\x85s\u2029t\x1cu", "milk, eggs")
    *_, listed, found, missing, empty = noted(
        *({"action": "add", "text": text} for text in texts),
        {"action": "list"},
        {"action": "find", "text": "e"},
        {"action": "find", "text": "zebra\nNote 9: z"},
        {"action": "add", "text": "\u2028\n"},
    )
    assert listed == {
        "result": "5 notes: 1: one Note 9: two; 2: a b; 3: x, 9: y; 4: p q r s t u; 5: milk, eggs",
    }
    assert found == {"result": "Note 1: one Note 9: two\nNote 5: milk, eggs"}
    assert missing == {"error": "no note has: zebra Note 9: z"}
    assert empty == {"error": "text is empty"}


def test_a_note_keeps_its_semicolon_but_for_the_list() -> None:
    added = {"action": "add", "text": "a;b; c"}
    assert noted(added, {"action": "find", "text": ";"}, {"action": "list"})[1:] == [
        {"result": "Note 1: a;b; c"},
        {"result": "1 note: 1: a,b, c"},
    ]


def test_a_page_that_cannot_keep_notes_says_so() -> None:
    steps = cases_of("note-keeper", {"action": "add", "text": "x"}, {"action": "list"})
    none, denied, full, locked = run_scripts(
        *({"inputs": steps, "kind": kind} for kind in ("none", "denied", "full", "locked"))
    )
    assert none == denied == [{"error": "notes cannot be kept here"}] * 2
    assert full == [{"error": "the notes cannot be saved"}, {"result": "0 notes"}]
    assert locked == [{"error": "the kept notes cannot be read"}] * 2


def test_kept_notes_that_make_no_sense_are_named() -> None:
    actions = ("add", "find", "list", "delete")
    steps = cases_of("note-keeper", *({"action": action, "text": "x", "id": 1} for action in actions))
    damaged = (
        "[1", "null", "5", "[]", "{}", '{"next": 2}', '{"next": 2, "notes": {}}', '{"next": 2, "notes": [5]}',
        '{"next": 2, "notes": [null]}', '{"next": 2, "notes": [[1]]}', '{"next": 2, "notes": [[1, null]]}',
        '{"next": 2, "notes": [["1", "x"]]}', '{"next": 2, "notes": ["1x"]}', '{"next": 2, "notes": [[1, "x", 2]]}',
        '{"next": "2", "notes": []}', '{"next": 0, "notes": []}', '{"next": 1.5, "notes": []}',
        '{"next": 1, "notes": [[1, "x"]]}', '{"next": 3, "notes": [[1, "x"], [1, "y"]]}',
        '{"next": 9, "notes": [[2, "x"], [1, "y"]]}', '{"next": 2, "notes": [[0, "x"]]}',
    )  # fmt: skip
    for text, outputs in zip(damaged, run_scripts(*({"inputs": steps, "kept": text} for text in damaged)), strict=True):
        assert outputs == [{"error": "the kept notes cannot be read"}] * 4, text
    (outputs,) = run_scripts({"inputs": steps, "kept": '{"next": 7, "notes": [[1, "x"], [5, "y"]]}'})
    assert [next(iter(output.values())) for output in outputs] == [
        "Note 7 saved.", "Note 1: x\nNote 7: x", "3 notes: 1: x; 5: y; 7: x", "Note 1 deleted.",
    ]  # fmt: skip


def test_tips_are_counted_in_cents() -> None:
    def tips(*rows: tuple[object, object, int]) -> list[str]:
        return answers("tip-calculator", *({"bill": b, "percent": p, "people": n} for b, p, n in rows))

    assert tips(
        (262.55, 10, 1), (238.35, 0, 2), (216.68, 10, 2), ("1.005", 0, 1), (0.285, 100, 1), (1e-7, 100, 3),
        (1.1, 1e-300, 3), (999999999.99, 99.99999999999999, 100), (-0.0, -0.0, 1), (10.05, 12.5, 4),
    ) == [
        "tip 26.26, total 288.81",
        "tip 0.00, total 238.35, each 119.18",
        "tip 21.67, total 238.35, each 119.18",
        "tip 0.00, total 1.01",
        "tip 0.29, total 0.58",
        "tip 0.00, total 0.00, each 0.00",
        "tip 0.00, total 1.10, each 0.37",
        "tip 999999999.99, total 1999999999.98, each 20000000.00",
        "tip 0.00, total 0.00",
        "tip 1.26, total 11.31, each 2.83",
    ]  # fmt: skip
    rng = random.Random(10)
    rows = [(rng.randint(0, 40000), rng.randint(0, 100), rng.randint(2, 100)) for _ in range(2000)]
    for (bill, percent, people), text in zip(rows, tips(*((b / 100, p, n) for b, p, n in rows)), strict=True):
        tip = (bill * percent + 50) // 100
        each = (2 * (bill + tip) + people) // (2 * people)
        amounts = [f"{cents // 100}.{cents % 100:02d}" for cents in (tip, bill + tip, each)]
        assert text == "tip {}, total {}, each {}".format(*amounts)


def test_an_x_behind_a_lone_zero_is_not_times() -> None:
    unreadable = ("0x10", "0X10", "0x 10", "(0x10)", "1 + 0x10", "-0x1", "2*0x3", "0x", "0\u00d7 0x1", "1/0 + 0x1")
    errors = answers("calculator", *({"expression": text} for text in unreadable))
    assert errors == [f"cannot read the expression: {text}" for text in unreadable]
    fine = {"0 x 10": "0", "3x4": "12", "10x3": "30", "1.0x10": "10", ".0x3": "0", "100x2": "200", "0×5": "0"}
    assert answers("calculator", *({"expression": text} for text in fine)) == [f"{a} = {b}" for a, b in fine.items()]


@pytest.mark.parametrize(("symbols", "wanted"), [("true", True), ("false", False), (True, True), (False, False)])
def test_symbols_may_be_said_in_text(symbols: object, wanted: bool) -> None:
    data = json.dumps({"length": 8, "symbols": symbols})
    (outputs,) = run_scripts({"inputs": [("password-maker", data)] * 20})
    for output in (*outputs, *(script_output("password-maker", data) for _ in range(20))):
        assert bool(re.search("[^a-zA-Z0-9]", output["result"])) == wanted


def test_symbols_are_true_or_false() -> None:
    rows = [{"symbols": odd} for odd in ("yes", "True", "falſe", "", " true", 1, 0, None, [True])]
    assert answers("password-maker", *rows) == ["symbols must be true or false"] * len(rows)


def test_the_weekday_of_a_date_is_skipped() -> None:
    dates = (
        "Friday, 24 December", "Friday 24 December", "Fri, Dec 24th", "fri. 24 Dec 2027", "FRIDAY the 24th of December",
        "Thursday, 24 December 2026", "Thurs 24 Dec", "Tues, 24 Dec", "Weds 24 December", "Sun 24 December 2026",
        "Saturday 2026-12-24", "Mon December 24, 2026",
    )  # fmt: skip
    days = answers("days-until", *({"today": "2026-08-07", "date": date} for date in dates))
    assert days == ["504 days" if "2027" in date else "139 days" for date in dates]
    unreadable = ("Friday", "Friday Friday 24 December", "24 December Friday", "24 Friday December", "Fr 24 December")
    errors = answers("days-until", *({"today": "2026-08-07", "date": date} for date in (*unreadable, "the Friday,")))
    assert errors == [f"cannot read the date: {date}" for date in (*unreadable, "the Friday,")]
