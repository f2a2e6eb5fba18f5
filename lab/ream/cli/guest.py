# SPDX-License-Identifier: GPL-2.0-only
"""How the user wants guests: the words of `run` and `shell`, and what they mean."""

import shlex
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ream.cli.helped import VM

if TYPE_CHECKING:
    from ream.session.request import GuestOptions

AccelOption = Annotated[
    Literal["auto", "kvm", "tcg"],
    typer.Option(
        rich_help_panel=VM,
        help="auto: KVM if a test guest boots under it, else TCG (emulation).",
    ),
]
CpusOption = Annotated[
    int | None,
    typer.Option(
        "--cpus",
        min=1,
        metavar="N",
        rich_help_panel=VM,
        help="CPUs of a guest; may be more than this machine has.",
    ),
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        "-m",
        metavar="SIZE",
        rich_help_panel=VM,
        help="Memory of a guest, such as 106GiB.",
    ),
]
NumaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--numa", metavar="SIZE,cpus=A-B", rich_help_panel=VM, help="A NUMA node; repeatable."
    ),
]
DistanceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--numa-distance",
        metavar="A,B=N",
        rich_help_panel=VM,
        help="Distance between two nodes; repeatable.",
    ),
]
AppendOption = Annotated[
    list[str] | None,
    typer.Option(
        "--append",
        metavar="WORD",
        rich_help_panel=VM,
        help="Add a word to the kernel's command line; repeatable.",
    ),
]
QemuOption = Annotated[
    str | None,
    typer.Option("--qemu-opts", metavar="WORDS", rich_help_panel=VM, help="More options for QEMU."),
]


Kept = Literal["rounds", "launches"]


def asked_for(rounds: int | None, launches: int | None) -> tuple[Kept, ...]:
    """Which counts the user gave: a guest then does as many, even where it only counts."""
    given: dict[Kept, int | None] = {"rounds": rounds, "launches": launches}
    return tuple(name for name, count in given.items() if count is not None)


def guest_options(
    *,
    accel: Literal["auto", "kvm", "tcg"],
    cpus: int | None,
    memory: str | None,
    numa: Sequence[str] | None = None,
    distances: Sequence[str] | None = None,
    append: Sequence[str] | None = None,
    qemu_opts: str | None = None,
    icount: bool | None = None,
    full: bool = False,
    keep: Collection[Kept] = (),
) -> "GuestOptions":
    from ream.experiment import parse_size  # noqa: PLC0415
    from ream.session.request import GuestOptions  # noqa: PLC0415
    from ream.stage.qemu import parse_distance, parse_node  # noqa: PLC0415

    return GuestOptions(
        accel=accel,
        icount=icount,
        full=full,
        keep_rounds="rounds" in keep,
        keep_launches="launches" in keep,
        cpus=cpus,
        memory_bytes=None if memory is None else parse_size(memory),
        nodes=tuple(parse_node(text) for text in numa or ()),
        distances=tuple(parse_distance(text) for text in distances or ()),
        append=tuple(append or ()),
        qemu_options=tuple(shlex.split(qemu_opts or "")),
    )
