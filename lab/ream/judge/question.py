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
    """For all of it; what building, verifying and counting leave is for timing, TIMED_SHARE at
    least. 0: nothing is timed."""
    per_patch: bool = False
    verify_minutes: float = 0.0
    """How long random mixtures are tried, in all, after those that every run tries."""
    command: str = ""
    to: Wanted = None
    """For an upgrade, the kernel source that is judged, and the series is then empty."""
    confined: bool = True
    """Whether what is run is kept from all that it does not need."""
    listings: bool = False
    """Whether functions that change are listed, each instruction with how often it is executed."""
    quick: bool = False
    """Whether programs on all of mm/ are all that is run: no row is verified, counted or timed."""
    guests: bool = False
    """Whether the kernel's own tests are run in guests, too."""
    ids: frozenset[str] = frozenset()
    """The ids of mails in the series' thread, as far as they are known."""
    reproduce: str = ""
    """The command line for others: without a path of this machine."""
    program_words: tuple[str, ...] = ()
    """Options that give `ream program` the same series on the same kernel."""
    setup: Setup = OURS
    """What both kernels are built with."""
    strict: bool = False
    """Whether a loss ends with exit status 1 however small it is and whatever others gain."""

    def timed(self, minutes: float, *, per_patch: bool, runs: Path) -> "Question":
        """The same question, to be answered in another time, with records elsewhere."""
        return replace(self, minutes=minutes, per_patch=per_patch, runs=runs)

    def request(self, experiment: Experiment, variants: Sequence[Variant]) -> Request:
        """A run of an experiment in the native stage."""
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
