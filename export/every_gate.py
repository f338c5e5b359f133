"""The gates of an export, in the order in which they run: what fails early explains what fails later."""

from __future__ import annotations

from export import constraint_gate, logit_gates, rendering_gates, reply_gates
from export.gates import Gate

GATES: tuple[Gate, ...] = (
    Gate("token ids equal in training, transformers and LiteRT-LM", rendering_gates.check_token_ids),
    Gate("token ids equal in texts of all kinds", rendering_gates.check_texts),
    Gate("cache holds the longest prompt and its answer", rendering_gates.check_cache),
    Gate("logits of the float32 graph", logit_gates.check_float_graph),
    Gate("logits of the bundle's graph", logit_gates.check_bundle_graph),
    Gate("each kind of reply as likely as before", logit_gates.check_sets),
    Gate("first token as the merged model's", reply_gates.check_first_tokens),
    Gate("more than one token is written", reply_gates.check_variety),
    Gate("calls are parsed", reply_gates.check_calls),
    Gate("stop tokens stop", reply_gates.check_stops),
    Gate("second turn as in a fresh conversation", reply_gates.check_second_turn),
    Gate("third turn as in a fresh conversation", reply_gates.check_third_turn),
    Gate("constraint active", constraint_gate.constraint_active),
)
