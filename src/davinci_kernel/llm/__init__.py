"""Engines behind one `LLM` protocol; chat rendering; our own small models."""

from ._chat import end_of_turn, extend_prompt, render_prompt, render_with_mask
from ._openai import OpenAILLM
from ._rows import Row, conversation_texts, read_rows, write_rows
from ._small import save_model, small_model, train_tokenizer
from ._template import SMALL_CHAT_TEMPLATE
from ._tool_calls import ToolCall, call_from_object, calls_in_text
from ._transformers import TransformersLLM
from ._types import LLM, Completion, Message, SamplingParams, ToolSchema

__all__ = [
    "LLM",
    "SMALL_CHAT_TEMPLATE",
    "Completion",
    "Message",
    "OpenAILLM",
    "Row",
    "SamplingParams",
    "ToolCall",
    "ToolSchema",
    "TransformersLLM",
    "call_from_object",
    "calls_in_text",
    "conversation_texts",
    "end_of_turn",
    "extend_prompt",
    "read_rows",
    "render_prompt",
    "render_with_mask",
    "save_model",
    "small_model",
    "train_tokenizer",
    "write_rows",
]
