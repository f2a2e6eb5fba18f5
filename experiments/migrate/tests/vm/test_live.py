# SPDX-License-Identifier: GPL-2.0-only
"""The live stage on a machine with two nodes, which this one may not be: a guest is one."""

import os
import subprocess
import sys
from pathlib import Path

from experiments.migrate.programs import MOVE_FOLIOS
from fixtures.guests import Builder
from ream.paths import CHECKOUT, EXPERIMENTS
from ream.stage.initramfs import build_init, build_initramfs
from ream.stage.qemu import GuestMachine, GuestNode
from ream.stage.vm import BootableKernel, Start
from ream.stage.workload import build_workload

SCRIPT = Path(__file__).with_name("live_moves.py")
LAB = CHECKOUT / "lab"
GIB = 1 << 30
MACHINE = GuestMachine("tcg", memory_bytes=3 * GIB, nodes=(GuestNode(2 * GIB, "0"), GuestNode(GIB)))


def python_files() -> dict[str, Path]:
    """The interpreter and whatever the script imports, at the host's own paths."""
    said = subprocess.run(
        [sys.executable, str(SCRIPT), "files"],
        env={**os.environ, "PYTHONPATH": f"{LAB}:{LAB.parent}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    paths = [Path(sys.executable).resolve(), *map(Path, said.stdout.split())]
    return {str(path.absolute()): path for path in paths if path.is_file()}


def script(work: Path) -> Path:
    """The script as a program of the guest, which has no environment to speak of."""
    path = [
        str(LAB),
        str(LAB.parent),
        *(entry for entry in sys.path if entry.endswith("site-packages")),
    ]
    out = work / "live"
    out.write_text(
        f"#!{Path(sys.executable).resolve()}\n"
        "import os, sys\n"
        "os.environ['PATH'] = '/usr/bin'\n"
        f"sys.path[:0] = {path!r}\n"
        f"exec({SCRIPT.read_text()!r})\n"
    )
    return out


def test_moves_are_measured_where_there_are_two_nodes(image: Builder, tmp_path: Path) -> None:
    built = image()
    initramfs = build_initramfs(
        tmp_path / "live.cpio",
        gen_init_cpio=built.gen_init_cpio,
        init=build_init(tmp_path, *EXPERIMENTS.glob("*")),
        modules={},
        programs={
            "/live": script(tmp_path),
            f"/workloads/{MOVE_FOLIOS}": build_workload(MOVE_FOLIOS, tmp_path),
            "/usr/bin/setpriv": Path("/usr/bin/setpriv"),
            "/usr/bin/sh": Path("/bin/sh"),
            **python_files(),
        },
        work=tmp_path,
    )
    log = tmp_path / "console.log"
    start = Start(MACHINE, BootableKernel(built.bootable, initramfs), log)
    words = ("experiment=selftests", "run=/live")
    messages = start.messages(words, deadline_s=1800.0, silence_s=900.0)
    tests = [message["test"] for message in messages if "test" in message]
    assert tests == [{"name": "/live", "exit": 0}], log.read_text()[-3000:]
    assert "live moves: done" in log.read_text()
