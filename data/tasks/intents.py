"""Skills that act through the phone's intents."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime, timedelta

from data.forms import Form
from data.skill_scripts import current_date_result, run_intent_result
from data.tasks.task import Episode, Exchange, Task, run_script
from data.values import Values
from hermes.record import JSON


def _intent(form: Form, intent: str, fields: Mapping[str, JSON], answer: str, *facts: str) -> Episode:
    """An episode with one intent that goes through."""
    call = form.run_intent(intent, fields)
    result = run_intent_result(str(call.arguments["intent"]), str(call.arguments["parameters"]))
    return Episode((Exchange(call, result),), answer, facts)


def _text_values(draw: Values, variant: str) -> dict[str, str]:
    return {"phone_number": draw.phone(), "sms_body": draw.message(), "name": draw.name()}


def _text(form: Form, variant: str, values: Mapping[str, str], rng: random.Random) -> Episode:
    number = values["phone_number"]
    fields = {"phone_number": number, "sms_body": values["sms_body"]}
    return _intent(form, "send_sms", fields, f"Your message to {number} is ready to send.", number)


def _mail_values(draw: Values, variant: str) -> dict[str, str]:
    return {"email": draw.email(), "subject": draw.subject(), "body": draw.message()}


def _mail(form: Form, variant: str, values: Mapping[str, str], rng: random.Random) -> Episode:
    fields = {"extra_email": values["email"], "extra_subject": values["subject"], "extra_text": values["body"]}
    return _intent(form, "send_email", fields, f"Your mail to {values['email']} is ready to send.", values["email"])


def _reminder_values(draw: Values, variant: str) -> dict[str, str]:
    return {"time": draw.own(lambda: _clock(draw.rng)), "task": draw.errand()}


def _clock(rng: random.Random) -> str:
    hour, minute = rng.randint(5, 22), rng.choice((0, 5, 10, 15, 20, 30, 40, 45, 50, rng.randint(1, 59)))
    if rng.random() < 0.3:
        half = "am" if hour < 12 else "pm"
        twelve = (hour - 1) % 12 + 1
        return f"{twelve}{f':{minute:02d}' if minute else ''} {half}"
    return f"{hour}:{minute:02d}" if rng.random() < 0.8 else f"{hour:02d}:{minute:02d}"


def _hour_and_minute(text: str) -> tuple[int, int]:
    """Hour (0 to 23) and minute of a time as `_clock` writes it."""
    clock, _, half = text.partition(" ")
    hour, _, minute = clock.partition(":")
    return int(hour) % 12 + 12 * (half == "pm") if half else int(hour), int(minute or 0)


def _remind(form: Form, variant: str, values: Mapping[str, str], rng: random.Random) -> Episode:
    hour, minute = _hour_and_minute(values["time"])
    fields: dict[str, JSON] = {"title": "Reminder", "message": values["task"], "hour": hour, "minute": minute}
    at = f"{hour}:{minute:02d}"
    answer = f"I will remind you every day at {at}."
    return _intent(form, "schedule_notification", {**fields, "repeat_daily": True}, answer, at)


def _date_values(draw: Values, variant: str) -> dict[str, str]:
    return {"date": draw.date()}


def _today(rng: random.Random) -> datetime:
    """A moment before every date with a year that requests have."""
    return datetime(2026, 1, 1) + timedelta(minutes=rng.randrange(3 * 365 * 24 * 60))


def _count_days(form: Form, variant: str, values: Mapping[str, str], rng: random.Random) -> Episode:
    now = current_date_result(_today(rng))
    asked = Exchange(form.run_intent("get_current_date_and_time", {}), now)
    fields = {"today": now["result"][:10], "date": values["date"]}

    def answer(result: str) -> tuple[str, tuple[str, ...]]:
        return f"It is {result} until {values['date']}.", (result,)

    return run_script(form, fields, answer, (asked,))


TASKS = (
    Task("text-message", _text_values, _text, spoken=frozenset({"name"})),
    Task("quick-mail", _mail_values, _mail),
    Task("daily-reminder", _reminder_values, _remind),
    Task("days-until", _date_values, _count_days),
)
