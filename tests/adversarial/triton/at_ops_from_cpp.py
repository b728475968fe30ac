# task: silu.py
# required: NONE
# Triton kernels are Python; ATen from C++ needs an extension, which the CUDA set has.
