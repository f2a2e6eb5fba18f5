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
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import readme
import results
from ream.experiment import BEFORE, named
from ream.paths import CHECKOUT, EXPERIMENTS, KERNEL_CONFIG, SERIES
from ream.record.parts import cpu_type
from ream.record.record import Record
from ream.report.contract import Counted, RowResult, Summary

FOLDER = CHECKOUT / "docs" / "questions"
COUNTS = FOLDER / "counts.json"
UNDO = FOLDER / "undo"
BY = "tests/questions.py"
INSTRUCTIONS, LINES, LOCKED = "instructions", "lines_read", "locked"
UPGRADE = "upgrade"
"""The question whose table has one line for each row, with the functions that changed most."""
MUCH = 0.05
"""A row that changes by this share is explained."""
NR_FUNCTIONS = 3
SPREAD = "none by 2.5 %"
"""Where no function alone changed by half of MUCH."""


@dataclass(frozen=True)
class Restored:
    """A claim: `variant` undoes so much of what `after` changed in a row since `before`."""

    row: str
    before: str
    after: str
    variant: str
    pct: float
    quantity: str = INSTRUCTIONS
    function: str = ""
    """Whose instructions are compared, instead of a quantity of all."""


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
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Functions that the last variant has by another name, old names first."""
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
        return {name: self.variants[name] for name in self.only.get(row, self.variants)}


def question(path: Path) -> Question:
    """Read one file."""
    its = tomllib.loads(path.read_text(encoding="utf-8"))
    its["restored"] = tuple(Restored(**one) for one in its.get("restored", ()))
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
                found[row.row][spec] = old | {"time": _time(row, there, cpu)}
                continue
            assert row.counted.repeats, f"{run}: {row.row} differs from sample to sample"
            one = needed(its, row.counted, there) | {"of": identity(row.row, spec)}
            if old.get("all") == one["all"]:
                one["functions"] = old["functions"] | one["functions"]
            if old.get("of") == one["of"] and "time" in old:
                one["time"] = old["time"]
            found[row.row][spec] = one
    text = json.dumps(found, indent=0, sort_keys=True, separators=(",", ":"))
    COUNTS.write_text(f"{text}\n", encoding="utf-8")


def _time(row: RowResult, name: str, cpu: str) -> dict[str, Any]:
    """The ratio of a variant's time to that of the run's first one, and the noise beside it."""
    its, floor = row.variants[name], row.floor
    assert floor is not None
    return {"cpu": cpu, "ratio": [its.ratio, its.low, its.high], "floor": [floor.low, floor.high]}


def needed(its: Question, of: Counted, name: str) -> dict[str, Any]:
    """The totals of one variant, and the functions that are named or that differ from another's."""
    alone, inclusive, totals = of.functions[name], of.inclusive.get(name, {}), of.variants[name]
    wanted = set(its.functions)
    if its.name == UPGRADE:
        # What changed much between two variants is kept of all of them.
        least = min(totals[INSTRUCTIONS] for totals in of.variants.values())
        for one in {one for functions in of.functions.values() for one in functions}:
            each_has = [_of(functions, one) for functions in of.functions.values()]
            if max(each_has) - min(each_has) >= MUCH / 4 * least:
                wanted.add(one)
    return {
        "number": of.number_of(name),
        "all": {one: totals.get(one, 0) for one in (INSTRUCTIONS, LINES, LOCKED)},
        "functions": {
            one: [_of(alone, one), _of(inclusive, one) or _of(alone, one)]
            for one in sorted(wanted)
            if one in alone or one in inclusive
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
    times = {name: counts()[row][spec].get("time") for name, spec in its.cells(row).items()}
    if there := [one for one in times.values() if one]:
        cpus = {cpu: name for name, cpu in results.CPUS.items()}
        words = (_ratio(times.get(name)) for name in its.variants)
        yield f"| - time, {cpus[there[0]['cpu']]} | {' | '.join(words)} |"


def _ratio(its: Mapping[str, Any] | None) -> str:
    if its is None:
        return "-"
    ratio, low, high = its["ratio"]
    return "1" if ratio == 1 else f"{ratio:.2f} ({low:.2f} to {high:.2f})"


def preempted() -> Mapping[str, float]:
    """By row, what 6.12 executes with PREEMPT_DYNAMIC as a multiple of what it does without."""
    rows = json.loads((EXPERIMENTS / "mm" / "counted.json").read_text(encoding="utf-8"))["rows"]
    return {
        row["row"]: row["variants"]["preempt"]["per_page"] / row["variants"][BEFORE]["per_page"]
        for row in rows
    }


def upgraded(its: Question) -> Iterator[str]:
    """Each row's ratios to the first variant, and the functions that changed most in the last."""
    (first, base), *others = its.variants.items()
    heads = [first, f"{first}, preempt", *(name for name, _ in others), "functions"]
    yield f"| row | {' | '.join(heads)} |"
    yield f"|---|{'---|' * len(heads)}"
    for row in its.rows:
        ratios = [each(row, spec) / each(row, base) for _, spec in others]
        much = any(abs(ratio - 1) >= MUCH for ratio in ratios)
        why = _changed_most(its, row, base, others[-1][1]) if much else ""
        preempt = f"{preempted()[row]:.3f}" if row in preempted() else ""
        cells = [shown(each(row, base)), preempt, *(f"{ratio:.3f}" for ratio in ratios), why]
        yield f"| `{row}` | {' | '.join(cells)} |"


def _changed_most(its: Question, row: str, before: str, after: str) -> str:
    """The functions whose instructions changed most; a renamed one is one."""
    more = Counter[str]()
    for name in {*counts()[row][before]["functions"], *counts()[row][after]["functions"]}:
        old, new = (within(row, spec, name, alone=True) for spec in (before, after))
        more[its.renamed.get(name, name)] += new - old
    large = [name for name in more if abs(more[name]) >= MUCH / 2 * each(row, before)]
    most = sorted(large, key=lambda name: (-abs(more[name]), name))[:NR_FUNCTIONS]
    return ", ".join(f"`{name}` {more[name]:+.1f}" for name in most) or SPREAD


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
        its.page.write_text(filled(its), encoding="utf-8")


if __name__ == "__main__":
    main()
