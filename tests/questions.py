# SPDX-License-Identifier: GPL-2.0-only
"""Fills the tables of docs/questions from counts, and takes these counts from counted runs.

PYTHONPATH=lab:tests:. python tests/questions.py [NAME[:FIRST]=RUN...]

Each NAME.toml there says which rows of mm are counted in which variants, and which functions the
page NAME.md shows. counts.json has what the pages need of the runs, which are too large to be kept.
"""

import hashlib
import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import readme
import results
from ream.experiment import BEFORE, named
from ream.paths import CHECKOUT, KERNEL_CONFIG, SERIES
from ream.record.parts import cpu_type
from ream.record.record import Record
from ream.report.contract import Counted, RowResult, Summary
from ream.report.html import picture
from ream.report.html.charts import chart
from ream.report.html.looks import looks

FOLDER = CHECKOUT / "docs" / "questions"
COUNTS = FOLDER / "counts.json"
UNDO = FOLDER / "undo"
PICTURE = CHECKOUT / "docs" / "upgrades-counts.svg"
BY = "tests/questions.py"
INSTRUCTIONS, LINES, LOCKED = "instructions", "lines_read", "locked"
TIME = "time"
UPGRADE = "upgrade"
"""The question whose table has one line for each row, with the causes of its change."""
UPGRADED = ("6.12", "7.2", "7.3")
"""What its rows are compared between, the base first."""
UNDONE = "undone"
"""Variant in which patches undo all causes that they can."""
MUCH = 0.05
"""A row that changes by this share is explained."""
SHOWN = 0.08
"""A cause stands in a row of which it is this share of the change."""
MOST_LEFT = 1 / 3
"""The most of a change that may be without a cause."""


@dataclass(frozen=True)
class Restored:
    """A claim: `variant` undoes so much of what `after` changed in a row since `before`.

    Of times no share is claimed, but that `variant` differs from `before` by no more than noise.
    """

    row: str
    before: str
    after: str
    variant: str
    pct: float = 100
    quantity: str = INSTRUCTIONS
    function: str = ""
    """Whose instructions are compared, instead of a quantity of all."""


@dataclass(frozen=True)
class Cause:
    """A change of the kernel, by what it adds to rows.

    That is what `variant` takes away from them. If there is none, the change is that of
    `functions`, which are patterns, in the variant UNDONE: so nothing is added twice.
    """

    key: str
    what: str
    shown: str
    """What shows it, for readers."""
    variant: str = ""
    functions: tuple[str, ...] = ()
    rows: tuple[str, ...] = ("*",)
    """Patterns of the rows that it is a cause of."""

    def concerns(self, row: str) -> bool:
        """Whether it may be a cause of a row."""
        return any(fnmatch(row, pattern) for pattern in self.rows)


@dataclass(frozen=True)
class Question:
    """What a file NAME.toml holds.

    variants: by their names in the table, as `ream run` has them, but a patch of `undo` by its name
    alone, and a series for 7.3 as well; the first is the base. only: the variants of a row that
    does not have all. functions: those that the page shows.
    """

    name: str
    rows: tuple[str, ...]
    variants: Mapping[str, str]
    functions: tuple[str, ...] = ()
    quantities: tuple[str, ...] = ()
    restored: tuple[Restored, ...] = ()
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    among: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The rows of a variant that not all rows have."""
    causes: tuple[Cause, ...] = ()
    unit: str = "page"
    factor: float = 1.0
    """What a number per page is multiplied by, to be one per `unit`."""
    times: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Variants by EXPERIMENT/ROW, whose times are pooled over the kept records."""

    @property
    def page(self) -> Path:
        return FOLDER / f"{self.name}.md"

    def cells(self, row: str) -> Mapping[str, str]:
        """The variants of a row, by name."""
        names = self.only.get(row, self.variants)
        return {name: self.variants[name] for name in names if row in self.among.get(name, (row,))}


def question(path: Path) -> Question:
    """Read one file."""
    its = tomllib.loads(path.read_text(encoding="utf-8"))
    its["restored"] = tuple(Restored(**one) for one in its.get("restored", ()))
    its["causes"] = tuple(Cause(**one) for one in its.get("causes", ()))
    return Question(name=path.stem, **its)


def questions() -> list[Question]:
    """All of them, by name."""
    return [question(path) for path in sorted(FOLDER.glob("*.toml"))]


def kept() -> dict[str, dict[str, Any]]:
    """What counts.json has, by row and by variant."""
    found: dict[str, dict[str, Any]] = json.loads(COUNTS.read_text(encoding="utf-8"))
    return found


counts = cache(kept)


