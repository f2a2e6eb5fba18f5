# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that watch how pages become free, and boots in which an option or tracepoint does.

Deferred pages are written once, as free ones, unless a watcher would miss what is left out. Every
boot here is compared with the oracle, and a splat on its console fails it.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.deferred_init import boot as vm_deferred
from experiments.deferred_init import buddy
from experiments.deferred_init.boot import (
    BEFORE,
    DEADLINE_S,
    SILENCE_S,
    Booted,
    Shape,
    deferred_initramfs,
    layout_of,
    plan_deferred_boot,
    run_deferred_boot,
)
from experiments.deferred_init.guests import MODULES
from experiments.deferred_init.state import State, States, check
from experiments.deferred_init.zones import Layout, Node, Zones
from fixtures.guests import Builder
from ream.errors import ReamError, VerificationFailed
from ream.kernel.build import BUILD
from ream.kernel.image import Image
from ream.paths import EXPERIMENTS, KERNEL_MODULES
from ream.stage.guest import boot_in_private
from ream.stage.initramfs import build_init
from ream.stage.qemu import GuestMachine
from ream.stage.selftests import Selftests, run_selftests
from ream.stage.vm import BootableKernel, Start

Look = Callable[[Zones, Node, State], None]

REAM = ("zone-device", "deferred-init")
BASE: tuple[str, ...] = ()
UNFUSED = ("zone-device",)
"""All that comes before the series: what deferred pages cost without it, and nothing else."""
WRONG = Path(__file__).parent / "patches"

GIB = 1 << 30
ONE = Shape(GIB)

FUSED = "__free_fresh_pages"
"""Through which all pages go that were written as free ones; mm/page_alloc.c of the series."""

WATCHERS = ("page_poison=1", "debug_pagealloc=on", "init_on_free=1", "trace_event=page_ref_set")
"""Boot options for code that changes a page when it becomes free, or traces that."""

PAGE_BYTES = 4096
PAGE_POISON = 0xAA
"""include/linux/poison.h"""

CONTENTS_PAGES = 1 << 14
"""Pages whose contents are read at a time: 64 MiB."""

KCSAN_BOOTS = 4
"""Boots of each kind: no two have the same races, and races in other code end some early."""

RACES_OF_OTHERS = ("data-race in wq_worker_tick / wq_worker_tick",)
"""It adds up a work queue's time on each CPU, without a lock; kernel/workqueue.c."""

STRAY_RATIO = 0.01
"""Pages that others get meanwhile, each an event, to all that are initialised late."""


@dataclass
class Lab:
    """Kernels, each built once, and boots of them."""

    image: Builder
    init: Path
    new_folder: Callable[[str], Path]
    made: dict[Any, tuple[BootableKernel, Layout]] = field(default_factory=dict)
    known: dict[Any, Booted] = field(default_factory=dict)
    log: Path = Path()
    """The console of the last boot that was verified, or failed to be."""

    def built(self, series: tuple[str, ...], config: str) -> Image:
        return self.image(*series, config=config, modules=[KERNEL_MODULES / it for it in MODULES])

    def kernel(self, series: tuple[str, ...], config: str) -> tuple[BootableKernel, Layout]:
        if (series, config) not in self.made:
            work = self.new_folder("kernel")
            built = self.built(series, config)
            kernel = BootableKernel(
                built.bootable, deferred_initramfs(built, init=self.init, work=work)
            )
            self.made[series, config] = kernel, layout_of(built, work)
        return self.made[series, config]

    def boot(
        self,
        config: str,
        *append: str,
        series: tuple[str, ...] = REAM,
        shape: Shape = ONE,
        look: Look | None = None,
    ) -> Booted:
        """Boot and verify; once for all tests unless one has a look at what was verified."""
        key = config, append, series, shape
        if look is None and key in self.known:
            return self.known[key]
        kernel, layout = self.kernel(series, config)

        def checked(zones: Zones, node: Node) -> State:
            state = check(zones, node)
            if look is not None:
                look(zones, node, state)
            return state

        self.log = self.new_folder("boot") / "console.log"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(vm_deferred, "check", checked)
            start = Start(machine(shape), kernel, self.log, append)
            [booted] = run_deferred_boot(start, shape, layout)
        self.known[key] = booted
        return booted

    def fuses(self, config: str, *append: str) -> bool:
        """Whether a boot ever frees pages that were written as free ones."""
        kernel, layout = self.kernel(REAM, config)
        with boot_in_private(
            lambda work: plan_deferred_boot(machine(ONE), kernel, ONE, append=append, work=work),
            log=self.new_folder("fuses") / "console.log",
            deadline_s=DEADLINE_S,
            silence_s=SILENCE_S,
            debugged=True,
        ) as guest:
            guest.run_to(layout.symbol(BEFORE))
            try:
                guest.run_to(layout.symbol(FUSED))
            except ReamError as error:
                if "the guest never came to" in str(error):
                    return False  # it has powered off in good order
                raise
            return True


