# SPDX-License-Identifier: GPL-2.0-only
"""The real thing for the native tests: Debian's kernel source, built objects, linked programs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from experiments.fork import plan as fork
from experiments.migrate import plan as migrate
from experiments.zone_device.plan import NativeRow, predicted_plan
from ream.experiment import named
from ream.kernel.series import load_series
from ream.kernel.source import Tree, fetch_tree
from ream.measure.plan import Launch
from ream.measure.sample import Sample
from ream.paths import EXPERIMENTS, SERIES, cache_dir
from ream.stage.bench import Bench, build_bench
from ream.stage.link import Program
from ream.stage.native import Build, End, launch_once, read_build
from ream.variants import Variant, choose_variants

PATCHES = Path(__file__).parent / "patches"
ZONE_DEVICE = EXPERIMENTS / "zone_device" / "native"

_LAUNCHES = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.native)


@pytest.fixture(scope="session")
def cache() -> Path:
    """The user's own cache: what one test or run has built, the next one finds."""
    return cache_dir()


@pytest.fixture(scope="session")
def kernel(cache: Path) -> Tree:
    return fetch_tree(None, cache=cache, step=print)


@dataclass(frozen=True)
class Rig:
    """A linked program, ready to be launched on any rows."""

    bench: Bench
    launch: Launch
    program: Program
    build: Build

    def only(self, *names: str) -> "Rig":
        """Some of the same kernels in a program of their own."""
        launch = Launch(next(_LAUNCHES), 1, self.launch.data_offset, names)
        program = self.bench.link(launch)
        return Rig(self.bench, launch, program, read_build(program))

    def run(self, rows: Sequence[NativeRow], *, cpus: int = 0) -> tuple[list[Sample], End]:
        """One launch; every sample has been compared with the oracle."""
        with predicted_plan(rows, self.build, self.bench.work) as (plan, descriptors):
            return self.run_plan(plan, descriptors, cpus=cpus)

    def run_plan(
        self, plan: Path, descriptors: Sequence[int], *, cpus: int = 0
    ) -> tuple[list[Sample], End]:
        said = list(launch_once(self.program, self.launch, plan, descriptors, cpus=cpus))
        assert isinstance(said[-1], End)
        return [sample for sample in said if isinstance(sample, Sample)], said[-1]


Rigger = Callable[..., Rig]


@pytest.fixture(scope="session")
def rig(kernel: Tree, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Rigger:
    """A function that links variants into one program: rig(variants, folder=..., data_offset=...).

    folder: the experiment's own code.
    """

    def make(
        variants: Sequence[Variant], *, folder: Path = ZONE_DEVICE, data_offset: int = 0x340
    ) -> Rig:
        work = tmp_path_factory.mktemp("rig")
        bench = build_bench(kernel, variants, folder=folder, cache=cache, work=work, step=print)
        launch = Launch(0, 1, data_offset, tuple(variant.name for variant in variants))
        program = bench.link(launch)
        return Rig(bench, launch, program, read_build(program))

    return make


@pytest.fixture(scope="session")
def shipped() -> tuple[Variant, ...]:
    """before, before-again, published and ream."""
    return choose_variants(named("zone-device"))


@pytest.fixture(scope="session")
def shipped_rig(rig: Rigger, shipped: tuple[Variant, ...]) -> Rig:
    return rig(shipped)


@pytest.fixture(scope="session")
def patched(rig: Rigger) -> Callable[[str], Rig]:
    """A function that links the base with one of the patches beside this file."""

    def make(name: str) -> Rig:
        series = load_series(PATCHES / f"{name}.patch")
        return rig((Variant("before", ()), Variant(name, (series,))))

    return make


@pytest.fixture(scope="session")
def fork_rig(rig: Rigger) -> Rig:
    """The fork experiment's before, before-again, published and ream."""
    return rig(choose_variants(named("fork")), folder=fork.FOLDER)


@pytest.fixture(scope="session")
def wrong_fork(rig: Rigger) -> Callable[..., Rig]:
    """A function that links one variant of fork: series of ours, and a patch beside this file."""

    def make(name: str, series: Sequence[str] = ()) -> Rig:
        stack = [*(SERIES / one for one in series), PATCHES / f"{name}.patch"]
        return rig((Variant(name, tuple(map(load_series, stack))),), folder=fork.FOLDER)

    return make


@pytest.fixture(scope="session")
def migrate_rig(rig: Rigger) -> Rig:
    """The migrate experiment's before, before-again, published and ream."""
    return rig(choose_variants(named("migrate")), folder=migrate.FOLDER)


@pytest.fixture(scope="session")
def wrong_migrate(rig: Rigger) -> Callable[..., Rig]:
    """A function that links one variant of migrate: series of ours, and a patch beside this."""

    def make(name: str, series: Sequence[str] = ()) -> Rig:
        stack = [*(SERIES / one for one in series), PATCHES / f"{name}.patch"]
        return rig((Variant(name, tuple(map(load_series, stack))),), folder=migrate.FOLDER)

    return make
