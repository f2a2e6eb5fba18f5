# SPDX-License-Identifier: GPL-2.0-only
"""The search for defects of released kernels: random programs, and which seeds were tried.

PYTHONPATH=lab:. python experiments/mm/hunt.py KERNEL CONFIGURATION FIRST NR tries seeds, prints the
alarms that are not withheld, and adds a line to searched.txt. No line says which seed raised an
alarm, since it may be of a defect that has not been reported.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ream.kernel.base import base_named
from ream.kernel.build import GCC
from ream.kernel.setup import wanted_setup
from ream.kernel.source import fetch_tree
from ream.paths import cache_dir
from ream.program.generate import generate
from ream.program.often import some_often
from ream.program.ran import Rig, shortest
from ream.program.withheld import Withheld
from ream.stage.computer import Checks

LIST = Path(__file__).parent / "searched.txt"
BARE = "bare"
STEPS = 300
SHRINK_S = 30.0


@dataclass(frozen=True)
class Searched:
    """Seeds of programs that ran on a kernel, and how many raised an alarm."""

    kernel: str
    configuration: str
    first: int
    last: int
    alarms: int
    withheld: int


def searched() -> list[Searched]:
    """What was tried, as the list has it."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    return [Searched(kernel, its, *map(int, nrs)) for kernel, its, *nrs in rows]


def search(kernel: str, configuration: str, first: int, nr: int, rig: Rig) -> Searched:
    """Try seeds, and print what is found."""
    alarms = withheld = 0
    for seed in range(first, first + nr):
        program = generate(seed, STEPS, some_often(seed))
        ran = rig.run(program, Checks.SOME)
        if not ran.is_wrong:
            continue
        alarms += 1
        program = shortest(rig, program, ran, within_s=SHRINK_S)
        hidden = Withheld.load().put_away(ran, program)
        withheld += hidden is not None
        print(hidden or f"seed {seed}:\n{program}{ran.alarms[0][1]}", flush=True)
    return Searched(kernel, configuration, first, first + nr - 1, alarms, withheld)


def main() -> None:
    """Try the seeds that the command line names."""
    kernel, configuration, first, nr = sys.argv[1:]
    config = None if configuration == BARE else configuration
    cache = cache_dir()
    tree = fetch_tree(base_named(kernel), cache=cache, step=print)
    with tempfile.TemporaryDirectory() as work:
        built = tree.built(wanted_setup(config, GCC, "native"))
        rig = Rig.of(built, [], cache=cache, work=Path(work), step=print)
        its = search(kernel, configuration, int(first), int(nr), rig)
    with LIST.open("a", encoding="utf-8") as file:
        words = (its.kernel, its.configuration, its.first, its.last, its.alarms, its.withheld)
        print(*words, file=file)


if __name__ == "__main__":
    main()
