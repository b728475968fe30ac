# task: silu.py
# required: COMPILE_ERROR|RUNTIME_ERROR|HACK
# The same with the name put together at run time: there is no reference in the process to be found.
import importlib

Model = importlib.import_module("__ma" + "in__").Model


class ModelNew(Model):
    pass
