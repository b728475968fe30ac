# task: matmul.py
# required: NONE
# TF32 in a hand-written product needs mma headers or PTX; half_precision.py and tf32_flip.py are the class.
