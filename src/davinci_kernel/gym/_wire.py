"""KernelGYM's HTTP API as types: what its clients send and read, and beside it our settings and our verdict."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime, timezone
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from davinci_kernel.tasks import Task

from ._types import Backend, Candidate, EvalSettings, Outcome, Verdict

DEFAULT_PORT = 10907
MAX_BATCH = 100
Priority = Literal["high", "normal", "low"]
TaskState = Literal["pending", "processing", "completed", "failed", "cancelled"]
"""`completed`: there is a verdict on the candidate; `failed`: there is none, by the fault of the task or of the gym."""
Baseline = Literal["eager", "compile", "max-autotune"]

_BASELINES: dict[str, Baseline] = {"pytorch": "eager", "torch_compile": "compile"}
_ERROR_CODES = {
    Outcome.COMPILE_ERROR: "COMPILATION_ERROR",
    Outcome.RUNTIME_ERROR: "RUNTIME_ERROR",
    Outcome.TIMEOUT: "TIMEOUT_ERROR",
    Outcome.HACK: "DECOY_KERNEL_DETECTED",
    Outcome.INVALID_REFERENCE: "VALIDATION_ERROR",
    Outcome.INFRA_ERROR: "SYSTEM_ERROR",
}


class _Wire(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class EvaluationRequest(_Wire):
    """One candidate to judge. Fields of KernelGYM that mean nothing here are accepted and ignored."""

    task_id: str = Field(pattern=r"^[^/\\\x00-\x1f\x7f]{1,100}$")
    """Names this submission: the same again is the same task, not a second one."""
    reference_code: str = Field(min_length=1)
    """Module with the reference, `get_inputs` and `get_init_inputs`."""
    kernel_code: str = Field(min_length=1)
    """Module with `<entry_point>New`."""
    entry_point: str = Field("Model", pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")
    """Class name of the reference."""
    backend: Literal["auto", "cpp", "triton", "cuda"] = "auto"
    """`auto`: by what the candidate imports."""
    reference_backend: Literal["pytorch", "torch_compile", "eager", "compile", "max-autotune"] | None = None
    """What the candidate is timed against; null: as `settings` says."""
    num_correct_trials: int = Field(5, ge=1, le=100)
    """Correctness trials with fresh inputs."""
    num_perf_trials: int = Field(100, ge=1, le=1000)
    """Timed calls at most, but three per process at least; timing stops earlier once its interval is narrow."""
    timeout: int = Field(300, ge=1, le=3600)
    """Seconds that bound compiling and every single run; waiting for a turn does not count."""
    priority: Priority = "normal"
    """Higher ones start first; within one, first come, first served."""
    force_refresh: bool = False
    """Judge again, though this task has a result or an identical candidate has a verdict."""
    is_valid: bool | None = None
    """A validation run: measured anew, never answered with another submission's verdict."""
    measure_performance: bool | None = None
    """False: no timing."""
    verbose_errors: bool | None = None
    """False: only the first line of `error_message`."""
    settings: EvalSettings | None = None
    """All settings, instead of those that the fields above stand for."""
    problem: str = Field("", max_length=500)
    """Name of the task for provenance; empty: its hash."""

    def task(self) -> Task:
        task = Task(self.problem, self.reference_code, entry_point=self.entry_point)
        return task if self.problem else Task(task.content_hash, self.reference_code, entry_point=self.entry_point)

    def candidate(self) -> Candidate:
        return Candidate(code=self.kernel_code, backend=backend_of(self.kernel_code, self.backend))

    def eval_settings(self, defaults: EvalSettings) -> EvalSettings:
        """The settings to judge by; `defaults` fill in what the API has no field for."""
        if self.settings is not None:
            return self.settings
        per_process = max(3, self.num_perf_trials // defaults.max_processes)
        asked: dict[str, Any] = {
            "num_correct_trials": self.num_correct_trials,
            "rounds": min(defaults.rounds, per_process),
            "compile_timeout": min(defaults.compile_timeout, self.timeout),
            "run_timeout": min(defaults.run_timeout, self.timeout),
        }
        if self.reference_backend is not None:
            asked["baseline"] = _BASELINES.get(self.reference_backend, self.reference_backend)
        if self.measure_performance is not None:
            asked["measure"] = self.measure_performance
        return EvalSettings.model_validate(defaults.model_dump() | asked)

    @property
    def own_measurement(self) -> bool:
        return self.force_refresh or bool(self.is_valid)

    def key(self, defaults: EvalSettings) -> str:
        """SHA-256 of what is judged and how: submissions with equal keys can share a verdict."""
        settings = self.eval_settings(defaults).model_dump_json()
        parts = (self.task().content_hash, self.candidate().content_hash, settings)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class EvaluationResponse(_Wire):
    """KernelGYM's answer; times in milliseconds, `processing_time` in seconds."""

    task_id: str
    status: TaskState
    compiled: bool | None = None
    correctness: bool | None = None
    decoy_kernel: bool | None = None
    """The outcome is HACK."""
    reference_runtime: float | None = None
    kernel_runtime: float | None = None
    speedup: float | None = None
    metadata: dict[str, Any] | None = None
    """Hardware, hack class, interval, coverage; and coverage as the two profiling times that KernelGYM's clients read."""
    error_message: str | None = None
    error_code: str | None = None
    submitted_at: str | None = None
    completed_at: str | None = None
    processing_time: float | None = None
    verdict: Verdict | None = None
    """The whole verdict, with its provenance."""


class BatchEvaluationRequest(_Wire):
    batch_id: str = Field(min_length=1, max_length=100)
    tasks: list[EvaluationRequest] = Field(min_length=1, max_length=MAX_BATCH)


class BatchEvaluationResponse(_Wire):
    batch_id: str
    total_tasks: int
    completed_tasks: int
    failed_tasks: int
    results: list[EvaluationResponse]
    """In the order of the request."""
    batch_status: TaskState
    submitted_at: str
    completed_at: str | None = None


class TaskStatusResponse(_Wire):
    task_id: str
    status: TaskState
    progress: float
    """Per cent: 0 waiting, 50 under way, 100 done."""
    queue_position: int | None = None
    """How many start before this one does, plus one; null unless it waits."""
    estimated_completion: str | None = None
    """By the mean time that the latest verdicts took; null if it is done or nothing is known yet."""
    error_message: str | None = None
    submitted_at: str
    started_at: str | None = None
    completed_at: str | None = None


class ErrorResponse(_Wire):
    error: str
    message: str
    error_code: str
    timestamp: str


def backend_of(code: str, asked: str = "auto") -> Backend:
    """The backend that a candidate is for, if it does not say so itself."""
    if asked in ("cpp", "triton", "cuda"):
        return asked  # type: ignore[return-value]
    if re.search(r"^\s*(import|from)\s+triton\b", code, re.MULTILINE):
        return "triton"
    return "cuda" if re.search(r"\b(load_cuda|cuda_sources|cupy)\b", code) else "cpp"


def state_of(verdict: Verdict) -> TaskState:
    return "completed" if verdict.outcome.is_candidates_fault else "failed"


def iso_time(seconds: float) -> str:
    """Seconds since 1970 as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")


def verdict_fields(verdict: Verdict, verbose: bool = True) -> dict[str, Any]:
    """A verdict in KernelGYM's fields."""
    failed = not verdict.correct
    message = verdict.message or verdict.outcome.value
    return {
        "status": state_of(verdict),
        "compiled": verdict.compiled,
        "correctness": verdict.correct,
        "decoy_kernel": verdict.outcome is Outcome.HACK,
        "reference_runtime": verdict.reference_ms,
        "kernel_runtime": verdict.kernel_ms,
        "speedup": verdict.speedup,
        "metadata": _metadata(verdict),
        "error_message": (message if verbose else message.splitlines()[0]) if failed else None,
        "error_code": _ERROR_CODES.get(verdict.outcome, "CORRECTNESS_ERROR") if failed else None,
        "verdict": verdict,
    }


def _metadata(verdict: Verdict) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "outcome": verdict.outcome.value,
        "hack": verdict.hack,
        "speedup_interval": verdict.speedup_interval,
        "too_noisy": verdict.too_noisy,
        "coverage": verdict.coverage,
        "hardware": verdict.provenance.get("hardware"),
    }
    if verdict.coverage is not None and verdict.kernel_ms is not None:
        total = 1000 * verdict.kernel_ms
        facts["total_kernel_run_time_in_profiling_us"] = total
        facts["custom_kernel_cuda_time_in_profiling_us"] = verdict.coverage * total
    return facts
