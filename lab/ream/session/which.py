# SPDX-License-Identifier: GPL-2.0-only
"""What experiments a patch reaches: which functions it changes, and which rows execute them."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ream.counted import counted
from ream.experiment import BASE, Experiment, named
from ream.folders import names
from ream.kernel.series import load_series
from ream.kernel.source import Tree, Wanted, fetch_tree
from ream.measure.plan import Launch
from ream.progress import Reporter
from ream.session.native import by_config
from ream.stage.bench import build_bench
from ream.stage.hosted import hosted_of
from ream.stage.memory import available_bytes, fit_rows
from ream.stage.native import read_build
from ream.stage.reach import NUMBER, Changes, Entered, changes, entered
from ream.variants import Variant

MOST_ROWS = 6


@dataclass(frozen=True)
class Reach:
    """What a series changes of what one experiment has of the kernel."""

    experiment: str
    functions: tuple[str, ...]
    """Functions of the base that the patch changes or removes."""
    rows: tuple[str, ...]
    """That execute any of them."""
    nr_rows: int
    why_not: str | None
    """Why it cannot matter here; None where it does."""

    def words(self) -> str:
        if self.why_not is not None:
            return self.why_not
        named = ", ".join(f"{name}()" for name in self.functions) or "data"
        some = ", ".join(self.rows[:MOST_ROWS]) + (", …" if len(self.rows) > MOST_ROWS else "")
        whole = counted(self.nr_rows, "row")
        return f"it changes {named}: {len(self.rows)} of {whole} execute it: {some}"


def which(
    series: Sequence[Path], tree: Wanted, *, cache: Path, reporter: Reporter
) -> Iterator[Reach]:
    """For each experiment of the native stage, what the series together change of it.

    Raises BadUsage and DoesNotApply for a series, and what building raises.
    """
    given = tuple(load_series(path, repository=None) for path in series)
    fetched = fetch_tree(tree, cache=cache, step=reporter.step)
    for experiment in map(named, names()):
        if not experiment.has("native"):
            continue
        variants = (Variant(BASE, ()), Variant("given", given))
        with tempfile.TemporaryDirectory(prefix="ream-which-") as work:
            yield _reach(experiment, variants, fetched, Path(work), cache=cache, reporter=reporter)


def _reach(
    experiment: Experiment,
    variants: tuple[Variant, Variant],
    tree: Tree,
    work: Path,
    *,
    cache: Path,
    reporter: Reporter,
) -> Reach:
    name, its = experiment.name, hosted_of(experiment)
    base, mine = variants
    bench = build_bench(
        tree, variants, folder=its.folder, cache=cache, work=work, step=reporter.step
    )
    found = changes(bench, mine.name, base.name)
    rows = by_config(experiment.at("native").rows).get((), ())
    if not any(found.by_object.values()):
        return _told(name, found, {}, len(rows))
    reporter.step(f"{name}: finding what each row executes")
    build = read_build(bench.link(Launch(NUMBER, 1, 0, (base.name,))))
    suited = its.suit(rows, None)
    fitted, _ = fit_rows(suited.rows, available_bytes(), build, its.sized)
    once = tuple(row.model_copy(update={"rounds": 1}) for row in fitted)
    with its.plan_of(once, None, build, work) as planned:
        reached = entered(bench, base.name, planned, cpus=suited.cpus)
    return _told(name, found, reached, len(once))


def _told(name: str, found: Changes, reached: Entered, nr_rows: int) -> Reach:
    return Reach(
        experiment=name,
        functions=found.functions(),
        rows=found.reaching(reached),
        nr_rows=nr_rows,
        why_not=found.pointless(reached, "the base"),
    )
