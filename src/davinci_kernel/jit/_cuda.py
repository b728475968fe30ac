"""`load_cuda`: CUDA C++ text compiled in some 50 ms by NVRTC, launched on torch's current stream.

Compiling is NVIDIA's `cuda-bindings`, loading and launching `cuda-core` (extra ``[cuda]``). Without a GPU the source is
still compiled, for sm_90, so that a compile error is found; a launch then raises.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any

import torch

from ._build import CompileError
from ._evidence import RECORDER
from ._kernels import pointee_dtypes
from ._signature import Parameter, Signature, parse_signatures

DEFAULT_ARCH = (9, 0)
"""Compute capability compiled for where there is no device."""
_ALLOWED_FLAGS = re.compile(
    r"--?(?:use_fast_math|extra-device-vectorization|restrict|fmad=(?:true|false)|ftz=(?:true|false)|maxrregcount=\d+"
    r"|prec-(?:div|sqrt)=(?:true|false)|std=c\+\+(?:14|17|20)|split-compile=\d+|dopt=on)|-D[A-Za-z_]\w*(?:=[\w.+-]+)?"
)
_GLOBAL = re.compile(r"\b__global__\b|\b__launch_bounds__\s*\([^()]*\)|\b__grid_constant__\b")
_ERROR = re.compile(r"^[^\s(]*\((?P<line>\d+)\): (?:catastrophic )?error:? (?P<text>.*)$", re.MULTILINE)
_STATIC_SHARED = 48 << 10
_NUMPY_NAMES = {"bool": "bool_", "float": "float32", "double": "float64"}

Extent = int | tuple[int, ...]


class CudaKernels:
    """The ``extern "C" __global__`` kernels of one source as attributes: ``K.name(grid, block, *args, shared=0)``."""

    def __init__(self, cubin: bytes, signatures: dict[str, Signature]):
        self._cubin = cubin
        self._signatures = signatures
        self._module: Any = None

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        signature = self._signatures.get(name)
        if signature is None:
            known = ", ".join(self._signatures) or "none"
            raise AttributeError(f'the source has no extern "C" __global__ kernel {name!r}; it has: {known}')
        if signature.problem:
            raise TypeError(f"{name}: {signature.problem}")
        if not torch.cuda.is_available():
            raise RuntimeError(f"{name}: no CUDA device to launch on")
        if self._module is None:
            self._module = _core().ObjectCode.from_cubin(self._cubin)
        launch = _launcher(self._module.get_kernel(name), signature)
        self.__dict__[name] = launch
        return launch

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._signatures]


def load_cuda(source: str, extra_cflags: Sequence[str] = ()) -> CudaKernels:
    """Compile CUDA C++ by NVRTC and give its ``extern "C" __global__`` kernels.

    ``K.f(grid, block, x, y, x.numel(), shared=0)`` launches on torch's current stream: a pointer parameter takes a
    contiguous CUDA tensor of the same element type, a number parameter a Python number; grid and block are an int or a
    tuple of up to three; ``shared`` is dynamic shared memory in bytes.

    Args:
        source: CUDA C++ text. NVRTC has no standard headers; mathematical functions are built in.
        extra_cflags: NVRTC options such as ``--use_fast_math``, ``--maxrregcount=64``, ``-DN=64``.

    Raises:
        CompileError: with the compiler's first error and its line.
        ValueError: an option that is not allowed, or no ``extern "C" __global__`` kernel in the source.
        RuntimeError: NVRTC is not installed.
    """
    if isinstance(extra_cflags, str):
        raise TypeError("load_cuda: extra_cflags is a list of options, such as ['--use_fast_math']")
    for flag in extra_cflags:
        if not _ALLOWED_FLAGS.fullmatch(flag):
            raise ValueError(f"load_cuda: option {flag!r} is not allowed; use such as --use_fast_math or -DN=64")
    signatures = parse_signatures(_GLOBAL.sub(" ", source)) if "__global__" in source else {}
    if not signatures:
        raise ValueError(
            'load_cuda: the source has no extern "C" __global__ kernel, such as: '
            'extern "C" __global__ void f(const float* x, float* y, long long n) { ... }'
        )
    cubin, _ = compile_cubin(source, tuple(extra_cflags))
    return CudaKernels(cubin, signatures)


@functools.lru_cache(maxsize=64)
def compile_cubin(source: str, flags: tuple[str, ...]) -> tuple[bytes, str]:
    """Machine code for the device (or sm_90), and ptxas' report of registers and spills.

    Raises:
        CompileError: the compiler refused the source.
        RuntimeError: NVRTC is not installed.
    """
    nvrtc = _nvrtc()
    major, minor = torch.cuda.get_device_capability() if torch.cuda.is_available() else DEFAULT_ARCH
    options = [f"--gpu-architecture=sm_{major}{minor}", "--std=c++17", "--ptxas-options=-v", *flags]
    status, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    _check(status)
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        buffer = b" " * size
        nvrtc.nvrtcGetProgramLog(program, buffer)
        log = buffer.decode(errors="replace").strip("\0 \n")
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(first_error(log, source))
        status, size = nvrtc.nvrtcGetCUBINSize(program)
        _check(status)
        cubin = b" " * size
        _check(nvrtc.nvrtcGetCUBIN(program, cubin)[0])
        return cubin, log
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def first_error(log: str, source: str) -> str:
    """The first error of NVRTC's log, with the source line it names."""
    errors = list(_ERROR.finditer(log))
    if not errors:
        lines = [line for line in log.splitlines() if line.strip()]
        return lines[0][:500] if lines else "the compiler failed without a message"
    number = int(errors[0]["line"])
    lines = source.splitlines()
    shown = f"\n  {lines[number - 1].strip()[:200]}" if 0 < number <= len(lines) else ""
    more = f"\n({len(errors) - 1} more errors)" if len(errors) > 1 else ""
    return f"line {number}: {errors[0]['text']}{shown}{more}"


