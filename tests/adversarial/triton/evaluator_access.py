# task: silu.py
# required: NONE
# Triton candidates import nothing of davinci_kernel; fakes_launch_hook.py is the like.
