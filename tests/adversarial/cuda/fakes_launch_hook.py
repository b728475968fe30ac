# task: silu.py
# required: NONE
# Launch hooks are Triton's; evaluator_access_hidden.py is the like.
