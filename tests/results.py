# SPDX-License-Identifier: GPL-2.0-only
"""Writes the tables of docs/results.md, which are made of records.

usage: PYTHONPATH=lab:tests python tests/results.py
"""

from collections.abc import Iterator, Mapping, Sequence

import quoted_results
import readme
from ream.history.pooled import OverRuns
from ream.paths import CHECKOUT
from ream.published import load_tables
from ream.replicate.outcome import Replication
from ream.replicate.rule import counted_words

PAGE = CHECKOUT / "docs" / "results.md"
CPUS: Mapping[str, str] = {
    "Zen 3": readme.CPUS["Zen 3"],
    "Zen 4": readme.CPUS["Zen 4"],
    "Intel Xeon": readme.CPUS["Intel Xeon"],
    "Intel 207": "Intel(R) Xeon(R) Processor (family 6 model 207)",
}
ROWS: Mapping[str, Sequence[str]] = {
    "zone-device": (
        *("fsdax-100GB", "fsdax-100GB-1-cpu", "devdax-100GB", "private-64GB"),
        "remap-private-64GB",
    ),
    "fork": (
        *("fork-4k", "fork-64k", "fork-2m"),
        *("munmap-64k", "munmap-free-64k", "munmap-free-2m"),
    ),
    "deferred-init": ("2-threads",),
    "migrate": ("64k-serial", "2m-serial"),
    "mprotect": ("rw-to-r-4k", "rw-to-r-64k"),
    "mremap": ("within-4k", "within-64k"),
}
"""The rows that the page has, by experiment."""

RETIRED = {("mprotect", "ream"), ("mremap", "ream")}
"""Variants whose records are of series that are not there any more: READMEs have their ratios."""


def pooled() -> Iterator[str]:
    """Ratios of rows on each type of CPU, pooled over runs."""
    yield f"| row | | {' | '.join(CPUS)} |"
    yield f"|---|---|{'---|' * len(CPUS)}"
    for experiment, rows in ROWS.items():
        for row in rows:
            for variant, shown in readme.SHOWN.items():
                if (experiment, variant) in RETIRED:
                    continue
                found = readme.found().get((experiment, row, variant), {})
                cells = [ratio(found.get(cpu)) for cpu in CPUS.values()]
                if any(cells):
                    yield f"| {experiment} `{row}` | {shown} | {' | '.join(cells)} |"


def ratio(its: OverRuns | None) -> str:
    """A ratio, its interval, the number of runs, and a mark for an earlier form of the series."""
    if its is None:
        return ""
    low, high = its.estimate.low, its.estimate.high
    assert low is not None
    assert high is not None
    mark = " *" if its.earlier else ""
    return f"{its.estimate.ratio:.3f} ({low:.3f} to {high:.3f}), {len(its.runs)}{mark}"


def verdicts() -> Iterator[str]:
    """The verdict on each published table, by type of CPU, and of which lines it is made."""
    tables = load_tables()
    by_cpu = {
        cpu: {one.table.id: one for one in quoted_results.replications(cpu, tables)} for cpu in CPUS
    }
    yield f"| published table | {' | '.join(CPUS)} |"
    yield f"|---|{'---|' * len(CPUS)}"
    for table in tables:
        cells = [_verdict(its[table.id]) for its in by_cpu.values()]
        name = f"{table.author}: `{table.id}`"
        if table.message_id is not None:
            name = f"[{table.author}]({readme.ARCHIVE}{table.message_id}): `{table.id}`"
        yield f"| {name} | {' | '.join(cells)} |"


def _verdict(of: Replication) -> str:
    tried = [line for line in of.deciding if line.tried]
    if not tried:
        return readme.NOTHING
    words = counted_words(line.judged.word for line in tried)
    if of.too_few:
        return f"{of.word}: {counted_words(line.judged.word for line in of.deciding)}"
    return words if len(words.split(",")) == 1 else f"{of.word}: {words}"


PARTS: readme.Parts = {"pooled": pooled, "verdicts": verdicts}


def filled(text: str) -> str:
    """The page with its tables written again."""
    return readme.filled(text, PARTS, "tests/results.py")


def main() -> None:
    """Write the page."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
