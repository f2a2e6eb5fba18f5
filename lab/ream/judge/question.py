# SPDX-License-Identifier: GPL-2.0-only
"""What is to be judged, and how long that may take."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ream.experiment import Experiment
from ream.kernel.series import Series
from ream.kernel.setup import OURS, Setup
from ream.kernel.source import Wanted
from ream.session.request import Request
from ream.variants import Variant


@dataclass(frozen=True)
class Question:
    """What is to be judged, and how long that may take."""

    series: Series
    tree: Wanted
    runs: Path
    cache: Path
    seed: int
    minutes: float = 0.0
    """Minutes for the whole judgement. Timing gets what building, verifying and counting leave, but
    at least TIMED_SHARE. 0: nothing is timed."""
    per_patch: bool = False
    verify_minutes: float = 0.0
    """Total minutes for random mixtures beyond those that every run verifies."""
    command: str = ""
    to: Wanted = None
    """The kernel source that is judged for an upgrade; the series is then empty."""
    confined: bool = True
    """Whether programs are confined to what they need."""
    listings: bool = False
    """Whether changed functions are listed: each instruction with its number of executions."""
    quick: bool = False
    """Whether only programs on all of mm/ are run; no row is verified, counted or timed."""
    guests: bool = False
    """Whether the kernel's own tests are run in guests as well."""
    ids: frozenset[str] = frozenset()
    """Known Message-IDs of the thread of the series."""
    reproduce: str = ""
    """The command line without paths of this machine, for use elsewhere."""
    program_words: tuple[str, ...] = ()
    """Options of `ream program` that select the same series and kernel."""
    setup: Setup = OURS
    """What both kernels are built with."""
    strict: bool = False
    """Whether any loss gives exit status 1, however small it is and whatever other rows gain."""

    def timed(self, minutes: float, *, per_patch: bool, runs: Path) -> "Question":
        """Return the question with other minutes, per-patch counting and folder of records."""
        return replace(self, minutes=minutes, per_patch=per_patch, runs=runs)

    def request(self, experiment: Experiment, variants: Sequence[Variant]) -> Request:
        """Return the request for a run of an experiment in the native stage."""
        return Request(
            experiment=experiment,
            stage="native",
            variants=tuple(variants),
            tree=self.tree,
            setup=self.setup,
            threads=None,
            seed=self.seed,
            runs=self.runs,
            cache=self.cache,
            command=self.command,
            asked=True,
            measure_anyway=True,
            confined=self.confined,
        )
