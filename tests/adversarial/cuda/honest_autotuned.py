# task: silu.py
# required: NONE
# Autotuning is Triton's own mechanism; load_cuda has none.
