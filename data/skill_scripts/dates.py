"""The skill `days-until`, and the date as the phone tells it."""

from __future__ import annotations

import re
from datetime import date, datetime

from data import words
from data.skill_scripts.fields import SPACE, parse, text_of
from data.skill_scripts.texts import amount

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DAY_NAMES = {
    *(name.lower() for name in _WEEKDAYS), *(name[:3].lower() for name in _WEEKDAYS),
    "tues", "weds", "thur", "thurs",
}  # fmt: skip
_MONTHS = tuple(map(str.lower, words.MONTHS))
_YEARS_AHEAD = 8
"""29 February comes back within 8 years, whatever the century."""


def timestamp(moment: datetime) -> str:
    """`moment` as the phone's `get_current_date_and_time` writes it, whatever the locale."""
    return f"{moment:%Y-%m-%dT%H:%M:%S} {_WEEKDAYS[moment.weekday()]}"


def days_until(data: str) -> str:
    """How many days a date is away.

    Raises:
        ValueError: the error that the script gives.
    """
    fields = parse(data)
    today = _read_today(text_of(fields, "today"))
    days = (_read_date(text_of(fields, "date"), today) - today).days
    return amount(days, "day") if days >= 0 else f"{amount(-days, 'day')} ago"


def _unreadable(text: str) -> ValueError:
    return ValueError(f"cannot read the date: {text}")


def _read_today(text: str) -> date:
    parts = re.match(r"([1-9][0-9]{3})-([0-9]{2})-([0-9]{2})(?:[T ]|\Z)", text)
    day = _date(*parts.groups()) if parts else None
    if day is None:
        raise _unreadable(text)
    return day


def _read_date(text: str, today: date) -> date:
    parts = [part for part in re.split(f"[{SPACE},.]+", text.lower()) if part not in ("", "the", "of")]
    if parts and parts[0] in _DAY_NAMES:
        del parts[0]
    found: date | None = None
    if len(parts) == 1:
        numbers = re.fullmatch(r"([1-9][0-9]{3})-([0-9]{2})-([0-9]{2})", parts[0])
        found = _date(*numbers.groups()) if numbers else None
    elif len(parts) in (2, 3):
        month = _month(parts[0]) or _month(parts[1])
        day = re.fullmatch(r"([0-9]{1,2})(?:st|nd|rd|th)?", parts[1 if _month(parts[0]) else 0])
        if month and day and len(parts) == 2:
            years = range(today.year, today.year + _YEARS_AHEAD + 1)
            coming = [candidate for year in years if (candidate := _date(year, month, day[1]))]
            found = next((candidate for candidate in coming if candidate >= today), None)
        elif month and day and re.fullmatch("[1-9][0-9]{3}", parts[2]):
            found = _date(parts[2], month, day[1])
    if found is None:
        raise _unreadable(text)
    return found


def _month(word: str) -> int:
    """The month's number; 0 if the word is none."""
    short = "sep" if word == "sept" else word
    return next((number for number, name in enumerate(_MONTHS, 1) if short in (name, name[:3])), 0)


def _date(year: str | int, month: str | int, day: str | int) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None
