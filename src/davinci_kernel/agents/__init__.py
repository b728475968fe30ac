"""The three agents: prompts, tool schemas, parsing. Pure functions; where text comes from is not known here."""

from ._code import extract_code
from ._policy import SKILLS_FOOTER, SKILLS_HEADER, feedback_message, policy_answer, policy_messages
from ._selection import SELECT_SKILLS, Selection, parse_selection, selection_answer, selection_messages
from ._summary import UPDATE_SKILL_LIBRARY, Summary, parse_summary, summary_answer, summary_messages

__all__ = [
    "SELECT_SKILLS",
    "SKILLS_FOOTER",
    "SKILLS_HEADER",
    "UPDATE_SKILL_LIBRARY",
    "Selection",
    "Summary",
    "extract_code",
    "feedback_message",
    "parse_selection",
    "parse_summary",
    "policy_answer",
    "policy_messages",
    "selection_answer",
    "selection_messages",
    "summary_answer",
    "summary_messages",
]
