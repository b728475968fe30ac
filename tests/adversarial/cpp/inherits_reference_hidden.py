# task: silu.py
# required: COMPILE_ERROR
# The same with the name put together at run time: there is no reference in the process to be found.
import importlib

Model = importlib.import_module("refe" + "rence").Model


class ModelNew(Model):
    pass
