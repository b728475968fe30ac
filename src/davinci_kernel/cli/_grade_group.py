"""The group of `davinci grade`: a model's name where a command could stand means `run`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

DEFAULT = "run"


class GradeGroup(TyperGroup):
    """`davinci grade MODEL ...` is `davinci grade run MODEL ...`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)
