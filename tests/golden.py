# SPDX-License-Identifier: GPL-2.0-only
"""What ream prints about some of the kept records, as files that are reviewed as a diff.

`make golden` writes the files of tests/golden again, and tests/cli/test_golden.py compares them
with what is printed now. They depend on neither machine, time, terminal nor other records.
"""

import difflib
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

from in_process import Said, answer
from ream.history.ratios import lines
from ream.history.recompute import _summary, compared
from ream.paths import CHECKOUT
from ream.record.receipt import anonymous
from ream.record.record import PLAN, Record
from ream.report import letter, table
from ream.report.contract import Summary
from shipped import RECORDS, copied

FOLDER = CHECKOUT / "tests" / "golden"
COMMAND = "make golden"
PLACE = "records"
"""Where the records are, seen from where ream is called."""

REPORTED = {
    "compact-batches": "20261121T195326Z-compact-native-2b21",
    "compact-live-old": "20261121T195445Z-compact-live-0d61",
    "compact-vm-old": "20261121T192328Z-compact-vm-54e8",
    "deferred-init-old": "20261121T134006Z-deferred-init-native-c451",
    "deferred-init-skipped": "20261121T134155Z-deferred-init-vm-843b",
    "deferred-init-count": "20261127T063944Z-deferred-init-native-660e",
    "fork-control": "20261122T201604Z-fork-native-4fed",
    "fork-count-vm-arm64": "20261126T094925Z-fork-vm-effa",
    "fork-five-variants": "20261128T092837Z-fork-native-e57f",
    "migrate-grid": "20261128T232546Z-migrate-native-a5d9",
    "migrate-vm-old": "20261121T163113Z-migrate-vm-d6d6",
    "mprotect-count-arm64": "20261126T055340Z-mprotect-native-149a",
    "mremap-count-arm64": "20261126T055124Z-mremap-native-5f83",
    "mremap-live": "20261126T055018Z-mremap-live-fe86",
    "zone-contiguous": "20261123T131251Z-zone-contiguous-native-097b",
    "zone-device": "20261128T232346Z-zone-device-native-5845",
    "zone-device-kernels": "20261124T133926Z-zone-device-native-37ce",
    "zone-device-vm-old": "20261121T065043Z-zone-device-vm-a216",
}
"""Records of each kind, by what their files are called."""

PAGES = (
    "compact-live-old",
    "deferred-init-old",
    "fork-control",
    "fork-count-vm-arm64",
    "migrate-grid",
    "zone-contiguous",
)
"""Records whose page is kept, too: its words and its data."""

MORE = (
    "20261121T100752Z-fork-native-fd90",
    "20261122T201633Z-deferred-init-native-cf3c",
    "20261125T163655Z-mremap-native-527f",
    "20261126T101319Z-mprotect-vm-0b81",
    "20261127T113149Z-compact-native-3655",
    "20261127T131042Z-fork-native-6e40",
    "20261128T113315Z-fork-native-351b",
    "20261128T142505Z-compact-native-2674",
    "20261128T142506Z-compact-native-294e",
    "20261128T232136Z-fork-native-011d",
    "20261128T232834Z-zone-device-native-b2e1",
    "20261128T233024Z-mprotect-native-5443",
    "20261128T233046Z-migrate-native-6c37",
    "20261128T234542Z-fork-native-d653",
)
"""Records that are compared, judged and summed up again."""

