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
            "can {value} {from} be given in {to}?",
            "do you know what {value} {from} is in {to}?",
            "{value} {from} is how much in {to}?",
            "please do {value} {from} to {to} for me",
            "the label reads {value} {from} and i only know {to}",
            "i am used to {to}, so what is {value} {from}?",
            "could you put {value} {from} in {to}?",
            "is {value} {from} a lot? say it in {to}",
            "{from} to {to}: {value}",
            "in {to}, how big is {value} {from}?",
            "our teacher asks for {value} {from} expressed as {to}",
            "how do {value} {from} look in {to}?",
            "the parcel is {value} {from}, tell me the {to}",
            "make {value} {from} into {to}",
            "i measured {value} {from}, what does that mean in {to}?",
            "help me with {value} {from}, i want {to}",
            "let us see {value} {from} in {to}",
            "which number of {to} is the same as {value} {from}?",
            "a friend told me {value} {from}, but in {to} that is what?",
            "compute how many {to} there are in {value} {from}",
            "the forecast says {value} {from}, i think in {to}",
            "need {value} {from} as {to}",
            "from {from} to {to}, the number is {value}",
            "what would {value} {from} be called in {to}?",
            "my scale shows {value} {from}, and in {to}?",
            "it is {value} {from} to the end, how many {to} are those?",
            "be so kind and convert {value} {from} for me, i need {to}",
            "quick conversion, {value} {from}, {to}",
            "you see {value} {from} here, now the same in {to}",
            "can you convert {value} {from} into {to}?",
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
            'can you count the words of "{text}"?',
            "words in this: {text}",
            "count please: {text}",
            'how many letters does "{text}" come to?',
            "how much text is this, in words: {text}",
            'is "{text}" under ten words?',
            'check the number of words in "{text}"',
            'what number of words do you find in "{text}"?',
            '"{text}" has how many words?',
            '"{text}", and how many characters is that?',
            'my teacher wants the word count of "{text}"',
            'look at "{text}" and count its words',
            'the title is "{text}", count its characters',
            "i have to stay short, so count this: {text}",
            "let me have the count of words here: {text}",
            'add up the words in "{text}"',
            'for my essay, how many words are there in "{text}"?',
            "sum the words and characters of this: {text}",
            "you get a sentence, i get its word count: {text}",
            'could you count how many characters "{text}" has?',
            "characters and words, please: {text}",
            "do a count on this text: {text}",
            'the post says "{text}", how long is it?',
            'read "{text}" and give its number of words',
            'need the words counted in "{text}"',
            "would you count this for me: {text}",
            'whether it fits depends on its words, so count "{text}"',
            '"{text}", count it',
            'let us count the words of "{text}"',
            'what does "{text}" add up to in words?',
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
            'can you text {phone_number} "{sms_body}"?',
            'could you send "{sms_body}" to the number {phone_number}?',
            "please text {name} on {phone_number}: {sms_body}",
            "a text to {phone_number} please: {sms_body}",
            '{phone_number} should get the message "{sms_body}"',
            'text "{sms_body}" to {name}, the number is {phone_number}',
            "write {name} at {phone_number}: {sms_body}",
            "tell {name} by sms, {phone_number}: {sms_body}",
            "i have to send {phone_number} a text, it says: {sms_body}",
            'would you send a text that says "{sms_body}" to {phone_number}?',
            'my friend {name} has {phone_number}, send "{sms_body}"',
            "sms for {name}, {phone_number}: {sms_body}",
            "prepare a text for {phone_number}: {sms_body}",
            "send this by text to {phone_number}: {sms_body}",
            "message for {phone_number}: {sms_body}",
            'please get a text ready, to {phone_number}, saying "{sms_body}"',
            "i would like to text {name} at {phone_number}: {sms_body}",
            "let {phone_number} know: {sms_body}",
            'say "{sms_body}" to {name} in a text, the number is {phone_number}',
            'number {phone_number}, message "{sms_body}", send it',
            'ping {phone_number} with the text "{sms_body}"',
            "text {phone_number}: {sms_body}",
            'start a text to {phone_number}, with the words "{sms_body}"',
            '"{sms_body}", please send that to {phone_number}',
            "draft an sms to {name} on {phone_number}: {sms_body}",
            'help me text {phone_number} with "{sms_body}"',
            'use sms to send "{sms_body}" to {phone_number}',
            'open a text to {phone_number} and write "{sms_body}"',
            "answer {name} on {phone_number} with a text: {sms_body}",
            'i owe {name} a text at {phone_number}, write "{sms_body}"',
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
