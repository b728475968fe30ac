"""`load_cuda` where there is no GPU: sources are compiled, and a launch is refused."""

import importlib.util

import pytest
import torch

from davinci_kernel.jit import CompileError, load_cuda
from davinci_kernel.jit._cuda import first_error

SOURCE = """
extern "C" __global__ void __launch_bounds__(256) scale(const float* x, float* y, float a, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
"""
NVRTC = pytest.mark.skipif(importlib.util.find_spec("nvidia") is None, reason="needs the extra [cuda]")


def nvrtc_works() -> bool:
    try:
        load_cuda(SOURCE)
    except RuntimeError:
        return False
    return True


def test_what_is_refused_before_compiling():
    with pytest.raises(ValueError, match=r'no extern "C" __global__ kernel'):
        load_cuda('extern "C" void f(float* x) {}')
    with pytest.raises(ValueError, match="'-I/etc' is not allowed"):
        load_cuda(SOURCE, ["-I/etc"])
    with pytest.raises(TypeError, match="a list of options"):
        load_cuda(SOURCE, "--use_fast_math")


def test_without_nvrtc_the_message_names_the_extra():
    if nvrtc_works():
        pytest.skip("NVRTC is installed")
    with pytest.raises(RuntimeError, match=r"davinci-kernel\[cuda\]"):
        load_cuda(SOURCE)


@NVRTC
def test_kernels_compile_and_errors_have_a_line():
    if not nvrtc_works():
        pytest.skip("NVRTC is not usable here")
    kernels = load_cuda(SOURCE, ["--use_fast_math", "-DN=4"])
    assert dir(kernels)[-1] == "scale"
    with pytest.raises(AttributeError, match="no extern"):
        kernels.other  # noqa: B018
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="scale: no CUDA device"):
            kernels.scale(1, 256)
    with pytest.raises(CompileError, match=r'(?s)line 4: identifier "nope" is undefined\n  if \(i < n\) y'):
        load_cuda(SOURCE.replace("a * x[i]", "nope"))


def test_the_first_error_of_a_log_and_how_many_follow():
    log = 'kernel.cu(3): error: identifier "a" is undefined\n    a;\n\nkernel.cu(4): error: expected a ";"\n\n2 errors'
    assert (
        first_error(log, "one\ntwo\nthree;\nfour") == 'line 3: identifier "a" is undefined\n  three;\n(1 more errors)'
    )
    assert first_error("nvrtc: something", "") == "nvrtc: something"
