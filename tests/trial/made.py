# SPDX-License-Identifier: GPL-2.0-only
"""Makes changes to judge by a rule that leaves no choice: hunks between two kernels, and edits.

A hunk is one difference of mm/ between two kernel trees, alone. An edit changes code and nothing
that can be observed: a barrier for the compiler before a call, a condition that is said to be
unlikely, or a function that is not inlined. All are taken in the order of their SHA-256.

PYTHONPATH=lab python tests/trial/made.py FOLDER --tree 6.12 [--to 7.3] [--most 20]
"""

import argparse
import hashlib
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

CONTEXT = 3

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


def applies(text: str, tree: Path) -> bool:
    words = ["patch", "-p1", "--dry-run", "--force", "--fuzz=0", "--silent"]
    return subprocess.run(words, cwd=tree, input=text.encode(), check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tree", type=Path, required=True, help="a kernel source tree")
    parser.add_argument("--to", type=Path, help="another one: hunks between the two, not edits")
    parser.add_argument("--files", nargs="*", default=[], help="of mm/, for edits")
    parser.add_argument("--most", type=int, default=20)
    asked = parser.parse_args()
    made = of_trees(asked.tree, asked.to) if asked.to else of_tree(asked.tree, asked.files)
    asked.folder.mkdir(parents=True, exist_ok=True)
    chosen = (text for text in ordered(made) if applies(text, asked.tree))
    for number, text in zip(range(1, asked.most + 1), chosen, strict=False):
        (asked.folder / f"{number:03}.patch").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
