"""`load_cpp` with a real compiler."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from davinci_kernel.jit import CompileError, Kernels, load_cpp
from davinci_kernel.jit import _evidence as evidence

SOURCE = r"""
#include <cstddef>
#include <cstdint>
extern "C" void axpy(const float* x, float* y, float a, int64_t n) {
    #pragma omp parallel for
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}
extern "C" {
double total(const double* x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }
int count(const bool* flags, size_t n, bool wanted) { int c = 0; for (size_t i = 0; i < n; i++) c += flags[i] == wanted; return c; }
void bits(const uint16_t* h, int32_t* out, int n) { for (int i = 0; i < n; i++) out[i] = h[i]; }
void missing(int n);
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path_factory.getbasetemp() / "jit-cache"
    monkeypatch.setenv("DAVINCI_JIT_CACHE", str(directory))
    evidence.reset()
    return directory


@pytest.fixture
def kernels() -> Kernels:
    return load_cpp(SOURCE)


def test_values_and_results(kernels: Kernels) -> None:
    x, y = torch.arange(5.0), torch.ones(5)
    assert kernels.axpy(x, y, 2, x.numel()) is None
    assert y.tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]
    assert kernels.total(torch.tensor([0.25, 0.5], dtype=torch.float64), 2) == 0.75
    assert kernels.count(torch.tensor([True, False, True]), 3, True) == 2
    out = torch.zeros(1, dtype=torch.int32)
    kernels.bits(torch.tensor([1.0], dtype=torch.bfloat16), out, np.int64(1))
    assert out.item() == 0x3F80


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (lambda x: (x, x, 1.0), TypeError, r"axpy\(.*\) takes 4 arguments, 3 given"),
        (
            lambda x: (x.double(), x, 1.0, 4),
            TypeError,
            r"argument 1 \(const float\* x\): expected a float32 tensor, got float64",
        ),
        (lambda x: (x, [0.0], 1.0, 4), TypeError, r"argument 2 .*expected a plain torch.Tensor, got list"),
        (lambda x: (x.view(2, 2).t(), x, 1.0, 4), ValueError, r"argument 1 .*not contiguous"),
        (lambda x: (x, x, "1", 4), TypeError, r"argument 3 .*expected a number, got str"),
        (lambda x: (x, x, x[0], 4), TypeError, r"argument 3 .*got Tensor"),
        (lambda x: (x, x, 1.0, 4.0), TypeError, r"argument 4 .*expected an integer, got float"),
        (lambda x: (x, x, 1.0, 1 << 63), ValueError, r"argument 4 .*does not fit"),
        (lambda x: (x.to("meta"), x, 1.0, 4), ValueError, r"argument 1 .*on meta"),
        (lambda x: (x.clone().requires_grad_(), x, 1.0, 4), ValueError, r"argument 1 .*requires grad"),
        (lambda x: (x.as_subclass(type("Own", (torch.Tensor,), {})), x, 1.0, 4), TypeError, r"got Own"),
    ],
)
def test_wrong_arguments_name_function_and_parameter(kernels: Kernels, arguments, error, words: str) -> None:
    with pytest.raises(error, match=words):
        kernels.axpy(*arguments(torch.zeros(4)))
    assert evidence.launches() == []


def test_parameters_are_accepted_without_grad(kernels: Kernels) -> None:
    weight, y = torch.nn.Parameter(torch.ones(2)), torch.zeros(2)
    with torch.no_grad():
        kernels.axpy(weight, y, 3.0, 2)
    assert y.tolist() == [3.0, 3.0]


def test_unknown_and_undefined_functions(kernels: Kernels) -> None:
    with pytest.raises(AttributeError, match="no extern \"C\" function 'nope'; it has: axpy, total"):
        kernels.nope  # noqa: B018
    with pytest.raises(AttributeError, match="declares 'missing' but does not define it"):
        kernels.missing  # noqa: B018


def test_compile_error_has_line_and_text_but_no_path() -> None:
    with pytest.raises(CompileError) as caught:
        load_cpp('\nextern "C" void f(float* x) {\n  x[0] = undeclared;\n  x[1] = also_undeclared;\n}')
    text = str(caught.value)
    assert text.startswith("line 3, column 10: 'undeclared' was not declared in this scope\n  x[0] = undeclared;")
    assert "1 more error" in text
    assert "/" not in text


