"""What the bundle tells the runtime about the model: template, parser, fences, stop tokens, sampler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.errors import UserError
from export.call_format import ChatTemplate, probe_calls
from export.template_features import without_generation_tags
from hermes import Dialect

MINIMUM_RUNTIME = "0.11.0"
"""The oldest LiteRT-LM that a bundle is tried on (`make compat`)."""


def llm_metadata(dialect: Dialect, stop_ids: Sequence[int], cache_length: int) -> bytes:
    """The serialised `LlmMetadata` of a bundle.

    Type, fences and the flag for function calls follow from how the template writes a call (`export.call_format`).
    There is no start token: the runtime would put it in front of a template that already begins with it, and
    the model would see it twice. Sampling from the one best token is greedy; the runtime's own `GREEDY` sampler is
    not implemented for the CPU (0.18.1).

    Args:
        dialect: gives the template.
        stop_ids: token ids, each of which ends a reply.
        cache_length: tokens that a conversation may have.

    Raises:
        UserError: the template writes a call otherwise than the dialect reads it, or no call at all.
    """
    from litert_lm_builder.runtime.proto import llm_metadata_pb2, sampler_params_pb2

    template = without_generation_tags(dialect.chat_template())
    model_type, calls = _model_type(template, dialect)
    metadata = llm_metadata_pb2.LlmMetadata(
        max_num_tokens=cache_length,
        jinja_prompt_template=template,
        llm_model_type=model_type,
        sampler_params=sampler_params_pb2.SamplerParameters(
            type=sampler_params_pb2.SamplerParameters.TOP_P, k=1, p=1.0, temperature=1.0
        ),
        supports_function_calling=calls,
        min_runtime_version=MINIMUM_RUNTIME,
    )
    for stop_id in stop_ids:
        metadata.stop_tokens.add().token_ids.ids.append(stop_id)
    serialised: bytes = metadata.SerializeToString(deterministic=True)
    return serialised


def _model_type(template: str, dialect: Dialect) -> tuple[Any, bool]:
    """The `LlmModelType`, and whether it parses calls.

    The `qwen3` type is the runtime's parser of one JSON object with `name` and `arguments` between two fences.
    `generic_model` never parses a call; with any other type and empty fences the runtime hangs (0.18.1).
    """
    from litert_lm_builder.runtime.proto import llm_model_type_pb2

    try:
        calls = probe_calls(ChatTemplate(template, eos_token=dialect.stop))
    except ValueError as error:
        raise UserError(f"the {dialect.name} dialect's template cannot be exported: {error}") from None
    if not (calls.is_json and calls.opening and calls.closing):
        return llm_model_type_pb2.LlmModelType(generic_model=llm_model_type_pb2.GenericModel()), False
    if (calls.opening, calls.closing) != dialect.sentinels:
        raise UserError(
            f"the {dialect.name} dialect reads calls between {dialect.sentinels}, its template writes them between "
            f"{(calls.opening, calls.closing)}"
        )
    qwen3 = llm_model_type_pb2.Qwen3(code_fence_start=calls.opening, code_fence_end=calls.closing)
    return llm_model_type_pb2.LlmModelType(qwen3=qwen3), True
