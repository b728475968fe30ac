"""Samples as padded tensors, and the trainer's log-probabilities of what was sampled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from davinci_kernel.rollout import Sample

from ..batching import micro_batches as micro_batches_by_length


def micro_batches(samples: Sequence[Sample], max_tokens: int) -> Iterator[list[int]]:
    """Indices of samples, by `davinci_kernel.rl.micro_batches` over prompt and response."""
    return micro_batches_by_length([len(s.prompt_ids) + len(s.response_ids) for s in samples], max_tokens)


def response_logprobs(
    model: torch.nn.Module, samples: Sequence[Sample], device: torch.device, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of the response tokens under softmax(logits / temperature); temperature 0 counts as 1.

    Returns:
        logprobs (B, R) float32 and mask (B, R) float32, R the longest response; padding is 0 in both. Logits are
        computed at response positions only.
    """
    lengths = [len(s.prompt_ids) + len(s.response_ids) for s in samples]
    longest, responses = max(lengths), max(len(s.response_ids) for s in samples)
    ids_BT = torch.zeros((len(samples), longest), dtype=torch.long)
    attention_BT = torch.zeros((len(samples), longest), dtype=torch.long)
    targets_BR = torch.zeros((len(samples), responses), dtype=torch.long)
    positions_BR = torch.zeros((len(samples), responses), dtype=torch.long)
    mask_BR = torch.zeros((len(samples), responses))
    for i, s in enumerate(samples):
        n, r = len(s.prompt_ids), len(s.response_ids)
        ids_BT[i, : n + r] = torch.tensor([*s.prompt_ids, *s.response_ids])
        attention_BT[i, : n + r] = 1
        targets_BR[i, :r] = torch.tensor(s.response_ids)
        positions_BR[i, :r] = torch.arange(n - 1, n + r - 1)
        mask_BR[i, :r] = 1
    ids_BT, attention_BT, mask_BR = ids_BT.to(device), attention_BT.to(device), mask_BR.to(device)
    targets_BR, positions_BR = targets_BR.to(device), positions_BR.to(device)
    hidden_BTD = model.get_decoder()(  # type: ignore[operator]
        input_ids=ids_BT, attention_mask=attention_BT, use_cache=False
    ).last_hidden_state
    keep = mask_BR > 0
    rows = torch.arange(len(samples), device=device)[:, None].expand_as(positions_BR)
    hidden_ND = hidden_BTD[rows[keep], positions_BR[keep]]
    logits_NV = model.get_output_embeddings()(hidden_ND).float() / (temperature or 1.0)  # type: ignore[operator]
    logprobs_N = logits_NV.log_softmax(-1).gather(1, targets_BR[keep][:, None])[:, 0]
    logprobs_BR = torch.zeros_like(mask_BR).masked_scatter(keep, logprobs_N)
    return logprobs_BR, mask_BR
