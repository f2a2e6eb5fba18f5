# SPDX-License-Identifier: GPL-2.0-only
"""The search for defects of released kernels: random programs, and which seeds were tried.

PYTHONPATH=lab:. python experiments/mm/hunt.py KERNEL CONFIGURATION FIRST NR tries seeds on the
kernel with the repairs of docs/found.md, prints the alarms that are not withheld, and adds a line
to searched.txt, also if Ctrl-C ends it early. No line says which seed raised an alarm, since it may
be of a defect that has not been reported.
"""

import sys
import tempfile
from pathlib import Path

from experiments.mm.found import SEARCHED, Searched, repairs
from ream.errors import ReamError
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

BARE = "bare"
STEPS = 500
SHRINK_S = 60.0


def try_seed(seed: int, rig: Rig) -> tuple[bool, bool]:
    """Whether its program raises an alarm, and whether that is withheld; print one that is not."""
    program = generate(seed, STEPS, some_often(seed))
    try:
        ran = rig.run(program, Checks.SOME)
    except ReamError as fault:
        print(f"seed {seed}: {fault}", flush=True)
        return True, False
    if not ran.is_wrong:
        return False, False
    program = shortest(rig, program, ran, within_s=SHRINK_S)
    hidden = Withheld.load().put_away(ran, program)
    print(hidden or f"seed {seed}:\n{program}{ran.alarms[0][1]}", flush=True)
    return True, hidden is not None


def main() -> None:
    """Try the seeds that the command line names."""
    kernel, configuration, first, nr = sys.argv[1:]
    config = None if configuration == BARE else configuration
    cache = cache_dir()
    tree = fetch_tree(base_named(kernel), cache=cache, step=print)
    tried: list[tuple[bool, bool]] = []
    with tempfile.TemporaryDirectory() as work:
        built = tree.built(wanted_setup(config, GCC, "native"))
        rig = Rig.of(built, repairs(kernel), cache=cache, work=Path(work), step=print)
        try:
            seeds = range(int(first), int(first) + int(nr))
            tried.extend(try_seed(seed, rig) for seed in seeds)
        except KeyboardInterrupt:
            print("stopped; the seeds that were tried are noted")
    if not tried:
        return
    alarms, withheld = (sum(its) for its in zip(*tried, strict=True))
    last = int(first) + len(tried) - 1
    its = Searched(kernel, configuration, STEPS, int(first), last, alarms, withheld)
    with SEARCHED.open("a", encoding="utf-8") as file:
        print(its, file=file)


if __name__ == "__main__":
    main()
