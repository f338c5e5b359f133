"""The card beside a bundle: what it is, and how to get it onto the phone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.recipe import Recipe
from hermes.gallery_tools import GALLERY_TOOLS


def card(recipe: Recipe, file_name: str, size: int, digest: str, facts: Mapping[str, Any]) -> str:
    """Markdown for the file `file_name` of `size` bytes and SHA-256 `digest`; `facts` fills the last table."""
    tools = ", ".join(f"`{tool.name}`" for tool in GALLERY_TOOLS)
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    return f"""# {file_name}

A small model for AI Edge Gallery's Agent Skills and for LiteRT-LM, tuned from `{recipe.model.source}`.
{size / 1e6:.0f} MB, SHA-256 `{digest}`.

## Put it on the phone

1. Copy `{file_name}` to the phone, for example with `adb push {file_name} /sdcard/Download/`.
2. In AI Edge Gallery open the model list, tap **+** and choose the file.
3. In the import dialog set **Max tokens** to **{min(recipe.export.cache_length, 4096)}**. It starts at 1024, which is
   less than the skills prompt, the tools and one loaded skill need, and cannot be changed after the import.
4. Leave **image** and **audio** support off: the bundle has text only.
5. Open **Agent Skills**, choose the model, and select the skills.

Decoding is greedy in the app. The model was trained for one call a turn of {tools}.

## Run it on a computer

```
hermes-edge run {file_name}
```

## What is inside

| fact | value |
| --- | --- |
| recipe | {recipe.name}, seed {recipe.seed} |
| call syntax | `hermes`: JSON between `<tool_call>` and `</tool_call>`; runtime parser `qwen3` |
| cache | {recipe.export.cache_length} tokens |
| weights | {recipe.export.quantization} |
{rows}
"""
