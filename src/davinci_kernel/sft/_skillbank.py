"""Skills that the teacher knows how to describe, and distractors that describe nothing a kernel here can use."""

from __future__ import annotations

import random

from davinci_kernel.skills import Skill
from davinci_kernel.tasks import OPERATORS, Task

from ._kernels import TRANSCENDENTAL

_TEXTS: dict[str, list[tuple[str, str, str, str, tuple[str, ...]]]] = {
    # technique: [(name, description, motivation, key idea, tags)]
    "parallel": [
        (
            "openmp-parallel-rows",
            "Share the rows among threads with OpenMP.",
            "A serial loop leaves all cores but one idle.",
            "Put an OpenMP parallel for on the loop over rows.",
            ("openmp", "parallel", "threads"),
        ),
        (
            "thread-the-row-loop",
            "Run independent rows on all cores.",
            "Rows do not depend on each other.",
            "Let every thread take its share of the rows.",
            ("threads", "parallel", "rows"),
        ),
    ],
    "fused": [
        (
            "fuse-elementwise-chain",
            "Compute the whole chain in one pass over memory.",
            "Every extra pass reads and writes the whole tensor.",
            "Keep the running value in a register through all operators.",
            ("fusion", "memory", "bandwidth"),
        ),
        (
            "single-pass-rows",
            "Finish one row before the next, so that it stays in cache.",
            "Intermediate tensors do not fit in cache.",
            "Apply all operators to a row while it is in cache.",
            ("fusion", "cache", "rows"),
        ),
    ],
    "single": [
        (
            "float-arithmetic",
            "Use float constants and float functions.",
            "Double arithmetic halves the vector width.",
            "Write constants with an f suffix and call expf rather than exp.",
            ("float", "precision", "simd"),
        ),
        (
            "avoid-double-promotion",
            "Keep float data in float.",
            "A constant without suffix promotes the expression to double.",
            "Declare float accumulators and suffix every constant with f.",
            ("float", "promotion", "simd"),
        ),
    ],
    "fast_math": [
        (
            "vectorised-fast-math",
            "Compile with -ffast-math so that exp and tanh are vectorised.",
            "A library call per element is slower than a vector instruction.",
            "Pass the flag -ffast-math to load_cpp.",
            ("fast-math", "simd", "exp"),
        ),
        (
            "fast-math-flag",
            "Let the compiler reorder sums and use vector math functions.",
            "Strict floating point forbids vector sums and vector exp.",
            "Give load_cpp the extra flag -ffast-math.",
            ("flags", "simd", "vectorisation"),
        ),
    ],
    "wide": [
        (
            "wide-vectors",
            "Compile for 512-bit vectors.",
            "The compiler prefers half-width vectors.",
            "Pass the flag -mprefer-vector-width=512 to load_cpp.",
            ("avx512", "simd", "flags"),
        ),
        (
            "avx512-full-width",
            "Use the full width of the vector unit.",
            "Half of each vector register stays unused by default.",
            "Give load_cpp the extra flag -mprefer-vector-width=512.",
            ("avx512", "vectorisation", "flags"),
        ),
    ],
}
_EXAMPLES = {
    "parallel": "#pragma omp parallel for",
    "fused": "float v = a[c]; v = v * 2.0f; v = v + 1.0f; o[c] = v;",
    "single": "float v = a[c]; v = v * 2.0f;",
    "fast_math": 'K = load_cpp(source, ["-ffast-math"])',
    "wide": 'K = load_cpp(source, ["-mprefer-vector-width=512"])',
}
_DISTRACTORS = [
    ("shared-memory-tiles", "Stage tiles in shared memory.", ("gpu", "tiling", "shared-memory"), "__shared__ float tile[32][33];"),
    ("tensor-core-matmul", "Use tensor cores for products.", ("gpu", "matmul", "tensor-core"), "wmma::mma_sync(d, a, b, c);"),
    ("im2col-convolution", "Turn a convolution into a product.", ("convolution", "matmul", "layout"), "columns = unfold(image)"),
    ("online-attention", "Keep running maxima in attention.", ("attention", "softmax", "online"), "m = max(m, score)"),
    ("warp-shuffle-sum", "Sum inside a warp by shuffles.", ("gpu", "reduction", "warp"), "v += __shfl_down_sync(mask, v, 16);"),
    ("transpose-by-blocks", "Transpose in square blocks.", ("transpose", "cache", "blocking"), "for (bi = 0; bi < n; bi += 32)"),
]  # fmt: skip


def _body(motivation: str, idea: str, example: str) -> str:
    return f"## Motivation\n{motivation}\n## Key Idea\n{idea}\n## Example\n{example}"


def skill_for(technique: str, task: Task | None, rng: random.Random) -> Skill:
    """One of the teacher's descriptions of a technique; about half are scoped to the task's kind of operator."""
    name, description, motivation, idea, tags = rng.choice(_TEXTS[technique])
    scope = f"task_specific/{task_kind(task)}" if task is not None and rng.random() < 0.5 else "general"
    if scope != "general":
        name = f"{task_kind(task)}-{name}" if task is not None else name
    return Skill(
        name=name,
        description=description,
        scope=scope,
        tags=tags,
        content=_body(motivation, idea, _EXAMPLES[technique]),
        provenance={"technique": technique, "teacher": True},
    )


def distractor(rng: random.Random) -> Skill:
    """A skill for other kinds of tasks: a reader should neither select it nor change its kernel because of it."""
    name, description, tags, example = rng.choice(_DISTRACTORS)
    body = _body("It pays on other hardware or other problems.", description, example)
    return Skill(name=name, description=description, tags=tags, content=body, provenance={"technique": None})


def useful_techniques(task: Task) -> tuple[str, ...]:
    """What experience says helps this task: the target of selection rows."""
    ops = [step["op"] for step in task.metadata["steps"]]
    useful = ["parallel"]
    if any(op in TRANSCENDENTAL for op in ops) or task_kind(task) in ("reduction", "normalisation"):
        useful = ["fast_math", "wide", *useful]
    if len(ops) > 1:
        useful.append("fused")
    return tuple(useful)


def task_kind(task: Task | None) -> str:
    """`elementwise`, `reduction` or `normalisation`: the kind of the last operator that is not pointwise."""
    kinds = [OPERATORS[step["op"]].kind for step in task.metadata["steps"]] if task is not None else []
    return next((k for k in reversed(kinds) if k in ("reduction", "normalisation")), "elementwise")
