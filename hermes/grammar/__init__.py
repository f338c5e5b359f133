"""Grammars from tools: free text stays free, and a call can only be a valid one of a known tool."""

from hermes.grammar.bounds import Bounds, Finding
from hermes.grammar.grammar import Grammar, compile
from hermes.grammar.lint import lint

__all__ = ["Bounds", "Finding", "Grammar", "compile", "lint"]