def files_of(variant: str) -> Iterator[Path]:
    """Patches and options that a variant has over its base."""
    base, *words = variant.split("+")
    for word in words:
        if word.endswith(".config"):
            yield KERNEL_CONFIG / f"native-{word}"
        elif (patch := UNDO / f"{word}.patch").is_file():
            yield patch
        else:
            yield from sorted((SERIES / base / word).glob("*.patch"))


def identity(row: str, variant: str) -> str:
    """What a count depends on besides the kernel's source: the program, patches and options."""
    its: Any
    (its,) = (one for one in named("mm").rows if one.name == row)
    digest = hashlib.sha256(its.text.encode())
    for path in files_of(variant):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def take(its: Question, run: str, first: str) -> None:
    """Put into counts.json what a question needs of a run, counted or timed. Other numbers stay.

    first: what the question calls the run's first variant, which is `before` there.
    """
    found = kept() if COUNTS.exists() else {}
    record = Record.load(run, Path(run).parent)
    cpu = cpu_type(record.receipt["machine"])
    for row in Summary.from_object(record.run, source=run).rows:
        for name, spec in its.cells(row.row).items() if row.row in its.rows else ():
            there = BEFORE if name == first else name
            if there not in row.variants:
                continue
            old = found.setdefault(row.row, {}).get(spec, {})
            if row.counted is None:
                found[row.row][spec] = old | {TIME: _time(row, there, cpu)}
                continue
            assert row.counted.repeats, f"{run}: {row.row} differs from sample to sample"
            one = needed(its, row.counted, there, spec) | {"of": identity(row.row, spec)}
            if old.get("all") == one["all"]:
                one["functions"] = old["functions"] | one["functions"]
            if old.get("of") == one["of"] and TIME in old:
                one[TIME] = old[TIME]
            found[row.row][spec] = one
    text = json.dumps(found, indent=0, sort_keys=True, separators=(",", ":"))
    COUNTS.write_text(f"{text}\n", encoding="utf-8")


def _time(row: RowResult, name: str, cpu: str) -> dict[str, Any]:
    """The ratio of a variant's time to that of the run's first one, and the noise beside it."""
    its, floor = row.variants[name], row.floor
    assert floor is not None
    return {"cpu": cpu, "ratio": [its.ratio, its.low, its.high], "floor": [floor.low, floor.high]}


def needed(its: Question, of: Counted, name: str, spec: str = "") -> dict[str, Any]:
    """The totals of one variant, and the functions that are named, by causes if it has them."""
    alone, inclusive, totals = of.functions[name], of.inclusive.get(name, {}), of.variants[name]
    causes = its.causes if spec in (UPGRADED[0], its.variants.get(UNDONE)) else ()
    patterns = [*its.functions, *(pattern for one in causes for pattern in one.functions)]
    there = {*alone, *inclusive}
    wanted = {one for one in there if any(fnmatch(one, pattern) for pattern in patterns)}
    return {
        "number": of.number_of(name),
        "all": {one: totals.get(one, 0) for one in (INSTRUCTIONS, LINES, LOCKED)},
        "functions": {
            one: [_of(alone, one), _of(inclusive, one) or _of(alone, one)] for one in sorted(wanted)
        },
    }


def _of(functions: Mapping[str, Mapping[str, int]], name: str) -> int:
    return functions.get(name, {}).get(INSTRUCTIONS, 0)


def each(row: str, variant: str, quantity: str = INSTRUCTIONS) -> float:
    """How many of a quantity a page takes."""
    one = counts()[row][variant]
    return float(one["all"][quantity]) / one["number"]


def within(row: str, variant: str, function: str, *, alone: bool = False) -> float:
    """Instructions of a function per page, with those of what it calls unless `alone`."""
    one = counts()[row][variant]
    return float(one["functions"].get(function, (0, 0))[0 if alone else 1]) / one["number"]


def time_of(row: str, variant: str) -> tuple[float, float]:
    """The interval of a time's ratio to the first variant of its run; of that itself the floor."""
    its = counts()[row][variant][TIME]
    ratio, *interval = its["ratio"]
    low, high = its["floor"] if ratio == 1 else interval
    return (low, high)


def overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two intervals have a number in common."""
    return max(one[0], other[0]) <= min(one[1], other[1])


def shown(number: float) -> str:
    """A number in digits that can be read."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.1f}"


