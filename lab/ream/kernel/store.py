# SPDX-License-Identifier: GPL-2.0-only
"""The store of compiled objects that all runs, tests and verdicts share: ccache in ream's cache.

ccache finds an object by the contents of its source and headers, its compiler and its options. A
variant then compiles only what its patches change, whichever experiment, test or base compiled the
rest before. Without ccache everything is compiled.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

from ream.paths import cache_dir

PROGRAM = "ccache"
LARGEST = "4G"
"""Largest size of the store; ccache removes the objects that were unused for longest."""


def is_there() -> bool:
    """Whether ccache is installed."""
    return shutil.which(PROGRAM) is not None


def place() -> Path:
    """Return the folder of the store; create it, since a confined ccache may not."""
    folder = cache_dir() / "objects"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def environment() -> Mapping[str, str]:
    """Return ccache's settings for a build, without the user's own; empty without ccache."""
    if not is_there():
        return {}
    folder = place()
    return {
        "CCACHE_DIR": str(folder),
        "CCACHE_CONFIGPATH": "/dev/null",
        "CCACHE_TEMPDIR": str(folder / "tmp"),
        "CCACHE_MAXSIZE": LARGEST,
        # Look up by headers that the compiler names, not by preprocessed text, which takes a
        # quarter of the time of a compilation and finds hardly any more objects.
        "CCACHE_DEPEND": "1",
        # Every clone of a tree adds links to its files, which changes their ctime.
        "CCACHE_SLOPPINESS": "include_file_ctime,include_file_mtime",
    }
