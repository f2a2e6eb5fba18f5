# SPDX-License-Identifier: GPL-2.0-only
"""Boots of the deferred-init experiment without a guest: what is planned, and what is read."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.deferred_init import guests as session
from experiments.deferred_init.boot import (
    Booted,
    Record,
    Shape,
    Times,
    plan_deferred_boot,
    read_times,
)
from experiments.deferred_init.buddy import DeferredNode
from experiments.deferred_init.rows import DeferredInitRow
from experiments.deferred_init.state import State
from experiments.deferred_init.zones import Layout
from fake_boots import assert_says_again
from ream.errors import BadUsage, ReamError
from ream.experiment import named
from ream.measure.plan import plan_launches
from ream.session.guests import GuestSetting
from ream.session.request import GuestOptions
from ream.session.vm import Places
from ream.stage.native import Suited
from ream.stage.qemu import GuestMachine, GuestNode
from ream.stage.vm import BootableKernel

GIB = 1 << 30
OPTIONS = GuestOptions()
TCG = GuestSetting("tcg", "said", True, OPTIONS)
EMULATED = GuestSetting("tcg", "said", False, OPTIONS)
KVM = GuestSetting("kvm", "said", False, OPTIONS)

LOG = (
    Record(time_us=231_144, text="smpboot: Total of 1 processors activated (1999.98 BogoMIPS)"),
    Record(time_us=236_927, text="node 0 deferred pages initialised in 5ms"),
    Record(time_us=265_001, text="Run /init as init process"),
)


def row(name: str, **fields: Any) -> DeferredInitRow:
    given = {"name": name, "stage": "vm", "memory_bytes": GIB, "rounds": 1, **fields}
    return DeferredInitRow.model_validate(given)


@pytest.fixture(autouse=True)
def four_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "nr_cpus", lambda: 4)


# --- The log -----------------------------------------------------------------------------


def test_times_are_between_messages() -> None:
    assert read_times(LOG, {0}) == Times(init_ns=5_783_000, boot_ns=265_001_000, message_ms=5)


def test_the_slowest_node_counts() -> None:
    other = Record(time_us=240_000, text="node 1 deferred pages initialised in 9ms")
    assert read_times([*LOG, other], {0, 1}) == Times(8_856_000, 265_001_000, 9)
    assert read_times([*LOG, other], {0}).message_ms == 5


def test_the_node_that_took_longest_need_not_be_the_last() -> None:
    other = Record(time_us=240_000, text="node 1 deferred pages initialised in 3ms")
    assert read_times([*LOG, other], {0, 1}) == Times(8_856_000, 265_001_000, 5)


def test_an_older_message_is_known() -> None:
    old = Record(time_us=240_000, text="node 0 initialised, 7864320 pages in 292ms")
    assert read_times([LOG[0], old, LOG[2]], {0}).message_ms == 292


@pytest.mark.parametrize("missing", range(len(LOG)))
def test_a_message_that_is_missing_is_told(missing: int) -> None:
    with pytest.raises(ReamError, match="log lacks a message"):
        read_times([*LOG[:missing], *LOG[missing + 1 :]], {0})


# --- Guests ------------------------------------------------------------------------------


def test_a_guest_is_named_by_what_it_has() -> None:
    assert Shape(GIB).name == "1GiB"
    assert Shape(16 * GIB, nodes=2, cpus=2, present=4).name == "16GiB-2-nodes-2-of-4-cpus"


def test_nodes_have_equal_parts_and_cpus_in_turns() -> None:
    machine = Shape(4 * GIB, 2, 4, 4).machine("tcg", icount=False, options=())
    assert machine.nodes == (GuestNode(2 * GIB, "0,2"), GuestNode(2 * GIB, "1,3"))
    assert Shape(4 * GIB, 2).machine("tcg", icount=True, options=()) == GuestMachine(
        "tcg",
        icount=True,
        memory_bytes=4 * GIB,
        nodes=(GuestNode(2 * GIB, "0"), GuestNode(2 * GIB, "")),
    )


def test_qemu_is_told_to_stand_and_the_kernel_how_many_cpus() -> None:
    shape = Shape(GIB, cpus=2, present=4)
    words = plan_deferred_boot(
        session.machine_of(shape, TCG),
        BootableKernel(Path("bzImage"), Path("deferred.cpio")),
        shape,
        append=("quiet",),
        work=Path("/run/x,y"),
    )
    assert "-S" in words
    assert "socket,id=gdb,path=/run/x,,y/gdb" in words
    assert words[words.index("-gdb") + 1] == "chardev:gdb"
    kernel = words[words.index("-append") + 1].split()
    ours = ["nokaslr", "maxcpus=2", "deferred_init_threads=2", "quiet", "--"]
    assert kernel[-6:] == [*ours, "experiment=deferred-init"]
    assert "-icount" not in words


def test_rows_of_one_guest_share_its_boots() -> None:
    rows = [row("a", threads=1), row("b", threads=1, measure="boot"), row("c", threads=4)]
    by_shape = session.shapes(rows, TCG)
    assert {shape: [one.name for one in its] for shape, its in by_shape.items()} == {
        Shape(GIB): ["a", "b"],
        Shape(GIB, 1, 4, 4): ["c"],
    }


def test_guests_with_more_cpus_differ_only_in_how_many_come_up() -> None:
    rows = [row("a", threads=2), row("b", threads=4), row("c", threads=2, nodes=2)]
    assert list(session.shapes(rows, KVM)) == [
        Shape(GIB, 1, 2, 4),
        Shape(GIB, 1, 4, 4),
        Shape(GIB, 2, 2, 2),
    ]


def test_without_a_number_a_guest_has_all_cpus_or_one_that_counts() -> None:
    assert list(session.shapes([row("a")], KVM)) == [Shape(GIB, 1, 4, 4)]
    assert list(session.shapes([row("a")], TCG)) == [Shape(GIB)]


def test_only_what_says_something_is_timed() -> None:
    one, two, eight = Shape(GIB), Shape(GIB, 1, 2, 4), Shape(GIB, 1, 8, 8)
    assert [session.why_not(one, setting) for setting in (TCG, EMULATED, KVM)] == [None] * 3
    assert "take turns" in str(session.why_not(two, TCG))
    assert "take turns" in str(session.why_not(two, EMULATED))
    assert session.why_not(two, KVM) is None
    assert session.why_not(eight, KVM) == "8 threads would share 4 CPUs"


def test_instructions_are_counted_on_one_cpu() -> None:
    assert session.machine_of(Shape(GIB), TCG).icount
    assert not session.machine_of(Shape(GIB, 1, 2, 2), TCG).icount
    assert not session.machine_of(Shape(GIB), EMULATED).icount


def test_several_rounds_of_a_boot_are_refused() -> None:
    with pytest.raises(BadUsage, match="a: 3 rounds: a boot is one; --launches"):
        session.shapes([row("a", rounds=3)], TCG)


@pytest.mark.parametrize("options", [{"memory_bytes": GIB}, {"nodes": (GuestNode(GIB),)}])
def test_what_the_rows_say_is_not_the_users_to_say(options: dict[str, Any]) -> None:
    with pytest.raises(BadUsage, match="choose rows with --row, or .* --set memory_bytes=SIZE"):
        session.choose_of_rows(GuestOptions(**options), setting_of)
    assert session.choose_of_rows(GuestOptions(append=("quiet",)), setting_of).options.append == (
        "quiet",
    )


def setting_of(options: GuestOptions) -> GuestSetting:
    """Counting, in guests of one CPU."""
    assert options.cpus is None
    return replace(TCG, options=options)


def test_a_user_gives_all_rows_their_cpus_and_more_than_the_host_has_are_booted() -> None:
    setting = session.choose_of_rows(GuestOptions(cpus=8), setting_of)
    suited = session.booted_rows([row("a", threads=1), row("b", threads=16)], setting)
    assert [one.threads for one in suited.rows] == [8, 8]
    (shape,) = session.shapes(suited.rows, setting)
    assert shape == Shape(GIB, 1, 8, 8)
    assert session.machine_of(shape, setting) == GuestMachine(
        "tcg", icount=False, cpus=8, memory_bytes=GIB
    )
    assert "take turns" in str(session.why_not(shape, setting))


def test_a_small_machine_boots_what_it_has_cpus_for_and_says_why_not_the_rest() -> None:
    rows = [row("four", threads=4), row("six", threads=6), row("big", memory_bytes=128 * GIB)]
    kvm, tcg = session.booted_rows(rows, KVM), session.booted_rows(rows, TCG)
    assert [one.name for one in kvm.rows] == ["four", "big"]
    assert kvm.skipped == {"six": "a guest of 6 CPUs on 4 CPUs"}
    assert [one.name for one in tcg.rows] == ["four"]
    assert tcg.skipped == {
        "six": "a guest of 6 CPUs on 4 CPUs, without KVM",
        "big": "no KVM here, and guests of more than 64 GiB are not emulated",
    }
    full = replace(TCG, options=GuestOptions(full=True))
    assert session.booted_rows(rows, full) == Suited(tuple(rows))


def test_a_guest_whose_map_does_not_fit_says_how_much_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "available_bytes", lambda: 6 * GIB)
    rows = [row("fits", memory_bytes=192 * GIB), row("not", memory_bytes=384 * GIB)]
    suited = session.booted_rows(rows, KVM)
    assert [one.name for one in suited.rows] == ["fits"]
    assert suited.skipped == {
        "not": "a guest takes 7168 MiB of memory, 6144 MiB are available",
    }


def test_the_published_machine_boots_and_times_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "nr_cpus", lambda: 104)
    monkeypatch.setattr(session, "available_bytes", lambda: 700 * GIB)
    rows = named("deferred-init").at("vm").rows
    suited = session.booted_rows(rows, KVM)
    assert (suited.rows, suited.skipped) == (rows, {})
    by_shape = session.shapes(rows, KVM)
    assert not any(session.why_not(shape, KVM) for shape in by_shape)
    # Its two quantities are of the same boots.
    assert [one.name for one in by_shape[Shape(384 * GIB, 1, 39, 52)]] == [
        *("vm-init-384g-39cpu", "vm-boot-384g-39cpu")
    ]
    machine = session.machine_of(Shape(384 * GIB, 1, 39, 52), KVM)
    assert (machine.cpus, machine.icount, machine.memory_bytes) == (52, False, 384 * GIB)


# --- Boots -------------------------------------------------------------------------------


def guests(setting: GuestSetting, *rows: DeferredInitRow) -> session.DeferredInitGuests:
    return session.DeferredInitGuests(rows, GuestOptions(), 1, lambda _: setting)


def test_what_is_only_verified_is_booted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [Shape(GIB), Shape(GIB, 1, 2, 2)]
    names = ["before", "before-again", "published"]
    kernels: Any = {(): {name: (None, BootableKernel(Path("b"), Path("i"))) for name in names}}
    monkeypatch.setattr(session, "layout_of", lambda *_: Layout({}, {}))
    its = guests(TCG, row("a", threads=1), row("b", threads=2))
    assert list(its.by_shape) == shapes
    boots = [
        boot
        for launch in plan_launches(names, launches=3, seed=1)
        for boot in its.boots(launch, kernels, Places(Path("logs"), Path()))
    ]
    assert its.nr_boots(3) * len(names) == len(boots)
    assert sum(boot.shape == shapes[0] for boot in boots) == 9
    assert sum(boot.shape == shapes[1] for boot in boots) == 3
    assert len({boot.log for boot in boots}) == len(boots)
    assert boots[0].title == f"{boots[0].variant}, 1GiB, launch 1"


BOOTED = Booted(
    Times(5_783_000, 265_001_000, 5),
    (State(DeferredNode(0, 0, 99, 0, ((0, 90),)), "aa", 90), State(
        DeferredNode(1, 0, 99, 0, ((0, 10),)), "bb", 10)),
)  # fmt: skip


def test_a_boot_gives_each_of_its_rows_a_sample() -> None:
    boot = session.DeferredBoot(
        variant="ream",
        launch=2,
        machine=GuestMachine("tcg"),
        kernel=BootableKernel(Path("b"), Path("i")),
        append=(),
        log=Path("log"),
        shape=Shape(GIB),
        layout=Layout({}, {}),
    )
    init = session.sample_of(BOOTED, row("a", threads=1), boot)
    assert (init.time_ns, init.nr_bytes, init.threads) == (5_783_000, 6400, 1)
    assert (init.subject, init.launch, init.verified) == ("ream", 2, True)
    whole = session.sample_of(BOOTED, row("a", threads=1, measure="boot"), boot)
    assert whole.time_ns == 265_001_000


def test_remarks_tell_the_kernels_own_message_and_what_was_compared() -> None:
    shape, one = Shape(GIB), row("a", threads=1)
    its = guests(TCG, one)
    boot: Any = replace(
        session.DeferredBoot(
            *("before", 0, GuestMachine("tcg"), BootableKernel(Path("b"), Path("i")), ()),
            *(Path("l"), shape, Layout({}, {})),
        )
    )  # fmt: skip
    (taken,) = its.taken(boot, BOOTED)
    assert taken.sample.times == {"boot to PID 1": BOOTED.times.boot_ns}
    its._verified.extend([(shape, BOOTED)] * 2 + [(Shape(4 * GIB), BOOTED)])
    said = list(its.remarks(one, ["before", "before-again", "published"]))
    assert said == [
        "the kernel's own message, mean in ms of the guest's clock, counted in jiffies: before 5",
        "all struct pages, free lists and counters: states equal in 3 boots",
    ]


def test_boots_that_began_otherwise_are_not_called_equal() -> None:
    shape = Shape(GIB, 1, 2, 4)
    its = guests(TCG, row("a", threads=1))
    other = replace(BOOTED, states=BOOTED.states[:1])
    its._verified.extend([(shape, BOOTED), (Shape(GIB, 1, 4, 4), other), (shape, other)])
    assert its.equal(shape) == (
        "states as predicted in 3 boots, which began with 2 kinds of free memory, and equal"
        " within each"
    )


def test_the_experiments_rows_can_be_booted() -> None:
    rows = named("deferred-init").at("vm").rows
    its = [one for one in rows if isinstance(one, DeferredInitRow)]
    assert len(its) == len(rows)
    assert all(
        session.why_not(shape, TCG) is None or shape.cpus > 1 for shape in session.shapes(its, TCG)
    )


def test_a_boot_that_is_done_says_again_what_it_said(tmp_path: Path) -> None:
    node = DeferredNode(0, 1, 99, 9, ((10, 20), (20, 30)))
    event = Booted(Times(1, 2, 3), (State(node, "digest", 20, (11, 12)),))
    assert_says_again(session.DeferredBoot, event, tmp_path)
