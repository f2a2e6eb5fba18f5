# SPDX-License-Identifier: GPL-2.0-only
"""Which tests notice a wrong line? Make one wrong at a time, and run a command.

`tests/mutations.toml` lists the wrong lines. A rule chose them: of all comparisons in FOLDERS, in
the order of their files and lines, every n-th, so that there are NR_CHOSEN. An ordering changes its
boundary (`<` becomes `<=`); any other comparison is negated.

usage: python tests/mutate.py choose            print the list that the rule gives now
       python tests/mutate.py run COMMAND...    try the list; exit 1 if the command misses one

`run` works in a copy of the checkout. COMMAND runs there once for each wrong line.
"""

import ast
import json
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
FOLDERS = (
    *(f"lab/ream/{name}" for name in ("compare", "count", "gate", "measure", "oracle", "record")),
    *(f"lab/ream/{name}" for name in ("kernel", "session", "stage")),
    "experiments/*/oracle",
)
"""The engine and the oracles."""

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


def listed() -> list[Mutation]:
    """The wrong lines of mutations.toml."""
    with LISTED.open("rb") as file:
        return [Mutation(**one) for one in tomllib.load(file)["mutation"]]


def choose(checkout: Path, nr: int = NR_CHOSEN) -> list[Mutation]:
    """What the rule gives for a checkout."""
    found = list(_comparisons(checkout))
    step = len(found) // nr
    return found[step // 2 :: step][:nr]


def _comparisons(checkout: Path) -> Iterator[Mutation]:
    """Every comparison, in order, whose line stands once in its file."""
    for folder in FOLDERS:
        for path in sorted(file for top in checkout.glob(folder) for file in top.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            lines = text.splitlines()
            stripped = [line.strip() for line in lines]
            for node in _compares(ast.parse(text)):
                right = stripped[node.lineno - 1]
                wrong = _wrong(node, lines[node.lineno - 1]).strip()
                if stripped.count(right) == 1 and wrong != right:
                    yield Mutation(str(path.relative_to(checkout)), right, wrong)


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


def run(argv: Sequence[str]) -> int:
    """Try each wrong line; prints a line each. Returns how many the command did not notice."""
    missed = 0
    for nr, one in enumerate(listed(), 1):
        with tempfile.TemporaryDirectory(prefix="mutate-", dir=CHECKOUT.parent) as scratch:
            copy = Path(scratch) / "copy"
            subprocess.run(("git", "clone", "-q", str(CHECKOUT), str(copy)), check=True)
            one.apply(copy)
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
    match sys.argv[1:]:
        case ["choose"]:
            for one in choose(CHECKOUT):
                print("\n[[mutation]]")
                for name, text in vars(one).items():
                    print(f"{name} = {json.dumps(text)}")
            return 0
        case ["run", *argv] if argv:
            return min(run(argv), 1)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
