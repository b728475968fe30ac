"""Values across process borders, and hostile descriptions."""

import os

import pytest
import torch

from davinci_kernel.gym._tensors import BadDescription, Region, describe, restore, same_bytes


def roundtrip(value):
    description, tensors, offsets, size = describe(value)
    return restore(description, Region.frozen(tensors, offsets, size))


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0).view(2, 3),
        torch.arange(6.0).view(2, 3).t(),
        torch.arange(10, dtype=torch.int64)[::2],
        torch.tensor(3.0),
        torch.empty(0, 4),
        torch.tensor([True, False]),
        torch.tensor([1.5, 2.5], dtype=torch.bfloat16),
        torch.tensor([1 + 2j]),
        torch.ones(1).expand(3),
    ],
    ids=lambda tensor: f"{tensor.dtype}{list(tensor.shape)}",
)
def test_tensor_survives(tensor):
    restored = roundtrip(tensor)
    assert restored.dtype == tensor.dtype
    assert restored.shape == tensor.shape
    assert torch.equal(restored, tensor)


def test_dense_strides_survive():
    assert roundtrip(torch.arange(6.0).view(2, 3).t()).stride() == (1, 3)


def test_structure_survives():
    value = [torch.ones(2), (1, 2.5, None, "x", True), {"k": torch.zeros(1), "d": torch.float16}]
    restored = roundtrip(value)
    assert isinstance(restored[1], tuple)
    assert restored[1] == (1, 2.5, None, "x", True)
    assert restored[2]["d"] is torch.float16
    assert torch.equal(restored[0], torch.ones(2))


def test_subclass_is_named():
    class Lazy(torch.Tensor):
        pass

    description, *_ = describe(torch.ones(2).as_subclass(Lazy))
    assert "Lazy" in description["type"]


def tensor_node(**changes):
    return {"kind": "tensor", "dtype": "float32", "shape": [4], "stride": [1], "offset": 0, "type": "Tensor"} | changes


@pytest.mark.parametrize(
    "hostile",
    [
        tensor_node(shape=[1 << 40]),
        tensor_node(offset=1 << 30),
        tensor_node(offset=-4),
        tensor_node(shape=[-4]),
        tensor_node(shape="4"),
        tensor_node(shape=[4.0]),
        tensor_node(stride=[1 << 20]),
        tensor_node(stride=[1, 1]),
        tensor_node(dtype="quint8"),
        {"kind": "list", "items": "xx"},
        {"kind": "dict", "items": [[{"kind": "list", "items": []}, {"kind": "value", "value": 1}]]},
        {"kind": "value", "value": {"a": 1}},
        {"kind": "other", "type": "Foo"},
        {"kind": "tensor"},
        [],
        None,
        {"kind": "list", "items": [{"kind": "value", "value": 0}] * 20_000},
    ],
)
def test_hostile_description_is_refused(hostile):
    with pytest.raises(BadDescription):
        restore(hostile, Region.create(16))


def test_deep_nesting_is_refused():
    node = {"kind": "value", "value": 0}
    for _ in range(100):
        node = {"kind": "list", "items": [node]}
    with pytest.raises(BadDescription):
        restore(node, Region.create(16))


def test_frozen_region_cannot_be_written():
    region = Region.frozen([torch.ones(4)], [0], 16)
    with pytest.raises(OSError):
        os.pwrite(region.fd, b"x", 0)


def test_region_cannot_be_resized():
    region = Region.create(64)
    with pytest.raises(OSError):
        os.ftruncate(region.fd, 8)


def test_same_bytes_tells_values_apart_and_takes_nan_for_itself():
    nan = torch.tensor([float("nan"), 1.0])
    assert same_bytes([nan], [nan.clone()])
    assert not same_bytes([nan], [torch.tensor([float("nan"), 2.0])])
    assert not same_bytes([nan], (nan,))
    assert not same_bytes(torch.ones(2), torch.ones(1, 2))
