# SPDX-License-Identifier: GPL-2.0-only
"""Makes changes to judge by a rule that leaves no choice: hunks between two kernels, and edits.

A hunk is one difference of mm/ between two kernel trees, alone. An edit changes code and nothing
that can be observed: a barrier for the compiler before a call, a condition that is said to be
unlikely, or a function that is not inlined. All are taken in the order of their SHA-256.

Two further kinds have rules of their own: edits after which each object is what it was
(tests/trial/same.py), of which the sorts take turns, and edits of functions that nothing executes
(tests/trial/unexecuted.py), of which each function has one.

To judge many in little time they are joined: those of a number in a row are one series, in the
same order. Each is applied behind those before it of its series, and what does not apply there is
left out and named. A file of a series is called after the first and the last of its numbers.

PYTHONPATH=lab python tests/trial/made.py FOLDER --tree 6.12 [--to 7.3] [--most 20] [--join 10]
"""

import argparse
import difflib
import hashlib
import itertools
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import same
import unexecuted

CONTEXT = 3
FROM = f"From {'0' * 40} Mon Sep 17 00:00:00 2001"
"""Begins each mail of a mailbox."""

_CALL = re.compile(r"^\t+[a-z_]\w*\(.*\);$")
_CONDITION = re.compile(r"^(\t+if \()(.+)(\) \{)$")
_FUNCTION = re.compile(
    r"^static (?!inline|noinline|const|__always_inline|struct \w+ \w+ =)[^;=]+\("
)
_ENDS = (";", "{", "}")

Lines = list[str]


def edits(text: Lines) -> Iterator[tuple[str, int, Lines]]:
    """Every edit of a file: what it is, the number of a line from 0, and what stands there then."""
    for at in range(1, len(text)):
        before, line = text[at - 1], text[at]
        if line.endswith("\\") or before.endswith("\\"):
            continue
        if _CALL.match(line) and before.startswith("\t") and before.endswith(_ENDS):
            indent = line[: len(line) - len(line.lstrip("\t"))]
            yield "barrier", at, [f"{indent}barrier();", line]
        if (its := _CONDITION.match(line)) and "likely(" not in line and _closed(its[2]):
            yield "unlikely", at, [f"{its[1]}unlikely({its[2]}){its[3]}"]
        if _FUNCTION.match(line):
            yield "noinline", at, [line.replace("static ", "static noinline ", 1)]


def _closed(condition: str) -> bool:
    """Whether each parenthesis that it opens is closed in it, and none before."""
    depth = 0
    for letter in condition:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0


def patch(file: str, hunk: Iterable[str], subject: str) -> str:
    """A mail with one hunk."""
    return "\n".join(
        (f"Subject: {subject}", "", "---", f"--- a/{file}", f"+++ b/{file}", *hunk, "")
    )


def hunk(text: Lines, at: int, lines: Lines) -> Lines:
    """The difference that lines make in place of one, with those around it."""
    first, end = max(0, at - CONTEXT), min(len(text), at + 1 + CONTEXT)
    new = [f"+{line}" for line in lines]
    around = [f" {line}" for line in text[first:at]], [f" {line}" for line in text[at + 1 : end]]
    nr = end - first
    header = f"@@ -{first + 1},{nr} +{first + 1},{nr - 1 + len(lines)} @@"
    return [header, *around[0], f"-{text[at]}", *new, *around[1]]


def hunks(before: Path, after: Path) -> Iterator[Lines]:
    """Each difference of two files."""
    words = ["diff", f"-U{CONTEXT}", str(before), str(after)]
    said = subprocess.run(words, check=False, capture_output=True, text=True).stdout
    for text in re.split(r"^(?=@@ )", said, flags=re.MULTILINE)[1:]:
        yield text.rstrip("\n").split("\n")


def ordered(patches: Iterable[str]) -> list[str]:
    """By the SHA-256 of the text."""
    return sorted(patches, key=lambda text: hashlib.sha256(text.encode()).hexdigest())


def of_trees(tree: Path, to: Path) -> Iterator[str]:
    """Each difference of a file of mm/ that both trees have."""
    for path in sorted((tree / "mm").glob("*.c")):
        other = to / "mm" / path.name
        for its in hunks(path, other) if other.exists() else ():
            yield patch(f"mm/{path.name}", its, f"mm: a hunk of {path.name}")


