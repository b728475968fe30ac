"""The one-process trainer: its gradient, what a failed update does, and exact resuming after kill -9."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from davinci_kernel.config import SFTConfig, TrainConfig, dump_config, load_config
from davinci_kernel.errors import EvaluatorError, UserError
from davinci_kernel.gym import EvalSettings, GymPool, RecordingGym, ReplayGym
from davinci_kernel.llm import TransformersLLM, conversation_texts, save_model, small_model, train_tokenizer, write_rows
from davinci_kernel.rl.local import newest_checkpoint, train
from davinci_kernel.rl.local._batch import response_logprobs
from davinci_kernel.rl.local._trainer import Trainer
from davinci_kernel.rl.local._update import update
from davinci_kernel.rollout import Sample, SchemePlan, TaskRollout
from davinci_kernel.sft import Habits, Mix, build_rows
from davinci_kernel.sft import train as train_sft
from davinci_kernel.skills import Skill, SkillLibrary
from davinci_kernel.tasks import GeneratorSpec, generate_task

OPTIONS = {"min_ops": 1, "max_ops": 1, "operators": ["relu", "abs", "mul"], "tails": [], "shapes": [[64, 64]]}
SKILL = Skill(name="fuse", tags=("a", "b", "c"), content="## Motivation\nm\n## Key Idea\nmul relu abs\n## Example\ne")

NEW_SKILL = SKILL.model_copy(update={"name": "new", "content": "## Motivation\nq\n## Key Idea\nr s t\n## Example\nu"})


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A tiny model that has learned to write kernels for a handful of tiny tasks, and its cold-start rows."""
    root = tmp_path_factory.mktemp("rl")
    spec = GeneratorSpec.model_validate(OPTIONS)
    tasks = [generate_task(0, i, "train", spec) for i in range(20)]
    rows = build_rows(tasks, [], Mix(policy=300, policy_skill=0, selection=40), Habits(), 0, 1000)
    write_rows(rows, root / "rows.parquet")
    tokenizer = train_tokenizer(conversation_texts(rows), 900)
    save_model(small_model(tokenizer, layers=2, width=64, heads=2, mlp=128), tokenizer, root / "initial")
    train_sft(
        SFTConfig(
            run_dir=str(root / "sft"),
            model_path=str(root / "initial"),
            data=str(root / "rows.parquet"),
            device="cpu",
            learning_rate=1e-2,
            warmup_steps=10,
            batch_size=32,
            max_steps=90,
            micro_batch_tokens=4096,
        )
    )
    SkillLibrary(root / "library", (SKILL,)).flush(0)
    return root


def config(root, run_dir, **rl) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "run_dir": str(run_dir),
            "model_path": str(root / "sft" / "model"),
            "device": "cpu",
            "sft_data": str(root / "rows.parquet"),
            "tasks": {"source": "generator", "limit": 6, "options": OPTIONS},
            "skill": {"k": 1, "library_root": str(root / "library"), "select_max_tokens": 40, "trigger_min_absolute_speedup": 1e9},
            "rollout": {"rollout_n": 2, "max_turn": 2, "max_response_tokens": 200, "failure_reward": -1.0},
            "gym": {"num_correct_trials": 1, "distribution_trials": False, "min_processes": 2, "max_processes": 2, "rounds": 3, "max_interval": 1e6},
            "rl": {"steps": 4, "batch_tasks": 2, "learning_rate": 1e-3, "save_freq": 2, "rollout_rs": "none", "max_oversample": 1, "loss_agg": "token-mean", "sft_replay_rows": 4, "batch_invariant": True} | rl,
        }
    )  # fmt: skip


def metrics_of(run_dir):
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if not k.startswith("time/")} for line in lines]


@pytest.fixture(scope="module")
def whole_run(root, tmp_path_factory):
    """An uninterrupted run of 4 steps whose verdicts are real, and their record, from which broken runs get the same."""
    whole = tmp_path_factory.mktemp("whole")
    settings, record = config(root, whole), whole / "verdicts.sqlite"
    train(settings, gym=RecordingGym(GymPool(EvalSettings.from_config(settings.gym)), record))
    return whole, record


