# SPDX-License-Identifier: GPL-2.0-only
"""Edits that change what a function returns, of functions that no program of the corpus executes.

Which these are is found as experiments/mm/coverage.md is: on a computer that hosts all of mm/. A
function that the compiler has divided, or of less than LEAST_BYTES, may be part of another one
that is executed, and is left out.
"""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ream.kernel.build import GCC
from ream.kernel.setup import wanted_setup
from ream.kernel.source import fetch_tree
from ream.paths import EXPERIMENTS, cache_dir
from ream.program.aim import Aim
from ream.program.coverage import Code
from ream.program.explore import Corpus
from ream.program.ran import Rig, computer_folder

LEAST_BYTES = 100

Lines = list[str]

_RETURN = re.compile(r"^(\t+return )(?!true|false)([a-z]\w*|\d+);$")


def functions(tree: Path) -> Iterator[tuple[str, str]]:
    """The source and the name of each function that is not executed."""
    asked = fetch_tree(tree, cache=cache_dir(), step=print).built(wanted_setup(None, GCC, "native"))
    with tempfile.TemporaryDirectory() as work:
        base = Rig.of(asked, (), cache=cache_dir(), work=Path(work) / "base", step=print)
        code = Code(base.computer, computer_folder())
        corpus = Corpus.load(next(EXPERIMENTS.glob("*/corpus")))
        met = frozenset[int]().union(*Aim.of(base, code, corpus, cache_dir()).met.values())
        for one in code.functions:
            own = code.numbers([(one.object, one.name)])
            if own.isdisjoint(met) and "." not in one.name and one.bytes >= LEAST_BYTES:
                yield f"{one.object.removesuffix('.o')}.c", one.name


def edits(text: Lines, function: str) -> Iterator[tuple[int, Lines]]:
    """Each edit of a function: the number of a line from 0, and what stands there then."""
    begins = re.compile(rf"^[a-z_].*\b{re.escape(function)}\(")
    for first, line in enumerate(text):
        if not begins.match(line) or line.endswith(";"):
            continue
        for at in range(first, text.index("}", first)):
            if its := _RETURN.match(text[at]):
                yield at, [f"{its[1]}{its[2]} + 1;"]
