"""Finding the candidate module in a policy answer."""

from __future__ import annotations

import re

from ._thinking import split_thinking

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)


def extract_code(text: str, entry_point: str = "Model") -> str | None:
    """The candidate module of an answer.

    The last closed ``python`` fence that defines ``class <entry_point>New``, else the last closed fence of any kind,
    else None. Reasoning is not searched, and an unclosed fence is a cut-off module, not a candidate.
    """
    fences = [(m[1].strip().lower(), m[2]) for m in _FENCE.finditer(split_thinking(text)[1])]
    defines = re.compile(rf"^class\s+{re.escape(entry_point)}New\b", re.MULTILINE)
    modules = [code for language, code in fences if language in ("python", "py") and defines.search(code)]
    if modules:
        return modules[-1]
    return fences[-1][1] if fences else None