def test_kill_9_and_resume_gives_the_uninterrupted_runs_metrics(root, whole_run, tmp_path):
    (whole, record), broken = whole_run, tmp_path / "broken"
    config_path = tmp_path / "broken.yaml"
    dump_config(config(root, broken), config_path)
    script = f"""
import os, signal
from davinci_kernel.config import TrainConfig, load_config
from davinci_kernel.gym import ReplayGym
from davinci_kernel.rl.local import train
def die(step, steps, metrics):
    if step == 3:
        os.kill(os.getpid(), signal.SIGKILL)
train(load_config(TrainConfig, {str(config_path)!r}), gym=ReplayGym({str(record)!r}), on_step=die)
"""
    killed = subprocess.run([sys.executable, "-c", script], env=os.environ, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert newest_checkpoint(broken).name == "step_2"
    assert [line["step"] for line in metrics_of(broken)] == [1, 2, 3]
    train(load_config(TrainConfig, config_path), gym=ReplayGym(record))

    assert metrics_of(broken) == metrics_of(whole)
    assert [line["step"] for line in metrics_of(whole)] == [1, 2, 3, 4]
    assert sum(line["selection/rows"] for line in metrics_of(whole)) > 0
    assert any(line["policy/correct"] > 0 for line in metrics_of(whole))  # the tiny model does write kernels
    weights = [load_file(d / "checkpoints" / "step_4" / "model.safetensors") for d in (whole, broken)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    before = load_file(root / "sft" / "model" / "model.safetensors")
    assert any(not torch.equal(before[name], weights[0][name]) for name in before)
    assert (whole / "rollouts" / "step_4.jsonl.gz").exists()


def test_ctrl_c_keeps_the_steps_done_and_resuming_changes_nothing(root, whole_run, tmp_path):
    """Ctrl-C cancels the main task; step 1 is no checkpoint step, and so the interrupt itself has to keep it."""
    whole, record = whole_run
    settings = config(root, tmp_path)

    def interrupt(step, steps, metrics):
        if step == 1:
            asyncio.current_task().cancel()

    with pytest.raises(asyncio.CancelledError):
        train(settings, gym=ReplayGym(record), on_step=interrupt)
    assert newest_checkpoint(tmp_path).name == "step_1"
    assert len(metrics_of(tmp_path)) == 1
    train(settings, gym=ReplayGym(record))
    assert metrics_of(tmp_path) == metrics_of(whole)


def test_a_run_directory_resumes_only_its_own_configuration(root, whole_run, tmp_path):
    whole, record = whole_run
    moved = tmp_path / "moved"
    shutil.copytree(whole, moved)
    with pytest.raises(UserError, match="holds a run with another seed"):
        train(config(root, moved).model_copy(update={"seed": 1}))
    with pytest.raises(UserError, match=r"holds a run with another rl\.learning_rate"):
        train(config(root, moved, learning_rate=1e-4))
    assert train(config(root, moved), gym=ReplayGym(record)).name == "step_4"  # moved, and complete


def test_skills_staged_before_a_checkpoint_survive_it(root, tmp_path):
    """With snapshots every 3 steps, a skill verified at step 1 is in no snapshot at the checkpoint of step 2."""
    settings = config(root, tmp_path)
    settings = settings.model_copy(update={"skill": settings.skill.model_copy(update={"save_freq": 3})})
    trainer = Trainer(settings, tmp_path, ReplayGym(tmp_path / "none.sqlite"), None)
    trainer._learn([TaskRollout(trainer.tasks[0], SchemePlan((), ()), (), (), staged=(NEW_SKILL,))], True, {})
    trainer.done = 2
    trainer.save()
    resumed = Trainer(settings, tmp_path, ReplayGym(tmp_path / "none.sqlite"), None)
    assert [skill.name for skill in resumed.library.skills] == ["fuse"]
    assert [skill.name for skill in resumed.library.staged] == ["new"]


def test_each_task_is_rolled_out_once_a_step_however_small_the_pool(root, tmp_path):
    trainer = Trainer(config(root, tmp_path), tmp_path, ReplayGym(tmp_path / "none.sqlite"), None)
    used: set[int] = set()
    first, second = trainer._next_tasks(4, used), trainer._next_tasks(4, used)
    assert (len(first), len(second)) == (4, 2)
    assert len({task.task_id for task in first + second}) == 6
    assert trainer._next_tasks(1, used) == []
    assert len(trainer._next_tasks(4, set())) == 4  # the next step starts over


def test_a_step_without_a_single_rollout_stops_the_run(root, tmp_path, caplog):
    """A context of 4 tokens fails every prompt: training on would do nothing for 300 steps."""
    trainer = Trainer(config(root, tmp_path), tmp_path, ReplayGym(tmp_path / "none.sqlite"), None)
    trainer.llm.positions = 4
    with pytest.raises(EvaluatorError, match="step 1: every rollout was lost"):
        asyncio.run(trainer.run())
    assert "fill the model's context of 4" in caplog.text


def test_a_backend_that_the_pool_lacks_is_refused_before_anything_is_loaded(root, tmp_path):
    settings = config(root, tmp_path / "run")
    settings = settings.model_copy(update={"rollout": settings.rollout.model_copy(update={"backend": "triton"})})
    with pytest.raises(UserError, match=r"rollout\.backend: triton kernels are timed on a CUDA device"):
        train(settings)
    assert not (tmp_path / "run").exists()


def sample(rewards_scale=1.0, index=0) -> Sample:
    ids = tuple(range(300, 306))
    return Sample(
        agent="policy",
        task_id="t",
        group="t",
        rollout=index,
        prompt_ids=ids[: 2 + index],
        response_ids=ids[index:],
        logprobs=(-1.0,) * (6 - index),
        reward=rewards_scale * index,
        outcome="CORRECT",
        coverage=1.0,
    )


@pytest.fixture
def model(root):
    return TransformersLLM.load(str(root / "initial"), device="cpu").model


def test_response_logprobs_are_those_of_a_plain_forward(model):
    samples = [sample(index=i) for i in range(3)]
    logprobs, mask = response_logprobs(model, samples, torch.device("cpu"), 0.5)
    for row, count, s in zip(logprobs, mask.sum(1).int().tolist(), samples, strict=True):
        full = (model(torch.tensor([[*s.prompt_ids, *s.response_ids]])).logits[0] / 0.5).log_softmax(-1)
        expected = [full[len(s.prompt_ids) + i - 1, token].item() for i, token in enumerate(s.response_ids)]
        assert count == len(expected)
        assert row[:count].tolist() == pytest.approx(expected, abs=1e-4)
        assert not row[count:].any()


def step(model, settings, samples, replay=()):
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    return update(model, optimizer, samples, replay, settings, 0, torch.device("cpu"))


def test_micro_batches_do_not_change_the_update(root, tmp_path):
    results = []
    for tokens in (1, 10_000):
        model = TransformersLLM.load(str(root / "initial"), device="cpu").model
        settings = config(root, tmp_path, micro_batch_tokens=tokens, token_veto=0.0)
        results.append((step(model, settings, [sample(index=i) for i in range(3)]), model.state_dict()))
    (first, one), (second, other) = results
    assert first.metrics["losses/policy"] == pytest.approx(second.metrics["losses/policy"], abs=1e-6)
    assert first.metrics["optim/grad_norm"] == pytest.approx(second.metrics["optim/grad_norm"], rel=1e-4)
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-4, atol=1e-6)


def test_a_good_row_becomes_likelier_and_a_bad_one_less_likely(root, model, tmp_path):
    samples = [sample(index=i) for i in (0, 2)]
    before, _ = response_logprobs(model, samples, torch.device("cpu"), 1.0)
    step(model, config(root, tmp_path, token_veto=0.0), samples)
    after, _ = response_logprobs(model, samples, torch.device("cpu"), 1.0)
    assert after[1].sum() - before[1].sum() > after[0].sum() - before[0].sum()


def test_a_rejected_batch_changes_nothing(root, model, tmp_path):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    settings = config(root, tmp_path, rollout_rs="geometric", rollout_rs_low=2.0, rollout_rs_high=2.0)
    result = step(model, settings, [sample(index=i) for i in range(3)])
    assert result.kept == [False, False, False]
    assert result.metrics["rejection/mrs"] == 1.0
    assert not result.applied
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_an_update_that_is_not_finite_is_not_applied(root, model, tmp_path):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    result = step(model, config(root, tmp_path, token_veto=0.0), [sample(float("inf"), index=i) for i in range(3)])
    assert not result.applied
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize(("applied", "size"), [(False, 1), (True, 2)])
def test_staged_skills_are_flushed_only_after_a_successful_update(root, tmp_path, applied, size):
    trainer = Trainer(config(root, tmp_path), tmp_path, None, None)
    rollout = TaskRollout(trainer.tasks[0], SchemePlan((), ()), (), (), staged=(NEW_SKILL,))
    trainer._learn([rollout], applied, {})
    assert len(trainer.library) == size
    assert (tmp_path / "skills" / "global_step_1.jsonl").exists() == applied
    asyncio.run(trainer.gym.close())


def test_switched_off_agents_leave_the_loss_but_not_the_advantages(root, model, tmp_path):
    selection = [sample(index=i).model_copy(update={"agent": "selection"}) for i in range(2)]
    settings = config(root, tmp_path, token_veto=0.0)
    settings = settings.model_copy(update={"skill": settings.skill.model_copy(update={"train_selection": False})})
    result = step(model, settings, selection)
    assert result.advantages == pytest.approx([-0.3, 0.3])
    assert result.kept == [False, False]


def test_unusable_configurations_are_named(root, tmp_path):
    with pytest.raises(UserError, match=r"nowhere\.parquet: no such file"):
        train(config(root, tmp_path / "a").model_copy(update={"sft_data": "nowhere.parquet"}))
    levels = config(root, tmp_path / "b")
    with pytest.raises(UserError, match="generator: found 0 of 6 distinct tasks"):
        train(levels.model_copy(update={"tasks": levels.tasks.model_copy(update={"levels": (3,)})}))
