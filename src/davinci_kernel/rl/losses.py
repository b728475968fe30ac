"""The policy loss (ALGORITHMS, "Loss and optimisation"); pure functions on tensors of shape (rows B, tokens T)."""

from __future__ import annotations

from typing import Literal

import torch

Aggregation = Literal["seq-mean-token-sum", "token-mean", "seq-mean-token-mean"]


def ppo_clip_loss(
    logprobs_BT: torch.Tensor, old_BT: torch.Tensor, advantages_B: torch.Tensor, low: float, high: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """−min(r·A, clip(r, 1 − low, 1 + high)·A) per token, with r = π/π_old.

    Returns:
        Losses (B, T) and, per token, whether the clipped branch was taken (bool).
    """
    ratio_BT = torch.exp(torch.clamp(logprobs_BT - old_BT, -20.0, 20.0))
    free_BT = -ratio_BT * advantages_B[:, None]
    clipped_BT = -torch.clamp(ratio_BT, 1.0 - low, 1.0 + high) * advantages_B[:, None]
    return torch.maximum(free_BT, clipped_BT), clipped_BT > free_BT


def importance_weights(train_BT: torch.Tensor, rollout_BT: torch.Tensor, cap: float) -> torch.Tensor:
    """Truncated importance sampling: min(π_train/π_rollout, cap) per token, without gradient."""
    return torch.exp(torch.clamp(train_BT - rollout_BT, -20.0, 20.0)).clamp(max=cap).detach()


def aggregate(
    losses_BT: torch.Tensor, mask_BT: torch.Tensor, kind: Aggregation, *, rows: int, tokens: int, scale: float = 1000.0
) -> torch.Tensor:
    """One number from token losses; micro-batches add up to the whole batch's value.

    Args:
        mask_BT: 1 where a token counts.
        rows: rows of the whole batch that have a token that counts.
        tokens: tokens of the whole batch that count.
        scale: divisor of `seq-mean-token-sum`.

    Returns:
        `token-mean`: sum / tokens. `seq-mean-token-sum`: sum over tokens, mean over rows, / scale.
        `seq-mean-token-mean`: mean over each row's tokens, mean over rows. 0 where nothing counts.
    """
    masked_BT = torch.where(mask_BT > 0, losses_BT * mask_BT, torch.zeros_like(losses_BT))
    if kind == "token-mean":
        return masked_BT.sum() / max(tokens, 1)
    if kind == "seq-mean-token-sum":
        return masked_BT.sum() / (max(rows, 1) * scale)
    return (masked_BT.sum(1) / mask_BT.sum(1).clamp(min=1)).sum() / max(rows, 1)
