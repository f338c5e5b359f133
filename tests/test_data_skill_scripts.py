"""The shipped skills' scripts, run by node, against the Python that stands for them."""

import random
import re

import pytest
from skill_pages import Case, assert_agree, cases_of, needs_node, run_scripts

from data.agent_skills import generate
from data.skill_scripts import SCRIPTED_SKILLS, Notes, script_output
from data.units import SPELLINGS, UNITS
from hermes import dumps

pytestmark = needs_node

ODD = ("12.5", "-3", "twelve", "1e3", "", True, None, [1], {"a": 1}, 1e13, 1e-9, -0.0, 10**30, 2.0, 2.5, -1, 0, "٣")


def test_bad_data_is_named_alike() -> None:
    bad = (
        "", "no json", "[1]", "null", '"text"', "7", "{'a': 1}", '{"value": NaN}', '{"bill": Infinity, "percent": 1}',
        "\ufeff{}", '{"text": "a\nb"}', '{"text": 5}', '{"text": null}', '{"value": 1}', '{"hex": ["#fff"]}',
        '{"expression": {}}', '{"action": 1}', '{"__proto__": {"text": "x"}}',
        '{"value": 1e999, "from": "m", "to": "m"}',
        '{"value": ' + "9" * 5000 + ', "from": "m", "to": "m"}', '{"bill": 1, "percent": ' + "9" * 5000 + "}",
    )  # fmt: skip
    drawing = [("dice-roller", '{"dice": 0}'), ("password-maker", '{"length": 3}'), ("password-maker", "[]")]
    drawing += cases_of("dice-roller", *({"dice": odd, "sides": 1} for odd in ODD))
    drawing += cases_of("password-maker", *({"length": odd, "symbols": "yes"} for odd in ODD))
    plain = [skill for skill in SCRIPTED_SKILLS if skill not in ("dice-roller", "password-maker")]
    assert_agree([(skill, data) for skill in plain for data in (*bad, "{}")] + drawing)


def test_units_and_words_agree() -> None:
    values = (0, 1, -40, 12.5, 0.125, 2.675, 1.005, 98.6, 1234567.891)
    cases = [
        ("unit-converter", dumps({"value": values[number % len(values)], "from": one, "to": other}))
        for number, (one, other) in enumerate((one, other) for one in UNITS for other in UNITS)
    ]
    cases += cases_of("unit-converter", *({"value": value, "from": "m", "to": "m"} for value in values))
    spellings = [(unit, other) for unit, others in SPELLINGS.items() for other in (*others, unit.upper())]
    cases += cases_of("unit-converter", *({"value": 2, "from": one, "to": other} for one, other in spellings))
    cases += cases_of("unit-converter", *({"value": odd, "from": "km", "to": "miles"} for odd in ODD))
    cases += cases_of("unit-converter", *({"value": 1, "from": unit, "to": "m"} for unit in ("constructor", "KM", 3)))
    texts = ("", " ", "one", "two words", "tab\tand\nline", "naïve café", "no\u00a0break", "flag 🇫🇷 ok", "a \u2003 b")
    cases += cases_of("word-counter", *({"text": text} for text in (*texts, "\ud800 lone", "x" * 100_000)))
    assert_agree(cases)


def test_expressions_agree() -> None:
    expressions = [
        "12.5 * (3 + 4)", "2+2", "-3 - -4", "--2", "3 x 4", "3x4", "6 X 7", "7 × 8", "9 ÷ 4", "5 − 8", "1/3", "2/3*3",
        "0.1+0.2", "1e3", "-0", "0 * -1", ".5 + .25", "5.", "1.2.3", "1 2", "1,000 + 1", "(1", "1)", "()", "", "  ",
        "1 / 0", "1/(2-2)", "1/-0", "0/0", "1/0 +", "2 ** 3", "2^3", "x", "3 x", "x 3", "+3", "3 +", "two + two",
        "10%", "√4", "٣ + 1", "１+１", "🙂", "3\u00a0+\u00a04", "\u2003 3", "\t3\n+ 4 ", "1/10000000", "0.0000005",
        "2.0000005 - 1", "999999999999999 + 1", "999999999999999 + 2", "9" * 199, "9" * 200, "9" * 201, "🙂" * 201,
        "(" * 99 + "7" + ")" * 99, "-" * 199 + "7", "(" * 200, "9" * 190 + " * 0", "constructor", "1.005 * 1000",
    ]  # fmt: skip
    rng = random.Random(5)
    for _ in range(400):
        parts = [rng.choice(("3", "12.5", "0.07", "(", ")", "4", "-", "100")) for _ in range(rng.randint(1, 9))]
        expressions.append("".join(part + rng.choice((" + ", "*", " / ", "-", "", " x ")) for part in parts) + "8")
    assert_agree(cases_of("calculator", *({"expression": expression} for expression in expressions)))


