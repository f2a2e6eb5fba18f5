# SPDX-License-Identifier: GPL-2.0-only
"""What an experiment provides for the native stage if its rows are programs, in module `steps`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ream.experiment.registry import Experiment, part
from ream.experiment.shape import RowBase

R = TypeVar("R", bound=RowBase)


@dataclass(frozen=True)
class Steps(Generic[R]):
    """How rows become programs, which a computer in a process runs (ream.stage.computer)."""

    text_of: Callable[[R], str]
    """Returns the text of a row's program, of which one step is measured."""
    files: tuple[Path, ...]
    """Files from which the texts are made."""


def steps_of(experiment: Experiment) -> Steps[RowBase] | None:
    """Return how the rows of an experiment become programs; None if they do not."""
    return part(type(experiment), "steps", Steps)
