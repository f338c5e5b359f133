"""Open values: numbers, names, phone numbers, messages and texts that requests are filled with.

A value belongs to one split: the hash of its text decides which, so that no split shares a value with
another, whatever the seed and the counts.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Sequence
from typing import Literal

from data import words

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")

_TRIES = 1000
_LONGEST_MESSAGE = 31
_LONGEST_TEXT = 60


def split_of(value: str) -> Split:
    """The split that a value belongs to: 60 % train, 15 % validation, 25 % test."""
    bucket = int.from_bytes(hashlib.sha256(value.encode()).digest()[:4], "big") % 20
    return "train" if bucket < 12 else "validation" if bucket < 15 else "test"


class Values:
    """Draws open values of one split from a random generator."""

    def __init__(self, split: Split, rng: random.Random) -> None:
        self._split = split
        self.rng = rng
        """For what is drawn beside open values."""

    def number(self, signed: bool = False) -> str:
        """A number as a person types it: up to four digits, at most two decimals."""
        return self.own(lambda: self._number(signed))

    def phone(self) -> str:
        """A phone number out of ranges that are reserved for fiction, in one of many formats."""
        return self.own(self._phone, lambda phone: re.sub("[^0-9]", "", phone))

    def name(self) -> str:
        """A first name, sometimes with a last name."""
        return self.own(self._name)

    def city(self) -> str:
        """A city."""
        return self.own(lambda: self.rng.choice(words.CITIES))

    def time(self) -> str:
        """A time of day."""
        return self.own(self._time)

    def message(self) -> str:
        """The body of a text message: a statement, with or without greeting and sign-off."""
        return self.own(lambda: self._short(self._message, _LONGEST_MESSAGE))

    def text(self) -> str:
        """A text of some words to be counted."""
        return self.own(lambda: self._short(self._text, _LONGEST_TEXT))

    def email(self) -> str:
        """An e-mail address at a domain that is reserved for examples."""
        return self.own(self._email)

    def subject(self) -> str:
        """The subject of a mail."""
        return self.own(lambda: self._sentence(words.SUBJECTS).rstrip("."))

    def errand(self) -> str:
        """Something to do every day, as a verb phrase."""
        return self.own(lambda: self.filled(self.rng.choice(words.ERRANDS)))

    def date(self) -> str:
        """A date as somebody writes it, in words; those with a year lie after 2028."""
        return self.own(self._date)

    def own(self, draw: Callable[[], str], key: Callable[[str], str] = str) -> str:
        """The first of many draws that belongs to this split; `key` gives what tells values apart."""
        for _ in range(_TRIES):
            value = draw()
            if split_of(key(value)) == self._split:
                return value
        raise AssertionError(f"{_TRIES} draws without a value of split {self._split!r}")

    def filled(self, pattern: str) -> str:
        """`pattern` with a random value in each `{slot}`; a digit at a slot's end only tells it from its twin."""
        return re.sub(r"\{([a-z]+)\d?\}", lambda match: self._slot(match[1]), pattern)

    def _short(self, draw: Callable[[], str], longest: int) -> str:
        """A draw that keeps the whole conversation, where the text stands three times, within 1000 tokens."""
        while len(text := draw()) > longest:
            pass
        return text

    def _number(self, signed: bool) -> str:
        rng = self.rng
        whole = rng.choice((rng.randint(2, 99), rng.randint(2, 999), rng.randint(100, 9999)))
        text = str(whole)
        if rng.random() < 0.45:
            text += rng.choice((f".{rng.randint(1, 9)}", f".{rng.randint(0, 9)}{rng.randint(1, 9)}"))
        return f"-{text}" if signed and whole < 100 and rng.random() < 0.25 else text

    def _phone(self) -> str:
        rng = self.rng
        area, line = rng.randint(201, 989), f"{rng.randint(100, 199):04d}"
        us = ("({a}) 555-{n}", "{a}-555-{n}", "{a}.555.{n}", "{a} 555 {n}", "{a}555{n}", "+1{a}555{n}")
        two = f"{rng.randint(0, 999):03d}"
        pair, other = f"{rng.randint(0, 99):02d}", f"{rng.randint(0, 99):02d}"
        style = rng.choice(("us", "us", "us", "uk", "de", "fr"))
        if style == "us":
            return rng.choice(us).format(a=area, n=line)
        if style == "uk":
            return rng.choice(("07700 900{n}", "07700900{n}", "+447700900{n}")).format(n=two)
        if style == "de":
            return rng.choice(("030 23125{n}", "+493023125{n}", "030/23125-{n}", "03023125{n}")).format(n=two)
        return rng.choice(("063998{p}{q}", "+3363998{p}{q}", "06.39.98.{p}.{q}")).format(p=pair, q=other)

    def _email(self) -> str:
        rng = self.rng
        ascii_names = [name.lower() for name in words.FIRST_NAMES if name.isascii()]
        last = rng.choice([name.lower() for name in words.LAST_NAMES if name.isascii() and name.isalpha()])
        first, number = rng.choice(ascii_names), rng.randint(1, 99)
        user = rng.choice((first, f"{first}.{last}", f"{first[0]}{last}", f"{first}{number}", f"{last}_{number}"))
        return f"{user}@{rng.choice(words.DOMAINS)}"

    def _date(self) -> str:
        rng = self.rng
        day, month = rng.randint(1, 28), rng.choice(words.MONTHS)
        name = month if rng.random() < 0.8 else month[:3]
        year = f" {rng.randint(2029, 2031)}" if rng.random() < 0.25 else ""
        return f"{day} {name}{year}" if rng.random() < 0.5 else f"{name} {day}{year and ','}{year}"

    def _name(self) -> str:
        first = self._one_of(words.FIRST_NAMES)
        return f"{first} {self._one_of(words.LAST_NAMES)}" if self.rng.random() < 0.25 else first

    def _one_of(self, items: Sequence[str]) -> str:
        return self.own(lambda: self.rng.choice(items))

    def _time(self) -> str:
        rng = self.rng
        hour, minute = rng.randint(1, 12), rng.randint(0, 59)
        return rng.choice((f"{hour}:{minute:02d}", f"{rng.randint(0, 23):02d}:{minute:02d}", f"{hour}.{minute:02d}"))

    def _slot(self, slot: str) -> str:
        rng = self.rng
        lists: dict[str, Sequence[str]] = {
            "thing": words.THINGS, "place": words.PLACES, "when": words.WHEN, "street": words.STREETS,
            "adjective": words.ADJECTIVES, "noun": words.NOUNS, "verb": words.VERBS, "adverb": words.ADVERBS,
            "a": words.FOREIGN_NOUNS,
        }  # fmt: skip
        if slot in lists:
            return rng.choice(lists[slot])
        if slot == "code":
            letters = "".join(rng.choices("ABCDEFGHKLMNPRSTVWXYZ", k=2))
            return f"{letters}{rng.choice(('-', '', ' '))}{rng.randint(10, 999)}"
        draws: dict[str, Callable[[], str]] = {
            "name": lambda: self._one_of(words.FIRST_NAMES),
            "city": lambda: rng.choice(words.CITIES),
            "time": self._time,
            "small": lambda: str(rng.randint(2, 12)),
            "number": lambda: str(rng.randint(13, 999)),
        }
        return draws[slot]()

    def _message(self) -> str:
        rng = self.rng
        greeting = self.filled(rng.choice(words.GREETINGS)) if rng.random() < 0.25 else ""
        text = self._sentence(words.STATEMENTS, capital=not greeting.endswith(","))
        if rng.random() < 0.4:
            text = text.rstrip(".")
        elif len(text) < 35 and rng.random() < 0.5:
            text += " " + self.filled(rng.choice(words.SIGN_OFFS))
        return f"{greeting} {text}".lstrip()

    def _text(self) -> str:
        rng = self.rng
        if rng.random() < 0.15:
            return self._sentence(words.FOREIGN)
        text = self._sentence(words.PROSE if rng.random() < 0.7 else words.STATEMENTS)
        if rng.random() < 0.2:
            text += " " + self._sentence(words.PROSE)
        elif rng.random() < 0.5:
            text = text.rstrip(".")
        return text.lower() if rng.random() < 0.1 else text

    def _sentence(self, patterns: Sequence[str], capital: bool = True) -> str:
        text = self.filled(self.rng.choice(patterns))
        if capital and self.rng.random() < 0.8:
            text = text[0].upper() + text[1:]
        return text if text[-1] in "?!." else text + "."
