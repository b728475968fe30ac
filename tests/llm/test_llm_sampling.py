import pytest
import torch

from davinci_kernel.llm._sampling import draw, nucleus, uniforms

PROBS = torch.tensor([[0.1, 0.5, 0.05, 0.35]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(0.4, [1]), (0.6, [1, 3]), (0.84, [1, 3]), (0.9, [0, 1, 3]), (0.97, [0, 1, 2, 3]), (1.0, [0, 1, 2, 3])],
)
def test_nucleus_keeps_the_fewest_likeliest_tokens(top_p, kept):
    cut = nucleus(PROBS, torch.tensor([top_p], dtype=torch.float64))[0]
    assert cut.nonzero()[:, 0].tolist() == kept
    assert torch.equal(cut[kept], PROBS[0, kept])


@pytest.mark.parametrize(
    ("uniform", "top_p", "token"),
    [(0.05, 1, 0), (0.55, 1, 1), (0.62, 1, 2), (0.7, 1, 3), (0.58, 0.6, 1), (0.59, 0.6, 3), (0.0, 0.6, 1)],
)
def test_draw_inverts_the_distribution_function(uniform, top_p, token):
    """Cumulative 0.1, 0.6, 0.65, 1; in the nucleus of 0.6: 0.5 / 0.85 = 0.588."""
    tokens, logprobs = draw(
        PROBS.log().float(),
        torch.tensor([1.0]),
        torch.tensor([top_p], dtype=torch.float64),
        torch.tensor([uniform], dtype=torch.float64),
        truncate=top_p < 1,
        greedy=False,
    )
    assert tokens.item() == token
    assert logprobs.item() == pytest.approx(PROBS[0, token].log().item(), abs=1e-6)


def test_temperature_and_greedy_rows_side_by_side():
    """Squared odds at temperature 0.5: 0.01, 0.25, 0.0025, 0.1225 of 0.385; greedy logprob is at temperature 1."""
    tokens, logprobs = draw(
        PROBS.log().float().repeat(2, 1),
        torch.tensor([0.5, 0.0]),
        torch.ones(2, dtype=torch.float64),
        torch.tensor([0.99, 0.99], dtype=torch.float64),
        truncate=False,
        greedy=True,
    )
    assert tokens.tolist() == [3, 1]
    assert logprobs.exp().tolist() == pytest.approx([0.1225 / 0.385, 0.5], abs=1e-6)


def test_uniforms():
    assert torch.equal(uniforms(5, 3), uniforms(5, 3))
    assert torch.equal(uniforms(9, 3)[:5], uniforms(5, 3))
    assert not torch.equal(uniforms(5, 3), uniforms(5, 4))
    assert not torch.equal(uniforms(5, None), uniforms(5, None))
    many = uniforms(10_000, 0)
    assert many.min() >= 0
    assert many.max() < 1
    assert many.mean().item() == pytest.approx(0.5, abs=5 * 0.2887 / 100)
