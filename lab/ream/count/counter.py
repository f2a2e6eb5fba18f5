# SPDX-License-Identifier: GPL-2.0-only
"""Counting during one launch: the emulator's command line, and the plugin's counts by sample."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from ream.count.annotate import Pieces, annotated
from ream.count.emulator import plugin_to_count
from ream.count.places import Place, places_of, source_name
from ream.errors import BadUsage, ReamError
from ream.kernel.arch import Arch
from ream.measure.sample import FUNCTIONS, INCLUSIVE, STAND_INS
from ream.nearest import hint
from ream.stage.link import Program

QUANTITIES = (
    *("instructions", "loads", "load_bytes", "stores", "store_bytes", "locked", "streaming"),
    *("fences", "prefetches", "taken", "repeated"),
)
"""Counts for each function, in the order in which native/count/plugin.c writes them."""

OF_MEMORY = ("lines_read", "lines_written", "lines_only_written", "pages")
"""Counts for each sample: distinct lines and pages that the kernel's own functions touched."""

Numbers = dict[str, int]


def add_counts(to: dict[str, Numbers], function: str, values: Sequence[int]) -> None:
    """Add the plugin's counts for a part of a function: a number for each of QUANTITIES."""
    its = to.setdefault(function, {})
    for name, value in zip(QUANTITIES, values, strict=True):
        if value:
            its[name] = its.get(name, 0) + value


@dataclass
class LaunchCounter:
    """Counts one launch of a program.

    annotate: functions whose instructions are listed at the end of the launch. listed: called with
    the listings. Raises BadUsage if no variant has a function of a name in `annotate`.
    """

    plugin: Path
    program: Path
    arch: Arch
    places: tuple[Place, ...]
    annotate: tuple[str, ...] = ()
    listed: Callable[[str], None] = lambda _text: None
    cpu: str | None = None
    """The name of the emulated CPU; None: the architecture's default."""
    memory: int | None = None
    """Address from which lines and pages are counted; None: the default of plugin_to_count()."""
    _executed: dict[str, dict[str, Pieces]] = field(default_factory=dict)
    """Executed pieces by row and variant."""
    _nr_read: int = 0
    _nr_bytes_read: int = 0

    def __post_init__(self) -> None:
        self._refuse_unknown()
        self._functions = self.program.parent / "counted.txt"
        self._functions.write_text("".join(self._function_lines()))
        self._out = self.program.parent / "counts.jsonl"

    @classmethod
    def of(cls, plugin: Path, program: Program, **its: Any) -> Self:
        """Return the counter for a launch of a program that holds several kernels."""
        return cls(plugin, program.path, program.arch, places_of(program), **its)

    def again(self) -> None:
        """Reset after a restart of the program, which also restarts the plugin's output."""
        self._nr_read = self._nr_bytes_read = 0

    def _refuse_unknown(self) -> None:
        names = {one.name for one in self.places}
        for asked in self.annotate:
            if source_name(asked) not in names:
                raise BadUsage(
                    f"--annotate {asked}: no variant has a function of that name"
                    f"{hint(asked, names)}; the compiler puts small ones into their callers"
                )

    def _function_lines(self) -> Iterator[str]:
        """Yield a line for each place: start and end, and whether it is a function of the kernel.

        The last number is that of the first part of the same function.
        """
        first: dict[tuple[str, str], int] = {}
        for number, its in enumerate(self.places):
            whole = first.setdefault((its.variant, its.name), number)
            yield f"{its.start:x} {its.end:x} {int(not its.is_stand_in)} {whole}\n"

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line that precedes the program's own."""
        its = self.plugin, self._functions, self._out
        words = plugin_to_count(*its, runs=bool(self.annotate), memory=self.memory)
        return (*self.arch.emulated(self.cpu), *words)

    @property
    def loads(self) -> tuple[Path, ...]:
        """Files that the emulator loads besides installed ones."""
        return (self.plugin,)

    def completed(self, text: str) -> str:
        """Return a line of the runner; in a sample, counts replace the time.

        Raises ReamError if the plugin wrote no counts, or another variant's code was executed.
        """
        if self.annotate and '"end"' in text:
            self.listed(annotated(self.program, self.places, self.annotate, self._executed))
        if '"marks"' not in text:
            return text
        fields = json.loads(text)
        if not fields["verified"]:  # perhaps a warm-up, which the plugin does not count
            del fields["marks"]
            return json.dumps(fields)
        counted = self._window(fields.pop("marks"))
        own, stand_ins = self._by_function(fields["subject"], counted["functions"])
        whole, _ = self._by_function(fields["subject"], counted["inclusive"])
        inclusive = {name: its for name, its in whole.items() if its != own.get(name)}
        if self.annotate:
            pieces = {start: (end, nr) for start, end, nr in counted["runs"]}
            self._executed.setdefault(fields["row"], {})[fields["subject"]] = pieces
        fields.pop("cpu_ns")
        fields["time_ns"] = sum(numbers.get("instructions", 0) for numbers in own.values())
        fields |= {name: counted[name] for name in OF_MEMORY}
        fields |= {FUNCTIONS: own, STAND_INS: stand_ins, INCLUSIVE: inclusive}
        return json.dumps(fields)

    def _window(self, number: int) -> Mapping[str, Any]:
        """Return what the plugin wrote at the end of a pair of marks; some pairs have no line."""
        with self._out.open("rb") as file:
            file.seek(self._nr_bytes_read)
            for line in file:
                self._nr_read += 1
                self._nr_bytes_read += len(line)
                if self._nr_read == number:
                    window: Mapping[str, Any] = json.loads(line)
                    return window
        raise ReamError(f"{self._out}: the plugin has not counted sample {number}")

    def _by_function(
        self, variant: str, counts: list[list[int]]
    ) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
        own: dict[str, Numbers] = {}
        stand_ins: dict[str, Numbers] = {}
        for number, *values in counts:
            place = self.places[number]
            if place.variant != variant:
                raise ReamError(f"{place.variant}: its {place.name}() ran in a sample of {variant}")
            add_counts(stand_ins if place.is_stand_in else own, place.name, values)
        return own, stand_ins
