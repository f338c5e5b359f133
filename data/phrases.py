"""How people ask for a shipped skill, a set of phrasings for each split, and how a phrasing becomes a request.

A core is written in lower case and without final punctuation, with `{slots}`. A core that ends in a
question mark is a question; one that begins with a slot, or holds no verb, still reads as a request.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from data.values import Split

CORES: dict[str, dict[Split, tuple[str, ...]]] = {
    "unit-converter": {
        "train": (
            "convert {value} {from} to {to}",
            "how many {to} are {value} {from}?",
            "what is {value} {from} in {to}?",
            "change {value} {from} into {to}",
            "tell me how many {to} there are in {value} {from}",
            "{value} {from} to {to}",
            "i have {value} {from}, how much is that in {to}?",
            "turn {value} {from} into {to}",
            "give me {value} {from} in {to}",
            "how much is {value} {from} in {to}?",
            "work out what {value} {from} makes in {to}",
            "my recipe says {value} {from} but i think in {to}, what is it?",
            "express {value} {from} in {to}",
            "the sign shows {value} {from}, what would that be in {to}?",
            "calculate {value} {from} in {to}",
            "if something measures {value} {from}, how many {to} is it?",
            "find the {to} for {value} {from}",
            "unit conversion: {value} {from} into {to}",
            "i wrote down {value} {from} and need {to}",
        ),
        "validation": (
            "show {value} {from} as {to}",
            "what does {value} {from} come to in {to}?",
            "i need {to}, not {from}: {value} {from}",
            "switch {value} {from} over to {to}",
            "{value} {from} equals how many {to}?",
        ),
        "test": (
            "rewrite {value} {from} using {to}",
            "how would i say {value} {from} in {to}?",
            "translate a measurement of {value} {from} into {to}",
            "{value} {from} in {to}",
            "let me know what {value} {from} is when measured in {to}",
            "my manual gives {value} {from}, can i have it in {to}?",
            "swap the units of {value} {from} for {to}",
            "how many {to} do i get out of {value} {from}?",
        ),
    },
    "word-counter": {
        "train": (
            'count the words in "{text}"',
            'how many words are in "{text}"?',
            "count the words of this text: {text}",
            'how long is "{text}"?',
            'tell me how many words and characters "{text}" has',
            "word count for: {text}",
            "how many characters are in this: {text}",
            'give me the number of words in "{text}"',
            'count the letters and words of "{text}"',
            'i wrote "{text}", how many words is that?',
            "here is my sentence, count its words: {text}",
            'measure the length of "{text}" in words',
            'does "{text}" have many words? count them',
            "what is the character count of: {text}",
            'work out how many words "{text}" contains',
            'number of words: "{text}"',
            "my headline must be short, how many characters has it got: {text}",
            'run a word count on "{text}"',
            "i need the length of this text: {text}",
        ),
        "validation": (
            'what is the word count of "{text}"?',
            "please check how many words this has: {text}",
            'how wordy is "{text}"? give me a count',
            "length check: {text}",
            'find out the number of characters in "{text}"',
        ),
        "test": (
            'how many words does "{text}" consist of?',
            "tally the words below: {text}",
            'is "{text}" long? tell me its words and characters',
            'say how many words i used in "{text}"',
            "character and word totals for this line: {text}",
            'my caption is "{text}", how many characters is it?',
            "take this text and count it: {text}",
            'get me the size of "{text}" in words and characters',
        ),
    },
    "text-message": {
        "train": (
            'text {phone_number} "{sms_body}"',
            "send a text to {phone_number}: {sms_body}",
            'send an sms to {phone_number} saying "{sms_body}"',
            'text {name} at {phone_number} and say "{sms_body}"',
            "message {phone_number} with this: {sms_body}",
            'write "{sms_body}" to {phone_number}',
            'send "{sms_body}" to {phone_number}',
            "send a message to {name}, number {phone_number}: {sms_body}",
            'sms to {phone_number}: "{sms_body}"',
            'let {name} know by text on {phone_number}: "{sms_body}"',
            "shoot a text over to {phone_number}, it should read: {sms_body}",
            'text the number {phone_number} with the words "{sms_body}"',
            "compose a text message for {phone_number}: {sms_body}",
            '{name} has the number {phone_number}, text "{sms_body}"',
            'send {name} ({phone_number}) the message "{sms_body}"',
            "new text for {phone_number}. message: {sms_body}",
            'i want to text {phone_number} "{sms_body}"',
            'message {name} on {phone_number} that says "{sms_body}"',
            "sms {phone_number}, text: {sms_body}",
        ),
        "validation": (
            'drop a text to {phone_number} with "{sms_body}"',
            "tell {phone_number} by sms: {sms_body}",
            'put "{sms_body}" in a text to {name}, {phone_number}',
            'the message "{sms_body}" should go to {phone_number}',
            "text message, number {phone_number}, body: {sms_body}",
        ),
        "test": (
            'fire off an sms to {phone_number} reading "{sms_body}"',
            "get this to {name} via text, {phone_number}: {sms_body}",
            'make a text to {phone_number} that reads "{sms_body}"',
            'deliver the text "{sms_body}" to the phone {phone_number}',
            "text to {phone_number}, content as follows: {sms_body}",
            'reach {name} at {phone_number} by text message with "{sms_body}"',
            'have "{sms_body}" sent by sms to {phone_number}',
            "write an sms for {name} to {phone_number}: {sms_body}",
        ),
    },
}

_OPENERS = ("", "", "", "", "please ", "hey, ", "hi, ", "ok, ", "hello! ", "quick one: ", "one thing: ", "so, ")
_REQUEST_ENDS = (".", ".", "", "", "", " please", ", please.", ", thanks", ". thank you!")
_QUESTION_ENDS = ("?", "?", "?", "", "? thanks")

_VERBS = re.compile(
    "(add|block|book|calculate|call|change|compose|convert|correct|count|delete|deliver|dial|divide|drop|exchange|"
    "express|fire|get|give|have|let|mail|make|measure|message|multiply|order|play|put|reach|read|recommend|remind|"
    "rewrite|run|save|say|schedule|send|set|shoot|show|sing|start|summarise|swap|switch|take|tally|tell|text|"
    "translate|turn|wake|work|write) "
)
"""First words that can follow "please"."""

_SLOT = re.compile(r"(\{[a-z_]+\d?\})")
_OPEN_END = re.compile(r"[:.,] \{(text|sms_body)\}$")


def phrase(core: str, values: Mapping[str, str], rng: random.Random) -> str:
    """A request: opener, `core` and closer, in some style of typing, with `values` filled in unchanged.

    Nothing follows a value that ends the core without quotes, since it would read as part of the value.
    """
    question = core.endswith("?")
    opener = rng.choice(_OPENERS)
    end = "" if _OPEN_END.search(core) else rng.choice(_QUESTION_ENDS if question else _REQUEST_ENDS)
    if opener == "please " and ("?" in core or not _VERBS.match(core)):
        opener = ""
    pieces = _SLOT.split(opener + core.removesuffix("?") + end)
    pieces[0::2] = _typed(pieces[0::2], rng)
    return "".join(values[piece[1:-1]] if number % 2 else piece for number, piece in enumerate(pieces))


def _typed(pieces: list[str], rng: random.Random) -> list[str]:
    """The fixed text of a request as somebody types it: most with capitals, some without, a few with a slip."""
    if rng.random() < 0.1:
        pieces = _with_typo(pieces, rng)
    if rng.random() < 0.3:
        return pieces
    pieces = [re.sub(r"\bi\b", "I", piece) for piece in pieces]
    pieces = [re.sub(r"([.!?] )([a-z])", lambda match: match[1] + match[2].upper(), piece) for piece in pieces]
    pieces[0] = pieces[0][:1].upper() + pieces[0][1:]
    return pieces


def _with_typo(pieces: list[str], rng: random.Random) -> list[str]:
    """`pieces` with two letters of one longer word swapped, or one left out."""
    found = [(n, match) for n, piece in enumerate(pieces) for match in re.finditer(r"[a-z]{5,}", piece)]
    if not found:
        return pieces
    number, match = rng.choice(found)
    at = rng.randrange(match.start() + 1, match.end() - 1)
    piece = pieces[number]
    slip = piece[at + 1] + piece[at] if rng.random() < 0.5 else piece[at + 1]
    changed = piece[:at] + slip + piece[at + 2 :]
    return [*pieces[:number], changed, *pieces[number + 1 :]]