def table(its: Question) -> Iterator[str]:
    """Instructions per page of rows and variants, and of functions with what they call."""
    yield f"| instructions per {its.unit} | {' | '.join(its.variants)} |"
    yield f"|---|{'---|' * len(its.variants)}"
    for row in its.rows:
        cells = its.cells(row)
        lines = {f"`{row}`": {name: each(row, spec) for name, spec in cells.items()}}
        for one in its.functions:
            lines[f"- in `{one}()`"] = {
                name: within(row, spec, one) for name, spec in cells.items()
            }
        for one in its.quantities:
            head = f"- {one.replace('_', ' ')}"
            lines[head] = {name: each(row, spec, one) for name, spec in cells.items()}
        for head, line in lines.items():
            if any(line.values()):
                numbers = [line.get(name, 0) * its.factor for name in its.variants]
                words = (shown(number) if number else "-" for number in numbers)
                yield f"| {head} | {' | '.join(words)} |"
        yield from _timed_here(its, row)


def _timed_here(its: Question, row: str) -> Iterator[str]:
    """A line of the table with ratios of times to the first variant, of one run on one CPU."""
    times = {name: counts()[row][spec].get(TIME) for name, spec in its.cells(row).items()}
    if there := [one for one in times.values() if one]:
        cpus = {cpu: name for name, cpu in results.CPUS.items()}
        words = (_ratio(times.get(name)) for name in its.variants)
        yield f"| - time, {cpus[there[0]['cpu']]} | {' | '.join(words)} |"


def _ratio(its: Mapping[str, Any] | None) -> str:
    """A ratio with its interval; the first variant's is that of its second copy."""
    if its is None:
        return "-"
    ratio, *interval = its["ratio"]
    low, high = its["floor"] if ratio == 1 else interval
    return f"{'1' if ratio == 1 else f'{ratio:.2f}'} ({low:.2f} to {high:.2f})"


def ratios(row: str) -> dict[str, float]:
    """How many times the instructions of the first kernel the others execute."""
    first, *others = UPGRADED
    return {name: each(row, name) / each(row, first) for name in others}


def changes_much(row: str) -> bool:
    """Whether a row has to be explained."""
    return any(abs(ratio - 1) >= MUCH for ratio in ratios(row).values())


def change(row: str) -> float:
    """Instructions per page that the last kernel executes more than the first."""
    return each(row, UPGRADED[-1]) - each(row, UPGRADED[0])


def added(its: Question, row: str, cause: Cause) -> float:
    """Instructions per page that a cause adds to a row."""
    if not cause.concerns(row):
        return 0
    if not cause.variant:
        undone, first = its.variants[UNDONE], UPGRADED[0]
        return _of_functions(row, undone, cause) - _of_functions(row, first, cause)
    without = its.cells(row).get(cause.variant)
    return each(row, UPGRADED[-1]) - each(row, without) if without else 0


def _of_functions(row: str, variant: str, cause: Cause) -> float:
    names = counts()[row][variant]["functions"]
    wanted = [one for one in names if any(fnmatch(one, pattern) for pattern in cause.functions)]
    return sum(within(row, variant, one, alone=True) for one in wanted)


def unexplained(its: Question, row: str) -> float:
    """Instructions per page that changed for no cause: neither undone nor in its functions."""
    undone = its.variants[UNDONE]
    others = (
        one
        for one in its.causes
        if not one.variant or not {*files_of(its.variants[one.variant])} <= {*files_of(undone)}
    )
    return each(row, undone) - each(row, UPGRADED[0]) - sum(added(its, row, one) for one in others)


def upgraded(its: Question) -> Iterator[str]:
    """Each row's ratios to the first kernel, and how much of its change which cause is."""
    heads = [*UPGRADED, UNDONE, "change", "causes", "unexplained"]
    yield f"| row | {' | '.join(heads)} |"
    yield f"|---|{'---|' * len(heads)}"
    for row in its.rows:
        cells = [shown(each(row, UPGRADED[0]))]
        cells += [f"{ratio:.3f}" for ratio in ratios(row).values()]
        cells += _explained(its, row) if changes_much(row) else ("", signed(change(row)), "", "")
        yield f"| `{row}` | {' | '.join(cells)} |"
    much = [row for row in its.rows if changes_much(row)]
    open_ = [row for row in much if abs(unexplained(its, row)) > MOST_LEFT * abs(change(row))]
    names = ", ".join(f"`{row}`" for row in open_) or "no row"
    yield ""
    yield f"Less than two thirds of the change are explained of {names}."


def _explained(its: Question, row: str) -> tuple[str, str, str, str]:
    """The ratio without what patches undo, the change, its causes, largest first, and the rest."""
    whole = change(row)
    causes = {one.key: added(its, row, one) for one in its.causes}
    large = [key for key, number in causes.items() if abs(number) >= SHOWN * abs(whole)]
    large.sort(key=lambda key: -abs(causes[key]))
    left = unexplained(its, row)
    words = ", ".join(f"{key} {signed(causes[key])}" for key in large)
    undone = f"{each(row, its.variants[UNDONE]) / each(row, UPGRADED[0]):.3f}"
    return undone, signed(whole), words, f"{signed(left)} ({abs(left / whole) * 100:.0f} %)"


