"""Seconds per verdict of the gym's pool, by kind of candidate, on tasks of the quickstart's size.

    python benchmarks/evaluate_latency.py [--tasks 8]

Prints, per kind of candidate, the median seconds that one evaluation takes in a warm pool, one at a time, and how much of it
is compiling; the last line is evaluations per second when all are submitted at once.
"""

import argparse
import asyncio
import statistics
import time

from davinci_kernel.gym import Candidate, EvalSettings, GymPool, Outcome
from davinci_kernel.sft import Plan, write_kernel
from davinci_kernel.tasks import GeneratorSpec, Task, generate_task

KINDS = {
    "correct, slow (serial, double, unfused)": lambda task: write_kernel(task, Plan()),
    "correct, fast (every technique)": lambda task: write_kernel(task, Plan(True, True, True, True, True)),
    "wrong value": lambda task: write_kernel(task, Plan(True, True, True)).replace("o[c] = v;", "o[c] = v + 1.0f;"),
    "compile error": lambda task: write_kernel(task, Plan(True)).replace("long rows", "lang rows", 1),
}


async def measure(tasks: list[Task]) -> None:
    settings = EvalSettings.model_validate(
        {"num_correct_trials": 2, "min_processes": 3, "max_processes": 3, "rounds": 5}
    )
    async with GymPool(settings, cache_verdicts=False) as gym:
        await gym.evaluate(tasks[0], Candidate(code=write_kernel(tasks[0], Plan())))  # starts the fork server
        print(f"{'candidate':42} {'seconds':>8} {'compile':>8}  outcomes")
        for kind, write in KINDS.items():
            seconds, compiling, outcomes = [], [], set()
            for task in tasks:
                started = time.perf_counter()
                verdict = await gym.evaluate(task, Candidate(code=write(task)))
                seconds.append(time.perf_counter() - started)
                compiling.append(verdict.provenance.get("compile_seconds", 0.0))
                outcomes.add(verdict.outcome.value)
            print(
                f"{kind:42} {statistics.median(seconds):8.3f} {statistics.median(compiling):8.3f}  {', '.join(outcomes)}"
            )
        pairs = [(task, Candidate(code=write(task))) for task in tasks for write in KINDS.values()]
        started = time.perf_counter()
        verdicts = await gym.evaluate_many(pairs)
        rate = len(pairs) / (time.perf_counter() - started)
        lost = sum(v.outcome is Outcome.INFRA_ERROR for v in verdicts)
        print(f"all {len(pairs)} at once: {rate:.2f} per second, {lost} infrastructure errors")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=8)
    count = parser.parse_args().tasks
    spec = GeneratorSpec.model_validate(
        {"shapes": [[1024, 1024]], "operators": ["mul", "add", "relu", "sigmoid", "silu"], "tails": []}
    )
    asyncio.run(measure([generate_task(0, i, "train", spec) for i in range(count)]))