def machine(shape: Shape) -> GuestMachine:
    return shape.machine("tcg", icount=shape.present == 1, options=())


@pytest.fixture(scope="module")
def lab(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(
        image,
        build_init(tmp_path_factory.mktemp("init"), *EXPERIMENTS.glob("*")),
        tmp_path_factory.mktemp,
    )


def same(boots: dict[str, Booted]) -> None:
    """All of them have the same pages to free, and leave the same."""
    states = States()
    for title, booted in boots.items():
        states.check(title, booted.states)
    assert len({tuple(state.node for state in booted.states) for booted in boots.values()}) == 1


# --- Nobody watches --------------------------------------------------------------------


def test_lockdep_and_debug_vm_have_nothing_to_say_of_fused_pages(lab: Lab) -> None:
    [state] = lab.boot("vm-freeing").states
    assert state.nr_pages * PAGE_BYTES > 0.5 * ONE.memory_bytes
    assert lab.fuses("vm-freeing")


def test_the_base_leaves_the_same_under_lockdep_and_debug_vm(lab: Lab) -> None:
    same({"base": lab.boot("vm-freeing", series=BASE), "ream": lab.boot("vm-freeing")})


def test_page_owner_begins_afterwards_and_misses_nothing(lab: Lab) -> None:
    lab.boot("vm-freeing", "page_owner=on")
    assert lab.fuses("vm-freeing", "page_owner=on")


def test_page_owner_that_begins_early_has_no_page_deferred(lab: Lab) -> None:
    """So nobody has to tell it that pages are free which it took for allocated."""
    assert not lab.fuses("vm-freeing", "page_owner=on", "early_page_ext")


# --- A watcher is enabled --------------------------------------------------------------


@pytest.mark.parametrize("watcher", WATCHERS)
def test_nothing_is_fused_when_somebody_watches(lab: Lab, watcher: str) -> None:
    assert not lab.fuses("vm-freeing", watcher)


def per_page(booted: Booted) -> float:
    """Instructions, since these are what is counted: a nanosecond of guest time is one."""
    return booted.times.init_ns / booted.nr_pages


@pytest.mark.parametrize("watcher", WATCHERS)
def test_a_watcher_gets_what_it_gets_without_the_series(lab: Lab, watcher: str) -> None:
    """Not what a boot without a watcher leaves: to map pages singly takes memory for tables."""
    unfused, ream = (lab.boot("vm-freeing", watcher, series=series) for series in (UNFUSED, REAM))
    same({"unfused": unfused, "ream": ream})
    assert per_page(ream) == pytest.approx(per_page(unfused), rel=0.02)


@pytest.mark.parametrize("watcher", WATCHERS)
def test_a_watcher_costs_fused_pages_their_gain(lab: Lab, watcher: str) -> None:
    plain, watched = lab.boot("vm-freeing"), lab.boot("vm-freeing", watcher)
    assert per_page(watched) > 2 * per_page(plain)
    unfused = lab.boot("vm-freeing", series=UNFUSED)
    assert per_page(unfused) > 1.5 * per_page(plain)


@pytest.mark.parametrize("watcher", [it for it in WATCHERS if it != "debug_pagealloc=on"])
def test_a_watcher_changes_no_state(lab: Lab, watcher: str) -> None:
    same({"plain": lab.boot("vm-freeing"), watcher: lab.boot("vm-freeing", watcher)})


def contents(zones: Zones, node: Node) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield the pages to be freed, by run: the first pfn, and the bytes with one row a page."""
    direct = zones.variable("page_offset_base")
    for low, high in node.deferred.free:
        for first in range(low, high, CONTENTS_PAGES):
            nr_pages = min(CONTENTS_PAGES, high - first)
            octets = zones.octets(direct + first * PAGE_BYTES, nr_pages * PAGE_BYTES)
            yield first, octets.reshape(nr_pages, PAGE_BYTES)


@pytest.mark.parametrize(("words", "poisoned"), [((), False), (("page_poison=1",), True)])
def test_page_poisoning_reaches_every_page(
    lab: Lab, words: tuple[str, ...], poisoned: bool
) -> None:
    others: list[int] = []

    def look(zones: Zones, node: Node, _state: State) -> None:
        for first, pages in contents(zones, node):
            found = (pages == PAGE_POISON).all(axis=1)
            others.extend((np.flatnonzero(found != poisoned) + first).tolist())

    booted = lab.boot("vm-freeing", *words, look=look)
    assert set(others) <= {pfn for state in booted.states for pfn in state.taken}


@pytest.mark.parametrize(("words", "unmapped"), [((), False), (("debug_pagealloc=on",), True)])
def test_debug_pagealloc_unmaps_every_block(
    lab: Lab, words: tuple[str, ...], unmapped: bool
) -> None:
    seen: list[tuple[int, bool]] = []

    def is_mapped(zones: Zones, pfn: int) -> bool:
        try:
            zones.number(zones.variable("page_offset_base") + pfn * PAGE_BYTES)
        except ReamError as error:
            if "maps nothing" in str(error):
                return False
            raise
        return True

    def look(zones: Zones, node: Node, _state: State) -> None:
        for block in buddy.blocks(node.deferred, zones.facts):
            first, last = int(block["pfn"]), int(block["pfn"]) + (1 << int(block["order"])) - 1
            pfns = {first, (first + last) // 2, last}
            seen.extend((pfn, is_mapped(zones, pfn)) for pfn in pfns)

    booted = lab.boot("vm-freeing", *words, look=look)
    taken = {pfn for state in booted.states for pfn in state.taken}
    assert len(seen) > 100
    assert {mapped for pfn, mapped in seen if pfn not in taken} == {not unmapped}


def test_the_tracepoint_sees_each_page_get_a_reference_and_lose_it(
    lab: Lab, tmp_path: Path
) -> None:
    event = "trace_event=page_ref_set"
    counter = Selftests(
        modules=(),
        programs=(str(Path(__file__).with_name("trace_stats")),),
        words=("nokaslr", event),
        skips={},
        added={},
    )
    log = tmp_path / "console.log"
    run_selftests(machine(ONE), lab.built(REAM, "vm-freeing"), counter, work=tmp_path, log=log)
    [nr_events] = re.findall(r"trace_events=(\d+)", log.read_text())
    nr_pages = lab.boot("vm-freeing", event).nr_pages
    assert int(nr_events) == pytest.approx(2 * nr_pages, rel=STRAY_RATIO)


# --- Other kernels ---------------------------------------------------------------------


def streaming_stores(image: Image) -> list[str]:
    """Functions of mm/mm_init.o that initialise deferred pages by such stores."""
    words = ("objdump", "-d", "-j", ".init.text", str(image.tree / BUILD / "mm" / "mm_init.o"))
    listing = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    functions = re.split(r"^[0-9a-f]+ <(.+)>:$", listing, flags=re.MULTILINE)[1:]
    bodies = dict(zip(functions[::2], functions[1::2], strict=True))
    return [name for name, body in bodies.items() if "deferred_" in name and "movnti" in body]


def test_kasan_has_no_pages_fused(lab: Lab) -> None:
    assert streaming_stores(lab.built(REAM, "vm-freeing"))
    assert streaming_stores(lab.built(REAM, "vm-debug")) == []
    assert not lab.fuses("vm-debug")


def test_kasan_has_nothing_to_say(lab: Lab) -> None:
    [state] = lab.boot("vm-debug").states
    assert state.nr_pages * PAGE_BYTES > 0.5 * ONE.memory_bytes


class Enough(Exception):
    """Ends a boot whose state is verified: what comes after it is no concern of ours."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state


def watch_races(lab: Lab, series: tuple[str, ...], cpus: int) -> tuple[State | None, set[str]]:
    """One boot under KCSAN until its threads are through: its state, and whose races it had.

    None: the boot failed of a race before that. KCSAN leaves out page_alloc.o, and sees no
    streaming store.
    """
    state = None

    def enough(_zones: Zones, _node: Node, state: State) -> None:
        raise Enough(state)

    try:
        shape = Shape(2 * GIB, cpus=cpus, present=4)
        lab.boot("vm-kcsan", series=series, shape=shape, look=enough)
    except Enough as reached:
        state = reached.state
    except VerificationFailed:
        raise
    except ReamError as error:
        if "KCSAN: " not in str(error):
            raise
    races = set(re.findall(r"KCSAN: (.+)", lab.log.read_text(errors="replace")))
    return state, {race for race in races if race not in RACES_OF_OTHERS}


@pytest.mark.parametrize("cpus", [2, 4])
def test_kcsan_would_see_a_race_of_threads(lab: Lab, cpus: int) -> None:
    wrong = (*REAM, str(WRONG / "deferred-race.patch"))
    boots = (watch_races(lab, wrong, cpus) for _ in range(KCSAN_BOOTS))
    assert any("data-race in deferred_init_" in " ".join(races) for _, races in boots)


def test_kcsan_sees_no_race_of_threads_and_they_leave_the_same(lab: Lab) -> None:
    states = States()
    nr_verified = Counter[int]()
    for cpus in (2, 4) * KCSAN_BOOTS:
        state, races = watch_races(lab, REAM, cpus)
        assert races == set()
        if state is not None:
            states.check(f"{cpus} CPUs", [state])
            nr_verified[cpus] += 1
    assert nr_verified[2] > 1
    assert nr_verified[4] > 1