def test_colors_and_tips_agree() -> None:
    colors = (
        "#1e90ff", "1E90FF", "fff", "#ABC", "#12", "", "#", "#12345", "#gggggg", " #fff", "#fff\n", "red", "##fff",
        "#1e90ff80", "１２３", "ſff", "#🙂f",
    )  # fmt: skip
    cases = cases_of("color-converter", *({"hex": color} for color in (*colors, "0" * 10_000)))
    cases += cases_of("tip-calculator", *({"bill": odd, "percent": 15, "people": 3} for odd in ODD))
    cases += cases_of("tip-calculator", *({"bill": 20, "percent": odd, "people": 3} for odd in ODD))
    cases += cases_of("tip-calculator", *({"bill": 20, "percent": 15, "people": odd} for odd in ODD))
    cases += cases_of("tip-calculator", {"percent": 15}, {"bill": 64.5}, {"bill": 1e9, "percent": 100, "people": 100})
    rng = random.Random(6)
    for _ in range(500):
        bill, percent = round(rng.uniform(0, 400), rng.choice((0, 1, 2, 3))), rng.choice((0, 5, 7.5, 10, 12.5, 15, 18))
        cases += cases_of("tip-calculator", {"bill": bill, "percent": percent, "people": rng.randint(1, 9)})
    assert_agree(cases)


def test_dates_agree() -> None:
    months = (
        "January", "Feb", "march", "APRIL", "may", "Jun", "july", "aug", "Sept", "september", "oct", "November", "Dec",
    )  # fmt: skip
    forms = ("{day} {month}", "{month} {day}", "{month} {day}, 2027", "{day} {month} 2024", "the {day} of {month}")
    dates = [
        form.format(day=day, month=month)
        for month in months
        for day in ("1", "07", "22nd", "24th", "29", "30", "31st", "0", "32", "٣")
        for form in forms
    ]
    dates += [
        "2026-08-07", "2027-12-24", "2026-02-30", "2024-02-29", "2026-13-01", "2026-00-10", "2026-1-1", "0999-01-01",
        "9999-12-31", "10000-01-01", "24.12.2027", "24/12/2027", "24 December 27", "24 December 0027", "24 24",
        "May June", "December", "24", "", " ", "of", "tomorrow", "Friday 24 December", "24 Décembre", "Dec. 24",
        "24\u00a0Dec", "24 décember", "AUGUST 7", "2027 Dec 24", "24 December 2027 noon", "24 ſept", "Kmay 3", "İ 3",
    ]  # fmt: skip
    todays = ("2026-08-07", "2096-03-01", "2024-02-29T10:00:00 Thursday", "9999-12-31", "9998-12-31 x")
    cases = cases_of("days-until", *({"today": today, "date": date} for today in todays for date in dates))
    bad = (
        "", "today", "2026-02-30", "2026-8-7", "2026-08-07x", "2026-08-07\n", "x 2026-08-07", "٢٠٢٦-08-07",
        "0000-01-01", "2026-08-0🙂", "🙂2026-08-07",
    )  # fmt: skip
    cases += cases_of("days-until", *({"today": today, "date": "24 Dec"} for today in bad))
    cases += cases_of("days-until", *({"today": odd, "date": "24 Dec"} for odd in ODD))
    cases += cases_of("days-until", *({"today": "2026-08-07", "date": odd} for odd in ODD), {"date": "24 Dec"})
    assert_agree(cases)


