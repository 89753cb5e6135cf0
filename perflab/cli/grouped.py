"""Help with the options in groups, as plain text: it reads the same in a terminal, a pipe and a narrow window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperCommand

if TYPE_CHECKING:
    from typer._click.core import Context
    from typer._click.formatting import HelpFormatter


_COLUMN = 26  # of the options; what is longer has its help in the next line


# Where the words after -- are kept in a context.
COMMAND_KEY = "perflab.command"


class GroupedCommand(TyperCommand):
    """A command whose options stand under their `rich_help_panel`, in order of first appearance."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                fallback = "Arguments" if parameter.param_type_name == "argument" else "Options"
                groups.setdefault(getattr(parameter, "rich_help_panel", None) or fallback, []).append(
                    (record[0].ljust(_COLUMN), record[1])
                )
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=_COLUMN)


class CommandAfterDashes(GroupedCommand):
    """A command of which everything behind the first -- is another command line, kept as it is."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            ctx.meta[COMMAND_KEY] = args[place + 1 :]
            args = args[:place]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]