def _launcher(kernel: Any, signature: Signature) -> Callable[..., None]:
    """A callable with the signature's checks around a loaded kernel."""
    core = _core()
    name, count = signature.name, len(signature.parameters)
    converters = [_converter(name, index, parameter) for index, parameter in enumerate(signature.parameters)]
    recorder, now = RECORDER, perf_counter_ns
    raised = _STATIC_SHARED

    def launch(grid: Extent, block: Extent, *arguments: Any, shared: int = 0) -> None:
        nonlocal raised
        if len(arguments) != count:
            expected = ", ".join(parameter.text for parameter in signature.parameters)
            raise TypeError(f"{name}(grid, block, {expected}) takes {count} arguments, {len(arguments)} given")
        values = [convert(argument) for convert, argument in zip(converters, arguments)]  # noqa: B905
        if recorder.ghost:
            return
        start = now()
        if shared > raised:
            _allow_shared(kernel, name, shared)
            raised = shared
        config = core.LaunchConfig(grid=grid, block=block, shmem_size=shared)
        core.launch(_Stream(torch.cuda.current_stream().cuda_stream), config, kernel, *values)
        recorder.spans.append((name, start, now()))

    launch.__name__ = launch.__qualname__ = name
    return launch


class _Stream:
    """torch's stream by the ``__cuda_stream__`` protocol."""

    __slots__ = ("handle",)

    def __init__(self, handle: int):
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


def _converter(function: str, index: int, parameter: Parameter) -> Callable[[Any], Any]:
    import numpy as np

    where = f"{function}: argument {index + 1} ({parameter.text})"
    if parameter.pointer:
        return _pointer_converter(where, pointee_dtypes(parameter.kind))
    kind = getattr(np, _NUMPY_NAMES.get(parameter.kind, parameter.kind), None)
    if kind is None:
        raise TypeError(f"{where}: cannot be passed by value")

    def convert(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            raise TypeError(f"{where}: expected a number, got a tensor")
        converted = kind(value)
        if kind not in (np.float32, np.float64) and int(converted) != int(value):
            raise ValueError(f"{where}: {value} does not fit")
        return converted

    return convert


def _pointer_converter(where: str, dtypes: tuple[torch.dtype, ...] | None) -> Callable[[Any], int]:
    def convert(tensor: Any) -> int:
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            raise TypeError(f"{where}: expected a plain torch.Tensor, got {type(tensor).__name__}")
        if dtypes is not None and tensor.dtype not in dtypes:
            wanted = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
            raise TypeError(f"{where}: expected a {wanted} tensor, got {str(tensor.dtype).removeprefix('torch.')}")
        if not tensor.is_cuda:
            raise ValueError(f"{where}: the tensor is on {tensor.device}, the kernel runs on the GPU")
        if not tensor.is_contiguous():
            raise ValueError(f"{where}: the tensor is not contiguous (shape {tuple(tensor.shape)}); use .contiguous()")
        if tensor.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                f"{where}: the tensor requires grad and kernels have no backward; use torch.no_grad() or .detach()"
            )
        return int(tensor.data_ptr())

    return convert


def _allow_shared(kernel: Any, name: str, shared: int) -> None:
    """Dynamic shared memory beyond 48 KiB has to be asked for."""
    from cuda.bindings import driver

    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    device = driver.CUdevice(torch.cuda.current_device())
    status = driver.cuKernelSetAttribute(attribute, shared, driver.CUkernel(int(kernel.handle)), device)[0]
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{name}: {shared} bytes of dynamic shared memory are more than the device has per block")


def _check(status: Any) -> None:
    if int(status) != 0:
        raise RuntimeError(f"load_cuda: NVRTC: {status.name}")


@functools.cache
def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except Exception as error:
        raise RuntimeError(
            f"load_cuda: NVRTC is not usable ({type(error).__name__}); pip install 'davinci-kernel[cuda]'"
        ) from None
    return nvrtc


@functools.cache
def _core() -> Any:
    try:
        import cuda.core as core

        if not hasattr(core, "launch"):
            import cuda.core.experimental as core
    except ImportError:
        raise RuntimeError("load_cuda: cuda-core is not installed; pip install 'davinci-kernel[cuda]'") from None
    torch.cuda.current_stream()  # torch's context comes first
    core.Device(torch.cuda.current_device()).set_current()
    return core
