"""`load_cpp` and `Kernels`: compiled functions that check their arguments and record their launches."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from time import perf_counter_ns
from typing import Any

import torch

from ._build import build
from ._evidence import RECORDER
from ._signature import Parameter, Signature, parse_signatures

_POINTEES: dict[str, tuple[torch.dtype, ...]] = {
    "float": (torch.float32,),
    "double": (torch.float64,),
    "bool": (torch.bool,),
    "int8": (torch.int8,),
    "uint8": (torch.uint8, torch.bool),
    "int16": (torch.int16,),
    "uint16": (torch.bfloat16, torch.float16, torch.uint16),
    "int32": (torch.int32,),
    "uint32": (torch.uint32,),
    "int64": (torch.int64,),
    "uint64": (torch.uint64,),
    "float16": (torch.float16,),
    "bfloat16": (torch.bfloat16,),
}
_SCALARS: dict[str, Any] = {
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "bool": ctypes.c_bool,
    "int8": ctypes.c_int8,
    "uint8": ctypes.c_uint8,
    "int16": ctypes.c_int16,
    "uint16": ctypes.c_uint16,
    "int32": ctypes.c_int32,
    "uint32": ctypes.c_uint32,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "void": None,
}
_TENSOR_TYPES = (torch.Tensor, torch.nn.Parameter)

_Converter = Callable[[Any], Any]


def pointee_dtypes(kind: str) -> tuple[torch.dtype, ...] | None:
    """Dtypes of the tensors that a pointer to `kind` takes; None: any."""
    return _POINTEES.get(kind)


class Kernels:
    """The ``extern "C"`` functions of one source as attributes, called with tensors and Python numbers."""

    def __init__(self, library: ctypes.CDLL, signatures: dict[str, Signature]):
        self._library = library
        self._signatures = signatures

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        signature = self._signatures.get(name)
        if signature is None:
            known = ", ".join(self._signatures) or "none"
            raise AttributeError(f'the source has no extern "C" function {name!r}; it has: {known}')
        if signature.problem:
            raise TypeError(f"{name}: {signature.problem}")
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise AttributeError(f"the source declares {name!r} but does not define it") from None
        call = _bound(function, signature)
        self.__dict__[name] = call
        return call

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._signatures]


def load_cpp(source: str, extra_cflags: Sequence[str] = ()) -> Kernels:
    """Compile C++ (``-O3 -march=native -fopenmp``, C++14 or, where that does not do, C++17) and give its ``extern "C"`` functions.

    A pointer parameter takes a contiguous CPU tensor of the same element type, a number parameter a Python number:
    ``K.f(x, y, out, x.numel())``. Calls release the GIL. Kernels know nothing of autograd.

    Args:
        source: C++ text; parameters may be pointers to numbers, or numbers.
        extra_cflags: further optimisation flags (``-ffast-math``, ``-funroll-loops``, ``-DN=64`` ...).

    Raises:
        CompileError: with the compiler's first error and its line.
        ValueError: a flag that is not allowed, or no ``extern "C"`` function in the source.
    """
    signatures = parse_signatures(source)
    if not signatures:
        raise ValueError(
            'load_cpp: the source has no extern "C" function, such as: extern "C" void f(const float* x, float* y, long n) { ... }'
        )
    return Kernels(ctypes.CDLL(str(build(source, extra_cflags))), signatures)


def _bound(function: Any, signature: Signature) -> Callable[..., Any]:
    """A callable with the signature's checks around a foreign function."""
    name, count = signature.name, len(signature.parameters)
    converters = [_converter(name, index, parameter) for index, parameter in enumerate(signature.parameters)]
    function.argtypes = [ctypes.c_void_p if p.pointer else _SCALARS[p.kind] for p in signature.parameters]
    function.restype = _SCALARS[signature.result]
    nothing = None if signature.result == "void" else 0
    recorder, now = RECORDER, perf_counter_ns

    def call(*arguments: Any) -> Any:
        if len(arguments) != count:
            expected = ", ".join(parameter.text for parameter in signature.parameters)
            raise TypeError(f"{name}({expected}) takes {count} arguments, {len(arguments)} given")
        values = [convert(argument) for convert, argument in zip(converters, arguments)]  # noqa: B905
        if recorder.ghost:
            return nothing
        start = now()
        result = function(*values)
        recorder.spans.append((name, start, now()))
        return result

    call.__name__ = call.__qualname__ = name
    return call


def _converter(function: str, index: int, parameter: Parameter) -> _Converter:
    where = f"{function}: argument {index + 1} ({parameter.text})"
    if parameter.pointer:
        return _pointer_converter(where, pointee_dtypes(parameter.kind))
    if parameter.kind in ("float", "double"):
        return _float_converter(where)
    return _integer_converter(where, _SCALARS[parameter.kind])


def _pointer_converter(where: str, dtypes: tuple[torch.dtype, ...] | None) -> _Converter:
    """Checks for a tensor whose address is passed; ``dtypes`` None (void*) takes any."""

    def convert(tensor: Any) -> int:
        if type(tensor) not in _TENSOR_TYPES:
            raise TypeError(f"{where}: expected a plain torch.Tensor, got {type(tensor).__name__}")
        if dtypes is not None and tensor.dtype not in dtypes:
            wanted = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
            raise TypeError(f"{where}: expected a {wanted} tensor, got {str(tensor.dtype).removeprefix('torch.')}")
        if not tensor.is_cpu:
            raise ValueError(f"{where}: the tensor is on {tensor.device}, kernels run on the CPU")
        if not tensor.is_contiguous():
            raise ValueError(f"{where}: the tensor is not contiguous (shape {tuple(tensor.shape)}); use .contiguous()")
        if tensor.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                f"{where}: the tensor requires grad and kernels have no backward; use torch.no_grad() or .detach()"
            )
        address: int = tensor.data_ptr()
        return address

    return convert


def _float_converter(where: str) -> _Converter:
    def convert(value: Any) -> float:
        if type(value) is float:
            return value
        if not isinstance(value, Real):
            raise TypeError(f"{where}: expected a number, got {type(value).__name__}")
        return float(value)

    return convert


def _integer_converter(where: str, ctype: Any) -> _Converter:
    boolean = ctype is ctypes.c_bool
    bits, signed = 8 * ctypes.sizeof(ctype), ctype(-1).value < 0
    low, high = (0, 1) if boolean else (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def convert(value: Any) -> int:
        if type(value) is not int and not isinstance(value, Integral):
            raise TypeError(f"{where}: expected an integer, got {type(value).__name__}")
        number = int(value)
        if not low <= number <= high:
            raise ValueError(f"{where}: {number} does not fit")
        return number

    return convert
