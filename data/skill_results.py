"""What the shipped skills' scripts return, computed in Python.

A test runs these and the scripts in `data/skills/*/scripts/index.html` on the same inputs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from data.units import UNITS, convert, show, show_result, unit_of
from hermes import dumps, loads

_LIMIT = 1e12


def _parse(data: str) -> dict[str, Any]:
    try:
        fields = loads(data)
    except ValueError:
        raise ValueError("data is not JSON") from None
    if not isinstance(fields, dict):
        raise ValueError("data must be a JSON object")
    return fields


def _text_of(fields: dict[str, Any], key: str) -> str:
    if key not in fields:
        raise ValueError(f"missing field: {key}")
    if not isinstance(fields[key], str):
        raise ValueError(f"{key} must be text")
    return str(fields[key])


def _number_of(fields: dict[str, Any]) -> float:
    if "value" not in fields:
        raise ValueError("missing field: value")
    value = fields["value"]
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("value must be a number")
    if abs(value) > _LIMIT:
        raise ValueError("value is too large")
    return float(value)


def _unit_of(fields: dict[str, Any], key: str) -> str:
    spelling = _text_of(fields, key)
    unit = unit_of(spelling)
    if unit is None:
        raise ValueError(f"unknown unit: {spelling}")
    return unit


def _unit_converter(data: str) -> str:
    fields = _parse(data)
    value = _number_of(fields)
    source, target = _unit_of(fields, "from"), _unit_of(fields, "to")
    if UNITS[source][0] != UNITS[target][0]:
        raise ValueError(f"cannot convert {fields['from']} to {fields['to']}")
    return f"{show(value, 6)} {fields['from']} = {show_result(convert(value, source, target))} {fields['to']}"


def _amount(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _word_counter(data: str) -> str:
    text = _text_of(_parse(data), "text")
    words = [word for word in re.split(r"[ \t\r\n\u00a0]+", text) if word]
    return f"{_amount(len(words), 'word')}, {_amount(len(text), 'character')}"


def _text_message(data: str) -> str:
    fields = _parse(data)
    number, body = _text_of(fields, "phone_number"), _text_of(fields, "sms_body")
    digits = len(re.findall("[0-9]", number))
    if not re.fullmatch(r"[+]?[0-9 ()./-]+", number) or not 3 <= digits <= 15:
        raise ValueError(f"not a phone number: {number}")
    if not re.search(r"[^ \t\r\n]", body):
        raise ValueError("the message is empty")
    return f"Preview, nothing sent. To {number}, {_amount(len(body), 'character')}: {body}"


_SCRIPTS: dict[str, Callable[[str], str]] = {
    "unit-converter": _unit_converter,
    "word-counter": _word_counter,
    "text-message": _text_message,
}


def script_output(skill_name: str, data: str) -> dict[str, str]:
    """What the script of a shipped skill returns for `data`: `{"result": …}` or `{"error": …}`.

    Raises:
        KeyError: no shipped skill has that name.
    """
    script = _SCRIPTS[skill_name]
    try:
        return {"result": script(data)}
    except ValueError as error:
        return {"error": str(error)}


def run_js_result(skill_name: str, data: str) -> dict[str, str]:
    """What the phone answers to `run_js`. A script's own error arrives as the result of a call that succeeded."""
    output = script_output(skill_name, data)
    return {"result": output.get("result", dumps(output)), "status": "succeeded"}


def run_intent_result(intent: str, parameters: str) -> dict[str, str]:
    """What the phone answers to `run_intent` when the intent went through."""
    return {"action": intent, "parameters": parameters, "result": "succeeded"}
