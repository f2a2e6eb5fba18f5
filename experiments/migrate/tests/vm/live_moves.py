# SPDX-License-Identifier: GPL-2.0-only
"""The live stage of migrate, where there are two nodes: run by a guest's own Python.

The guest has no compiler: the workload is what the host has built. With a word, only imports.
"""

import codecs
import os
import sys
from pathlib import Path
from types import ModuleType

from experiments.migrate import live as live_migrate
from ream.errors import CannotRunHere
from ream.stage import live

BUILT = "/workloads/move_folios"
KIB = (4, 64, 2048)
BUFFER_BYTES = 16 << 20
ROUNDS = 2
LAUNCHES = 2
WORK = Path("/tmp")  # noqa: S108 -- nobody else is in this guest


def files() -> list[str]:
    """Files of all imported modules, and of codecs that are otherwise imported on demand."""
    codecs.lookup("ascii")
    loaded = [module for module in sys.modules.values() if isinstance(module, ModuleType)]
    return sorted({file for module in loaded if (file := getattr(module, "__file__", None))})


def main() -> None:
    os.environ["XDG_STATE_HOME"] = "/tmp"  # noqa: S108 -- nobody else is in this guest
    live.build_workload = lambda _name, _work: Path(BUILT)  # type: ignore[attr-defined]
    settings = sorted(Path(live.THP).glob("hugepages-*kB/enabled"))
    before = [path.read_text() for path in settings]
    samples = list(
        live_migrate.measure_moves(
            KIB,
            buffer_bytes=BUFFER_BYTES,
            rounds=ROUNDS,
            visits=live.Visits(LAUNCHES, 1, WORK, print),
        )
    )
    assert len(samples) == len(KIB) * ROUNDS * LAUNCHES
    assert all(one.verified and one.nr_bytes == BUFFER_BYTES for one in samples)
    assert before == [path.read_text() for path in settings], "settings are as they were"
    try:
        next(
            live_migrate.measure_moves(
                [4],
                buffer_bytes=64 << 30,
                rounds=1,
                visits=live.Visits(1, 1, WORK, print),
            )
        )
    except CannotRunHere as cause:
        print(f"as it should: {cause}")
    else:
        raise AssertionError("64 GiB were found")
    print("live moves: done", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print("\n".join(files()))
    else:
        main()
