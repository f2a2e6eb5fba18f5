# SPDX-License-Identifier: GPL-2.0-only
"""Races that KCSAN reports of a whole kernel, and those of them that concern a series.

The base has races of its own, as of smp_call_function_many_cond() with what switch_mm() writes to
mm_cpumask(). A boot overlooks every report; afterwards none may be of a function in an object that
the series changes.
"""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ream.kernel.image import Image

RACE = "BUG: KCSAN: data-race in "
"""What a guest is told to overlook."""


def races_of(
    log: Path, image: Image, objects: Iterable[str], modules: Iterable[str] = ()
) -> set[tuple[str, str]]:
    """The reports in a console's log that have a function of these objects or modules in them.

    objects: of the kernel, as "mm/memory.o"; those that a kernel lacks count as empty.
    """
    build = image.config.parent
    files = [build / name for name in objects if (build / name).exists()]
    files += [path for name, path in image.modules.items() if name in modules]
    assert files, "none of these is in this kernel"
    listed = subprocess.run(
        ["nm", "--defined-only", *files], check=True, capture_output=True, text=True
    )
    ours = {_name(it[2]) for line in listed.stdout.splitlines() if len(it := line.split()) == 3}
    found = re.findall(rf"{RACE}(\S+) / (\S+)", log.read_text(errors="replace"))
    return {race for race in found if ours & {_name(part) for part in race}}


def _name(symbol: str) -> str:
    """Without what the compiler adds to a function that it has specialised."""
    return symbol.split(".", maxsplit=1)[0]
