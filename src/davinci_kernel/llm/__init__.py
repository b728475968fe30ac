"""Engines behind one `LLM` protocol."""

from ._types import LLM, Completion, Message, SamplingParams, ToolSchema

__all__ = ["LLM", "Completion", "Message", "SamplingParams", "ToolSchema"]