@pytest.mark.parametrize("flags", [[], ["-std=c++17"], ["-std=c++20"]])
def test_what_only_cpp17_has_compiles(flags: list[str]) -> None:
    source = '#include <algorithm>\nextern "C" void f(float* x) { x[0] = std::clamp(x[0], -1.0f, 1.0f); }'
    x = torch.tensor([3.0])
    load_cpp(source, flags).f(x)
    assert x.item() == 1.0


def test_link_error() -> None:
    with pytest.raises(CompileError, match="undefined reference to"):
        load_cpp('void elsewhere(); extern "C" void f(float* x) { elsewhere(); }')


def test_missing_header() -> None:
    with pytest.raises(CompileError, match=r"line 1.*no_such_header\.h: No such file"):
        load_cpp('#include <no_such_header.h>\nextern "C" void f(float* x) {}')


def test_source_without_functions_and_bad_flags() -> None:
    with pytest.raises(ValueError, match='no extern "C" function'):
        load_cpp("void f() {}")
    with pytest.raises(ValueError, match=r"'-fplugin=x\.so' is not allowed"):
        load_cpp(SOURCE, ["-fplugin=x.so"])


def test_flags_reach_the_compiler_without_flushing_denormals() -> None:
    source = r"""
    #ifndef __FAST_MATH__
    #error flag lost
    #endif
    extern "C" void f(float* x) { x[0] = N; }
    """
    x = torch.zeros(1)
    load_cpp(source, ["-ffast-math", "-DN=7"]).f(x)
    assert x.item() == 7.0
    assert (torch.tensor([1e-40]) * 1.0).item() > 0.0


def test_cache_is_used_by_content(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = 'extern "C" int seven() { return 7; }'
    assert load_cpp(source).seven() == 7
    libraries = set(cache.glob("*.so"))
    monkeypatch.setattr("subprocess.run", lambda *a, **k: pytest.fail("compiled again"))
    assert load_cpp(source).seven() == 7
    monkeypatch.undo()
    monkeypatch.setenv("DAVINCI_JIT_CACHE", str(cache))
    assert load_cpp(source.replace("7;", "8;")).seven() == 8
    assert len(set(cache.glob("*.so")) - libraries) == 1
    assert not list(cache.glob("*.tmp"))
    assert not list(cache.glob("*.lock"))


def test_concurrent_builds_of_one_source_give_one_library(cache: Path) -> None:
    before = set(cache.glob("*.so"))
    source = 'extern "C" int answer() { return 42; }'
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(load_cpp(source).answer())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [42] * 4
    assert len(set(cache.glob("*.so")) - before) == 1


def test_same_names_in_two_sources_stay_apart() -> None:
    one, two = (load_cpp(f'extern "C" int which() {{ return {number}; }}') for number in (1, 2))
    assert (one.which(), two.which(), one.which()) == (1, 2, 1)


def test_calls_release_the_gil() -> None:
    source = """
    #include <unistd.h>
    extern "C" void wait(volatile int* flag) { for (int i = 0; i < 500 && !*flag; i++) usleep(10000); }
    """
    wait, flag = load_cpp(source).wait, torch.zeros(1, dtype=torch.int32)
    thread = threading.Thread(target=wait, args=(flag,))
    thread.start()
    flag[0] = 1  # reached only while the kernel runs without the GIL, or after its five seconds
    released = thread.is_alive()
    thread.join()
    assert released or evidence.kernel_seconds() < 4.0


def test_launches_are_recorded_and_forgotten(kernels: Kernels) -> None:
    x = torch.zeros(4, dtype=torch.float64)
    before = time.perf_counter()
    kernels.total(x, 4)
    kernels.axpy(x.float(), x.float(), 1.0, 4)
    elapsed = time.perf_counter() - before
    assert [launch.name for launch in evidence.launches()] == ["total", "axpy"]
    assert all(launch.seconds > 0 for launch in evidence.launches())
    assert 0 < evidence.kernel_seconds() <= elapsed
    evidence.reset()
    assert evidence.launches() == []
    assert evidence.kernel_seconds() == 0


def test_ghosts_check_arguments_but_launch_nothing(kernels: Kernels) -> None:
    x, y = torch.ones(3), torch.ones(3)
    evidence.set_ghost(True)
    try:
        kernels.axpy(x, y, 1.0, 3)
        assert kernels.total(x.double(), 3) == 0
        with pytest.raises(TypeError):
            kernels.axpy(x, y, 1.0)
    finally:
        evidence.set_ghost(False)
    assert y.tolist() == [1.0, 1.0, 1.0]
    assert evidence.launches() == []
    kernels.axpy(x, y, 1.0, 3)
    assert y.tolist() == [2.0, 2.0, 2.0]
