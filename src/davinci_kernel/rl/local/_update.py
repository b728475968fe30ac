"""One optimizer step from a batch of samples: advantages, rejection, loss, gradient, step."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from davinci_kernel.config import TrainConfig
from davinci_kernel.rollout import Sample

from ..advantages import compute_advantages
from ..losses import aggregate, importance_weights, ppo_clip_loss
from ..rejection import mismatch_masks, profile_mask, veto
from ._batch import micro_batches, response_logprobs

Encoded = tuple[list[int], list[int]]
"""A cold-start row: token ids and assistant mask."""


@dataclass(frozen=True)
class Update:
    """What an update did. `applied` is False where loss or gradient were not finite: the weights are as before."""

    applied: bool
    advantages: list[float]
    kept: list[bool]
    metrics: dict[str, float]


def update(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    samples: Sequence[Sample],
    replay: Sequence[Encoded],
    config: TrainConfig,
    step: int,
    device: torch.device,
) -> Update:
    """Train on `samples` once. Rows of switched-off agents and rejected rows count in advantages, not in the loss."""
    rl, temperature = config.rl, config.rollout.temperature
    advantages = compute_advantages(
        samples,
        gamma=rl.gamma,
        cross_scheme_normalization=rl.cross_scheme_normalization,
        selection_weight=config.skill.selection_weight,
        summary_weight=config.skill.summary_weight,
    )
    model.eval()  # no dropout: the sampled policy is the trained one
    old = _logprobs(model, samples, rl.micro_batch_tokens, device, temperature)
    masks, metrics = _masks(samples, old, config, step)
    rows = sum(any(mask) for mask in masks)
    tokens = sum(sum(mask) for mask in masks)
    metrics |= _mismatch(samples, old)

    for group in optimizer.param_groups:
        group["lr"] = rl.learning_rate * min(1.0, (step + 1) / (rl.warmup_steps + 1))
    optimizer.zero_grad(set_to_none=True)
    sums = {"policy": 0.0, "selection": 0.0, "summary": 0.0}
    clipped = 0.0
    trained = [i for i, mask in enumerate(masks) if any(mask)]
    for part in micro_batches([samples[i] for i in trained], rl.micro_batch_tokens):
        indices = [trained[i] for i in part]
        batch = [samples[i] for i in indices]
        logprobs_BR, _ = response_logprobs(model, batch, device, temperature)
        mask_BR = _padded([masks[i] for i in indices], logprobs_BR)
        old_BR = _padded([old[i] for i in indices], logprobs_BR)
        weights_B = torch.tensor([advantages[i] for i in indices], device=device)
        losses_BR, clipped_BR = ppo_clip_loss(logprobs_BR, old_BR, weights_B, rl.clip_low, rl.clip_high)
        if rl.tis_cap is not None:
            rollout_BR = _padded([s.logprobs for s in batch], logprobs_BR)
            losses_BR = losses_BR * importance_weights(old_BR, rollout_BR, rl.tis_cap)
        loss = aggregate(losses_BR, mask_BR, rl.loss_agg, rows=rows, tokens=tokens, scale=rl.loss_scale_factor)
        loss.backward()
        for agent in sums:
            is_agent_B1 = torch.tensor([[s.agent == agent] for s in batch], device=device)
            share = aggregate(
                losses_BR.detach(),
                mask_BR * is_agent_B1,
                rl.loss_agg,
                rows=rows,
                tokens=tokens,
                scale=rl.loss_scale_factor,
            )
            sums[agent] += share.item()
        clipped += (clipped_BR * mask_BR).sum().item()
    replay_loss = _replay(model, replay, rl.sft_replay_coef, rl.micro_batch_tokens, device)
    total = sum(sums.values()) + rl.sft_replay_coef * replay_loss
    parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    norm = torch.nn.utils.clip_grad_norm_(parameters, rl.grad_clip).item() if parameters else 0.0
    applied = bool(parameters) and math.isfinite(total) and math.isfinite(norm)
    if applied:
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    metrics |= {f"losses/{agent}": value for agent, value in sums.items()}
    metrics |= {
        "losses/replay": replay_loss,
        "losses/total": total,
        "optim/grad_norm": norm,
        "optim/lr": optimizer.param_groups[0]["lr"],
        "optim/applied": float(applied),
        "ratio/clip_fraction": clipped / max(tokens, 1),
        "tokens/trained": float(tokens),
    }
    return Update(applied, advantages, [any(mask) for mask in masks], metrics)


def _masks(
    samples: Sequence[Sample], old: Sequence[Sequence[float]], config: TrainConfig, step: int
) -> tuple[list[list[bool]], dict[str, float]]:
    """Response tokens that count, and the share of policy rows that each kind of rejection takes."""
    rl = config.rl
    mrs = mismatch_masks(samples, old, level=rl.rollout_rs, low=rl.rollout_rs_low, high=rl.rollout_rs_high)
    unvetoed = veto(samples, old, rl.token_veto)
    profiled = [True] * len(samples)
    if rl.coverage_rs:
        rng = random.Random(f"prs/{config.seed}/{step}")
        profiled = profile_mask(
            samples,
            rng,
            low=rl.coverage_rs_low,
            width=rl.coverage_rs_width,
            keep_speedup=rl.coverage_rs_keep_speedup,
        )
    off = {agent for agent in ("selection", "summary") if not getattr(config.skill, f"train_{agent}")}
    masks = [
        [keep and row_kept and s.agent not in off for keep in tokens]
        for s, tokens, row_kept in zip(
            samples, mrs, (a and b for a, b in zip(unvetoed, profiled, strict=True)), strict=True
        )
    ]
    policy = [i for i, s in enumerate(samples) if s.agent == "policy"]
    count = max(len(policy), 1)
    metrics = {
        "rejection/mrs": sum(not all(mrs[i]) for i in policy) / count,
        "rejection/veto": sum(not unvetoed[i] for i in policy) / count,
        "rejection/prs": sum(not profiled[i] for i in policy) / count,
    }
    return masks, metrics


def _mismatch(samples: Sequence[Sample], old: Sequence[Sequence[float]]) -> dict[str, float]:
    """Rollout against trainer: mean of log π_rollout − log π_train (a KL estimate), and mean ratio."""
    differences = [r - t for s, o in zip(samples, old, strict=True) for r, t in zip(s.logprobs, o, strict=True)]
    count = max(len(differences), 1)
    ratio = sum(math.exp(-max(min(d, 20.0), -20.0)) for d in differences) / count
    return {"mismatch/kl": sum(differences) / count, "mismatch/ratio_mean": ratio}


@torch.no_grad()
def _logprobs(
    model: torch.nn.Module, samples: Sequence[Sample], max_tokens: int, device: torch.device, temperature: float
) -> list[list[float]]:
    result: list[list[float]] = [[] for _ in samples]
    for part in micro_batches(samples, max_tokens):
        logprobs_BR, _ = response_logprobs(model, [samples[i] for i in part], device, temperature)
        for index, row in zip(part, logprobs_BR.tolist(), strict=True):
            result[index] = row[: len(samples[index].response_ids)]
    return result


def _replay(
    model: torch.nn.Module, rows: Sequence[Encoded], coefficient: float, max_tokens: int, device: torch.device
) -> float:
    """Accumulate the gradient of coefficient · mean NLL over the rows' assistant tokens; returns the mean NLL.

    A row becomes a sample whose response runs from its first assistant token on; its `logprobs` hold the mask.
    """
    as_samples = []
    for ids, mask in rows:
        first = mask.index(1)
        as_samples.append(
            Sample(
                agent="policy",
                task_id="replay",
                group="replay",
                prompt_ids=tuple(ids[:first]),
                response_ids=tuple(ids[first:]),
                logprobs=tuple(float(m) for m in mask[first:]),
                reward=0.0,
            )
        )
    tokens = sum(sum(s.logprobs) for s in as_samples)
    total = 0.0
    for part in micro_batches(as_samples, max_tokens):
        batch = [as_samples[i] for i in part]
        logprobs_BR, _ = response_logprobs(model, batch, device, 1.0)
        loss = -(_padded([s.logprobs for s in batch], logprobs_BR) * logprobs_BR).sum() / tokens
        (coefficient * loss).backward()
        total += loss.item()
    return total


def _padded(rows: Sequence[Sequence[float]], like_BR: torch.Tensor) -> torch.Tensor:
    result = torch.zeros_like(like_BR, requires_grad=False)
    for index, row in enumerate(rows):
        result[index, : len(row)] = torch.tensor([float(value) for value in row], device=result.device)
    return result
