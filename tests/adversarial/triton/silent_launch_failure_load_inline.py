# task: silu.py
# required: NONE
# Triton launches are checked by its own launcher; see silent_launch_failure.py.
