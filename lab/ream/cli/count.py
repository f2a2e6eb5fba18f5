# SPDX-License-Identifier: GPL-2.0-only
"""The words of `ream run` about counting what is executed."""

from typing import TYPE_CHECKING, Annotated

import typer

from ream.cli.helped import NATIVE
from ream.errors import BadUsage

if TYPE_CHECKING:
    from ream.session.request import CountOptions

CountOption = Annotated[
    bool | None,
    typer.Option(
        "--count/--no-count",
        rich_help_panel=NATIVE,
        help="Count what is executed under an emulator, exactly, instead of timing it; with"
        " --stage vm in a guest, by function. The default for kernels of another architecture.",
        show_default=False,
    ),
]
AnnotateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--annotate",
        metavar="FUNCTION",
        rich_help_panel=NATIVE,
        help="With --count: list a function's instructions, each with its count. Repeatable.",
    ),
]


def count_of(
    count: bool, annotate: list[str] | None, *, stage: str, full: bool
) -> "CountOptions | None":
    """How to count; None to time. Raises BadUsage for what cannot be meant."""
    from ream.session.request import CountOptions  # noqa: PLC0415

    if not count:
        if annotate:
            raise BadUsage("--annotate lists what --count has counted: give that, too")
        return None
    if stage == "live":
        raise BadUsage("--count is for the native stage and for guests: nothing emulates this CPU")
    if annotate and stage != "native":
        raise BadUsage("--annotate is for the native stage")
    return CountOptions(full=full, annotate=tuple(annotate or ()))
