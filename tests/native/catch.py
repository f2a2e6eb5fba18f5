# SPDX-License-Identifier: GPL-2.0-only
"""Runs programs on wrong patches until each is caught, and says how soon and how briefly.

PYTHONPATH=lab:tests .venv/bin/python tests/native/catch.py open
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ream.errors import ReamError
from ream.kernel.build import GCC
from ream.kernel.diff import changed_files
from ream.kernel.series import Patch
from ream.kernel.setup import wanted_setup
from ream.kernel.source import fetch_tree
from ream.paths import CHECKOUT, EXPERIMENTS, cache_dir
from ream.program.aim import Aim
from ream.program.changed import Target
from ream.program.coverage import Code
from ream.program.explore import Corpus
from ream.program.ran import Rig, Watched, computer_folder
from ream.program.search import Found, search, shortened
from wrong import wrong_patches

WRONG = CHECKOUT / "tests" / "native" / "computer_wrong.txt"
FIRST_SEED = 1000


def main() -> None:
    """Print one line of JSON for each patch, and a summary behind them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", help="open, blind, or parts of paths, with commas")
    parser.add_argument("--seconds", type=float, default=40.0, help="of programs, for each patch")
    parser.add_argument("--shrink", type=float, default=30.0, help="seconds at most; 0: do not")
    parser.add_argument("--config", help="a file or a name, as `ream program` has it")
    parser.add_argument("--seed", type=int, default=FIRST_SEED, help="the first one")
    asked = parser.parse_args()
    lines = (line.split() for line in WRONG.read_text().splitlines())
    chosen = asked.which.split(",")
    paths = [path for half, path in lines if half in chosen or any(one in path for one in chosen)]
    with tempfile.TemporaryDirectory() as work:
        tree = fetch_tree(None, cache=cache_dir(), step=lambda _: None)
        tree = tree.built(wanted_setup(asked.config, GCC, "native"))
        how = {"cache": cache_dir(), "step": lambda _: None}
        base = Rig.of(tree, [], work=Path(work) / "base", **how)
        code = Code(base.computer, computer_folder())
        corpus = Corpus.load(next(EXPERIMENTS.glob("*/corpus")))
        aim = Aim.of(base, code, corpus, cache_dir())

        def build(patches: Sequence[Patch], path: str) -> Rig:
            return Rig.of(tree, patches, work=Path(work) / Path(path).stem, **how)

        rows = []
        for path in paths:
            rows.append(row(base, build, aim, path, asked))
            shutil.rmtree(Path(work) / Path(path).stem, ignore_errors=True)
    for kind in ("alarm", "differs"):
        its = [one for one in rows if kind in one]
        print(f"{kind}: {len(its)} of {len(rows)}", end="")
        if its:
            times, lengths = ([one[name] for one in its] for name in ("after_s", "length"))
            print(f", after {statistics.median(times)} s, {statistics.median(lengths)} steps"
                  f" (medians), at most {max(lengths)} steps", end="")  # fmt: skip
        print()


def cpu_s() -> float:
    """Time that we and the computers have used: the host may have other work."""
    return sum(os.times()[:4])


def shown(found: Found) -> dict[str, object]:
    if found.differs is None:
        return dict(zip(("line", "alarm"), found.ran.alarms[0], strict=True))
    return dict(zip(("line", "differs"), found.differs, strict=True))


def row(
    base: Rig,
    build: Callable[[Sequence[Patch], str], Rig],
    aim: Aim,
    path: str,
    asked: argparse.Namespace,
) -> dict[str, object]:
    its: dict[str, object] = {"patch": path}
    try:
        patches = wrong_patches(CHECKOUT / path)
        files = frozenset(file for one in patches for file in changed_files(one.body))
        series = build(patches, path)
        target = Target.of(base.computer, series.computer, aim.code, files)
        its |= {"functions": len(target.functions), "blocks": len(target.blocks)}
        its |= {"executed": len(aim.executed(target.functions))}
        attempts = aim.attempts(target, asked.seed)
        watched = Watched(base, {number: aim.code.blocks[number] for number in target.blocks})
        found = search(
            watched, Watched(series, {}), attempts, within_s=asked.seconds, now=cpu_s
        ).found
        its["met"] = len(attempts.met)
        if found is not None:
            its |= {"origin": found.attempt.origin, "after_s": round(found.after_s, 2)}
            its |= shown(found)
            short = shortened(base, series, found, within_s=asked.shrink)
            its |= {"length": len(short), "program": str(short)}
    except ReamError as fault:
        its["fault"] = str(fault)
    print(json.dumps(its), flush=True)
    return its


if __name__ == "__main__":
    main()
