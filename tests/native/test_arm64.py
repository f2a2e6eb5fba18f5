# SPDX-License-Identifier: GPL-2.0-only
"""Kernels of arm64 in programs under an emulator: verified as others are, and counted exactly."""

import os
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache as once
from pathlib import Path

import pytest

from el1 import EMULATOR, build_at_el1, counted_at_el1
from named_rows import row_of
from ream.command import Command, run
from ream.count.counter import LaunchCounter
from ream.count.emulator import build_plugin
from ream.errors import ReamError, WrongVariant
from ream.experiment import BASE, Row, named
from ream.experiment.section import SECTION_BYTES
from ream.kernel.arch import ARM64
from ream.kernel.build import build_objects
from ream.kernel.series import load_series
from ream.kernel.setup import Setup
from ream.kernel.source import Tree
from ream.kernel.variant import assemble
from ream.measure.plan import Launch
from ream.measure.sample import Sample
from ream.paths import SERIES
from ream.stage.bench import NATIVE_CONFIG, Bench, build_bench, objects
from ream.stage.hosted import Hosted, cases_of, programs_of
from ream.stage.native import Event, launch_once, read_build, until_whole
from ream.variants import Variant

PATCHES = Path(__file__).parent / "patches"
LONG = pytest.mark.vm
"""Compiles kernel objects, or runs for minutes: for `make test-vm`."""

ROWS: dict[str, Row] = {
    "zone-device": row_of(
        "zone-device", name="small", rounds=1, device_bytes=SECTION_BYTES, order=0, type="FS_DAX"
    ),
    "fork": row_of(
        "fork",
        name="small",
        rounds=1,
        arch="arm64",
        contpte=True,
        folio_bytes=64 << 10,
        mapping_bytes=2 << 20,
    ),
    "deferred-init": row_of(
        "deferred-init",
        name="small",
        rounds=1,
        memory_bytes=2 * SECTION_BYTES,
        layout="holes",
        threads=1,
    ),
    "mprotect": row_of(
        "mprotect",
        name="small",
        rounds=1,
        arch="arm64",
        contpte=True,
        folio_bytes=64 << 10,
        call_bytes=1 << 20,
        operation="rw-to-r",
    ),
    "mremap": row_of(
        "mremap",
        name="small",
        rounds=1,
        arch="arm64",
        contpte=True,
        folio_bytes=64 << 10,
        call_bytes=1 << 20,
        layout="one-table",
    ),
}
"""One short row of each experiment."""

STORES = {
    "zone-device": SECTION_BYTES >> 12,
    "fork": 512,
    "deferred-init": SECTION_BYTES >> 12,
    "mprotect": 256,
    "mremap": 1024,
}
"""What is written in that row: so many descriptors or entries at least."""

pytestmark = pytest.mark.xdist_group("arm64")


@pytest.fixture(scope="module")
def arm64(kernel: Tree) -> Tree:
    try:
        ARM64.require_tools()
    except ReamError as cause:
        if os.environ.get("CI"):
            pytest.fail(str(cause))
        pytest.skip(str(cause))
    return kernel.built(Setup(arch=ARM64.name))


Benched = Callable[..., Bench]


