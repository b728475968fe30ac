# task: silu.py
# required: NONE
# A Triton kernel compiles at its launch, so this is try_fallback.py.
