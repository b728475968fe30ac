"""Drawing tokens, row by row: a row's draw depends on its own logits and its own random number, on nothing else."""

from __future__ import annotations

import torch
from torch import Tensor

_LARGEST = 1 - 2**-40  # keeps uniform * total below total


def uniforms(count: int, seed: int | None) -> Tensor:
    """`count` numbers in [0, 1), float64 on the CPU: the randomness of one completion. None: fresh every time."""
    generator = torch.Generator()
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed % 2**63)
    return torch.rand(count, dtype=torch.float64, generator=generator).clamp_(max=_LARGEST)


def nucleus(probs_BV: Tensor, top_p_B: Tensor) -> Tensor:
    """Zero everything but the fewest likeliest tokens that hold `top_p` of the probability; not renormalised."""
    ordered_BV, order_BV = probs_BV.sort(dim=-1, descending=True, stable=True)
    before_BV = ordered_BV.cumsum(dim=-1) - ordered_BV
    ordered_BV = ordered_BV.masked_fill(before_BV >= top_p_B[:, None], 0)
    kept_BV = torch.zeros_like(probs_BV).scatter_(1, order_BV, ordered_BV)
    return torch.where(top_p_B[:, None] < 1, kept_BV, probs_BV)


def draw(
    logits_BV: Tensor, temperature_B: Tensor, top_p_B: Tensor, uniform_B: Tensor, *, truncate: bool, greedy: bool
) -> tuple[Tensor, Tensor]:
    """Draw one token per row by inverting its distribution function.

    Args:
        temperature_B: float32; 0 is greedy.
        top_p_B: float64; 1 keeps all tokens.
        uniform_B: float64 in [0, 1).
        truncate: whether any row has top_p < 1 (saves the sort).
        greedy: whether any row has temperature 0.

    Returns:
        tokens_B (int64) and logprobs_B (float32): log-softmax of logits / temperature, before the nucleus is cut, with
        temperature 0 counting as 1.
    """
    scale_B = torch.where(temperature_B > 0, temperature_B, 1.0) if greedy else temperature_B
    logprobs_BV = torch.log_softmax(logits_BV.float() / scale_B[:, None], dim=-1)
    probs_BV = logprobs_BV.exp().double()
    if truncate:
        probs_BV = nucleus(probs_BV, top_p_B)
    cumulative_BV = probs_BV.cumsum(dim=-1)
    target_B1 = (uniform_B * cumulative_BV[:, -1])[:, None]
    tokens_B = torch.searchsorted(cumulative_BV, target_B1, right=True)[:, 0]
    if greedy:
        tokens_B = torch.where(temperature_B > 0, tokens_B, logits_BV.argmax(dim=-1))
    return tokens_B, logprobs_BV.gather(1, tokens_B[:, None])[:, 0]
