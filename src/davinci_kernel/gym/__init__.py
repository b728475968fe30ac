"""KernelGYM: compile, isolate, check, guard and time candidate kernels."""

from ._client import HttpGym, open_gym
from ._feedback import feedback
from ._hardware import cpu_model, has_cuda, usable_cores
from ._pool import GymPool, evaluate_once, missing_package
from ._record import RecordingGym, ReplayGym, VerdictRecord
from ._sandbox import sandbox_layers
from ._station import DeviceHealth
from ._types import Backend, Candidate, EvalSettings, Gym, Outcome, Verdict

__all__ = [
    "Backend",
    "Candidate",
    "DeviceHealth",
    "EvalSettings",
    "Gym",
    "GymPool",
    "HttpGym",
    "Outcome",
    "RecordingGym",
    "ReplayGym",
    "Verdict",
    "VerdictRecord",
    "cpu_model",
    "evaluate_once",
    "feedback",
    "has_cuda",
    "missing_package",
    "open_gym",
    "sandbox_layers",
    "usable_cores",
]
