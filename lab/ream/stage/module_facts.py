# SPDX-License-Identifier: GPL-2.0-only
"""Reads facts on a kernel's layout out of a compiled module, without running a guest."""

from pathlib import Path

import numpy as np

from ream.command import Command, run
from ream.errors import ReamError
from ream.oracle.memmap import Facts

SECTION = ".ream.facts"
"""Section in which kernel/modules/memmap/memmap.c stores facts as pairs of name and value."""

NAME_BYTES = 56
"""FACT_NAME_BYTES of that file."""

DEADLINE_S = 20.0

_FACT = np.dtype([("name", f"S{NAME_BYTES}"), ("value", "<u8")])


def read_facts(module: Path, work: Path) -> Facts:
    """Return the facts of a built memmap.ko; work: a folder for a file of a few kilobytes.

    Raises CannotRunHere without objcopy, ReamError naming a module that has none.
    """
    out = work / f"{module.stem}.facts"
    words = ("objcopy", "-O", "binary", f"--only-section={SECTION}", str(module), str(out))
    run(Command(words, work, DEADLINE_S))
    held = out.read_bytes()
    if not held or len(held) % _FACT.itemsize:
        raise ReamError(f"{module}: {len(held)} bytes in its section {SECTION} are no facts")
    facts = np.frombuffer(held, _FACT)
    names = [str(name, "ascii") for name in facts["name"]]
    return dict(zip(names, facts["value"].tolist(), strict=True))
