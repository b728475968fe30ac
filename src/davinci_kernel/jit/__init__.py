"""What a candidate may import: raw C++ kernels, compiled in a fraction of a second and called with tensors."""

from ._build import CompileError
from ._kernels import Kernels, load_cpp

__all__ = ["CompileError", "Kernels", "load_cpp"]
