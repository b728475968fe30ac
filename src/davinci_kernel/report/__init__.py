"""The report of a run: one self-contained HTML page."""

from ._html import write_report

__all__ = ["write_report"]
