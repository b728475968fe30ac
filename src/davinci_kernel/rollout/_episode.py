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


class PolicyDialogue:
    """The policy's conversation about one task, played turn by turn.

    Args:
        temperature: overrides the configuration's; 0 is greedy.
        fresh: measure anew although the gym may know the verdict.
    """

    def __init__(
        self,
        task: Task,
        skills: Sequence[Skill],
        *,
        llm: LLM,
        gym: Gym,
        config: RolloutConfig,
        settings: EvalSettings,
        seed: int,
        temperature: float | None = None,
        fresh: bool = False,
    ) -> None:
        self.messages: list[Message] = []
        self._task, self._skills = task, skills
        self._llm, self._gym, self._config, self._settings = llm, gym, config, settings
        self._seed, self._fresh = seed, fresh
        self._temperature = config.temperature if temperature is None else temperature
        self.restart()

    def restart(self, turns: Sequence[Turn] = ()) -> None:
        """Begin anew, with these turns as the history."""
        self.messages = list(policy_messages(self._task, self._skills, self._config.backend))
        self._prompt_ids = _render(self._llm, self.messages)
        for turn in turns:
            self.append(turn)

    async def play(self, index: int) -> Turn | None:
        """One turn: answer, verdict, reward. None where the prompt is longer than `config.max_prompt_tokens`.

        The turn is not part of the conversation until it is appended.
        """
        config = self._config
        if self._prompt_ids is not None and len(self._prompt_ids) > config.max_prompt_tokens:
            return None
        params = SamplingParams(
            max_tokens=config.max_response_tokens,
            temperature=self._temperature,
            top_p=config.top_p,
            seed=derive_seed(self._seed, "policy", index),
        )
        asked = time.perf_counter()
        completion = await _complete(self._llm, self._prompt_ids, list(self.messages), params)
        answered = time.perf_counter()
        code = extract_code(completion.text, self._task.entry_point)
        verdict = await _judge(self._task, code, completion, self._gym, config, self._settings, self._fresh)
        judged = time.perf_counter()
        reward = policy_reward(
            verdict,
            lower=config.reward_lower,
            upper=config.reward_upper,
            coverage_weight=config.coverage_weight,
            failure_reward=config.failure_reward,
        )
        return Turn(
            index=index,
            prompt_ids=completion.prompt_ids,
            response_ids=completion.token_ids,
            logprobs=completion.logprobs,
            response=completion.text,
            code=code,
            verdict=verdict,
            reward=reward,
            finish_reason=completion.finish_reason,
            usage=usage_of(completion),
            generate_seconds=answered - asked,
            evaluate_seconds=judged - answered,
        )

    def append(self, turn: Turn) -> None:
        """Answer and feedback of a turn become history; a verdict that is not the candidate's fault has no feedback."""
        self.messages.append({"role": "assistant", "content": turn.response})
        if not turn.verdict.outcome.is_candidates_fault:
            return
        question = feedback_message(feedback(turn.verdict), turn.index)
        self.messages.append(question)
        if self._prompt_ids is not None:
            self._prompt_ids = tuple(self._llm.extend(self._prompt_ids, turn.response_ids, [question]))


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
    dialogue = PolicyDialogue(
        task,
        skills,
        llm=llm,
        gym=gym,
        config=config,
        settings=settings,
        seed=seed,
        temperature=temperature,
        fresh=fresh,
    )
    turns: list[Turn] = []
    for index in range(max_turn or config.max_turn):
        turn = await dialogue.play(index)
        if turn is None:
            break
        turns.append(turn)
        dialogue.append(turn)
        if not turn.verdict.outcome.is_candidates_fault:
            break
    return Trajectory(
        task_id=task.task_id, scheme=scheme, rollout=rollout, messages=tuple(dialogue.messages), turns=tuple(turns)
    )


def usage_of(completion: Completion) -> dict[str, float]:
    """Tokens of one answer: as the server counts them, or the ids themselves."""
    counted = {
        "prompt_tokens": float(len(completion.prompt_ids)),
        "completion_tokens": float(len(completion.token_ids)),
    }
    return counted | completion.usage


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
