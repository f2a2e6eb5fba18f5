# SPDX-License-Identifier: GPL-2.0-only
"""Writes the parts of README.md that are made of records, and docs/fork.svg.

usage: PYTHONPATH=lab:tests python tests/readme.py
"""

import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import quoted_results
from ream.experiment import BEFORE, PUBLISHED, SHOWN, shown
from ream.folders import names
from ream.history.pooled import ByCpu, OverRuns, Place, pooled, ratios_in
from ream.measure.verdict import Word
from ream.paths import CHECKOUT, EXPERIMENTS, RECORDS
from ream.program.explore import Corpus
from ream.published import load_tables, lookup
from ream.record.record import Record
from ream.replicate.outcome import Line, Replication
from ream.report.contract import RowResult, Summary
from ream.report.html import picture
from ream.report.html.charts import Chart
from ream.report.html.curves import curves
from ream.report.readers import for_readers
from ream.report.sweep import each_of
from ream.site.gathered import ARCHIVE, factor
from shipped import SHIPPED

sys.path.insert(0, str(CHECKOUT / "tests" / "trial"))

import judged

PAGE, PICTURE = CHECKOUT / "README.md", CHECKOUT / "docs" / "fork.svg"
SAID = CHECKOUT / "tests" / "readme"
"""What `ream judge` printed of the patches that README shows, all of it."""

FORK = RECORDS / "20261128T232136Z-fork-native-011d"
CURVES = {
    "fork-*": "fork()",
    "munmap-*": "munmap(), without freeing pages",
}
"""The curves of the picture, by the rows that they are of."""
QUOTED_ROW = "fork-64k"

CPUS = {
    "Intel Xeon": "Intel(R) Xeon(R) Processor (family 6 model 167)",
    "Zen 3": "AMD EPYC (family 25 model 1)",
    "Zen 4": "AMD EPYC (family 25 model 17)",
}
"""The types of CPU, as README and as records call them."""
NOTHING = "-"


@dataclass(frozen=True)
class Shown:
    """A line of a published table that README shows."""

    table: str
    what: str
    params: Mapping[str, str | int] = field(default_factory=dict)
    value: str | None = None


CLAIMS = (
    Shown(
        "zone-device-v4",
        "memory map of 100 GB of device memory, filled from a template",
        {"config": "fsdax, map=dev", "when": "rebind"},
    ),
    Shown("fork-pte-batch-v3", "fork() in batches, folios of 64 KiB", {"folio_kib": 64}),
    Shown("unmap-pte-batch-v1", "munmap() in batches, folios of 64 KiB", {"folio_kib": 64}),
    Shown(
        "deferred-init-zen-guest-16cpu",
        "struct pages of a node at boot, 2 threads",
        {"threads": 2},
        "init_ms",
    ),
    Shown("mprotect-regression-yang", "mprotect() of 400 KiB, v6.17", {"size_kib": 400}),
    Shown(
        "mprotect-shared-dirty-metal-releases",
        "mprotect() of dirty shared pages, v6.17",
        {"kernel": "v6.17"},
    ),
    Shown(
        "zone-device-private-popple",
        "Li Zhe's series on 64 GiB of private device memory",
        {"machine": "Arrow Lake"},
    ),
    Shown("mprotect-pte-batch-v5", "mprotect() in batches on arm64", {"case": "T1"}),
    Shown("mremap-lkp-bigheap", "stress-ng.bigheap since mremap() in batches"),
)


@cache
def found() -> Mapping[Place, ByCpu]:
    """Every ratio of the kept records, pooled over runs."""
    return pooled(ratios_in(RECORDS))


def pooled_words(its: OverRuns) -> str:
    """The factor, its marks, and over how many runs it is pooled."""
    low, high = its.estimate.low, its.estimate.high
    assert low is not None
    assert high is not None
    undecided = " =" if low <= 1 <= high else ""
    earlier = " *" if its.earlier else ""
    return f"{factor(its.estimate.ratio)}{undecided}{earlier} ({len(its.runs)})"


def claims() -> Iterator[str]:
    """The table of published claims, with what was found on each type of CPU."""
    tables = [lookup(load_tables(), one.table) for one in CLAIMS]
    by_cpu = {
        cpu: {one.table.id: one for one in quoted_results.replications(cpu, tables)} for cpu in CPUS
    }
    yield f"| who, and what | claimed | {' | '.join(CPUS)} |"
    yield f"|---|---|{'---|' * len(CPUS)}"
    for one, table in zip(CLAIMS, tables, strict=True):
        its = {cpu: _line(one, by_cpu[cpu][table.id]) for cpu in CPUS}
        ratio = its["Zen 4"].claim.printed.ratio
        assert ratio is not None
        who = table.author
        if table.message_id is not None:
            who = f"[{who}]({ARCHIVE}{table.message_id})"
        row = next((line.row.row for line in its.values() if line.row is not None), None)
        cells = (_found(table.experiment, row, cpu, its[cpu]) for cpu in CPUS)
        yield f"| {who}: {one.what} | {factor(ratio)} | {' | '.join(cells)} |"


