"""What a candidate may import: raw C++ and CUDA kernels, compiled in a fraction of a second and called with tensors."""

from ._build import CompileError
from ._cuda import CudaKernels, load_cuda
from ._kernels import Kernels, load_cpp

__all__ = ["CompileError", "CudaKernels", "Kernels", "load_cpp", "load_cuda"]
