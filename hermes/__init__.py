"""The language: records, tools, skills' text, dialects. Pure Python, no torch, no files, no network."""

from hermes.coercion import coerce
from hermes.dialects import Dialect, get_dialect, text_of
from hermes.record import (
    Conversation,
    Final,
    Malformed,
    Message,
    Reply,
    Segment,
    Tool,
    ToolCall,
    ToolCalls,
    dumps,
    loads,
)
from hermes.skills import Skill, list_skills
from hermes.validation import unreadable_turns, validate, validate_call, validate_conversation

__all__ = [
    "Conversation",
    "Dialect",
    "Final",
    "Malformed",
    "Message",
    "Reply",
    "Segment",
    "Skill",
    "Tool",
    "ToolCall",
    "ToolCalls",
    "coerce",
    "dumps",
    "get_dialect",
    "list_skills",
    "loads",
    "text_of",
    "unreadable_turns",
    "validate",
    "validate_call",
    "validate_conversation",
]