def _line(shown: Shown, of: Replication) -> Line:
    (line,) = (
        one
        for one in of.compared
        if shown.params.items() <= dict(one.claim.line.params).items()
        and shown.value in (None, one.claim.value)
    )
    return line


def _found(experiment: str, row: str | None, cpu: str, line: Line) -> str:
    place = experiment, row or "", PUBLISHED
    its = found().get(place, {}).get(CPUS[cpu])
    word: Word = line.judged.word
    if its is None:
        return word if row is None else NOTHING
    return f"{pooled_words(its)}, {word}" if line.tried else pooled_words(its)


@cache
def fork() -> tuple[Summary, tuple[Chart, ...]]:
    """The record of the picture, and the plots of it that are shown."""
    run = Record.load(str(FORK), RECORDS).run
    summary = for_readers(Summary.from_object(run, source=FORK.name))
    rows = [_of_three(row) for row in summary.rows]
    plots = (
        one.model_copy(update={"title": CURVES[one.family]})
        for one in curves(rows)
        if one.family in CURVES
    )
    return summary, tuple(plots)


def _of_three(row: RowResult) -> RowResult:
    """A row with before, the technique and ours alone."""
    its = {name: one for name, one in row.variants.items() if name in (BEFORE, *map(shown, SHOWN))}
    return row.model_copy(update={"variants": its})


def svg() -> str:
    """The picture of fork() and munmap()."""
    summary, plots = fork()
    return picture.svg(plots, summary)


def pictured() -> Iterator[str]:
    """The picture, and what it shows in words."""
    summary, _ = fork()
    (row,) = (one for one in summary.rows if one.row == QUOTED_ROW)
    each = {name: each_of(row.variants[name]) for name in (BEFORE, *map(shown, SHOWN))}
    said = [f"{name} {value:.1f}" for name, value in each.items() if value]
    share = row.variants[BEFORE].of_limit
    assert each[BEFORE] is not None
    assert share is not None
    said.append(f"a plain loop {each[BEFORE] * share:.1f}")
    yield f"![fork() and munmap(): ns a page, over the size of the folios](docs/{PICTURE.name})"
    yield ""
    yield (
        "The technique is the batching of page table entries by David Hildenbrand that Linux 6.12"
        " has, without a counter that 6.10 added. `before` is the same kernel without batching, and"
        f" ours is 6.12 with our series. A page of a folio of 64 KiB takes, in ns on an Intel Xeon:"
        f" {', '.join(said)}; of one run, `{FORK.name}`. Pooled over as many runs as stand in"
        f" parentheses, ours is {_elsewhere()}; `*` marks an earlier form."
    )


def _elsewhere() -> str:
    """How much faster the quoted row is on each type of CPU."""
    its = found()["fork", QUOTED_ROW, "ream"]
    said = [f"{pooled_words(its[cpu])} on {name}" for name, cpu in CPUS.items()]
    return f"{', '.join(said[:-1])} and {said[-1]}"


def coverage() -> Iterator[str]:
    """Which share of mm/ is hosted, executed and checked."""
    text = (EXPERIMENTS / "mm" / "coverage.md").read_text(encoding="utf-8")
    nr_objects = len(re.findall(r"^\| mm/\S+\.o ", text, re.MULTILINE))
    functions, of, share, blocks = re.findall(
        r"^\| all \| (\d+) of (\d+) \| (\d+ %) \| (\d+ %) \|", text, re.MULTILINE
    )[0]
    objects = (CHECKOUT / "native/libmm/objects").read_text(encoding="utf-8")
    left = re.findall(r"^except (.*)$", objects, re.MULTILINE)[0].split()
    readme = (CHECKOUT / "native/libmm/README.md").read_text(encoding="utf-8")
    checked = readme.partition("## What is checked after each step\n")[2].partition("\n## ")[0]
    nr_checks = len(re.findall(r"^\* ", checked, re.MULTILINE))
    nr_programs = len(Corpus.load(EXPERIMENTS / "mm" / "corpus").programs)
    yield "| of mm/ in Linux 6.12 | |"
    yield "|---|---|"
    yield f"| hosted | {nr_objects} objects: all that kbuild makes of it but {' and '.join(left)} |"
    yield (
        f"| executed | {functions} of {of} functions, {share} of their text, {blocks} of their"
        f" basic blocks, by {nr_programs} programs |"
    )
    yield (
        f"| checked | all of memory after each step: {nr_checks} kinds of state, such as reference"
        " counts, page tables, free lists and swap |"
    )


