"""The loss against numbers worked out by hand."""

import math

import pytest
import torch

from davinci_kernel.rl import aggregate, importance_weights, ppo_clip_loss


def test_ppo_clips_asymmetrically():
    ratios = torch.tensor([[1.0, 1.5, 0.5], [1.0, 1.5, 0.5]])
    losses, clipped = ppo_clip_loss(ratios.log(), torch.zeros(2, 3), torch.tensor([2.0, -2.0]), 0.2, 0.28)
    # A = 2: −2, −2·1.28 (clipped), −2·0.5; A = −2: 2, 2·1.5, 2·0.8 (clipped)
    torch.testing.assert_close(losses, torch.tensor([[-2.0, -2.56, -1.0], [2.0, 3.0, 1.6]]))
    assert clipped.tolist() == [[False, True, False], [False, False, True]]


def test_gradient_is_minus_advantage_at_ratio_one_and_zero_where_clipped():
    logprobs = torch.tensor([[0.0, math.log(1.5)]], requires_grad=True)
    losses, _ = ppo_clip_loss(logprobs, torch.zeros(1, 2), torch.tensor([3.0]), 0.2, 0.28)
    losses.sum().backward()
    torch.testing.assert_close(logprobs.grad, torch.tensor([[-3.0, 0.0]]))


def test_importance_weights_are_truncated_and_without_gradient():
    train = torch.tensor([[math.log(0.5), math.log(8.0)]], requires_grad=True)
    weights = importance_weights(train, torch.zeros(1, 2), 2.0)
    torch.testing.assert_close(weights, torch.tensor([[0.5, 2.0]]))
    assert not weights.requires_grad


LOSSES = torch.tensor([[1.0, 2.0, 99.0], [5.0, 99.0, 99.0]])
MASK = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("token-mean", 8 / 3), ("seq-mean-token-sum", (3 + 5) / 2 / 1000), ("seq-mean-token-mean", (1.5 + 5) / 2)],
)
def test_aggregations(kind, expected):
    assert aggregate(LOSSES, MASK, kind, rows=2, tokens=3).item() == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["token-mean", "seq-mean-token-sum", "seq-mean-token-mean"])
def test_micro_batches_add_up_and_an_empty_mask_is_zero(kind):
    parts = [aggregate(LOSSES[i : i + 1], MASK[i : i + 1], kind, rows=2, tokens=3).item() for i in (0, 1)]
    assert sum(parts) == pytest.approx(aggregate(LOSSES, MASK, kind, rows=2, tokens=3).item())
    assert aggregate(LOSSES, torch.zeros_like(MASK), kind, rows=0, tokens=0).item() == 0.0


def test_a_masked_token_that_is_not_finite_does_no_harm():
    losses = torch.tensor([[1.0, float("nan")]])
    assert aggregate(losses, torch.tensor([[1.0, 0.0]]), "token-mean", rows=1, tokens=1).item() == 1.0