def of_tree(tree: Path, names: Iterable[str]) -> Iterator[str]:
    """Each edit of some files of mm/."""
    for name in names:
        text = (tree / "mm" / name).read_text(encoding="utf-8").split("\n")
        for kind, at, lines in edits(text):
            yield patch(f"mm/{name}", hunk(text, at, lines), f"mm: {kind} in {name}")


def of_tree_same(tree: Path, names: Iterable[str]) -> Iterator[str]:
    """Edits that change no object, in order: of each sort one in turn."""
    found = defaultdict[str, list[str]](list)
    for name in names:
        text = (tree / "mm" / name).read_text(encoding="utf-8").split("\n")
        for kind, after in same.edits(text):
            _, _, *hunk = difflib.unified_diff(text, after, n=CONTEXT, lineterm="")
            found[kind].append(patch(f"mm/{name}", hunk, f"mm: {kind} in {name}"))
    yield from itertools.chain(*zip(*(ordered(its) for its in found.values()), strict=False))


def of_unexecuted(tree: Path, found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Edits of functions, in order: of each function the first one."""
    texts = defaultdict[str, set[str]](set)
    for file, function in found:
        text = (tree / file).read_text(encoding="utf-8").split("\n")
        for at, lines in unexecuted.edits(text, function):
            subject = f"mm: what {function}() returns"
            texts[function].add(patch(file, hunk(text, at, lines), subject))
    yield from ordered(ordered(its)[0] for its in texts.values())


def applies(text: str, tree: Path, *, really: bool = False) -> bool:
    """Whether a patch applies without fuzz; with `really` it is applied, too."""
    words = ["patch", "-p1", "--force", "--fuzz=0", "--silent"]
    its: dict[str, Any] = {"cwd": tree, "input": text.encode(), "stdout": subprocess.DEVNULL}
    if subprocess.run([*words, "--dry-run"], check=False, **its).returncode != 0:
        return False
    if really:
        subprocess.run(words, check=True, **its)
    return True


def joined(patches: Sequence[str], tree: Path, nr: int) -> Iterator[tuple[str, str, list[int]]]:
    """Series of some patches each: a name, a mailbox, and the numbers of those left out."""
    for first in range(0, len(patches), nr):
        its = dict(enumerate(patches[first : first + nr], first + 1))
        with tempfile.TemporaryDirectory() as work:
            shutil.copytree(tree / "mm", Path(work) / "mm")
            took = {at: one for at, one in its.items() if applies(one, Path(work), really=True)}
        yield f"{min(its):03}-{max(its):03}", _mailbox(took), sorted(its.keys() - took.keys())


def _mailbox(took: Mapping[int, str]) -> str:
    """Mails in a row, with the places and the numbers that they have."""
    mails = (
        f"{FROM}\n{one.replace('Subject: ', f'Subject: [PATCH {place}/{len(took)}] {at:03}, ', 1)}"
        for place, (at, one) in enumerate(took.items(), 1)
    )
    return "\n".join(mails)


def _made(asked: argparse.Namespace) -> Iterable[str]:
    """All that is asked for, in order."""
    if asked.same:
        return of_tree_same(asked.tree, asked.files)
    if asked.unexecuted:
        return of_unexecuted(asked.tree, unexecuted.functions(asked.tree))
    its = of_trees(asked.tree, asked.to) if asked.to else of_tree(asked.tree, asked.files)
    return ordered(its)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tree", type=Path, required=True, help="a kernel source tree")
    parser.add_argument("--to", type=Path, help="another one: hunks between the two, not edits")
    parser.add_argument("--files", nargs="*", default=[], help="of mm/, for edits")
    parser.add_argument("--most", type=int, default=20)
    parser.add_argument("--same", action="store_true", help="edits that change no object")
    parser.add_argument("--unexecuted", action="store_true", help="edits of what nothing executes")
    parser.add_argument("--join", type=int, help="so many are one series")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    chosen = (text for text in _made(asked) if applies(text, asked.tree))
    its = [*itertools.islice(chosen, asked.most)]
    files = {f"{number:03}": text for number, text in enumerate(its, 1)}
    if asked.join:
        series = [*joined(its, asked.tree, asked.join)]
        files = {name: text for name, text, _ in series}
        print("left out:", *(number for _, _, left in series for number in left))
    for name, text in files.items():
        (asked.folder / f"{name}.patch").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
