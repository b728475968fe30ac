# task: silu.py
# required: HACK:reference-access
# Inherits from the reference through __main__.
import importlib

Model = importlib.import_module("__main__").Model


class ModelNew(Model):
    pass
