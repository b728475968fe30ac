"""Cold start: the procedural teacher, its rows, and supervised fine-tuning."""

from ._cold_start import build_cold_start
from ._kernels import supports, write_kernel
from ._plan import TECHNIQUES, Habits, Plan
from ._rows import Mix, build_rows
from ._trainer import train

__all__ = [
    "TECHNIQUES",
    "Habits",
    "Mix",
    "Plan",
    "build_cold_start",
    "build_rows",
    "supports",
    "train",
    "write_kernel",
]
