"""What goes into the gym and what comes out: `Candidate`, `EvalSettings`, `Verdict`, `Outcome`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from davinci_kernel.config import GymConfig
from davinci_kernel.tasks import Task

Backend = Literal["cpp", "triton", "cuda"]


class Outcome(str, Enum):
    """Exactly one per evaluation (EVALUATOR contract)."""

    CORRECT = "CORRECT"
    WRONG_VALUE = "WRONG_VALUE"
    WRONG_SHAPE = "WRONG_SHAPE"
    WRONG_DTYPE = "WRONG_DTYPE"
    WRONG_TYPE = "WRONG_TYPE"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    TIMEOUT = "TIMEOUT"
    HACK = "HACK"
    INVALID_REFERENCE = "INVALID_REFERENCE"
    INFRA_ERROR = "INFRA_ERROR"

    @property
    def is_candidates_fault(self) -> bool:
        """False where reward must be dropped rather than given: the task's fault or ours."""
        return self not in (Outcome.INVALID_REFERENCE, Outcome.INFRA_ERROR)


class Candidate(BaseModel):
    """A module that defines ``<entry_point>New``.

    Attributes:
        code: the Python module's source.
        backend: ``cpp`` (C++/OpenMP on CPU), ``triton`` or ``cuda``.
    """

    model_config = ConfigDict(frozen=True)
    code: str
    backend: Backend = "cpp"

    @property
    def content_hash(self) -> str:
        return hashlib.sha256(f"{self.backend}\0{self.code}".encode()).hexdigest()[:16]


class EvalSettings(BaseModel):
    """How a candidate is judged; part of every verdict's provenance. Two verdicts compare only if these are equal."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    num_correct_trials: int = Field(3, ge=1, le=100)
    """Trials with fresh inputs from a secret seed."""
    distribution_trials: bool = True
    """Extra trials: inputs x3, x0.01, negated, shifted, and identity-valued parameters randomised."""
    tolerance: Literal["default", "kernelbench", "kernelgym"] = "default"
    """Tolerance policy; `default` is 1e-4 for float32, 1e-2 for half types, scaled by the output."""
    tolerance_overrides: dict[Literal["float64", "float32", "half", "float8"], float] = {}
    """Tolerances by dtype that replace the policy's; `half` is float16 and bfloat16."""
    baseline: Literal["eager", "compile", "max-autotune"] = "eager"
    """What the candidate is timed against: the reference as it is, or under torch.compile."""
    measure: bool = True
    """Time a correct candidate against the reference."""
    min_processes: int = Field(3, ge=1)
    """Candidate processes that are timed at least; the interval is taken across processes."""
    max_processes: int = Field(6, ge=1)
    """Processes after which timing stops, however wide the interval."""
    rounds: int = Field(8, ge=3)
    """Interleaved reference/candidate rounds per process."""
    target_interval: float = Field(0.15, gt=0)
    """Stop once the half-width of the speedup's 95 % interval, relative to the speedup, is below this."""
    max_interval: float = Field(0.5, gt=0)
    """A wider relative half-width than this is reported as too noisy: no speedup."""
    compile_timeout: float = Field(60.0, gt=0)
    """Seconds for importing the candidate's module (compiles happen there)."""
    run_timeout: float = Field(30.0, gt=0)
    """Seconds for construction, one trial, or one timed call."""
    memory_limit_gb: float = Field(8.0, gt=0)
    """Address space that a candidate may take beyond the interpreter's."""
    num_threads: int = Field(0, ge=0)
    """Threads for both sides; 0 = all cores this process may use."""
    seed: int | None = None
    """None: a secret seed per evaluation. Set only to reproduce a verdict."""

    @classmethod
    def from_config(cls, config: GymConfig) -> EvalSettings:
        """The settings that a run's `gym` section asks for."""
        shared = cls.model_fields.keys() & GymConfig.model_fields.keys()
        return cls.model_validate({name: getattr(config, name) for name in shared})


class Verdict(BaseModel):
    """The judge's answer. Times in milliseconds; `speedup` = reference time / candidate time."""

    model_config = ConfigDict(frozen=True)
    outcome: Outcome
    message: str = ""
    """What a model can learn from: first mismatch, compiler's first error, own traceback frames."""
    speedup: float | None = None
    speedup_interval: tuple[float, float] | None = None
    """95 % interval across processes."""
    reference_ms: float | None = None
    kernel_ms: float | None = None
    coverage: float | None = None
    """The paper's profiling ratio PR in [0, 1]: time in the candidate's own kernels / time in its forward."""
    hack: str | None = None
    """Class of hack where the outcome is HACK, e.g. `torch-fallback`, `input-mutation`, `cached-output`."""
    too_noisy: bool = False
    """Correct, but no speedup that the timing can stand by."""
    compiled: bool = False
    provenance: dict[str, Any] = Field(default_factory=dict)
    """Settings, seeds, errors' statistics, timer, hardware, versions, per-process times, duration."""

    @property
    def correct(self) -> bool:
        return self.outcome is Outcome.CORRECT


class Gym(Protocol):
    """Anything that can judge: the in-process pool, the HTTP client, a record of past verdicts."""

    async def evaluate(
        self, task: Task, candidate: Candidate, settings: EvalSettings | None = None, *, fresh: bool = False
    ) -> Verdict:
        """Judge one candidate. Never raises for a candidate's fault; infrastructure faults come as INFRA_ERROR.

        `fresh`: measure anew although the verdict of an identical candidate is known.
        """
        ...

    async def evaluate_many(
        self, pairs: Sequence[tuple[Task, Candidate]], settings: EvalSettings | None = None
    ) -> list[Verdict]: ...

    async def close(self) -> None: ...
