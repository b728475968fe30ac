"""The SFT trainer on a tiny model: the loss is what an independent computation says, and resuming is exact."""

import json

import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from davinci_kernel.config import SFTConfig
from davinci_kernel.errors import UserError
from davinci_kernel.llm import Row, save_model, small_model, train_tokenizer, write_rows
from davinci_kernel.sft import train
from davinci_kernel.sft._trainer import encode_rows, learning_rate, micro_batches, token_nll, validation_loss

ROWS = [
    Row(
        [{"role": "user", "content": f"double {n}"}, {"role": "assistant", "content": f"{n + n}"}],
        kind="a" if n % 2 else "b",
    )
    for n in range(24)
]


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    root = tmp_path_factory.mktemp("sft")
    tokenizer = train_tokenizer([m["content"] for row in ROWS for m in row.messages], 300)
    save_model(small_model(tokenizer, layers=1, width=32, heads=2, mlp=32, seed=1), tokenizer, root / "model")
    write_rows(ROWS, root / "rows.parquet")
    return root


def config(root, run_dir, **changes) -> SFTConfig:
    fields = {"batch_size": 8, "max_steps": 6, "learning_rate": 1e-2, "save_freq": 2, "validation_fraction": 0.2}
    paths = {"run_dir": str(run_dir), "model_path": str(root / "model"), "data": str(root / "rows.parquet")}
    return SFTConfig(**(fields | paths | {"device": "cpu"} | changes))


def test_loss_is_that_of_the_assistants_tokens_alone(setup):
    model = AutoModelForCausalLM.from_pretrained(setup / "model")
    tokenizer = AutoTokenizer.from_pretrained(setup / "model")
    encoded, too_long = encode_rows(tokenizer, ROWS[:3], 1000)
    assert too_long == 0
    expected = []
    for row, source in zip(encoded, ROWS, strict=False):
        wrote = tokenizer.decode([i for i, m in zip(row.ids, row.mask, strict=True) if m])
        assert wrote.removesuffix("<|im_end|>") == source.messages[-1]["content"]
        logprobs = model(torch.tensor([row.ids])).logits[0].log_softmax(-1)
        expected += [-logprobs[i - 1, token].item() for i, token in enumerate(row.ids) if row.mask[i]]
    actual = token_nll(model, encoded, torch.device("cpu"))
    torch.testing.assert_close(actual, torch.tensor(expected), rtol=1e-4, atol=1e-5)
    by_kind = validation_loss(model, encoded, 64, torch.device("cpu"))
    assert by_kind["all"] == pytest.approx(sum(expected) / len(expected), rel=1e-4)
    assert set(by_kind) == {"a", "b", "all"}


def test_rows_that_are_too_long_are_counted(setup):
    tokenizer = AutoTokenizer.from_pretrained(setup / "model")
    assert encode_rows(tokenizer, ROWS, 1) == ([], len(ROWS))


def test_micro_batches_respect_padded_tokens(setup):
    tokenizer = AutoTokenizer.from_pretrained(setup / "model")
    rows, _ = encode_rows(tokenizer, ROWS, 1000)
    parts = list(micro_batches(rows, 60))
    assert sorted(len(r.ids) for part in parts for r in part) == sorted(len(r.ids) for r in rows)
    assert all(len(part) == 1 or len(part) * max(len(r.ids) for r in part) <= 60 for part in parts)
    assert len(parts) > 1


def test_learning_rate_warms_up_and_decays_to_a_tenth(setup):
    settings = config(setup, "x", learning_rate=1.0, warmup_steps=4)
    assert [learning_rate(s, 104, settings) for s in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert learning_rate(54, 104, settings) == pytest.approx(0.55)
    assert learning_rate(104, 104, settings) == pytest.approx(0.1)


class Interrupted(Exception):
    pass


def test_interrupted_run_resumes_exactly(setup, tmp_path):
    def interrupt(step, steps, metrics):
        if step == 5:  # one step after the state of step 4 was saved
            raise Interrupted

    whole, broken = config(setup, tmp_path / "whole"), config(setup, tmp_path / "broken")
    train(whole)
    with pytest.raises(Interrupted):
        train(broken, on_step=interrupt)
    assert not (tmp_path / "broken" / "model").exists()
    train(broken)
    metrics = [
        [{k: v for k, v in json.loads(line).items() if k != "time/step"} for line in (d / "metrics.jsonl").open()]
        for d in (tmp_path / "whole", tmp_path / "broken")
    ]
    assert metrics[0] == metrics[1]
    assert [m["step"] for m in metrics[0]] == [1, 2, 3, 4, 5, 6]
    assert metrics[0][-1]["losses/nll"] < metrics[0][0]["losses/nll"]
    weights = [load_file(tmp_path / d / "model" / "model.safetensors") for d in ("whole", "broken")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert yaml.safe_load((tmp_path / "broken" / "config.yaml").read_text())["max_steps"] == 6


def test_resuming_with_another_configuration_is_refused(setup, tmp_path):
    def interrupt(step, steps, metrics):
        if step == 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        train(config(setup, tmp_path), on_step=interrupt)
    with pytest.raises(UserError, match="different configuration"):
        train(config(setup, tmp_path, learning_rate=1e-3))


def test_no_row_that_fits_is_named(setup, tmp_path):
    with pytest.raises(UserError, match=r"rows\.parquet: no row fits into max_length=3 tokens"):
        train(config(setup, tmp_path, max_length=3))