def test_made_conversations_agree() -> None:
    cases: list[Case] = []
    for conversation in generate("test", 240, 3):
        for call in (call for message in conversation.messages for call in message.calls):
            skill, data = str(call.arguments.get("skill_name")), str(call.arguments.get("data"))
            if call.name == "run_js" and skill in SCRIPTED_SKILLS and skill not in ("dice-roller", "password-maker"):
                cases.append((skill, data))
    assert cases
    # A call in a storage of its own: what the notes of a conversation are is not told by its calls.
    outputs = run_scripts(*({"inputs": [case]} for case in cases))
    assert [output for (output,) in outputs] == [script_output(*case) for case in cases]


def test_notes_agree_over_sequences() -> None:
    rng = random.Random(7)
    words = ("wifi", "Wifi", "the", "Zoë", "ZOË", "İstanbul", "STRASSE", "ß", "🙂", "a;b", "3:", "\u00a0", "ΟΔΟΣ")
    sequences: list[list[Case]] = []
    for _ in range(60):
        rows: list[dict[str, object]] = []
        for _ in range(rng.randint(1, 30)):
            text = rng.choice((" ", "  ", "\n", "\t")).join(rng.choices(words, k=rng.randint(0, 4)))
            action = rng.choice(("add", "add", "add", "find", "list", "delete", "delete", "remove"))
            ids = (*range(7), *range(7), "2", "x", 2.5, 10**6, 999_999, None)
            rows.append({"action": action, "text": text[: rng.randint(1, 40)], "id": rng.choice(ids)})
            if rng.random() < 0.1:
                del rows[-1][rng.choice(("text", "id"))]
        sequences.append(cases_of("note-keeper", *rows))
    outputs = run_scripts(*({"inputs": sequence} for sequence in sequences))
    kinds = set()
    for sequence, found in zip(sequences, outputs, strict=True):
        notes = Notes()
        for (skill, data), output in zip(sequence, found, strict=True):
            assert output == script_output(skill, data, notes=notes), data
            kinds.add(re.sub(r"\d+|:.*", "", *output.values(), flags=re.DOTALL))
    assert {"Note  saved.", "Note  deleted.", "no note has", "Note ", " notes", "there is no note "} <= kinds


def both(skill: str, fields: dict[str, object], times: int) -> list[list[str]]:
    """`times` results of the script, and as many of the Python."""
    data = dumps(fields)
    (outputs,) = run_scripts({"inputs": [(skill, data)] * times})
    rng = random.Random(8)
    twins = [script_output(skill, data, rng=rng) for _ in outputs]
    return [[row["result"] for row in rows] for rows in (outputs, twins)]


@pytest.mark.parametrize(("dice", "sides"), [(1, 6), (2, 6), (20, 2), (3, 1000)])
def test_dice_are_whole_and_add_up(dice: int, sides: int) -> None:
    for results in both("dice-roller", {"dice": dice, "sides": sides}, 300):
        faces = set()
        for result in results:
            rolled, _, total = result.partition(" = ")
            values = [int(value) for value in rolled.split(" + ")]
            assert len(values) == dice and all(1 <= value <= sides for value in values)
            assert total == ("" if dice == 1 else str(sum(values)))
            faces |= set(values)
        assert faces == set(range(1, sides + 1)) or sides == 1000


def test_one_die_with_six_sides_is_rolled_if_nothing_is_said() -> None:
    assert {result for results in both("dice-roller", {}, 200) for result in results} == set("123456")


@pytest.mark.parametrize(("length", "symbols"), [(4, True), (4, False), (16, True), (64, False)])
def test_passwords_have_every_kind_and_nothing_else(length: int, symbols: bool) -> None:
    kinds = ["a-km-z", "A-HJ-NP-Z", "2-9"] + (["!#$%&*+?@-"] if symbols else [])
    every = f"[{''.join(kinds)}]{{{length}}}"
    for results in both("password-maker", {"length": length, "symbols": symbols}, 300):
        assert len(set(results)) > 290
        for password in results:
            assert re.fullmatch(every, password) and all(re.search(f"[{kind}]", password) for kind in kinds)
        assert len(set("".join(results))) == 25 + 24 + 8 + (10 if symbols else 0)


def test_a_draw_that_would_favor_some_faces_is_drawn_again() -> None:
    run = {"inputs": [("dice-roller", '{"sides": 6}')] * 2, "random": [2**32 - 1, 2**32 - 4, 4, 2**32 - 5]}
    assert run_scripts(run) == [[{"result": "5"}, {"result": "6"}]]
