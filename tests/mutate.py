# SPDX-License-Identifier: GPL-2.0-only
"""Which tests notice a wrong line? Make one wrong at a time, and run a command.

`tests/mutations.toml` has two lists of wrong lines. A rule chose them: of all comparisons in the
list's PLACES, in the order of their files and lines, every n-th, so that there are NR_CHOSEN. An
ordering changes its boundary (`<` becomes `<=`); any other comparison is negated. Where that
changes nothing, as with `random() < 0.25`, the list has the comparison after it. The list
`mutation` is of the engine and the oracles, and `moved` is of what tests of `make test-vm` guard.

usage: python tests/mutate.py choose [moved]            print the list that the rule gives now
       python tests/mutate.py run [moved] COMMAND...    try it; exit 1 if the command misses one

`run` works in a copy of the checkout. COMMAND runs there once for each wrong line.
"""

import ast
import json
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent
LISTED = HERE / "mutations.toml"
NR_CHOSEN = 10
FIRST, MOVED = "mutation", "moved"
PLACES = {
    FIRST: (
        *(f"lab/ream/{one}" for one in ("compare", "count", "gate", "measure", "oracle", "record")),
        *(f"lab/ream/{one}" for one in ("kernel", "session", "stage")),
        "experiments/*/oracle",
    ),
    MOVED: (
        *(f"lab/ream/stage/{one}.py" for one in ("guest", "qemu", "vm")),
        "experiments/*/boot.py",
        *(f"lab/ream/kernel/{one}.py" for one in ("base", "build", "image")),
        *(f"lab/ream/judge/{one}.py" for one in ("first_wrong", "reach", "session")),
        *(f"lab/ream/measure/{one}.py" for one in ("clock", "stable", "statistics")),
        "lab/ream/oracle/pte_arm64.py",
        "lab/ream/history/recompute.py",
        "lab/ream/report/html/points.py",
        "lab/ream/width.py",
        "native/host/rounds.c",
        "experiments/compact/whole.py",
        "experiments/compact/native",
        "experiments/fork/freeing.py",
        "experiments/fork/freeing",
    ),
}
"""The folders and files that each list is chosen from."""

OTHER: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
"""An operator, and the one that takes its place."""

C_COMPARES = re.compile(r" ([<>]=?|[=!]=) ")


@dataclass(frozen=True)
class Mutation:
    """One line of one file, and the wrong line that takes its place."""

    file: str
    right: str
    wrong: str

    def apply(self, checkout: Path) -> None:
        """Write the wrong line; raises ValueError unless the right one is there exactly once."""
        path = checkout / self.file
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        places = [at for at, line in enumerate(lines) if line.strip() == self.right]
        if len(places) != 1:
            raise ValueError(f"{self.file} has this line {len(places)} times: {self.right}")
        (at,) = places
        lines[at] = lines[at].replace(self.right, self.wrong)
        path.write_text("".join(lines), encoding="utf-8")


def listed(name: str = FIRST) -> list[Mutation]:
    """The wrong lines of one list of mutations.toml."""
    with LISTED.open("rb") as file:
        return [Mutation(**one) for one in tomllib.load(file)[name]]


def choose(checkout: Path, nr: int = NR_CHOSEN, name: str = FIRST) -> list[Mutation]:
    """What the rule gives for a checkout."""
    found = list(_comparisons(checkout, PLACES[name]))
    step = len(found) // nr
    return found[step // 2 :: step][:nr]


def _comparisons(checkout: Path, places: Sequence[str]) -> Iterator[Mutation]:
    """Every comparison, in order, whose line stands once in its file."""
    for path in (file for place in places for file in _sources(checkout, place)):
        text = path.read_text(encoding="utf-8")
        stripped = [line.strip() for line in text.splitlines()]
        for at, wrong in _in_c(text) if path.suffix == ".c" else _in_python(text):
            if stripped.count(stripped[at]) == 1 and wrong != stripped[at]:
                yield Mutation(str(path.relative_to(checkout)), stripped[at], wrong)


def _sources(checkout: Path, place: str) -> list[Path]:
    files = (file for top in checkout.glob(place) for file in (top, *top.rglob("*")))
    return sorted(file for file in files if file.suffix in (".c", ".py"))


def _in_c(text: str) -> Iterator[tuple[int, str]]:
    """The first comparison of each line that is code, with the line's place."""
    others = dict(OTHER.values())
    for at, line in enumerate(text.splitlines()):
        if not re.match(r"\s*(\*|//|/\*|#)", line):
            yield at, C_COMPARES.sub(lambda its: f" {others[its[1]]} ", line.strip(), count=1)


def _in_python(text: str) -> Iterator[tuple[int, str]]:
    lines = text.splitlines()
    for node in _compares(ast.parse(text)):
        yield node.lineno - 1, _wrong(node, lines[node.lineno - 1]).strip()


def _compares(tree: ast.AST) -> list[ast.Compare]:
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Compare))
    return sorted(found, key=lambda one: (one.lineno, one.col_offset))


def _wrong(node: ast.Compare, line: str) -> str:
    """The line with the first operator of a comparison exchanged, if that stands on the line."""
    right, wrong = OTHER[type(node.ops[0])]
    after = node.left.end_col_offset or 0
    if node.left.end_lineno != node.lineno:
        return line
    head, tail = line.encode()[:after].decode(), line.encode()[after:].decode()
    return head + tail.replace(f" {right} ", f" {wrong} ", 1)


def run(argv: Sequence[str], name: str = FIRST) -> int:
    """Try each wrong line; prints a line each. Returns how many the command did not notice."""
    missed = 0
    for nr, one in enumerate(listed(name), 1):
        with tempfile.TemporaryDirectory(prefix="mutate-", dir=CHECKOUT.parent) as scratch:
            copy = Path(scratch) / "copy"
            subprocess.run(("git", "clone", "-q", str(CHECKOUT), str(copy)), check=True)
            one.apply(copy)
            (copy / ".venv").symlink_to(CHECKOUT / ".venv")
            # This one compares every line with the list.
            (copy / "tests" / "unit" / "test_mutations.py").unlink()
            started = time.monotonic()
            said = subprocess.run(argv, cwd=copy, capture_output=True, text=True, check=False)
            missed += said.returncode == 0
            verdict = "MISSED" if said.returncode == 0 else "noticed"
            took_s = time.monotonic() - started
            print(f"{nr:2} {verdict} in {took_s:.0f} s: {one.file}: {one.wrong}")
            failed = [line for line in said.stdout.splitlines() if line.startswith("FAILED")]
            print(*(f"   {line[:150]}" for line in failed[:3]), sep="\n", flush=True)
    return missed


def main() -> int:
    """Do what the module's docstring says."""
    doing, *argv = sys.argv[1:] or [""]
    name = argv.pop(0) if argv and argv[0] in PLACES else FIRST
    if doing == "choose" and not argv:
        for one in choose(CHECKOUT, name=name):
            print(f"\n[[{name}]]")
            for key, text in vars(one).items():
                print(f"{key} = {json.dumps(text)}")
        return 0
    if doing == "run" and argv:
        return min(run(argv, name), 1)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
