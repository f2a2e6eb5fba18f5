# SPDX-License-Identifier: GPL-2.0-only
"""Ctrl-C while a program runs is Ctrl-C, also where the program ends in the same moment."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from ream.command import Command, run, stream


@pytest.mark.parametrize("way", [run, lambda command: list(stream(command))], ids=["run", "stream"])
def test_ctrl_c_stays_ctrl_c_where_the_program_ends_by_itself(way, tmp_path: Path) -> None:
    # Popen waits a quarter of a second for it then: it is reaped before it can be killed.
    command = Command(("sh", "-c", "exec >&- 2>&-; sleep 0.4"), tmp_path, 60.0)

    def interrupt() -> None:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            way(command)
    finally:
        thread.join()