def reasons() -> Iterator[str]:
    """Five reasons to believe a result, and what speaks against the first."""
    folders = [EXPERIMENTS / name.replace("-", "_") / "wrong" for name in names()]
    nr_wrong = sum(len([*one.glob("*.patch")]) for one in folders)
    listed = (one / "unshown.toml" for one in folders)
    nr_unshown = sum(len(tomllib.loads(one.read_text())) for one in listed if one.is_file())
    method = " ".join((CHECKOUT / "docs/method.md").read_text(encoding="utf-8").split())
    nr_null, nr_found = re.findall(r"Of (\d+) simulated runs .{0,60}?, (\d+) reported one", method)[
        0
    ]
    held = re.findall(r"contains the true ratio in (\d+ to \d+ of 100) runs", method)[0]
    ends: dict[str, list[int]] = {}
    for one in judged.rows():
        ends.setdefault(one["kind"], []).append(one["exit"])
    right = [*ends["harmless"], *ends["edit"]] if "edit" in ends else ends["harmless"]
    fixes = [end for kind, its in ends.items() if kind.startswith("fix") for end in its]
    yield (
        "1. **Every sample is verified**, and so is all memory that it wrote. Of"
        f" {nr_wrong} wrong patches that were written to test ream, it catches"
        f" {nr_wrong - nr_unshown} before anything is timed. Of {len(fixes)} real fixes that it had"
        f" not seen and that were reversed, it found {fixes.count(judged.WRONG)}"
        " ([docs/judged.md](docs/judged.md))."
    )
    yield (
        f"2. **It seldom calls right code wrong.** Of {len(right)} harmless changes,"
        f" {right.count(judged.WRONG) or 'none'} were, and some of them only change comments. In an"
        " earlier trial three of ten real changes were, and the rules were mended."
    )
    yield (
        f"3. **Noise is measured beside every result.** `before` runs twice. Of {nr_null} simulated"
        f" runs without any effect, {nr_found} reported one."
    )
    yield (
        "4. **Intervals are over fresh starts** with another layout of code and data. In"
        f" simulations they contain the true ratio in {held} runs. Runs differ by more than that,"
        " so documents quote means of several."
    )
    yield (
        f"5. **You can compute every number again.** The {len(SHIPPED)} records in `docs/records`"
        " have all samples, with checksums. `ream verify --runs docs/records` does it."
    )


@dataclass(frozen=True)
class Excerpt:
    """Whole lines of what a command printed, some of them left out."""

    file: str
    kept: tuple[tuple[int, int], ...]
    """The first and the last line of each part, counted from 1."""

    def __call__(self) -> Iterator[str]:
        lines = (SAID / self.file).read_text(encoding="utf-8").splitlines()
        yield "```"
        for (first, last), after in pairwise((*self.kept, (0, 0))):
            yield from lines[first - 1 : last]
            if after != (0, 0) or last < len(lines):
                yield "..."
        yield "```"


Parts = Mapping[str, Callable[[], Iterator[str]]]

PARTS: Parts = {
    "picture": pictured,
    "wrong": Excerpt("wrong.txt", ((1, 1), (5, 7), (10, 14))),
    "slow": Excerpt("slow.txt", ((1, 1), (5, 10), (19, 21))),
    "claims": claims,
    "reasons": reasons,
    "coverage": coverage,
}
"""What stands between the markers of each name."""

COLUMNS = 99


def filled(text: str, parts: Parts = PARTS, by: str = "tests/readme.py") -> str:
    """The page with all parts written again."""
    for name, part in parts.items():
        begin, end = f"<!-- {name}: made by {by} -->\n", f"<!-- end of {name} -->\n"
        assert text.count(begin) == text.count(end) == 1, name
        head, _, rest = text.partition(begin)
        text = head + begin + "".join(f"{line}\n" for line in _wrapped(part())) + end
        text += rest.partition(end)[2]
    return text


def _wrapped(lines: Iterator[str]) -> Iterator[str]:
    """Sentences in lines that documents may have; tables, blocks and pictures as they are."""
    is_block = False
    for line in lines:
        is_block ^= line.startswith("```")
        if is_block or line.startswith(("|", "!", "```")) or not line:
            yield line
        else:
            indent = "   " if re.match(r"\d+\. ", line) else ""
            yield from textwrap.wrap(
                line, COLUMNS, subsequent_indent=indent, break_long_words=False,
                break_on_hyphens=False,
            )  # fmt: skip


def main() -> None:
    """Write the picture and the page."""
    PICTURE.write_text(svg(), encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
