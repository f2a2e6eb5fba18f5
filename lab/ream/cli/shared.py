# SPDX-License-Identifier: GPL-2.0-only
"""A command line that means the same on another machine: no path of this one, and the seed."""

import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import typer


def shared_command(
    context: typer.Context,
    subject: str | None,
    seed: int,
    *,
    without: Collection[str],
    meant: Sequence[str] = (),
) -> str:
    """The command line of a context with what was given on it, to be passed on to others.

    subject: the word that its argument is replaced by; None: it has none. without: names of
    parameters that only say where something is written or read here. Of a path the last part is
    left. meant: options that were not given, with the values that were meant, which may be others
    elsewhere. The seed is always there.
    """
    words = ["ream", str(context.info_name), *filter(None, [subject]), *meant]
    return shlex.join([*words, *_options(context, {*without, "seed"}), "--seed", str(seed)])


def _options(context: typer.Context, without: Collection[str]) -> Iterator[str]:
    for one in context.command.params:
        source = context.get_parameter_source(one.name or "")
        given = source is not None and source.name == "COMMANDLINE"
        if not given or one.name in without or one.param_type_name != "option":
            continue
        value = context.params[one.name or ""]
        if value is True or value is False:
            yield (one.opts if value else one.secondary_opts)[-1]
        elif value is not None:
            yield from (one.opts[-1], _bare(value))


def _bare(value: object) -> str:
    """A value of an option as a word; of what is or names a path, its last part."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    is_path = isinstance(value, Path) or text.startswith(("/", "~", "./", "../"))
    return Path(text).name if is_path else text
