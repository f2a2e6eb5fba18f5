# SPDX-License-Identifier: GPL-2.0-only
"""Writes a plan as files for GNU parallel or Slurm. Their contents are a pure function."""

import hashlib
import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from ream.counted import counted
from ream.errors import BadUsage
from ream.fleet.cell import ID_DIGITS, Cell

Form = Literal["jsonl", "parallel", "sbatch"]

CELLS = "cells.jsonl"
IDS = "ids"
"""The file with the ids of all cells, one per line, in the order of cells.jsonl."""

RETRIES = 2
"""How often GNU parallel tries a cell, the second time on another host if there is one."""

TIMEOUT_S = 6 * 3600
"""Time limit of one cell; the first one on a host also builds its kernels."""

_HOST = re.compile(r"(?:(?P<user>[\w.][\w.-]*)@)?(?P<guest>\w[\w.-]*)(?::(?P<port>\d{1,5}))?")
"""A host as [user@]host[:port], where host may be an alias in ssh's configuration."""


@dataclass(frozen=True)
class Assignment:
    """The cells of a plan, and how hosts measure them."""

    cells: tuple[Cell, ...]
    hosts: tuple[str, ...] = ()
    each: bool = False
    """Whether every host measures every cell, rather than one host each cell."""
    ream: str = "ream"
    """The command on a host; `~/` is the home directory there."""
    timeout_s: int = TIMEOUT_S

    @property
    def id(self) -> str:
        """The id of the plan, computed from its cells."""
        text = "".join(f"{cell.id}\n" for cell in self.cells)
        return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]


def parse_hosts(text: str) -> tuple[str, ...]:
    """Hosts from a comma-separated list, or from a file with one per line and comments after #.

    Raises BadUsage for an invalid host or a repeated one.
    """
    words = text.split(",")
    if os.path.isfile(text):  # noqa: PTH113 # a list may be longer than a path can be
        try:
            lines = Path(text).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as cause:
            raise BadUsage(f"--hosts: {text}: {cause.strerror}") from cause
        words = [line.partition("#")[0] for line in lines]
    hosts = [word.strip() for word in words if word.strip()]
    for host in hosts:
        if _HOST.fullmatch(host) is None:
            raise BadUsage(f"--hosts: {host!r} is neither [user@]host[:port] nor a file of them")
    if twice := sorted({host for host in hosts if hosts.count(host) > 1}):
        raise BadUsage(f"--hosts: {', '.join(twice)} twice; a machine does one cell at a time")
    if not hosts:
        raise BadUsage(f"--hosts: no host in {text!r}")
    return tuple(hosts)


def emit(form: Form, layout: Assignment) -> dict[str, str]:
    """The contents of a plan's files, by path within its directory."""
    files = {CELLS: "".join(f"{cell.to_line()}\n" for cell in layout.cells)}
    if form == "jsonl":
        return files
    files[IDS] = "".join(f"{cell.id}\n" for cell in layout.cells)
    files |= {f"cells/{cell.id}.json": f"{cell.to_line()}\n" for cell in layout.cells}
    files["run-cell.sh"] = _fill("run-cell.sh", {"ream": _word(layout.ream)})
    if form == "parallel":
        files["run.sh"] = _fill("run.sh", _words(layout))
        if layout.hosts:
            files["hosts"] = "".join(f"{host}\n" for host in layout.hosts)
    else:
        files["run.sbatch"] = _fill("run.sbatch", _words(layout))
    return files


def write(files: Mapping[str, str], directory: Path) -> None:
    """Write the files of a plan into a directory of their own.

    Raises BadUsage if the directory is not empty or cannot be written to.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise BadUsage(
                f"{directory}: not empty; a plan, its records and what is done of it stay together:"
                " name a new directory"
            )
        for name, text in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            if name.endswith(".sh"):
                mode = path.stat().st_mode
                path.chmod(mode | (mode & 0o444) >> 2)  # executable where it is readable
    except OSError as cause:
        raise BadUsage(
            f"{cause.filename or directory}: cannot be written: {cause.strerror}"
        ) from cause


def again(directory: Path, missing: Sequence[str], ids: Sequence[str]) -> str:
    """The command that measures only the missing cells of the plan in a directory.

    ids: those of all cells, in the plan's order. Empty for a plan that only lists cells.
    """
    where = shlex.quote(str(directory))
    if (directory / "run.sh").is_file():
        return f"sh {shlex.quote(str(directory / 'run.sh'))} {' '.join(missing)}"
    if (directory / "run.sbatch").is_file():
        numbers = [number for number, one in enumerate(ids, start=1) if one in missing]
        return f"(cd {where} && sbatch --array={','.join(map(str, numbers))} run.sbatch)"
    return ""


def title(cell: Cell) -> str:
    """A short description of a cell."""
    words = f"{cell.experiment} {cell.stage} {cell.row_name}"
    return f"{words}, repetition {cell.repeat + 1}" if cell.repeat else words


def _words(layout: Assignment) -> dict[str, Any]:
    hosts = counted(len(layout.hosts), "host")
    which = "every one" if layout.each else "one"
    spread = f"each on {which} of {hosts}" if layout.hosts else ""
    count = len(layout.cells)
    return {
        "what": f"{counted(count, 'cell')} of plan {layout.id}",
        "plan": layout.id,
        "directory": f"ream-cells-{layout.id}",
        "nr_cells": count,
        "spread": spread,
        "hosts": layout.hosts,
        "each": layout.each,
        "retries": RETRIES,
        "timeout_s": layout.timeout_s,
        "minutes": math.ceil(layout.timeout_s / 60),
    }


def _fill(name: str, words: Mapping[str, Any]) -> str:
    import jinja2  # noqa: PLC0415 # takes longer than reading a plan

    text = resources.files("ream.fleet").joinpath("emitted", f"{name}.j2").read_text("utf-8")
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 # shell and YAML, not HTML; their words are quoted by us
    )
    return environment.from_string(text).render(words).lstrip("\n")


def _word(ream: str) -> str:
    """The command as a word of a shell script; `~/` is the home directory of the host."""
    if ream.startswith("~/"):
        return f'"$HOME"/{shlex.quote(ream[2:])}'
    return shlex.quote(ream)
