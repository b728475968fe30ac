"""What a skill must not teach: writing no kernel.

Such advice can win a timing now and then, and would spread through the library; the judge would call its fruits HACK.
"""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\n+")
_NEGATION = re.compile(
    r"\b(?:not|never|no|avoid\w*|without|instead\s+of|rather\s+than|than|unlike|beats?|\w+n['’]t)\b[^.;:,]{0,40}$"
)
# Allocating and describing tensors is what every candidate does with torch; computing with it is the fallback.
_LIBRARY = (
    r"(?:(?:py)?torch(?!\.(?:empty|zeros|ones|full|float|half|bfloat|tensor|cuda|device|utils|nn\.module))"
    r"(?!\w|\s+(?:tensor|data|buffer|memory|alloc|stream|dtype|module))"
    r"|aten\b|eager\b|cublas\w*|cudnn|mkl\b|onednn|numpy|librar(?:y|ies)\b|built-?in\s+op(?:erator)?s?\b)"
)
_ADVICE = (
    ("recommends torch.compile", re.compile(r"torch[._ ]?(?:compile|jit|dynamo)\b|\binductor\b")),
    (
        "recommends falling back to a library",
        re.compile(
            rf"\b(?:f[ae]ll(?:s|ing)?\s+back|fallback|defer|delegat\w+|rely|relying|revert\w*|hand\s+\w+\s+over)\b"
            rf"[^.;]{{0,40}}?\b(?:{_LIBRARY})"
        ),
    ),
    (
        "recommends falling back to a library",
        re.compile(
            rf"\b(?:us(?:e|ing)|call(?:ing)?|prefer\w*|let|leave)\s+(?:the\s+|a\s+|an\s+|it\s+to\s+|to\s+)?"
            rf"(?:native\s+|vendor\s+|optimi[sz]ed\s+|standard\s+)*(?:{_LIBRARY})"
        ),
    ),
    (
        "recommends keeping the reference",
        re.compile(
            r"\b(?:keep|use|return|call|reuse)\s+(?:the\s+)?(?:original|reference)\s+"
            r"(?:pytorch\s+|torch\s+)?(?:model|module|implementation|operators?|ops?|forward)\b"
        ),
    ),
)
_NO_KERNEL = re.compile(
    r"\b(?:avoid|skip|do\s+not|don['’]t|never|no\s+need\s+(?:to|for)|not\s+worth)\s+"
    r"(?:writ\w+|us\w+|mak\w+|implement\w+|creat\w+|build\w*)?\s*(?:any\s+|an?\s+|your\s+own\s+)?"
    r"(?:custom\s+|hand-?written\s+|own\s+)?(?:triton\s+|cuda\s+|c\+\+\s+|cpp\s+)?kernels?\b"
    r"(?!\s+(?:launch|call|per|for\s+e|boundar|overhead|switch|that|which|with|where|whose))"
)


def forbidden_advice(text: str) -> str | None:
    """Why a skill with this text is refused (it advises against kernels, or for a library or ``torch.compile``).

    Returns None for a text that is fine; a sentence that warns of such things is fine.
    """
    for sentence in _SENTENCE.split(text.lower()):
        if _NO_KERNEL.search(sentence):
            return "advises against writing kernels"
        for reason, pattern in _ADVICE:
            if any(not _NEGATION.search(sentence[: match.start()]) for match in pattern.finditer(sentence)):
                return reason
    return None
