"""What the bundle tells the runtime about the model: template, parser, fences, stop token, sampler."""

from __future__ import annotations

from hermes import Dialect

MINIMUM_RUNTIME = "0.11.0"
"""The oldest LiteRT-LM that a bundle is tried on (`make compat`)."""


def llm_metadata(dialect: Dialect, stop_id: int, cache_length: int) -> bytes:
    """The serialised `LlmMetadata` of a bundle.

    The `qwen3` type selects the runtime's JSON parser between two fences; other types either never parse
    a call or expect another syntax. There is no start token: the runtime would put it in front of a
    template that already begins with it, and the model would see it twice. Sampling from the one best
    token is greedy; the runtime's own `GREEDY` sampler is not implemented for the CPU (0.18.1).

    Args:
        dialect: gives template and fences.
        stop_id: token id of the end of an assistant turn.
        cache_length: tokens that a conversation may have.
    """
    from litert_lm_builder.runtime.proto import llm_metadata_pb2, llm_model_type_pb2, sampler_params_pb2

    opening, closing = dialect.sentinels
    metadata = llm_metadata_pb2.LlmMetadata(
        max_num_tokens=cache_length,
        jinja_prompt_template=dialect.chat_template(),
        llm_model_type=llm_model_type_pb2.LlmModelType(
            qwen3=llm_model_type_pb2.Qwen3(code_fence_start=opening, code_fence_end=closing)
        ),
        sampler_params=sampler_params_pb2.SamplerParameters(
            type=sampler_params_pb2.SamplerParameters.TOP_P, k=1, p=1.0, temperature=1.0
        ),
        supports_function_calling=True,
        min_runtime_version=MINIMUM_RUNTIME,
    )
    metadata.stop_tokens.add().token_ids.ids.append(stop_id)
    serialised: bytes = metadata.SerializeToString(deterministic=True)
    return serialised
