# SPDX-License-Identifier: GPL-2.0-only
"""Help of a command with many options: a screen of the common ones, and all of them by section."""

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ream.examples import lines

ALL = "--help-all"

VM = "Options of the vm stage"
NATIVE = "Options of the native stage"
CONTINUE = "How long a run goes on, and how it is continued"
HOSTS = "Options of a plan for several hosts"
OTHER = "Other options"


COMMANDS = {
    "Judge a patch": ("judge", "program", "explore", "which", "check", "bisect"),
    "Measure": ("run", "replicate", "list"),
    "Look at what was measured": ("show", "report", "history", "compare", "site"),
    "Share it": ("kit", "plan", "merge", "pack", "export"),
    "Keep house": ("doctor", "restore", "verify", "completion", "man", "help"),
}
"""All commands, as the help groups them."""


def panel_of(param: Any) -> str | None:
    """The section that an option stands in; None: it is among those that most people need."""
    return getattr(param, "rich_help_panel", None)


class Worded(TyperGroup):
    """All commands, in groups. What is wrong with a value is told in ream's own words."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write examples below everything else."""
        write_examples("ream", formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the first sentence of each command's help, whole."""
        widest = max(map(len, self.commands))
        for title, names in COMMANDS.items():
            its = [(name, _first_sentence(self.commands[name].help or "")) for name in names]
            with formatter.section(title):
                formatter.write_dl([(f"{name:{widest}}", says) for name, says in its])

    def invoke(self, ctx: Any) -> Any:
        """Do what a command says."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as fault:
            from ream.values import in_our_words  # noqa: PLC0415

            errors: list[Any] = getattr(fault.__cause__, "errors", list)()
            given = [
                repr(one["input"]) for one in errors if repr(one["input"]) not in fault.message
            ]
            fault.message = ", not ".join((in_our_words(fault.message), *given[:1]))
            raise


class Shown(TyperCommand):
    """A command whose help ends with examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write examples below everything else."""
        write_examples(self.name or "", formatter)


class Sectioned(Shown):
    """A command whose `--help` is one screen, while `--help-all` shows every option.

    The common options are those without a `rich_help_panel`; the others stand under theirs.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the first paragraph, the arguments and the common options, a line each."""
        first, *_ = (self.help or "").split("\n\n")
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(" ".join(first.split()))
        common = [param for param in self.get_params(ctx) if panel_of(param) is None]
        found = [record for param in common if (record := param.get_help_record(ctx)) is not None]
        widest = max(len(words) for words, _ in found)
        room = formatter.width - formatter.current_indent - widest - 4
        with formatter.section(f"Most used (every option: ream {self.name} {ALL})"):
            formatter.write_dl([(words, _shortened(says, room)) for words, says in found], widest)
        self.format_epilog(ctx, formatter)

    def print_all(self, ctx: Any) -> None:
        """Print the help with every option."""
        formatter = ctx.make_formatter()
        super().format_help(ctx, formatter)
        typer.echo(formatter.getvalue().rstrip("\n"))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write all parameters, section by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                plain = "Arguments" if param.param_type_name == "argument" else "Options"
                sections.setdefault(panel_of(param) or plain, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def write_examples(command: str, formatter: Any) -> None:
    """Write the command lines that are examples of a command, as they are typed."""
    with formatter.section("Examples"):
        formatter.write("".join(f"{line}\n" for line in lines(command, formatter.width)))


def _first_sentence(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def _shortened(text: str, room: int) -> str:
    """Cut a text to at most `room` characters: after a whole clause if one fits, else at a word."""
    if len(text) > room:
        text = text.partition("  [")[0]  # its default and its bounds
    if len(text) <= room:
        return text
    heads = [text.partition(end)[0] for end in (". ", "; ", ": ", ", ")]
    fitting = [head for head in heads if len(head) < room]
    if fitting:
        return max(fitting, key=len).rstrip(".") + "."
    return text[: room - 3].rpartition(" ")[0] + "..."


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        command: Any = context.command
        command.print_all(context)
        raise typer.Exit


HelpAllOption = Annotated[
    bool,
    typer.Option(
        ALL, callback=_show_all, is_eager=True, help="Show every option, by section, and exit."
    ),
]
