"""One rollout: the policy writes, the gym judges, the policy improves; token ids are kept as generated."""

from __future__ import annotations

import time
from collections.abc import Sequence

from davinci_kernel.agents import extract_code, feedback_message, policy_messages
from davinci_kernel.config import RolloutConfig
from davinci_kernel.gym import Candidate, EvalSettings, Gym, Outcome, Verdict, feedback
from davinci_kernel.llm import LLM, Completion, Message, SamplingParams
from davinci_kernel.skills import Skill
from davinci_kernel.tasks import Task

from ._rewards import policy_reward
from ._seeds import derive_seed
from ._types import Trajectory, Turn


async def run_episode(
    task: Task,
    skills: Sequence[Skill],
    *,
    llm: LLM,
    gym: Gym,
    config: RolloutConfig,
    settings: EvalSettings,
    seed: int,
    scheme: int = 0,
    rollout: int = 0,
    max_turn: int | None = None,
    temperature: float | None = None,
    fresh: bool = False,
) -> Trajectory:
    """Play up to `max_turn` turns (default: the configuration's).

    A turn whose prompt would be longer than `config.max_prompt_tokens` is not played; the episode ends after a verdict
    that is not the candidate's fault, since there is nothing to learn from.

    Args:
        temperature: overrides the configuration's; 0 is greedy.
        fresh: measure anew although the gym may know the verdict.
    """
    conversation: list[Message] = list(policy_messages(task, skills, config.backend))
    prompt_ids = _render(llm, conversation)
    turns: list[Turn] = []
    for index in range(max_turn or config.max_turn):
        if prompt_ids is not None and len(prompt_ids) > config.max_prompt_tokens:
            break
        params = SamplingParams(
            max_tokens=config.max_response_tokens,
            temperature=config.temperature if temperature is None else temperature,
            top_p=config.top_p,
            seed=derive_seed(seed, "policy", index),
        )
        asked = time.perf_counter()
        completion = await _complete(llm, prompt_ids, conversation, params)
        answered = time.perf_counter()
        code = extract_code(completion.text, task.entry_point)
        verdict = await _judge(task, code, completion, gym, config, settings, fresh)
        judged = time.perf_counter()
        reward = policy_reward(
            verdict,
            lower=config.reward_lower,
            upper=config.reward_upper,
            coverage_weight=config.coverage_weight,
            failure_reward=config.failure_reward,
        )
        turns.append(
            Turn(
                index=index,
                prompt_ids=completion.prompt_ids,
                response_ids=completion.token_ids,
                logprobs=completion.logprobs,
                response=completion.text,
                code=code,
                verdict=verdict,
                reward=reward,
                finish_reason=completion.finish_reason,
                generate_seconds=answered - asked,
                evaluate_seconds=judged - answered,
            )
        )
        conversation.append({"role": "assistant", "content": completion.text})
        if not verdict.outcome.is_candidates_fault:
            break
        question = feedback_message(feedback(verdict), index)
        conversation.append(question)
        if prompt_ids is not None:
            prompt_ids = llm.extend(completion.prompt_ids, completion.token_ids, [question])
    return Trajectory(
        task_id=task.task_id, scheme=scheme, rollout=rollout, messages=tuple(conversation), turns=tuple(turns)
    )


def _render(llm: LLM, messages: Sequence[Message]) -> tuple[int, ...] | None:
    """Prompt ids, or None for an engine that knows only text."""
    try:
        return tuple(llm.render(messages))
    except NotImplementedError:
        return None


async def _complete(
    llm: LLM, prompt_ids: Sequence[int] | None, messages: Sequence[Message], params: SamplingParams
) -> Completion:
    return await (llm.chat(messages, params) if prompt_ids is None else llm.complete(prompt_ids, params))


async def _judge(
    task: Task,
    code: str | None,
    completion: Completion,
    gym: Gym,
    config: RolloutConfig,
    settings: EvalSettings,
    fresh: bool,
) -> Verdict:
    if code is None:
        cut = " (the answer was cut off at its token limit)" if completion.finish_reason == "length" else ""
        message = (
            f"no candidate module in the answer{cut}; expected one ```python block with class {task.entry_point}New"
        )
        return Verdict(outcome=Outcome.COMPILE_ERROR, message=message)
    return await gym.evaluate(task, Candidate(code=code, backend=config.backend), settings, fresh=fresh)