def signed(number: float) -> str:
    """A change in digits that can be read."""
    return f"{number:+,.{0 if abs(number) >= 100 else 1 if abs(number) >= 1 else 2}f}"


def caused(its: Question) -> Iterator[str]:
    """Each cause, the rows in which it stands, and what it adds to them."""
    yield "| key | cause | rows | instructions per page | what shows it |"
    yield "|---|---|---|---|---|"
    rows = [row for row in its.rows if changes_much(row)]
    for one in its.causes:
        adds = {row: added(its, row, one) for row in rows}
        large = {row: its for row, its in adds.items() if abs(its) >= SHOWN * abs(change(row))}
        first, *others = sorted(large, key=lambda row: -abs(large[row] / change(row)))
        where = f"`{first}`" + (f" and {len(others)} more" if others else "")
        span = " to ".join(dict.fromkeys(map(signed, (min(large.values()), max(large.values())))))
        yield f"| {one.key} | {one.what} | {where} | {span} | {one.shown} |"


def pictured(its: Question) -> str:
    """Ratios of all rows to the first kernel as SVG, those that became slowest first."""
    first, *others = UPGRADED
    found = {row: ratios(row) for row in its.rows}
    points = [
        {"row": row, "name": name, "ratio": found[row][name]}
        for row in sorted(its.rows, key=lambda row: -found[row][others[-1]])
        for name in others
    ]
    title = f"Instructions per page as multiples of {first}"
    marks = looks(others)
    return picture.alone(
        chart(UPGRADE, "overview", title=title, alt=title, points=points, floor=[], looks=marks)
    )


def measured(path: Path) -> Iterator[str]:
    """What the program beside a page printed: medians over rounds, with the least and the most."""
    rounds: dict[str, list[dict[str, float]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        kind, *words = line.split()
        numbers = zip(words[::2], map(float, words[1::2]), strict=True)
        rounds.setdefault(kind, []).append(dict(numbers))
    yield f"| | {' | '.join(rounds)} |"
    yield f"|---|{'---|' * len(rounds)}"
    for name in (one for one in next(iter(rounds.values()))[0] if "_" in one):
        found = [sorted(one[name] for one in its) for its in rounds.values()]
        cells = (f"{median(its):,.2f} ({its[0]:,.2f} to {its[-1]:,.2f})" for its in found)
        what, _, unit = name.rpartition("_")
        yield f"| {what}, {unit} | {' | '.join(cells)} |"


def timed(its: Question) -> Iterator[str]:
    """Times over those without the change, with 95 % intervals, and of how many runs."""
    lines = {
        f"{place.replace('/', ' `')}`, `{variant}`": readme.found()[*place.split("/"), variant]
        for place, variants in its.times.items()
        for variant in variants
    }
    cpus = [name for name, cpu in results.CPUS.items() if any(cpu in one for one in lines.values())]
    yield f"| time | {' | '.join(cpus)} |"
    yield f"|---|{'---|' * len(cpus)}"
    for head, found in lines.items():
        cells = (results.ratio(found.get(results.CPUS[name])) or "-" for name in cpus)
        yield f"| {head} | {' | '.join(cells)} |"


def filled(its: Question) -> str:
    """The page with its tables written again."""
    parts = dict[str, Callable[[], Iterator[str]]]()
    if its.causes:
        parts["causes"] = lambda: caused(its)
    if its.rows:
        parts["counts"] = lambda: (upgraded if its.name == UPGRADE else table)(its)
    if its.times:
        parts["times"] = lambda: timed(its)
    if (said := its.page.with_suffix(".txt")).exists():
        parts["measured"] = lambda: measured(said)
    return readme.filled(its.page.read_text(encoding="utf-8"), parts, BY)


def main() -> None:
    """Take the numbers of the runs named, then write the pages."""
    for word in sys.argv[1:]:
        name, _, run = word.partition("=")
        name, _, first = name.partition(":")
        its = question(FOLDER / f"{name}.toml")
        take(its, run, first or next(iter(its.variants)))
    counts.cache_clear()
    for its in questions():
        if its.name == UPGRADE:
            PICTURE.write_text(pictured(its), encoding="utf-8")
        its.page.write_text(filled(its), encoding="utf-8")


if __name__ == "__main__":
    main()