LONG = ("20261128T232136Z-fork-native-011d", "20261128T233024Z-mprotect-native-5443")
"""Records with so many rows that to sum them up again would take too long."""

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "check": ("check", "6c37", "--baseline", "a5d9"),
    "check-counts": ("check", "294e", "--baseline", "2674", "--counts"),
    "check-counts-json": ("check", "294e", "--baseline", "2674", "--counts", "--json"),
    "check-json": ("check", "b2e1", "--baseline", "5845", "--max-regression", "1%", "--json"),
    "check-junit": ("check", "6c37", "--baseline", "a5d9", "--junit", "-"),
    "check-ktap": ("check", "b2e1", "--baseline", "5845", "--ktap", "-"),
    "check-unlike": ("check", "e57f", "--baseline", "4fed", "--unlike"),
    "compare": ("compare", "6c37", "a5d9"),
    "compare-rows": ("compare", "6c37", "a5d9", "--rows"),
    "compare-counts": ("compare", "294e", "2674"),
    "compare-counts-json": ("compare", "294e", "2674", "--json"),
    "compare-kernels": ("compare", "37ce", "5845", "--unlike"),
    "compare-machines": ("compare", "e57f", "351b"),
    "compare-machines-json": ("compare", "e57f", "351b", "--json"),
    "compare-steps": ("compare", "fd90", "e57f"),
    "export-chosen": ("export", "-f", "csv", "-e", "migrate", "--stage", "native",
                      "--row", "4k-serial", "--variant", "ream"),
    "export-chosen-samples": ("export", "-f", "jsonl", "--samples", "097b",
                              "--row", "plug-256GiB", "--variant", "ream"),
    "export-csv": ("export", "-f", "csv", "0d61", "4fed", "149a"),
    "export-jsonl": ("export", "-f", "jsonl", "0d61"),
    "export-samples": ("export", "-f", "csv", "--samples", "0d61"),
    "history": ("history",),
    "history-fork": ("history", "-e", "fork", "--variant", "ream"),
    "history-json": ("history", "--json", "-e", "zone-contiguous"),
    "history-pooled": ("history", "--pooled", "-e", "zone-device"),
    "history-pooled-json": ("history", "--pooled", "--json", "-e", "migrate"),
    "replicate-first": ("replicate", "zone-device-v4", "fork-pte-batch-v3",
                        "mprotect-regression-yang", "--record", "5443", "--record", "011d",
                        "--record", "5845"),
    "replicate-json": ("replicate", "zone-device-v4", "--json", "--record", "5845"),
    "replicate-old": ("replicate", "compact-dma", "deferred-init-zen-guest-4cpu",
                      "--record", "c451", "--record", "54e8"),
    "report": ("report", "011d"),
    "report-counts": ("report", "6e40"),
    "report-json": ("report", "097b", "--json"),
    "show": ("show", "294e"),
    "show-old": ("show", "0d61"),
    "show-json": ("show", "097b", "--json"),
}  # fmt: skip
"""Commands over these records, by what their files are called."""

_PROGRESS = re.compile(r"ream: (?:read|checked|indexed) \d+ of .*\n")


_OF = re.compile(r"\[[^\]]*\]")
"""The row or the number of a field, which its path has in brackets."""


def world(place: Path) -> Path:
    """A folder with these records and no others."""
    for name in sorted({*REPORTED.values(), *MORE}):
        copied(RECORDS / name, place / PLACE / name)
    return place


def texts() -> Mapping[str, Callable[[Path], str]]:
    """What makes each file of tests/golden from the folder of the records."""
    made: dict[str, Callable[[Path], str]] = {}
    for name, run in REPORTED.items():
        made[f"{name}.report.txt"] = partial(_said, ("report", run, "--rows"))
        made[f"{name}.letter.txt"] = partial(_said, ("report", run, "--letter"))
    for name in PAGES:
        made[f"{name}.page.txt"] = partial(_words, REPORTED[name])
        made[f"{name}.plots.json"] = partial(_plots, REPORTED[name])
    for name, words in COMMANDS.items():
        made[f"{name}.txt"] = partial(_said, words)
    made["computed.txt"] = _computed
    return made


def _environment(place: Path) -> Mapping[str, str]:
    """Nothing of this machine's user, but where programs are."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(place),
        "XDG_CACHE_HOME": str(place / "cache"),
        "XDG_DATA_HOME": str(place / "data"),
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "TZ": "UTC",
    }


def call(place: Path, words: tuple[str, ...]) -> Said:
    """The command line in this process."""
    return answer((*words, "--runs", PLACE), here=place, environment=_environment(place), fed="")


def _said(words: tuple[str, ...], place: Path) -> str:
    """A command with its two channels and its exit code, as in a terminal."""
    found = call(place, words)
    said = found.out if found.out.endswith("\n") or not found.out else f"{found.out}\n"
    code = f"exit {found.code}\n" if found.code else ""
    return f"$ ream {' '.join(words)}\n{said}{_PROGRESS.sub('', found.err)}{code}"


# --- The page --------------------------------------------------------------------------------


class _Words(HTMLParser):
    """The words of a page by lines: a row of a table is one, with its cells between bars."""

    SILENT = ("script", "style", "title")
    ENDS = (
        *("p", "li", "tr", "h1", "h2", "h3", "dd", "summary", "caption", "figcaption", "pre"),
        *("details", "section"),
    )
    MOST = 4
    """The most rows that are kept of a table of samples; the page has more of the same."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._line: list[str] = []
        self._open: list[str] = []
        self._points = 0
        self._receipt = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)
        given = dict(attrs)
        if tag == "details" and given.get("class") == "points":
            self._points = 1
        if tag == "section":
            self._receipt = given.get("id") == "receipt"
        if given.get("class") == "plot":
            self._line += ["plot", given["id"] or "", given["aria-label"] or ""]
            self._ended()
        if tag in ("meta", "br", "link"):
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()
        if tag in ("td", "th"):
            self._line.append("|")
        if tag == "tr" and self._points:
            self._points += 1
            if self._points > self.MOST + 2:  # the heading is one
                self._line.clear()
        if tag in self.ENDS:
            self._ended()
        if tag == "details" and self._points:
            self._points = 0

    def handle_data(self, data: str) -> None:
        of_receipt = self._receipt and "pre" in self._open
        if not of_receipt and not set(self.SILENT) & set(self._open):
            self._line += data.split()

    def _ended(self) -> None:
        if self._line:
            self.lines.append(" ".join(self._line).removesuffix(" |"))
        self._line.clear()


