# SPDX-License-Identifier: GPL-2.0-only
"""What is measured: an experiment is a question, its variants and its rows, a folder each."""

from ream.experiment.given import given
from ream.experiment.registry import Experiment, load, named
from ream.experiment.shape import (
    AGAIN,
    BASE,
    BEFORE,
    BEFORE_AGAIN,
    BYTES_PER_PAGE,
    CONTROL,
    IMPLIED,
    OURS,
    PAGE_BYTES,
    PATCHED,
    PUBLISHED,
    RUNNING,
    SHOWN,
    STRUCT_PAGE_BYTES,
    BytesOf,
    GridPlace,
    PublishedRef,
    Stage,
    is_copy,
    recorded,
    shown,
    shown_in,
)
from ream.experiment.shape import RowBase as Row
from ream.size import format_size, parse_size

__all__ = [
    "AGAIN",
    "BASE",
    "BEFORE",
    "BEFORE_AGAIN",
    "BYTES_PER_PAGE",
    "CONTROL",
    "IMPLIED",
    "OURS",
    "PAGE_BYTES",
    "PATCHED",
    "PUBLISHED",
    "RUNNING",
    "SHOWN",
    "STRUCT_PAGE_BYTES",
    "BytesOf",
    "Experiment",
    "GridPlace",
    "PublishedRef",
    "Row",
    "Stage",
    "format_size",
    "given",
    "is_copy",
    "load",
    "named",
    "parse_size",
    "recorded",
    "shown",
    "shown_in",
]