@pytest.fixture(scope="module")
def benched(arm64: Tree, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Benched:
    """A function that builds an experiment's base, and a patch's variant of it."""

    @once
    def make(experiment: str, *patches: Path, config: Path = NATIVE_CONFIG) -> Bench:
        (its, *_) = programs_of(named(experiment))
        variants = [Variant(BASE, ())]
        if patches:
            variants.append(Variant("mine", tuple(map(load_series, patches)), BASE))
        work = tmp_path_factory.mktemp("bench")
        return build_bench(
            arm64,
            variants,
            folder=its.folder,
            cache=cache,
            work=work,
            step=print,
            config=config,
        )

    return make


def counted(
    experiment: str,
    bench: Bench,
    launch: Launch,
    cache: Path,
    cpu: str | None = None,
    *,
    cpus: int = 4,
    row: Row | None = None,
) -> Sample:
    """The sample of a row, by default that of the experiment in ROWS, in one counted launch."""
    (its, *_) = programs_of(named(experiment))
    bench = bench.on_cpu(cpu)
    program = bench.link(launch)
    plugin, build = build_plugin(cache, print), read_build(program)

    def start() -> Iterator[Event]:
        counter = LaunchCounter.of(plugin, program, cpu=cpu)
        planned = its.plan_of([row or ROWS[experiment]], None, build, bench.work)
        with planned as (plan, descriptors):
            yield from launch_once(program, launch, plan, descriptors, cpus=cpus, counter=counter)

    (sample,) = (one for one in until_whole(start) if isinstance(one, Sample))
    return sample


def verify_all(its: Hosted[Row], bench: Bench, names: Sequence[str], work: Path) -> None:
    launch = Launch(7, 1, 0x340, tuple(names))
    program = bench.link(launch)
    for planned, cpus in cases_of(its.cases, read_build(program), work, seed=1, pass_number=0):
        with planned as (plan, descriptors):
            deque(launch_once(program, launch, plan, descriptors, cpus=cpus), maxlen=0)


@pytest.mark.parametrize(
    "experiment",
    [pytest.param(one, marks=() if one == "fork" else LONG) for one in ROWS],
)
def test_a_row_is_verified_and_counts_the_same_wherever_it_is_linked(
    benched: Benched, cache: Path, experiment: str
) -> None:
    bench = benched(experiment)
    first, again = (
        counted(experiment, bench, Launch(number, number, offset, (BASE,)), cache)
        for number, offset in ((1, 0x340), (2, 0xC80))
    )
    assert first.verified
    assert first.functions == again.functions
    assert sum(its.get("stores", 0) for its in first.functions.values()) > STORES[experiment]


def test_atomic_operations_are_one_instruction_or_a_loop_by_the_cpu(
    benched: Benched, cache: Path
) -> None:
    bench = benched("fork")
    at_once, in_loops = (
        counted("fork", bench, Launch(3 + nr, 1, 0x340, (BASE,)), cache, cpu)
        for nr, cpu in enumerate(("neoverse-n1", "cortex-a72"))
    )
    locked, instructions = (
        [sum(its.get(name, 0) for its in one.functions.values()) for one in (at_once, in_loops)]
        for name in ("locked", "instructions")
    )
    assert locked[0] == locked[1]
    assert instructions[0] < instructions[1]


OF_DEFERRED_INIT = named("deferred-init").folder / "wrong"
OF_FORK = named("fork").folder / "wrong"
OF_MPROTECT = named("mprotect").folder / "wrong"
OF_MREMAP = named("mremap").folder / "wrong"
WRONG = {
    PATCHES / "arm64-unfold-loses-dirty.patch": "fork",
    PATCHES / "arm64-block-of-unaligned-pages.patch": "fork",
    PATCHES / "arm64-reads-ttbr0.patch": "zone-device",
    named("fork").folder / "tests/native/patches/fork-child-young.patch": "fork",
    OF_FORK / "33-gather-range-first-page.patch": "fork",
    OF_DEFERRED_INIT / "07-order-left-in-the-buddy.patch": "deferred-init",
    OF_DEFERRED_INIT / "12-grown-without-the-lock.patch": "deferred-init",
    OF_DEFERRED_INIT / "20-job-ends-with-the-range.patch": "deferred-init",
    PATCHES / "arm64-fold-not-flushed.patch": "mprotect",
    OF_MPROTECT / "03-shared-page-writable.patch": "mprotect",
    OF_MPROTECT / "07-flush-lost-writable-only.patch": "mprotect",
    OF_MPROTECT / "09-clean-when-no-access.patch": "mprotect",
    OF_MPROTECT / "17-pending-flush-ignored.patch": "mprotect",
    OF_MREMAP / "01-batch-ignores-write-bit.patch": "mremap",
    OF_MREMAP / "03-flush-of-dirty-only.patch": "mremap",
    OF_MREMAP / "06-old-entry-stays.patch": "mremap",
    OF_MREMAP / "07-flush-of-nothing.patch": "mremap",
}


@pytest.mark.parametrize(
    "patch",
    [pytest.param(one, marks=[] if "ttbr0" in one.name else [LONG], id=one.stem) for one in WRONG],
)
def test_a_wrong_kernel_is_caught(benched: Benched, tmp_path: Path, patch: Path) -> None:
    (its, *_) = programs_of(named(WRONG[patch]))
    bench = benched(WRONG[patch], patch)
    with pytest.raises(WrongVariant) as caught:
        verify_all(its, bench, (BASE, "mine"), tmp_path)
    assert caught.value.variant == "mine"
    assert caught.value.exit_code == 5
    if "ttbr0" in patch.name:
        assert "SIGILL" in str(caught.value)


@LONG
@pytest.mark.parametrize("experiment", ROWS)
def test_20_of_20_launches_count_the_same(benched: Benched, cache: Path, experiment: str) -> None:
    bench = benched(experiment)
    found = [
        counted(experiment, bench, Launch(100 + nr, nr + 1, 64 * nr, (BASE,)), cache).functions
        for nr in range(20)
    ]
    assert all(one == found[0] for one in found)


MOST_OF_ADDRESSES = 10
"""Instructions by which a function may be longer that makes addresses of other numbers."""
WITHOUT_ADDRESSES = ("arch/arm64/mm/contpte.o", "mm/mmu_gather.o", "mm/mprotect.o")


@LONG
def test_objects_for_a_program_are_those_of_a_kernel_but_for_address_arithmetic(
    arm64: Tree, cache: Path, tmp_path: Path
) -> None:
    """What places memory where a program may have some changes how addresses are made of numbers.

    Where none are made, code is the same; elsewhere a function is about as long.
    """
    booted = booted_config(tmp_path)
    folders = [programs_of(named(name))[0].folder for name in ROWS]
    its = {one.name for folder in folders for one in objects(folder, ARM64)}
    names = sorted(name for name in its if name.startswith(("mm/", "arch/arm64/mm/")))
    hosted, kernels = (
        build_objects(
            assemble(arm64, (), cache=cache, fragments=[one], homes=(), step=print),
            names,
            step=print,
        )
        for one in (NATIVE_CONFIG, booted)
    )
    for name in names:
        ours, theirs = mnemonics(hosted[name]), mnemonics(kernels[name])
        assert ours.keys() == theirs.keys()
        for function, code in ours.items():
            assert abs(len(code) - len(theirs[function])) <= MOST_OF_ADDRESSES, function
        assert name not in WITHOUT_ADDRESSES or ours == theirs


def booted_config(work: Path) -> Path:
    """The configuration of objects as a kernel that boots has them."""
    booted = work / "native.config"
    text = NATIVE_CONFIG.read_text()
    option = "CONFIG_REAM_HOSTED=y # with ARM64\n"
    assert option in text
    booted.write_text(text.replace(option, ""))
    return booted


def mnemonics(path: Path) -> dict[str, list[str]]:
    """By function what each instruction of an object does, but for moves of constants.

    A constant of another value may be made by another number of them.
    """
    argv = (ARM64.tool("objdump"), "-d", "--no-show-raw-insn", str(path))
    found: dict[str, list[str]] = {}
    name = ""
    for line in run(Command(argv, path.parent, 60.0)).splitlines():
        if line.endswith(">:"):
            name = line
        elif (words := line.split()) and words[0].endswith(":") and name:
            found.setdefault(name.split()[1], []).append(words[1])
    constants = {"mov", "movk", "movn", "movz", "nop"}
    return {its: [one for one in all_of if one not in constants] for its, all_of in found.items()}


FORK_SERIES = tuple(SERIES / one for one in ("rmap-exclusive", "pte-hw-done", "fork"))
MOST_OF_CONSTANTS = 0.002
"""Share of a small row's instructions by which constants of other values make it longer."""


@LONG
@pytest.mark.parametrize(
    ("experiment", "patches"), [("zone-device", ()), ("fork", ()), ("fork", FORK_SERIES)]
)
def test_a_kernel_at_el1_with_its_own_headers_executes_the_same(
    benched: Benched, cache: Path, tmp_path: Path, experiment: str, patches: tuple[Path, ...]
) -> None:
    """In a machine of its own nothing is replaced and nothing has another address.

    Reads of registers that a process does not have are branches there, so that branches differ.
    """
    if shutil.which(EMULATOR) is None:
        pytest.skip(f"{EMULATOR}: not installed")
    (its, *_) = programs_of(named(experiment))
    variant = "mine" if patches else BASE
    bench = benched(experiment, *patches)
    launch = Launch(300, 1, 0, (variant,))
    build = build_at_el1(read_build(bench.link(launch)))
    in_process = counted(experiment, bench, launch, cache, cpus=1)
    booted = benched(experiment, *patches, config=booted_config(tmp_path))
    with its.plan_of([ROWS[experiment]], None, build, tmp_path) as (plan, _):
        plugin = build_plugin(cache, print)
        at_el1 = counted_at_el1(booted.kernels[variant], its.folder, plan, plugin)
    differ = [
        (name, quantity, ours.get(quantity, 0), theirs.get(quantity, 0))
        for name in {*in_process.functions, *at_el1}
        for ours, theirs in [(in_process.functions.get(name, {}), at_el1.get(name, {}))]
        for quantity in {*ours, *theirs} - {"taken"}
        if ours.get(quantity, 0) != theirs.get(quantity, 0)
    ]
    assert {quantity for _, quantity, *_ in differ} <= {"instructions"}
    # An address that is another constant may take an instruction more to make, and nothing else.
    whole = sum(numbers["instructions"] for numbers in at_el1.values())
    more = sum(abs(ours - theirs) for *_, ours, theirs in differ)
    assert more <= MOST_OF_CONSTANTS * whole, (more, whole)


MOST_OF_BASE = {"fork": 1.0, "refork": 1.0, "munmap": 1.02}
"""By operation: what the series may execute for blocks, as a multiple of what the base executes.

For 16 MiB it is 0.912 of a fork and 1.011 of munmap: record 20261126T205945Z-fork-native-4bdd.
"""
READS_AHEAD = PATCHES / "arm64-fork-blocks-read-ahead.patch"


@LONG
@pytest.mark.parametrize("operation", MOST_OF_BASE)
def test_fork_reads_no_block_ahead(benched: Benched, cache: Path, operation: str) -> None:
    """To read an entry of a block is to read all of it, and all its pages are of one folio."""
    row = ROWS["fork"].model_copy(update={"operation": operation})

    def executed(variant: str, *more: Path) -> int:
        bench = benched("fork", *FORK_SERIES, *more)
        sample = counted("fork", bench, Launch(400, 1, 0x340, (variant,)), cache, row=row)
        return sum(its["instructions"] for its in sample.functions.values())

    most = MOST_OF_BASE[operation] * executed(BASE)
    assert executed("mine") < most
    assert executed("mine", READS_AHEAD) > most


def test_the_emulated_cpu_is_one_of_those_known(benched: Benched) -> None:
    bench = benched("zone-device")
    with pytest.raises(ReamError, match=r"--cpu cortex-a7: arm64 has .*did you mean cortex-a72"):
        replace(bench).on_cpu("cortex-a7")