@cache
def _page(run: str, place: Path) -> str:
    return call(place, ("report", run, "--html", "-")).out


def _words(run: str, place: Path) -> str:
    return "".join(f"{line}\n" for line in _Words(_page(run, place)).lines)


def _plots(run: str, place: Path) -> str:
    """The data that a page embeds, but for how plots of a kind are drawn: a line for each plot."""
    data = json.loads(_page(run, place).split('id="plots">')[1].split("</script>")[0])
    plots = {name: _trimmed(plot) for name, plot in data["plots"].items()}
    inner = ",\n".join(f"{json.dumps(name)}: {json.dumps(its)}" for name, its in plots.items())
    return f"{{{inner}}}\n"


FEW = 12
"""The most points of a plot that are kept; of more, their number, two of them and the sums."""


def _trimmed(value: Any) -> Any:
    """The value with rounded numbers and no long lists of points."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _trimmed(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) <= FEW or not all(isinstance(one, dict) for one in value):
        return [_trimmed(one) for one in value]
    sums: dict[str, float] = {}
    for point in value:
        for key, number in point.items():
            if isinstance(number, (int, float)):
                sums[key] = sums.get(key, 0) + number
    return _trimmed({"points": len(value), "first": value[0], "last": value[-1], "sums": sums})


# --- What a record's samples give now --------------------------------------------------------


def _computed(place: Path) -> str:
    """How table and letter would be, computed from the samples, where that is not as stored."""
    with mock.patch.dict(os.environ, _environment(place), clear=True):
        return "".join(
            line
            for path in sorted((place / PLACE).iterdir())
            if path.name not in LONG and (path / PLAN).exists()
            for line in (f"record {path.name}\n", *_changes(Record.load(str(path), path.parent)))
        )


def _changes(record: Record) -> Iterator[str]:
    """Lines of the two texts that differ, and how many fields of run.json differ, by name."""
    try:
        computed = _summary(record, tuple(lines(record)))
    except ValueError as cause:  # plan.json is of an older form
        yield f"{cause}\n"
        return
    stored = Summary.from_object(record.run, source=record.path.name)
    for form in (table, letter):
        old, new = (form.render(one).splitlines(keepends=True) for one in (stored, computed))
        diff = difflib.unified_diff(old, new, n=0)
        yield from (line for line in diff if line[:3] not in ("---", "+++"))
    made = anonymous(json.loads(json.dumps(computed.to_object())))
    fields = (_OF.sub("", one.path) for one in compared(anonymous(record.run), made))
    for name, number in sorted(Counter(fields).items()):
        yield f"{number} {name}\n"


def unlike(file: str, text: str) -> str:
    """How a text differs from the file of that name; empty if it does not."""
    path = FOLDER / file
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    old, new = (one.splitlines(keepends=True) for one in (kept, text))
    return "".join(difflib.unified_diff(old, new, f"tests/golden/{file}", "what is printed now"))


def main() -> None:
    """Write all files again."""
    made = texts()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        if path.name not in made:
            path.unlink()
    with tempfile.TemporaryDirectory() as name:
        place = world(Path(name))
        for file, make in made.items():
            (FOLDER / file).write_text(make(place), encoding="utf-8")


if __name__ == "__main__":
    main()
