"""Is the tokenizer of a bundle the model's own? Compared id for id on 12,000 texts that are the same every time.

The texts are of six kinds: scripts of the world (and mixtures of them), source code, emoji and their joiners, JSON,
control text (the markers of turns and calls, whole, cut and nested in words), and single code points from all of
Unicode with odd white space. None holds the character of code 0, at which the runtime's interface ends a text.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PER_KIND = 2_000
"""Texts of each kind."""
_SHOWN = 3
_SCRIPTS = (
    "the quick brown fox don't it's I'll naïve café",
    "Größe Straße ÄÖÜ œuvre ¿qué? İstanbul ığdır",
    "Ελληνικά ό,τι καλημέρα Привет объём ёлка Україна їжак",
    "مرحبا بالعالم ٣٤٥ שלום עולם ניקוד בְּרֵאשִׁית",
    "नमस्ते दुनिया क्षत्रिय বাংলা தமிழ் తెలుగు ಕನ್ನಡ മലയാളം",
    "ภาษาไทยไม่มีช่องว่าง ພາສາລາວ မြန်မာ ខ្មែរ",
    "東京都に住んでいます カタカナ ﾊﾝｶｸ 中文简体 繁體中文 한국어 조선말",
    "ქართული հայերեն አማርኛ ᏣᎳᎩ ᠮᠣᠩᠭᠣᠯ བོད་ཡིག",
    "x² ½ ∑∫√ ≤≥≠ → ⇒ ℝ №5 €10 £3 ¥7 ﬁ ﬂ Å e\u0301 A\u030a",
)
_CODE = (
    "def f(x: int) -> str:\n    return f'{x!r:>10}'\n",
    "\tfor (int i = 0; i < n; ++i) { a[i] <<= 2; }\n",
    "if (a && b || !c) { return a?.b ?? c; } // why",
    "SELECT * FROM t WHERE a >= 10 AND b LIKE '%x_';",
    "#!/bin/sh\nset -e; cat \"$1\" | grep -E '^[a-z]+$' >> out.txt 2>&1",
    "<div class='a b'>&amp; &lt;p&gt; <!-- no --></div>",
    'let r#type: Vec<&\'static str> = vec!["a"; 3];',
    "key: value\n  - item\n  - {a: 1, b: [2, 3]}\n",
    "https://example.org/a/b?q=1&r=%20#frag user@mail.example",
    "0x1F 1e-10 1_000_000 3.14159 192.168.0.1 2024-02-29T12:00:00Z",
)
_EMOJI = (
    *"😀😂🥲🤖👍🎉🔥🚀🌍🍕⌚☎✂❤♟🀄🃏",
    "❤️",
    "👍🏽",
    "👩‍👩‍👧‍👦",
    "🏳️‍🌈",
    "🇩🇪",
    "🇯🇵",
    "1️⃣",
    "🧑🏿‍🚀",
    "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
)
_CONTROL = (
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "</tool_call>", "<tool_response>"),
    *("</tool_response>", "<think>", "</think>", "<tools>", "</tools>", "<bos>", "<eos>", "<pad>", "<unk>", "<s>"),
    *("</s>", "<start_of_turn>", "<end_of_turn>", "<|user|>", "<|assistant|>", "[INST]", "[/INST]", "<0x0A>", "▁"),
    *("Ġ", "Ċ", "<unused0>", "<|file_separator|>", "<repo_name>", "< |im_start|>", "<\\/tool_call>"),
)
_GLUE = ("", "", " ", " ", "  ", "\n", "\n\n", "\t", "-", "_", ".", ", ", "'s ", "\u00a0", "\u200d")
_SPACES = (" ", "   ", "\n", "\r\n", "\t\t", "\u00a0", "\u2003", "\u3000", "\u200b", "\ufeff", "\x0b", "\x7f", "\x01")


@dataclass(frozen=True)
class Difference:
    """A text that two tokenizers write with different ids."""

    kind: str
    text: str
    expected: list[int]
    found: list[int]


def texts() -> dict[str, list[str]]:
    """The texts by kind, `PER_KIND` distinct ones each."""
    makers: Mapping[str, Callable[[random.Random], str]] = {
        "scripts": _script,
        "code": lambda chance: _pasted(chance, _CODE, 3),
        "emoji": lambda chance: _pasted(chance, (*_EMOJI, *_EMOJI, "ok", "Zürich", "東京"), 6),
        "JSON": lambda chance: json.dumps(_value(chance, 3), ensure_ascii=chance.random() < 0.3),
        "control text": _control,
        "code points": _code_points,
    }
    found: dict[str, list[str]] = {}
    for kind, make in makers.items():
        chance = random.Random(f"tokenizer parity {kind}")
        distinct: dict[str, None] = {}
        while len(distinct) < PER_KIND:
            distinct[make(chance)] = None
        found[kind] = list(distinct)
    return found


def differences(
    tokenizer: PreTrainedTokenizerFast, tokenize: Callable[[str], Sequence[int]], asked: Mapping[str, list[str]]
) -> list[Difference]:
    """The texts of `asked` (by kind) to which `tokenize` gives other ids than `tokenizer` without special tokens."""
    found = []
    for kind, group in asked.items():
        for text, expected in zip(group, tokenizer(group, add_special_tokens=False)["input_ids"], strict=True):
            ids = list(tokenize(text))
            if ids != expected:
                found.append(Difference(kind, text, expected, ids))
    return found


def described(found: Sequence[Difference]) -> str:
    """How many texts differ, of which kinds, and the shortest few with their ids."""
    counts = ", ".join(f"{count} of {kind}" for kind, count in Counter(each.kind for each in found).items())
    shortest = sorted(found, key=lambda each: len(each.text))[:_SHOWN]
    shown = "; ".join(f"{each.text!r}: {each.found} where the model has {each.expected}" for each in shortest)
    return f"{len(found)} texts differ ({counts}), such as {shown}"


@dataclass(frozen=True)
class PackedTokenizer:
    """The tokenizer file that goes into a bundle."""

    path: Path
    """A `tokenizer.json`, or a SentencePiece model."""
    reason: str
    """Why it is that one."""
    read_as_text: frozenset[str] = frozenset()
    """Names of tokens, such as `<bos>`, which this file takes for plain text when a text holds them; the model's
    tokenizer takes them for the tokens. Texts with them are not compared: a prompt should hold none.
    """


def comparable_texts(packed: PackedTokenizer) -> dict[str, list[str]]:
    """The texts of each kind that a bundle with this file is compared on."""
    return _without(texts(), packed.read_as_text)


def choose_tokenizer(model: Path, source: Path, tokenizer: PreTrainedTokenizerFast) -> PackedTokenizer:
    """The source's SentencePiece model where there is one that gives the model's ids, else `tokenizer.json`.

    Args:
        model: folder of the merged model.
        source: what the model was tuned from; a folder may have a `tokenizer.model`.
        tokenizer: the merged model's.
    """
    pieces, plain = source / "tokenizer.model", model / "tokenizer.json"
    if not pieces.is_file():
        return PackedTokenizer(plain, "the source has no SentencePiece model")
    from sentencepiece import SentencePieceProcessor

    try:
        processor = SentencePieceProcessor(model_file=str(pieces))
    except (OSError, RuntimeError) as error:
        return PackedTokenizer(plain, f"the source's {pieces.name} cannot be read: {error}")
    read = (processor.is_control, processor.is_unknown)
    names = {processor.id_to_piece(i) for i in range(processor.vocab_size()) if any(each(i) for each in read)}
    found = differences(tokenizer, processor.encode, _without(texts(), names))
    if found:
        return PackedTokenizer(plain, f"the source's {pieces.name} is not the model's: {described(found)}")
    return PackedTokenizer(pieces, f"the source's {pieces.name} gives the model's ids", frozenset(names))


def _without(asked: Mapping[str, list[str]], names: Collection[str]) -> dict[str, list[str]]:
    """The texts that hold none of `names`."""
    return {kind: [text for text in group if not any(name in text for name in names)] for kind, group in asked.items()}


def _pasted(chance: random.Random, parts: Sequence[str], most: int) -> str:
    """Some of `parts`, with something between them, in places cut."""
    text = ""
    for _ in range(chance.randint(1, most)):
        part = chance.choice(parts)
        if chance.random() < 0.4:
            start = chance.randrange(len(part))
            part = part[start : start + chance.randint(1, len(part))]
        text += part + chance.choice(_GLUE)
    return text


def _script(chance: random.Random) -> str:
    words = [word for line in chance.sample(_SCRIPTS, chance.randint(1, 2)) for word in line.split()]
    return _pasted(chance, words, 8)


def _control(chance: random.Random) -> str:
    return _pasted(chance, (*_CONTROL, *_CONTROL, "user", '{"name": "x"}', "Hello,", "東京", "1"), 5)


def _code_points(chance: random.Random) -> str:
    """Any assigned or unassigned code point but a surrogate, with white space of all kinds."""
    text = ""
    for _ in range(chance.randint(1, 8)):
        code = chance.choice((chance.randrange(0x80), chance.randrange(0x3000), chance.randrange(0x110000)))
        text += " " if 0xD800 <= code < 0xE000 or code == 0 else chr(code)
        text += chance.choice(_SPACES) if chance.random() < 0.3 else ""
    return text


def _value(chance: random.Random, depth: int) -> object:
    """A JSON value of any type."""
    kind = chance.randrange(7 if depth else 5)
    if kind == 5:
        return [_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind == 6:
        return {_script(chance).strip(): _value(chance, depth - 1) for _ in range(chance.randrange(4))}
    return (_script(chance), chance.randint(-(10**6), 10**6), round(chance.uniform(-9, 9), 3), None, True)[kind]
