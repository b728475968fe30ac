"""Makes `tests/faults.py` importable from every folder of tests."""
