# SPDX-License-Identifier: GPL-2.0-only
"""The store of compiled objects, which every run, test and verdict shares: ccache, in our cache.

ccache finds an object by the contents of its source and of every header that this includes, by its
compiler and its options. A variant then compiles only what its patches change, whichever
experiment, test or base compiled the rest before. Without ccache everything is compiled.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

from ream.paths import cache_dir

PROGRAM = "ccache"
LARGEST = "4G"
"""What the store may take; ccache removes what was not used for longest."""


def is_there() -> bool:
    """Whether ccache is installed."""
    return shutil.which(PROGRAM) is not None


def place() -> Path:
    """The folder of the store. It is there afterwards: a confined ccache may not make it."""
    folder = cache_dir() / "objects"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def environment() -> Mapping[str, str]:
    """What ccache is told for a build; nothing without ccache. The user's own settings are not."""
    if not is_there():
        return {}
    folder = place()
    return {
        "CCACHE_DIR": str(folder),
        "CCACHE_CONFIGPATH": "/dev/null",
        "CCACHE_TEMPDIR": str(folder / "tmp"),
        "CCACHE_MAXSIZE": LARGEST,
        # By the headers that the compiler names, not by preprocessed text: to make that takes a
        # quarter of the time of a compilation, and finds next to nothing more.
        "CCACHE_DEPEND": "1",
        # Every clone of a tree is one more link to its files, which changes their ctime.
        "CCACHE_SLOPPINESS": "include_file_ctime,include_file_mtime",
    }
