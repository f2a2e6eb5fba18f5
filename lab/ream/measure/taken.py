# SPDX-License-Identifier: GPL-2.0-only
"""The value that a stage returns for each operation: a sample and its additional data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ream.measure.sample import Sample


@dataclass(frozen=True)
class Taken:
    """A sample, and the additional data of its operation."""

    sample: Sample
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Other keys of its line, which no computation uses; docs/format.md names them."""
    said: object = None
    """The message of the program that took the sample, from which remarks are made."""
