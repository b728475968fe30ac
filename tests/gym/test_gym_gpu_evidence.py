"""Which device function is whose: by exact name."""

import pytest

from davinci_kernel.gym._gpu_evidence import declared_kernels, kernel_identity


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("silu", "silu"),
        ("silu_kernel(float const*, float*, long long)", "silu_kernel"),
        ("void scale<float, 4>(float*)", "scale"),
        ("(anonymous namespace)::fused(int)", "fused"),
        ("void mine::inner::fused<int>(int)", "fused"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3> >(int)",
            "at::native::vectorized_elementwise_kernel",
        ),
        ("void at::native::(anonymous namespace)::softmax<float>(float*)", "at::native::softmax"),
        ("Memcpy DtoH (Device -> Pageable)", "Memcpy DtoH"),
    ],
)
def test_identity_keeps_a_librarys_namespace_and_nothing_else(name, identity):
    assert kernel_identity(name) == identity


def test_declared_kernels_of_a_source():
    source = """
    template <int N> __global__ void __launch_bounds__(256) scale(const float* x) {}
    extern "C" __global__ void f(float* x);
    static __global__ __launch_bounds__(128, 2) void g(int n) { helper(n); }
    __device__ float helper(int n) { return n; }
    """
    assert declared_kernels(source) == {"scale", "f", "g"}
