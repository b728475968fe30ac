"""The rollout against real parts: the gym's judge with compiled kernels, and a small model's token ids."""

import asyncio
import itertools
import json

import pytest
import torch

from davinci_kernel.config import RolloutConfig, SkillConfig
from davinci_kernel.gym import EvalSettings, GymPool, Outcome
from davinci_kernel.llm import Completion, TransformersLLM, small_model, train_tokenizer
from davinci_kernel.rollout import co_evolve, run_episode
from davinci_kernel.skills import Skill, SkillLibrary
from davinci_kernel.tasks import Task

TASK = Task(
    "affine",
    """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x * 2.0 + 1.0)
def get_inputs():
    return [torch.randn(256, 256)]
def get_init_inputs():
    return []
""",
)
HONEST = """```python
import torch
from davinci_kernel.jit import load_cpp
K = load_cpp(r'''extern "C" void f(const float* x, float* y, long n) {
  for (long i = 0; i < n; i++) { float v = x[i] * 2.0f + 1.0f; y[i] = v > 0.0f ? v : 0.0f; }
}''')
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        K.f(x, y, x.numel())
        return y
```"""
FALLBACK = """```python
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x * 2.0 + 1.0)
```"""
WRONG = HONEST.replace("+ 1.0f", "+ 1.5f")
SETTINGS = EvalSettings.model_validate(
    {"num_correct_trials": 1, "distribution_trials": False, "min_processes": 2, "max_processes": 2, "rounds": 3}
    | {"max_interval": 1e6}
)
PROPOSAL = {
    "name": "one-pass",
    "description": "One pass.",
    "scope": "general",
    "tags": ["x", "y", "z"],
    "content": "## Motivation\nm\n## Key Idea\nk\n## Example\ne",
}


class Author:
    """An engine that writes the given answers, turn by turn; text only, as a served model is."""

    def __init__(self, *answers):
        self.answers = answers
        self.prompts = []

    def render(self, messages, tools=None):
        raise NotImplementedError

    def extend(self, prompt_ids, response_ids, new_messages):
        raise NotImplementedError

    async def complete(self, prompt_ids, params):
        raise NotImplementedError

    async def chat(self, messages, params, tools=None):
        self.prompts.append("\n".join(m["content"] for m in messages))
        if tools:
            arguments = {"think": "", "new_skills": [PROPOSAL]}
            return Completion("", tool_calls=({"name": "update_skill_library", "arguments": arguments},))
        turn = sum(m["role"] == "assistant" for m in messages)
        return Completion(self.answers[turn])

    async def close(self):
        pass


def test_an_episode_is_judged_by_the_real_gym():
    llm = Author(HONEST, FALLBACK, WRONG)
    config = RolloutConfig.model_validate({"max_turn": 3, "failure_reward": -1.0})

    async def play():
        async with GymPool(SETTINGS, compile_slots=1) as gym:
            return await run_episode(TASK, [], llm=llm, gym=gym, config=config, settings=SETTINGS, seed=0)

    turns = asyncio.run(play()).turns
    assert [t.verdict.outcome for t in turns] == [Outcome.CORRECT, Outcome.HACK, Outcome.WRONG_VALUE]
    honest = turns[0].verdict
    assert honest.speedup > 0
    assert 0 < honest.coverage <= 1
    # R = C + C·clip(speedup, 0, 6) + C·0.5·PR
    assert turns[0].reward == pytest.approx(1 + min(honest.speedup, 6.0) + 0.5 * honest.coverage)
    assert [t.reward for t in turns[1:]] == [-1.0, -1.0]
    assert f"{honest.speedup:.2f}x" in llm.prompts[1]
    assert turns[1].verdict.hack in llm.prompts[2]
    assert turns[0].prompt_ids == ()
    assert turns[0].evaluate_seconds > 0


def test_a_proposed_skill_is_verified_by_the_real_gym():
    """Thresholds of zero: which of two timings is larger is not what this test is about."""
    thresholds = ("trigger_min_relative", "trigger_min_absolute", "verify_min_relative", "verify_min_absolute")
    options = {f"{name}_speedup": 0.0 for name in thresholds} | {"k": 1, "summary_n": 2, "verify_repeats": 2}
    llm = Author(HONEST)

    async def play():
        async with GymPool(SETTINGS, compile_slots=1) as gym:
            return await co_evolve(
                TASK,
                SkillLibrary(),
                llm=llm,
                gym=gym,
                skill=SkillConfig.model_validate(options),
                rollout=RolloutConfig.model_validate({"rollout_n": 1, "max_turn": 1}),
                settings=SETTINGS,
                seed=0,
                step=0,
            )

    result = asyncio.run(play())
    assert result.failed == 0
    assert len(result.trajectories) == 2  # (k + 1)·n rollouts of the null scheme
    verdicts = [t.turns[0].verdict for t in result.trajectories]
    assert verdicts[0] == verdicts[1]  # equal candidates are measured once
    (skill,) = result.staged
    assert skill.verify_speedup > 0
    assert skill.verify_speedup != verdicts[0].speedup  # a measurement of its own
    assert [s.reward for s in result.samples if s.agent == "summary"] == [skill.verify_speedup] * 2
    assert sum("# one-pass" in prompt and "Make this module faster" in prompt for prompt in llm.prompts) == 1


def test_token_ids_and_logprobs_are_those_of_generation():
    """A model of random weights: its answers hold no module, so that every turn is judged without the gym."""
    torch.manual_seed(0)
    texts = [TASK.code, HONEST, json.dumps(PROPOSAL), "Improve it: correct first, then faster."] * 3
    tokenizer = train_tokenizer(texts, 600)
    model = small_model(tokenizer, layers=2, width=32, heads=2, mlp=64).eval()
    skill = Skill(name="fuse", description="d", tags=("a", "b", "c"), content=PROPOSAL["content"])

    async def play():
        llm = TransformersLLM(model, tokenizer, device="cpu")
        async with GymPool(SETTINGS, compile_slots=1) as gym:
            result = await co_evolve(
                TASK,
                SkillLibrary(skills=(skill,)),
                llm=llm,
                gym=gym,
                skill=SkillConfig.model_validate({"k": 1, "select_max_tokens": 8}),
                rollout=RolloutConfig.model_validate({"rollout_n": 2, "max_turn": 3, "max_response_tokens": 12}),
                settings=SETTINGS,
                seed=0,
                step=0,
            )
        await llm.close()
        return result

    result = asyncio.run(play())
    policy = [s for s in result.samples if s.agent == "policy"]
    assert [(s.scheme, s.rollout, s.turn) for s in policy] == [
        (scheme, rollout, turn) for scheme in (0, 1) for rollout in (0, 1) for turn in (0, 1, 2)
    ]
    for before, after in itertools.pairwise(policy):
        if after.turn:
            seen = before.prompt_ids + before.response_ids
            assert after.prompt_ids[: len(seen)] == seen
            added = tokenizer.decode(after.prompt_ids[len(seen) :])
            assert f"Result of attempt {after.turn}:" in added
            assert "no candidate module in the answer" in added
    assert len({s.response_ids for s in policy}) == len(policy)  # every request draws by a seed of its own
    for s in result.samples:
        with torch.no_grad():
            logits = model(torch.tensor([[*s.prompt_ids, *s.response_ids]])).logits[0].log_softmax(-1)
        start = len(s.prompt_ids) - 1
        expected = [logits[start + i, token].item() for i, token in enumerate(s.response_ids)]
        assert list(s.logprobs) == pytest.approx(expected, abs=1e-4)
