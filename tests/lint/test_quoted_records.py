# SPDX-License-Identifier: GPL-2.0-only
"""Documents state the conditions of records that they quote: other programs, a modified tree.

docs/method.md defines both wordings.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from checkout import files
from ream.paths import CHECKOUT, SERIES
from ream.record.record import Record
from shipped import RECORDS, SHIPPED

MOST_OTHERS_PCT = 10
MOST_FILES, MOST_BYTES = 100, 6_000_000

DOCUMENTS = sorted(
    path.relative_to(CHECKOUT)
    for path in (
        CHECKOUT / "README.md",
        *(CHECKOUT / "docs").glob("*.md"),
        *(CHECKOUT / "experiments").glob("*/README.md"),
        *SERIES.rglob("0000-cover*"),
    )
)

NAME = re.compile(r"(?:\d{8}T\d{6}Z-|…)[a-z-]+-[0-9a-f]{4}\b")
"""A record as documents name it, in full or without its time."""

OTHERS = re.compile(r"\bother(?:s| programs)\b[^.]{0,60}?([\d.]+)(?: to ([\d.]+))? %")
"""The share that others took, or the lowest and the highest of several records."""

ONE_RUN = "of one run"
"""What a document says of numbers that are not pooled over runs."""

MODIFIED = "of a modified tree"

OF_MODIFIED_TREES = frozenset(
    {
        "20261121T163113Z-migrate-vm-d6d6",
        "20261125T130328Z-compact-native-50fb",
        "20261125T131321Z-zone-device-native-6281",
        "20261125T163655Z-mremap-native-527f",
        "20261125T202439Z-mprotect-native-99a1",
        "20261126T055018Z-mremap-live-fe86",
        "20261126T055046Z-mprotect-live-4f36",
        "20261127T152939Z-migrate-native-3e05",
        "20261128T071506Z-migrate-native-ee88",
        "20261128T122108Z-mprotect-native-0011",
        "20261128T122514Z-mremap-native-9bca",
        "20261128T171926Z-fork-native-c3d4",
    }
)
"""Records of checkouts with changes that no commit has. No record may be added."""

COUNTS_ONLY = {
    "kernel/series/compact/0000-cover-letter.patch": "20261121T192328Z-compact-vm-54e8",
}
"""By document, a record with times of which the document quotes counts only."""


@cache
def record_of(name: str) -> Record | None:
    """The record that a document names; None if the checkout has none of that name."""
    found = [path for path in SHIPPED if path.name.endswith(name.removeprefix("…"))]
    return Record.load(str(found[0]), RECORDS) if found else None


def is_modified(record: Record) -> bool:
    return bool(record.receipt["ream"]["dirty"])


def is_timed(record: Record) -> bool:
    return any(row["unit"] != "instructions" for row in record.run["rows"])


def others_pct(record: Record) -> float:
    """The share of the CPU time that others took of a record with times; 0 without times."""
    if not is_timed(record):
        return 0
    return record.receipt["conditions"].get("others_pct") or 0


def sections(text: str) -> list[str]:
    """The parts of a document between its headings; a cover letter is one."""
    return re.split(r"^#+ .*$", text, flags=re.MULTILINE)


def states(text: str, share: float) -> bool:
    """Whether a text says that others took this share, rounded to a per cent or less."""
    ends = ((float(low), float(high or low)) for low, high in OTHERS.findall(text))
    return any(low - 0.5 <= share <= high + 0.5 for low, high in ends)


def unstated_shares(document: str, text: str) -> Iterator[str]:
    for section in sections(text):
        words = " ".join(section.split())
        for name in dict.fromkeys(NAME.findall(words)):
            record = record_of(name)
            if record is None or COUNTS_ONLY.get(document) == record.path.name:
                continue
            share = others_pct(record)
            if share > MOST_OTHERS_PCT and not states(words, share):
                yield f"{document}: {name}: say in its section `others {share:.0f} %`"


def unmarked(document: str, text: str) -> Iterator[str]:
    """Records of modified trees without the words behind their names, before the next name."""
    for paragraph in re.split(r"\n\s*\n", text):
        words = " ".join(paragraph.split())
        for name, behind in zip(NAME.findall(words), NAME.split(words)[1:], strict=True):
            record = record_of(name)
            if record is not None and is_modified(record) and MODIFIED not in behind:
                yield f"{document}: {name}: say behind it `{MODIFIED}`"


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_the_share_of_other_programs_is_stated_where_a_time_is_quoted(document: Path) -> None:
    text = (CHECKOUT / document).read_text(encoding="utf-8")
    assert [*unstated_shares(str(document), text)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_a_record_of_a_modified_tree_is_marked_where_it_is_quoted(document: Path) -> None:
    text = (CHECKOUT / document).read_text(encoding="utf-8")
    assert [*unmarked(str(document), text)] == []


def test_no_new_record_is_of_a_modified_tree() -> None:
    found = {path.name for path in SHIPPED if is_modified(Record.load(str(path), RECORDS))}
    assert found - OF_MODIFIED_TREES == set()


def test_the_records_are_few_files_and_small() -> None:
    kept = [path for path in files() if path.is_relative_to(RECORDS)]
    assert len(kept) <= MOST_FILES
    assert sum(path.stat().st_size for path in kept) <= MOST_BYTES


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_numbers_of_one_run_are_labelled_so(document: Path) -> None:
    text = " ".join((CHECKOUT / document).read_text(encoding="utf-8").split())
    timed = [
        name
        for name in NAME.findall(text)
        if (record := record_of(name)) is not None and is_timed(record)
    ]
    assert not timed or ONE_RUN in text, f"{document} names {timed[0]}: say `{ONE_RUN}`"


TAKEN = "20261125T163655Z-mremap-native-527f"
"""Others took 39.87 % of the time."""


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (f"`{TAKEN}`, others 40 %", 0),
        (f"Others: `{TAKEN}` (others 39.9 %).", 0),
        ("`…mremap-native-527f`, while other\nprograms used 31 to 41 % of the CPUs", 0),
        (f"`{TAKEN}`, others 41 %", 1),
        (f"`{TAKEN}`, 40 % faster than the other", 1),
        (f"`{TAKEN}`\n\n## Next\n\nothers 40 %", 1),
        ("`20261128T122514Z-mremap-native-9bca`, by instructions", 0),
        ("`20991128T122514Z-mremap-native-0000`, which the checkout has not", 0),
    ],
)
def test_a_share_that_is_not_stated_is_found(said: str, found: int) -> None:
    assert len([*unstated_shares("it.md", said)]) == found


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (f"`{TAKEN}` (of a modified\ntree)", 0),
        (f"of a modified tree, `{TAKEN}`", 1),
        (f"`{TAKEN}` and `20261128T122514Z-mremap-native-9bca`, of a modified tree", 1),
        (f"`{TAKEN}`\n\nof a modified tree", 1),
        ("`20261127T130442Z-mremap-native-f113`", 0),
    ],
)
def test_a_record_without_its_mark_is_found(said: str, found: int) -> None:
    assert len([*unmarked("it.md", said)]) == found
