# SPDX-License-Identifier: GPL-2.0-only
"""`make soak`: random devices in random kernels until the time is up; each map compared whole.

Every boot is one line of soak.jsonl in a new folder of the record, with what it takes to repeat
it. The first failure ends the soak, with its error as the last line and the console beside it.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments.zone_device.boot import Device, run_boot
from experiments.zone_device.rows import DAX_ORDERS, NAMESPACE_TYPES
from ream.errors import ReamError
from ream.experiment import BEFORE_AGAIN, named
from ream.experiment.section import SECTION_BYTES
from ream.kernel.source import fetch_tree
from ream.paths import CHECKOUT, cache_dir
from ream.progress import Reporter
from ream.record.receipt import read_ream
from ream.record.record import new_run_id
from ream.session.guests import build_kernels
from ream.stage.qemu import GuestMachine
from ream.stage.vm import Start
from ream.variants import choose_variants

VARIANTS = tuple(
    variant for variant in choose_variants(named("zone-device")) if variant.name != BEFORE_AGAIN
)
TYPES = (*NAMESPACE_TYPES, "PRIVATE", "COHERENT", "PCI_P2PDMA")
MOST_SECTIONS = 96
"""12 GiB: large enough that CPUs share the work, small enough for many boots an hour."""

MOST_BINDS = 8
MOST_CPUS = 4
GIB = 1 << 30


@dataclass(frozen=True)
class Draw:
    """One boot of a soak."""

    variant: str
    device: Device
    cpus: int
    icount: bool
    binds: int


def draw(chance: random.Random) -> Draw:
    """Anything that a guest can make: not all of it is what anybody would."""
    type_ = chance.choice(TYPES)
    in_namespace = type_ in NAMESPACE_TYPES
    order = 0
    if type_ == "GENERIC":
        order = chance.choice(DAX_ORDERS)
    sections = chance.randint(1, MOST_SECTIONS)
    size = sections * SECTION_BYTES
    if in_namespace:
        # A namespace keeps its first aligned piece for itself, and is a whole number of them.
        piece = max(GIB, 4096 << order)
        size = (-(-size // piece) + 1) * piece
    altmap = type_ == "FS_DAX" or (in_namespace and chance.random() < 1 / 2)
    icount = chance.random() < 1 / 2
    return Draw(
        variant=chance.choice(VARIANTS).name,
        device=Device(size, order, type_, altmap, in_namespace),
        cpus=1 if icount else chance.randint(1, MOST_CPUS),
        icount=icount,
        binds=chance.randint(1, MOST_BINDS),
    )


def soak(hours: float, seed: int, record: Path) -> int:
    """Boot until the time is up; 0, or the exit code of the first failure."""
    chance = random.Random(seed)
    ends_at = time.monotonic() + 3600 * hours
    record.mkdir(parents=True)
    about = {"seed": seed, "hours": hours, "ream": read_ream(CHECKOUT).model_dump()}
    nr_boots = nr_bytes = 0
    with (record / "soak.jsonl").open("x") as lines, tempfile.TemporaryDirectory() as scratch:

        def say(line: object) -> None:
            lines.write(json.dumps(line) + "\n")
            lines.flush()

        say(about)
        tree = fetch_tree(None, cache=cache_dir(), step=print)
        built = build_kernels(
            VARIANTS, tree, cache=cache_dir(), work=Path(scratch), reporter=Reporter()
        )
        while (left_s := ends_at - time.monotonic()) > 0:
            now = draw(chance)
            print(f"boot {nr_boots + 1}, {left_s / 60:.0f} min left: {now}", file=sys.stderr)
            log = record / "console.log"
            machine = GuestMachine(
                "tcg", icount=now.icount, cpus=now.cpus, memory_bytes=now.device.least_bytes
            )
            try:
                _, kernel = built[now.variant]
                done = list(run_boot(Start(machine, kernel, log), now.device, now.binds))
            except ReamError as error:
                say({**asdict(now), "error": str(error)})
                print(f"soak: {error}", file=sys.stderr)
                return error.exit_code
            checked = sum(one.nr_bytes for one in done)
            say({**asdict(now), "bytes": checked, "time_ns": [one.init_ns for one in done]})
            nr_boots, nr_bytes = nr_boots + 1, nr_bytes + checked
        say({"boots": nr_boots, "bytes": nr_bytes, "faults": 0})
        log.unlink()
    print(f"soak: {nr_boots} boots, {nr_bytes / 1e9:.1f} GB of map compared, no fault: {record}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hours", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--record", type=Path, default=Path("soak"), help="folder of its folders")
    asked = parser.parse_args()
    return soak(asked.hours, asked.seed, asked.record / new_run_id("zone-device", "soak"))


if __name__ == "__main__":
    sys.exit(main())
