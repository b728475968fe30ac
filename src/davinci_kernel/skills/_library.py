"""`SkillLibrary`: the skills of a run, and its snapshots ``<root>/global_step_<N>.jsonl``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from davinci_kernel.errors import UserError

from ._atomic import write_atomically
from ._merge import add_skills
from ._retrieval import LibraryView
from ._types import Skill

_SNAPSHOT = re.compile(r"global_step_(\d+)\.jsonl")


@dataclass(frozen=True)
class FlushReport:
    """What a flush did.

    Attributes:
        added: names under which staged skills entered the library.
        merged: (proposed name, name of the skill it was merged into).
        path: the snapshot; None for a library without a root.
    """

    added: tuple[str, ...]
    merged: tuple[tuple[str, str], ...]
    path: Path | None


class SkillLibrary:
    """Active skills, and staged ones that enter at the next `flush`.

    Args:
        root: folder of the snapshots; None keeps the library in memory.
        skills: active skills to start from, e.g. those of an earlier run.
        merge_similarity: content similarity from which a staged skill is merged into an active one.
    """

    def __init__(self, root: Path | None = None, skills: Iterable[Skill] = (), merge_similarity: float = 0.85) -> None:
        self.root = root
        self.merge_similarity = merge_similarity
        self._view = LibraryView(skills)
        self._staged: list[Skill] = []

    @classmethod
    def load(cls, root: Path | str, step: int | None = None, merge_similarity: float = 0.85) -> SkillLibrary:
        """The newest snapshot, or the newest up to and including `step` (to resume; later ones are ignored).

        Raises:
            UserError: a malformed line (named file:line); no snapshot, where no `step` was asked for. Resuming from a
                step before the first snapshot gives an empty library.
        """
        root = Path(root)
        usable = {n: path for n, path in snapshots(root).items() if step is None or n <= step}
        if not usable and step is None:
            raise UserError(f"{root}: no snapshot global_step_<N>.jsonl in this folder; give a run's skills/ folder")
        skills = read_snapshot(usable[max(usable)]) if usable else []
        return cls(root, skills, merge_similarity)

    @property
    def skills(self) -> tuple[Skill, ...]:
        """The active skills, oldest first."""
        return self._view.skills

    @property
    def staged(self) -> tuple[Skill, ...]:
        """Accepted skills that wait for a successful optimizer update."""
        return tuple(self._staged)

    def __len__(self) -> int:
        return len(self._view)

    def get(self, name: str) -> Skill | None:
        """The active skill of exactly this name, if there is one."""
        return self._view.get(name)

    def recall(self, query: str, k: int = 20, fallback: int = 30, seed: int = 0) -> list[Skill]:
        """`LibraryView.recall` over the active skills."""
        return self._view.recall(query, k, fallback, seed)

    def view(self) -> LibraryView:
        """The active skills as they are now: unaffected by later flushes."""
        return self._view

    def stage(self, skill: Skill) -> None:
        """Accept a verified skill; it becomes active at the next `flush`."""
        self._staged.append(skill)

    def discard_staged(self) -> None:
        """Forget the staged skills: the optimizer update failed."""
        self._staged.clear()

    def flush(self, step: int) -> FlushReport:
        """Make the staged skills active and write the snapshot of `step`, even when nothing is new.

        The library changes only once the snapshot is on disk; a failed write leaves skills and staged skills alone.
        """
        skills, added, merged = add_skills(self.skills, self._staged, self.merge_similarity)
        path = None
        if self.root is not None:
            path = self.root / f"global_step_{step}.jsonl"
            write_atomically(path, "".join(f"{skill.model_dump_json()}\n" for skill in skills))
        self._view = LibraryView(skills)
        self._staged.clear()
        return FlushReport(added, merged, path)


def snapshots(root: Path) -> dict[int, Path]:
    """Snapshots in a folder by step, ascending. Empty for a folder that does not exist."""
    paths = root.iterdir() if root.is_dir() else ()
    found = {int(match[1]): path for path in paths if (match := _SNAPSHOT.fullmatch(path.name))}
    return dict(sorted(found.items()))


def read_snapshot(path: Path) -> list[Skill]:
    """The skills of one snapshot. Unknown fields are kept; optional fields may be missing or null.

    Raises:
        UserError: a line that is not a skill, as ``file:line: what is wrong``.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})") from None
    skills = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"{path}:{number}: not JSON ({error.msg}); fix or remove the line") from None
        if not isinstance(fields, dict):
            raise UserError(f"{path}:{number}: expected an object with name, description, scope, tags, content")
        known = {k: v for k, v in fields.items() if v is not None or k not in Skill.model_fields}
        try:
            skills.append(Skill.model_validate(known))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise UserError(f"{path}:{number}: field {field}: {first['msg']}; fix or remove the line") from None
    return skills
