# SPDX-License-Identifier: GPL-2.0-only
"""Where things are: the checkout we run from, and the user's XDG directories."""

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
EXPERIMENTS = CHECKOUT / "experiments"
KERNEL_BASE = CHECKOUT / "kernel" / "base"
KERNEL_CONFIG = CHECKOUT / "kernel" / "config"
SERIES = CHECKOUT / "kernel" / "series"
KERNEL_MODULES = CHECKOUT / "kernel" / "modules"
KERNEL_HOSTED = CHECKOUT / "kernel" / "hosted"
KERNEL_REACH = CHECKOUT / "kernel" / "reach"
QUOTED = CHECKOUT / "docs" / "records"
"""The records that the checkout's documents quote."""
NATIVE = CHECKOUT / "native"
GUEST = CHECKOUT / "guest"
WORKLOADS = CHECKOUT / "workloads"
RECORDS = CHECKOUT / "docs" / "records"
"""The records that documents quote, and the table of those that they replaced."""
MARKS = NATIVE / "host" / "marks.h"
"""Where what is timed begins and ends, in programs, modules and hosted kernels alike."""


def _xdg(variable: str, fallback: str) -> Path:
    value = os.environ.get(variable, "")
    # The XDG specification says a relative path is to be ignored.
    base = Path(value) if value.startswith("/") else Path.home() / fallback
    return base / "ream"


def cache_dir() -> Path:
    """Trees and builds; may be deleted at any time, costs only time."""
    return _xdg("XDG_CACHE_HOME", ".cache")


def data_dir() -> Path:
    """Records; never deleted by ream."""
    return _xdg("XDG_DATA_HOME", ".local/share")
