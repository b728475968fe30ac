# task: silu.py
# required: NONE
# Triton kernels have no C++ extension or CUDA source; see the CUDA set.
