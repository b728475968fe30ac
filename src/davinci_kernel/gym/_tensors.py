"""Values with tensors as a JSON description plus raw bytes in shared memory: how they cross process borders.

Nothing is ever unpickled. A description that comes from a candidate is validated as hostile: kinds, shapes, dtypes,
depth and the bytes it points at.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from collections.abc import Sequence
from typing import Any

import torch

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in [
        "float64",
        "float32",
        "float16",
        "bfloat16",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint8",
        "bool",
        "complex64",
        "complex128",
        "float8_e4m3fn",
        "float8_e5m2",
        "uint16",
        "uint32",
        "uint64",
    ]
    if hasattr(torch, name)
}
"""Dtypes that may cross, by name."""

_TENSOR_TYPES = {torch.Tensor: "Tensor", torch.nn.Parameter: "Parameter"}
"""Known by identity: a subclass may call itself anything."""

ALIGNMENT = 64
_PLAIN_TENSORS: dict[type, str] = {torch.Tensor: "Tensor", torch.nn.Parameter: "Parameter"}
_MAX_NODES = 10_000
_MAX_DEPTH = 16
_F_ADD_SEALS = 1033
_SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW, _SEAL_WRITE = 1, 2, 4, 8


class BadDescription(ValueError):
    """A description that does not describe what lies in the region."""


class Region:
    """Shared memory of fixed size: an anonymous file whose size nobody can change."""

    def __init__(self, fd: int, size: int, writable: bool):
        self.fd, self.size = fd, size
        flags = mmap.MAP_SHARED if writable else mmap.MAP_PRIVATE
        self._map = mmap.mmap(fd, max(size, 1), flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)

    @staticmethod
    def create(size: int) -> Region:
        """A writable region of ``size`` bytes."""
        fd = os.memfd_create("davinci", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(fd, max(size, 1))
        fcntl.fcntl(fd, _F_ADD_SEALS, _SEAL_SHRINK | _SEAL_GROW)
        return Region(fd, size, writable=True)

    @staticmethod
    def frozen(tensors: Sequence[torch.Tensor], offsets: Sequence[int], size: int) -> Region:
        """A region that holds the tensors' bytes and that no process can write again."""
        fd = os.memfd_create("davinci", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(fd, max(size, 1))
        for tensor, offset in zip(tensors, offsets, strict=True):
            array: Any = _dense_bytes(tensor).cpu().numpy()
            data, done = memoryview(array), 0
            while done < len(data):
                done += os.pwrite(fd, data[done:], offset + done)
        fcntl.fcntl(fd, _F_ADD_SEALS, _SEAL_SHRINK | _SEAL_GROW | _SEAL_WRITE | _SEAL_SEAL)
        return Region(fd, size, writable=False)

    @property
    def buffer(self) -> mmap.mmap:
        return self._map

    @property
    def address(self) -> int:
        return ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def write(self, offset: int, tensor: torch.Tensor) -> None:
        """Copy a tensor's elements, row-major, to an offset."""
        data = _dense_bytes(tensor).cpu()
        if data.numel():
            ctypes.memmove(self.address + offset, data.data_ptr(), data.numel())

    def bytes_at(self, offset: int, size: int) -> torch.Tensor:
        """A view: uint8 [size]."""
        if not size:
            return torch.empty(0, dtype=torch.uint8)
        return torch.frombuffer(self._map, dtype=torch.uint8, count=size, offset=offset)

    def close(self) -> None:
        os.close(self.fd)


def _dense_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """uint8 [bytes] over the elements in memory order for dense tensors, else row-major of a copy."""
    tensor = tensor.detach()
    if not is_dense(tensor):
        tensor = tensor.contiguous()
    flat = tensor.as_strided((tensor.numel(),), (1,))
    return flat.view(torch.uint8) if tensor.numel() else torch.empty(0, dtype=torch.uint8)


def is_dense(tensor: torch.Tensor) -> bool:
    """True where the elements fill one block of memory without gaps or overlap, in any order of dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def describe(value: Any) -> tuple[dict[str, Any], list[torch.Tensor], list[int], int]:
    """Describe a value that may hold tensors.

    Returns:
        The description (JSON-able), its tensors in order, each one's byte offset, and the total size in bytes.
    """
    tensors: list[torch.Tensor] = []
    offsets: list[int] = []
    size = 0

    def node(item: Any, depth: int) -> dict[str, Any]:
        nonlocal size
        if depth > _MAX_DEPTH:
            return {"kind": "other", "type": "nested too deeply"}
        if isinstance(item, torch.Tensor):
            if str(item.dtype).removeprefix("torch.") not in DTYPES or item.layout is not torch.strided:
                return {"kind": "other", "type": f"{item.layout} tensor of {item.dtype}"}
            offset = size
            tensors.append(item)
            offsets.append(offset)
            size += -(-item.numel() * item.element_size() // ALIGNMENT) * ALIGNMENT
            return {
                "kind": "tensor",
                "dtype": str(item.dtype).removeprefix("torch."),
                "shape": list(item.shape),
                "stride": list(item.stride()) if is_dense(item) else None,
                "offset": offset,
                "type": _PLAIN_TENSORS.get(type(item), f"subclass {type(item).__name__}"),
                "device": item.device.type,
            }
        if type(item) in (list, tuple):
            return {"kind": type(item).__name__, "items": [node(part, depth + 1) for part in item]}
        if isinstance(item, dict):
            pairs = [[node(key, depth + 1), node(part, depth + 1)] for key, part in item.items()]
            return {"kind": "dict", "type": type(item).__name__, "items": pairs}
        if item is None or type(item) in (bool, int, float, str):
            return {"kind": "value", "value": item}
        if isinstance(item, torch.dtype):
            return {"kind": "dtype", "value": str(item).removeprefix("torch.")}
        if isinstance(item, tuple):
            return {"kind": "tuple", "items": [node(part, depth + 1) for part in item], "type": type(item).__name__}
        return {"kind": "other", "type": type(item).__name__}

    return node(value, 0), tensors, offsets, size


def restore(description: Any, region: Region, *, copy: bool = True) -> Any:
    """Build the value again from its description and bytes.

    Args:
        description: from `describe`, possibly from a hostile process.
        region: holds the bytes.
        copy: False gives views of the region, valid as long as it is.

    Raises:
        BadDescription: it does not fit the region, or is no description at all.
    """
    nodes = 0

    def build(node: Any, depth: int) -> Any:
        nonlocal nodes
        nodes += 1
        if nodes > _MAX_NODES or depth > _MAX_DEPTH or not isinstance(node, dict):
            raise BadDescription("malformed")
        kind, items = node.get("kind"), node.get("items")
        if kind == "tensor":
            return _tensor(node, region, copy)
        if kind == "value" and (node["value"] is None or isinstance(node["value"], (bool, int, float, str))):
            return node["value"]
        if kind == "dtype" and node.get("value") in DTYPES:
            return DTYPES[node["value"]]
        if kind in ("list", "tuple") and isinstance(items, list):
            parts = [build(part, depth + 1) for part in items]
            return parts if kind == "list" else tuple(parts)
        if kind == "dict" and isinstance(items, list) and all(isinstance(p, list) and len(p) == 2 for p in items):
            pairs = [(build(key, depth + 1), build(part, depth + 1)) for key, part in items]
            if all(isinstance(key, (str, int, float, bool)) for key, _ in pairs):
                return dict(pairs)
        raise BadDescription(f"cannot carry a value of type {str(node.get('type', kind))[:80]}")

    try:
        return build(description, 0)
    except (KeyError, TypeError, OverflowError) as error:
        raise BadDescription(f"malformed: {error}") from None


def _tensor(node: dict[str, Any], region: Region, copy: bool) -> torch.Tensor:
    dtype, shape, offset, stride = DTYPES.get(node["dtype"]), node["shape"], node["offset"], node.get("stride")
    if dtype is None or not isinstance(shape, list) or len(shape) > 32:
        raise BadDescription("malformed tensor")
    numbers = [*shape, offset, *(stride or [])]
    if not all(type(number) is int and 0 <= number < 1 << 48 for number in numbers):
        raise BadDescription("malformed shape")
    count = 1
    for extent in shape:
        count *= extent
    nbytes = count * dtype.itemsize
    if offset + nbytes > region.size:
        raise BadDescription("tensor outside of its region")
    raw = region.bytes_at(offset, nbytes)
    flat = (raw.clone() if copy else raw).view(dtype) if nbytes else torch.empty(0, dtype=dtype)
    if stride is None or not count:
        return flat.view(shape)
    if len(stride) != len(shape) or sum((e - 1) * s for e, s in zip(shape, stride, strict=True) if e) >= max(count, 1):
        raise BadDescription("malformed stride")
    return flat.as_strided(shape, stride)


def tensor_nodes(description: dict[str, Any]) -> list[dict[str, Any]]:
    """The description's tensor nodes, in the order of `describe`."""
    if description.get("kind") == "tensor":
        return [description]
    found: list[dict[str, Any]] = []
    for item in description.get("items") or []:
        for part in item if isinstance(item, list) else [item]:
            found += tensor_nodes(part)
    return found


def nbytes_of(node: dict[str, Any]) -> int:
    """Bytes of a tensor node's elements; only for descriptions from trusted processes."""
    count = DTYPES[node["dtype"]].itemsize
    for extent in node["shape"]:
        count *= extent
    return count


def same_bytes(first: Any, second: Any) -> bool:
    """True where two values have the same description and their tensors the same bytes, NaN included."""
    one, ours, *_ = describe(first)
    other, theirs, *_ = describe(second)
    pairs = zip(ours, theirs, strict=False)
    return one == other and all(torch.equal(_dense_bytes(mine), _dense_bytes(its)) for mine, its in pairs)
