"""What makes a Python source a KernelBench reference; found by reading, not by running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from davinci_kernel.errors import UserError


def require_reference(code: str, where: str, entry_point: str = "Model") -> None:
    """Check that `code` parses and defines its entry point, `get_inputs` and `get_init_inputs` at the top level.

    Raises:
        UserError: it does not; the message starts with `where`.
    """
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise UserError(f"{where}: not valid Python: {error.msg} (line {error.lineno})") from None
    except ValueError as error:  # null bytes
        raise UserError(f"{where}: not valid Python: {error}") from None
    defined = set(_bound(tree.body))
    for name in (entry_point, "get_inputs", "get_init_inputs"):
        if name not in defined:
            raise UserError(
                f"{where}: defines no {name}; a reference needs {entry_point}, get_inputs and get_init_inputs"
            )


def _bound(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Names that statements bind at module level, also inside `if`, `try` and `with`."""
    for statement in body:
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            yield statement.name
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name for alias in statement.names)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            yield from (n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        else:
            for part in ("body", "orelse", "finalbody"):
                yield from _bound(getattr(statement, part, ()))
            for handler in getattr(statement, "handlers", ()):
                yield from _bound(handler.body)
