"""Batched decoding over a key-value cache: prefill each distinct prompt once, then one token per step and row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from ._sampling import draw, uniforms
from ._types import SamplingParams

_COMPACT_BELOW = 0.75  # copying the cache pays once this share of its rows is still being written
_ROOM = 128  # positions by which a full cache grows


@dataclass(frozen=True)
class Request:
    """A prompt, and how to continue it by `limit` tokens at most; `on_token` sees each id as it is sampled."""

    prompt_ids: tuple[int, ...]
    params: SamplingParams
    limit: int
    on_token: Callable[[int], object] | None = None


@dataclass
class Generated:
    """Sampled ids with their log-probabilities; see `Completion`."""

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish_reason: Literal["stop", "length"] = "length"


@torch.inference_mode()
def generate(model: Any, requests: Sequence[Request], stop_ids: AbstractSet[int], pad_id: int) -> list[Generated]:
    """Continue every prompt until a stop token or its limit. The model is in eval mode meanwhile."""
    was_training = model.training
    model.eval()
    try:
        return _decode(model, requests, stop_ids, pad_id)
    finally:
        model.train(was_training)


def _decode(model: Any, requests: Sequence[Request], stop_ids: AbstractSet[int], pad_id: int) -> list[Generated]:
    device = model.device
    results = [Generated() for _ in requests]
    rows = list(range(len(requests)))
    logits_BV, cache, padding_B = _prefill(model, [r.prompt_ids for r in requests], pad_id)
    length = cache.get_seq_length()
    temperature_B = torch.tensor([r.params.temperature for r in requests], dtype=torch.float32, device=device)
    top_p_B = torch.tensor([r.params.top_p for r in requests], dtype=torch.float64, device=device)
    uniform_BS = torch.zeros(len(requests), max(r.limit for r in requests), dtype=torch.float64)
    for row, request in enumerate(requests):
        uniform_BS[row, : request.limit] = uniforms(request.limit, request.params.seed)
    uniform_BS = uniform_BS.to(device)
    truncate = any(r.params.top_p < 1 for r in requests)
    greedy = any(r.params.temperature == 0 for r in requests)
    padded = bool(padding_B.any())

    for step in range(uniform_BS.shape[1]):
        tokens_B, logprobs_B = draw(
            logits_BV, temperature_B, top_p_B, uniform_BS[:, step], truncate=truncate, greedy=greedy
        )
        alive = []
        for position, (row, token, logprob) in enumerate(
            zip(rows, tokens_B.tolist(), logprobs_B.tolist(), strict=True)
        ):
            result, limit = results[row], requests[row].limit
            if result.finish_reason == "stop" or len(result.token_ids) == limit:
                continue
            result.token_ids.append(token)
            result.logprobs.append(logprob)
            if (on_token := requests[row].on_token) is not None:
                on_token(token)
            if token in stop_ids:
                result.finish_reason = "stop"
            elif len(result.token_ids) < limit:
                alive.append(position)
        if not alive:
            break
        if len(alive) <= _COMPACT_BELOW * len(rows):
            kept = torch.tensor(alive, device=device)
            cache.batch_select_indices(kept)
            tokens_B, padding_B, uniform_BS = tokens_B[kept], padding_B[kept], uniform_BS[kept]
            temperature_B, top_p_B = temperature_B[kept], top_p_B[kept]
            rows = [rows[position] for position in alive]
        logits_BV = model(
            input_ids=tokens_B[:, None],
            attention_mask=_attention(padding_B, length + 1) if padded else None,
            position_ids=(length - padding_B)[:, None],
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]
        length += 1
    return results


def _prefill(model: Any, prompts: Sequence[tuple[int, ...]], pad_id: int) -> tuple[Tensor, DynamicCache, Tensor]:
    """Run the distinct prompts once, left-padded, and give each row its copy.

    Returns:
        logits (B, V) of the first new token, the cache, and padding (B,): positions before each row's prompt.
    """
    distinct = list(dict.fromkeys(prompts))
    width = max(map(len, distinct))
    ids_UT = torch.full((len(distinct), width), pad_id)
    for row, prompt in enumerate(distinct):
        ids_UT[row, width - len(prompt) :] = torch.tensor(prompt)
    padding_U = torch.tensor([width - len(prompt) for prompt in distinct], device=model.device)
    cache = DynamicCache(config=model.config)
    cache.layers = [_RoomyLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    logits_UV = model(
        input_ids=ids_UT.to(model.device),
        attention_mask=_attention(padding_U, width) if len(distinct) > 1 else None,
        position_ids=(torch.arange(width, device=model.device) - padding_U[:, None]).clamp(min=0),
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=1,
    ).logits[:, -1]
    index = {prompt: row for row, prompt in enumerate(distinct)}
    source_B = torch.tensor([index[prompt] for prompt in prompts], device=model.device)
    cache.batch_select_indices(source_B)
    return logits_UV[source_B], cache, padding_U[source_B]


def _attention(padding_B: Tensor, length: int) -> Tensor:
    """Attention mask (B, length), int64: 0 on left padding."""
    return (torch.arange(length, device=padding_B.device) >= padding_B[:, None]).long()


class _RoomyLayer(DynamicLayer):
    """A cache layer with room for further tokens, so that a step writes one position and copies none."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self._used = 0
            self._room_keys = key_states.new_empty((*key_states.shape[:2], 0, key_states.shape[3]))
            self._room_values = value_states.new_empty((*value_states.shape[:2], 0, value_states.shape[3]))
        end = self._used + key_states.shape[2]
        if end > self._room_keys.shape[2]:
            self._room_keys = _grown(self._room_keys, end + _ROOM)
            self._room_values = _grown(self._room_values, end + _ROOM)
        self._room_keys[:, :, self._used : end] = key_states
        self._room_values[:, :, self._used : end] = value_states
        self._used = end
        self.keys, self.values = self._room_keys[:, :, :end], self._room_values[:, :, :end]
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        self._room_keys, self._room_values = self._room_keys[indices], self._room_values[indices]
        self.keys, self.values = self._room_keys[:, :, : self._used], self._room_values[:, :, : self._used]


def _grown(buffer: Tensor, positions: int) -> Tensor:
    larger = buffer.new_empty((*buffer.shape[:2], positions, buffer.shape[3]))
    larger[:, :, : buffer.shape[2]] = buffer
    return larger
