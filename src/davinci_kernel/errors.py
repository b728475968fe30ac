"""Errors that a person can act on.

Everything the package raises on bad input derives from `UserError`: the command line turns it into one line on stderr
and exit code 2. `EvaluatorError` is ours, not the user's: exit code 3.
"""


class UserError(Exception):
    """Bad input: one clear line that names the file, field or flag, and the way out."""


class EvaluatorError(Exception):
    """The evaluator itself failed (lost worker, no memory in the harness); says nothing about the candidate."""
