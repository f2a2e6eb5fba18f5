# SPDX-License-Identifier: GPL-2.0-only
"""What a stage hands on: a sample, and what its operation gave besides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ream.measure.sample import Sample


@dataclass(frozen=True)
class Taken:
    """A sample, and what else its operation gave."""

    sample: Sample
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Other keys of its line, of which nothing is computed; docs/format.md names them."""
    said: object = None
    """What the program said that took the sample; for remarks."""
