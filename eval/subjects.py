"""The models that can be evaluated: base, tuned, bundle."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from core.files import file_hash
from core.models import choose_dtype, materialise, resolve_source
from core.recipe import Recipe
from core.stages import Run, need_stage
from hermes import get_dialect
from hermes.record import JSON
from runtime.backend import Backend

MODELS = ("base", "tuned", "bundle")
CONSTRAINED = "constrained"
"""The bundle under its constraint; evaluated only where it is asked for."""


@dataclass(frozen=True)
class Subject:
    """One model that can be evaluated."""

    name: str
    """One of `MODELS`, or `CONSTRAINED`."""
    weights: str
    """Hash of what answers."""
    package: str
    """The library that runs it."""
    settings: Mapping[str, JSON]
    """What the recipe's evaluation says that decides its replies."""
    open: Callable[[], Backend]
    """Loads it."""

    @contextmanager
    def opened(self) -> Iterator[Backend]:
        """The loaded model, closed at the end."""
        backend = self.open()
        try:
            yield backend
        finally:
            close = getattr(backend, "close", None)
            if close is not None:
                close()


def need_model(name: str, recipe: Recipe, run: Run) -> None:
    """Do nothing if the model `name` of this recipe is there.

    Raises:
        UserError: it is not; the message says why.
    """
    if name == "base":
        return
    need_stage(run.training, "hermes-edge train", recipe.training_inputs())
    if name in ("bundle", CONSTRAINED):
        weights = run.training / "merged" / "model.safetensors"
        model = [file_hash(weights), file_hash(weights.parent / "tokenizer.json")]
        need_stage(run.export, "hermes-edge export", {"export": recipe.export.model_dump(mode="json"), "model": model})


def bundle_path(recipe: Recipe, run: Run) -> Path:
    """Where the recipe's bundle is."""
    return run.export / f"{recipe.name}.litertlm"


def subject(name: str, recipe: Recipe, run: Run) -> Subject:
    """The model `name`, which must be there."""
    limit = {"max_new_tokens": recipe.evaluation.max_new_tokens}
    if name in ("bundle", CONSTRAINED):
        bundle = bundle_path(recipe, run)
        constrained = name == CONSTRAINED
        said = limit | ({"constraint": "the conversation's tools"} if constrained else {})
        return Subject(name, file_hash(bundle), "litert-lm-api", said, lambda: _litert(recipe, bundle, constrained))
    settings = limit | {"batch_size": recipe.evaluation.batch_size, "precision": _precision(recipe)}
    merged = run.training / "merged"
    tuned = name == "tuned"
    weights = file_hash(merged / "model.safetensors") if tuned else resolve_source(recipe.model)[1]

    def load() -> Backend:
        return _transformers(recipe, merged if tuned else materialise(recipe.model), name)

    return Subject(name, weights, "transformers", settings, load)


def _precision(recipe: Recipe) -> str:
    """The recipe's precision on this machine; torch is loaded only where it must say."""
    asked = recipe.evaluation.precision
    return str(choose_dtype(asked, on_cpu=True)).removeprefix("torch.") if asked == "auto" else asked


def _transformers(recipe: Recipe, folder: Path, name: str) -> Backend:
    from runtime.transformers_backend import TransformersBackend

    return TransformersBackend.from_folder(
        folder,
        get_dialect(recipe.dialect),
        batch_size=recipe.evaluation.batch_size,
        max_new_tokens=recipe.evaluation.max_new_tokens,
        precision=recipe.evaluation.precision,
        trust_remote_code=recipe.model.trust_remote_code,
        name=name,
    )


def _litert(recipe: Recipe, bundle: Path, constrained: bool) -> Backend:
    from runtime.litert_backend import LiteRTBackend

    limit = recipe.evaluation.max_new_tokens
    return LiteRTBackend(bundle, recipe.dialect, limit, threads=os.cpu_count(), constrained=constrained)
