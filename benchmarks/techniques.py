"""What each technique of the procedural teacher is worth: the gym's speedups, as a Markdown table.

python benchmarks/techniques.py [--size 2048]
"""

import argparse
import asyncio

from davinci_kernel.gym import Candidate, EvalSettings, GymPool
from davinci_kernel.sft import Plan, write_kernel
from davinci_kernel.tasks import GeneratorSpec, generate_task

CHAINS = [("mul", "sigmoid", "add", "tanh"), ("mul", "relu", "add", "square"), ("mul", "silu", "add")]
PLANS = {
    "serial, unfused, double": Plan(),
    "OpenMP, fused, float": Plan(parallel=True, fused=True, single=True),
    "OpenMP, unfused, float, -ffast-math": Plan(parallel=True, single=True, fast_math=True),
    "OpenMP, fused, float, -ffast-math": Plan(parallel=True, fused=True, single=True, fast_math=True),
    "the same, 512-bit vectors": Plan(parallel=True, fused=True, single=True, fast_math=True, wide=True),
}


def task_of(chain: tuple[str, ...], size: int):
    """The first generated task with this chain of operators."""
    spec = GeneratorSpec.model_validate(
        {
            "min_ops": len(chain),
            "max_ops": len(chain),
            "operators": sorted(set(chain)),
            "tails": [],
            "shapes": [[size, size]],
        }
    )
    tasks = (generate_task(0, index, "train", spec) for index in range(100_000))
    return next(task for task in tasks if tuple(step["op"] for step in task.metadata["steps"]) == chain)


async def main(size: int) -> None:
    tasks = [task_of(chain, size) for chain in CHAINS]
    print(f"| kernel, {size} x {size} float32 | {' | '.join(', '.join(chain) for chain in CHAINS)} |")
    print("|---" * (len(CHAINS) + 1) + "|")
    async with GymPool(EvalSettings.model_validate({}), cache_verdicts=False) as gym:
        for name, plan in PLANS.items():
            verdicts = [await gym.evaluate(task, Candidate(code=write_kernel(task, plan))) for task in tasks]
            cells = [
                "{:.2f} [{:.2f}, {:.2f}]".format(v.speedup, *v.speedup_interval) if v.speedup else v.outcome.value
                for v in verdicts
            ]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=2048)
    asyncio.run(main(parser.parse_args().size))
