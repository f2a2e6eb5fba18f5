# SPDX-License-Identifier: GPL-2.0-only
"""The vm stage without a guest: what is planned, and what is made of what guests say."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest

from experiments.zone_device import guests as vm
from experiments.zone_device.boot import Bind, Call, Checked, Device
from experiments.zone_device.tests.world import make_row
from fake_boots import assert_says_again
from ream.errors import BadUsage, ReamError, VerificationFailed
from ream.experiment import Row, named
from ream.measure.plan import plan_launches
from ream.measure.sample import Sample
from ream.measure.taken import Taken
from ream.published import load_tables
from ream.record.receipt import GuestFacts, Receipt
from ream.report import letter, table
from ream.report.contract import Unit
from ream.session import guests
from ream.session.request import GuestOptions
from ream.session.suited import by_config
from ream.session.vm import Places
from ream.stage.accel import Kvm
from ream.stage.bench import config_files
from ream.stage.boots import run_boots
from ream.stage.qemu import GuestMachine, GuestNode
from ream.stage.vm import BootableKernel
from summary_world import summarise

WHOLE = named("zone-device")
EXPERIMENT = WHOLE.at("vm").unasked()
WHY = WHOLE.at("vm").only(["why-*"])
ROWS = EXPERIMENT.rows
GIB = 1 << 30
COUNTING = guests.GuestSetting("tcg", "asked for", True, GuestOptions())
TIMING = guests.GuestSetting("kvm", "a guest boots under it", False, GuestOptions())
KERNEL = BootableKernel(Path("bzImage"), Path("initramfs.cpio"))

CALL = Call(
    start_pfn=1 << 20,
    nr_pages=26214400,
    nid=0,
    pgmap=1 << 63,
    type=3,
    order=0,
    altmap=True,
    altmap_base_pfn=1 << 20,
    altmap_reserve=2,
    altmap_free=410110,
    map=0xFFFFEA0004000000,
    early=False,
    time_ns=1_038_000_000,
)


def checked(number: int, time_ns: int, bind_ns: int = 2_000_000_000) -> Checked:
    bind = Bind(
        number=number,
        calls=(CALL.model_copy(update={"time_ns": time_ns}),),
        message=f"memmap_init_zone_device initialised 25804288 pages in {time_ns // 10**6}ms",
        bind_ns=bind_ns,
        unbind_ns=18_000_000 if number else None,
    )
    return Checked(bind, 25804288 * 64)


def boot(variant: str, device: Device, launch: int = 0) -> vm.DeviceBoot:
    machine = GuestMachine("tcg", icount=True, memory_bytes=device.least_bytes)
    log = Path(f"{variant}.log")
    return vm.DeviceBoot(variant, launch, machine, KERNEL, (), log, device, 4)


# --- the plan --------------------------------------------------------------------------


def test_rows_of_the_same_device_share_their_boots() -> None:
    by_device = vm.devices(ROWS)
    assert [device.name for device in by_device] == ["fsdax", "devdax", "private"]
    assert [vm.nr_binds(rows) for rows in by_device.values()] == [31, 31, 11]


def test_where_instructions_are_counted_a_repeat_adds_nothing() -> None:
    assert {row.rounds for row in vm.rows_as_run(ROWS, COUNTING)} == {1, 3}
    assert guests.launches_as_run(3, COUNTING) == 1
    full = dataclasses.replace(COUNTING, options=GuestOptions(full=True))
    for setting in (TIMING, full):
        assert vm.rows_as_run(ROWS, setting) == ROWS
        assert guests.launches_as_run(3, setting) == 3


def test_what_the_user_asked_for_holds_where_instructions_are_counted() -> None:
    asked = GuestOptions(keep_rounds=True, keep_launches=True)
    setting = dataclasses.replace(COUNTING, options=asked)
    assert vm.rows_as_run(ROWS, setting) == ROWS
    assert guests.launches_as_run(4, setting) == 4


def test_two_devices_of_one_name_are_not_booted_in_one_run() -> None:
    devdax = next(row for row in ROWS if row.name == "devdax-rebind")
    larger = devdax.model_copy(update={"name": "larger", "device_bytes": 2 * devdax.device_bytes})
    with pytest.raises(BadUsage, match="two devices are both devdax: run them apart"):
        vm.devices([devdax, larger])


def test_a_first_bind_is_one_a_boot_whatever_rounds_are_asked_for() -> None:
    asked = EXPERIMENT.resized(rounds=7, launches=2)
    assert {(row.first_touch, row.rounds) for row in asked.rows} == {(True, 1), (False, 7)}
    assert asked.launches == 2


def test_boots_of_a_launch_are_in_its_random_order() -> None:
    launches = plan_launches(["before", "before-again", "published"], launches=3, seed=7)
    its = vm.ZoneDeviceGuests(ROWS, GuestOptions(), 7, lambda _: COUNTING)
    kernels: Any = {(): dict.fromkeys(("before", "before-again", "published"), (None, KERNEL))}
    planned = [boot for launch in launches for boot in its.boots(launch, kernels, PLACES)]
    assert len(planned) == 3 * 3 * 3
    assert len({one.log for one in planned}) == len(planned)
    for launch in launches:
        for device in its.by_device:
            own = [b.variant for b in planned if (b.launch, b.device) == (launch.number, device)]
            assert tuple(own) == launch.link_order


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"type": "FS_DAX", "altmap": False}, "order 0, altmap"),
        ({"type": "FS_DAX", "order": 9, "altmap": True}, "order 0, altmap"),
        ({"type": "GENERIC", "order": 3}, "order 0, 9, 18"),
        ({"type": "PRIVATE", "altmap": True}, "no memory of its own"),
        ({"type": "PRIVATE", "pre_state": "dirty"}, "cannot be set in a guest"),
        ({"type": "PRIVATE", "first_touch": True, "rounds": 2}, "one first bind a boot"),
        ({"type": "PRIVATE", "also": ["zero"]}, "it is config and cmdline"),
        ({"type": "PRIVATE", "order": 9, "also": ["list"]}, "for base pages"),
        ({"type": "FS_DAX", "altmap": True, "node": "none"}, "for memremap_pages"),
        ({"type": "PRIVATE", "device_bytes": "64GiB", "chunk_bytes": "256MiB"}, "at most 64"),
        ({"type": "PRIVATE", "stage": "native", "cmdline": ["quiet"]}, "boots no kernel"),
    ],
)
def test_a_device_that_no_guest_can_make_is_refused(fields: dict[str, Any], said: str) -> None:
    row = {"name": "x", "stage": "vm", "device_bytes": "1GiB", "order": 0, "rounds": 1}
    with pytest.raises(BadUsage, match=said):
        make_row({**row, **fields})


def test_what_init_and_the_kernel_are_told_says_the_whole_device() -> None:
    fsdax, devdax, private = vm.devices(ROWS)
    assert fsdax.kernel_words() == ("memmap=0x1900000000!0x100000000",)
    assert fsdax.init_words(4) == (
        *("experiment=zone-device", "size=107374182400", "binds=4"),
        *("device=fsdax", "map=dev", "align=2097152"),
    )
    assert devdax.init_words(4)[3:] == ("device=devdax", "map=dev", "align=2097152")
    assert private.kernel_words() == ()
    assert private.init_words(2)[3:] == (
        *("device=memremap", "type=PRIVATE", "order=0", "chunk=0", "list=0"),
        # As the reviewer's call had it: numa_node_id().
        "own_node=1",
    )


def test_what_a_reviewer_may_have_had_is_a_device_of_its_own_for_each() -> None:
    by_name = {device.name: device for device in vm.devices(WHY.rows)}
    assert by_name["private-init_on_alloc"].kernel_words() == ("init_on_alloc=1",)
    assert "own_node=0" in by_name["private-no-node"].init_words(2)
    chunks = by_name["private-chunks-list"]
    assert chunks.nr_calls == 16
    assert chunks.init_words(2)[-3:] == ("chunk=268435456", "list=1", "own_node=1")
    assert by_name["private-debug-vm"].config == ("debug-vm",)
    assert len(by_name) == len(WHY.rows)


def test_a_row_with_a_configuration_of_its_own_boots_kernels_of_its_own() -> None:
    its = vm.ZoneDeviceGuests(WHY.rows, GuestOptions(), 7, lambda _: COUNTING)
    kernels: Any = {
        config: {
            "before": (None, BootableKernel(Path("-".join(("bzImage", *config))), Path("x.cpio")))
        }
        for config in its.configs()
    }
    (launch,) = plan_launches(["before"], launches=1, seed=7)
    for one in its.boots(launch, kernels, PLACES):
        assert one.kernel.image.name == "-".join(("bzImage", *one.device.config))


def test_guests_of_arm64_make_no_pmem() -> None:
    its = vm.ZoneDeviceGuests(ROWS, GuestOptions(arch="arm64"), 7, lambda _: COUNTING)
    pmem = {row.name for row in ROWS if row.in_namespace}
    assert pmem
    assert its.skipped.keys() == pmem
    assert {row.name for row in its.rows} == {row.name for row in ROWS} - pmem
    assert all("arm64 has no word" in why for why in its.skipped.values())


def test_rows_on_request_run_only_where_they_are_named() -> None:
    assert not [row.name for row in EXPERIMENT.rows if row.name.startswith("why-")]
    assert {row.name for row in WHY.rows} == {
        row.name for row in WHOLE.rows if row.on_request and row.stage == "vm"
    }
    with pytest.raises(BadUsage, match="runs only if it is named"):
        WHY.unasked()
    with pytest.raises(BadUsage, match="has no row whi-*"):
        WHOLE.only(["whi-*"])


def test_natively_too_rows_with_a_configuration_have_objects_of_their_own() -> None:
    rows = WHOLE.at("native").rows
    found = by_config(rows)
    assert next(iter(found)) == ()
    assert [row.name for row in found["debug-vm",]] == ["why-debug-vm-inside", "why-debug-vm"]
    assert sum(map(len, found.values())) == len(rows)


def test_what_a_row_does_not_have_is_not_among_its_parameters() -> None:
    plain, every = WHOLE.row("private-64GB"), WHOLE.row("why-all-chunks-list")
    assert plain is not None
    assert every is not None
    assert not {"config", "cmdline", "also", "chunk_bytes", "node"} & set(plain.params())
    assert every.params()["also"] == "zero, poison, list"
    assert "calls of 256 MiB" in every.title()


@pytest.mark.parametrize("row", [row for row in WHOLE.rows if row.config], ids=lambda row: row.name)
def test_fragments_that_rows_name_are_there(row: Row) -> None:
    assert all(file.is_file() for file in config_files(row.config))


def test_a_fragment_that_is_not_there_is_named() -> None:
    with pytest.raises(BadUsage, match="no fragment debug-mv in kernel/config"):
        config_files(("debug-vm", "debug-mv"))


def test_a_guest_too_small_for_its_device_is_refused_before_anything_is_built() -> None:
    fsdax = next(iter(vm.devices(ROWS)))
    small = dataclasses.replace(COUNTING, options=GuestOptions(memory_bytes=8 * GIB))
    with pytest.raises(BadUsage, match="a guest of 8 GiB cannot hold fsdax: it needs 106 GiB"):
        small.machine(fsdax)
    nodes = GuestOptions(nodes=(GuestNode(6 * GIB, "0"), GuestNode(100 * GIB, "")))
    assert dataclasses.replace(COUNTING, options=nodes).machine(fsdax).memory_bytes == 106 * GIB


def test_counting_is_for_one_cpu_under_tcg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guests, "ask_kvm", lambda _cache: Kvm("host", None))
    assert guests.choose_setting(GuestOptions(), Path()).icount is False
    with pytest.raises(BadUsage, match="which KVM cannot"):
        guests.choose_setting(GuestOptions(icount=True), Path())
    assert guests.choose_setting(GuestOptions(accel="tcg"), Path()).icount is True
    with pytest.raises(BadUsage, match="--no-icount runs more"):
        guests.choose_setting(GuestOptions(accel="tcg", cpus=2), Path())
    emulated = guests.choose_setting(GuestOptions(accel="tcg", cpus=2, icount=False), Path())
    assert emulated.machine(next(iter(vm.devices(ROWS)))).cpus == 2


# --- calls -----------------------------------------------------------------------------


def test_an_altmap_s_pages_are_skipped_and_its_superblock_s_are_nobody_s() -> None:
    assert (CALL.skip_pages, CALL.reserve) == (410112, 2)
    plain = CALL.model_copy(update={"altmap": False})
    assert (plain.skip_pages, plain.reserve) == (0, 0)


# --- boots at once ---------------------------------------------------------------------


def test_every_boot_is_run_once_and_told_when_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_start: object, _device: object, binds: int):
        for number in range(binds):
            yield checked(number, 10**9)

    monkeypatch.setattr(vm, "run_boot", run)
    device = next(iter(vm.devices(ROWS)))
    planned = [boot(f"v{number}", device) for number in range(5)]
    seen = list(run_boots(planned, at_once=2))
    for one in planned:
        own = [event for at, event in seen if at is one]
        assert [event.bind.number for event in own[:-1] if event] == [0, 1, 2, 3]
        assert own[-1] is None


def test_the_first_failure_ends_the_other_guests(monkeypatch: pytest.MonkeyPatch) -> None:
    class Living:
        killed = False

        def kill(self) -> None:
            self.killed = True

    living = Living()

    def run(start: Any, device: Device, _binds: int):
        yield checked(0, 10**9)
        if device.order:
            start.begun(living)
            while not living.killed:
                time.sleep(0.01)
            raise ReamError("QEMU was killed by SIGKILL")
        raise VerificationFailed("byte 16 is not as predicted")

    monkeypatch.setattr(vm, "run_boot", run)
    fsdax, devdax, _ = vm.devices(ROWS)
    planned = [boot("before", devdax), boot("published", fsdax)]
    with pytest.raises(VerificationFailed, match="published, fsdax, launch 1: byte 16"):
        list(run_boots(planned, at_once=2))
    assert living.killed


# --- samples and what is said of them --------------------------------------------------

PLACES = Places(Path("consoles"), Path())

COUNTS = {"before": 1000, "before-again": 1000, "published": 820, "ream": 540}


def counted(row: Row, its: vm.ZoneDeviceGuests | None = None, *, shift: int = 0) -> list[Taken]:
    its = its or guests_of_row(row)
    found: list[Taken] = []
    for name, count in COUNTS.items():
        for number in range(4):
            # Where a tick falls moves a count by a little; never that of a first bind.
            time_ns = count * 10**6 + (number * 7 + shift if name == "before-again" else 0)
            one = checked(number, time_ns, bind_ns=time_ns + 10**9)
            found += its.taken(boot(name, Device.of(row)), one)
    return found


def samples_of(row: Row, *, shift: int = 0) -> list[Sample]:
    return [one.sample for one in counted(row, shift=shift)]


def guests_of_row(row: Row) -> vm.ZoneDeviceGuests:
    return vm.ZoneDeviceGuests([row], GuestOptions(), 7, lambda _: COUNTING)


def guest() -> GuestFacts:
    return GuestFacts(
        qemu="QEMU 7.2.22",
        accel="tcg",
        accel_reason="asked for",
        icount=True,
        cpus=1,
        memory_bytes={"fsdax": 106 * GIB},
        commands={"fsdax": "qemu-system-x86_64"},
        kernels={"before": "00" * 32},
    )


def rebind() -> Row:
    found = EXPERIMENT.row("fsdax-rebind")
    assert found is not None
    return found.model_copy(update={"rounds": 3})


def test_rebinds_are_the_rounds_and_the_first_bind_is_a_row_of_its_own() -> None:
    first = EXPERIMENT.row("fsdax-bind")
    assert first is not None
    assert {sample.round for sample in samples_of(rebind())} == {0, 1, 2}
    assert len(counted(rebind())) == 3 * len(COUNTS)
    assert len(counted(first)) == len(COUNTS)


def test_memremap_is_timed_whole_and_a_namespace_by_its_map_alone() -> None:
    private = EXPERIMENT.row("private-memremap")
    assert private is not None
    one = checked(1, 10**9, bind_ns=3 * 10**9)
    (namespace,) = vm.samples_of(one, [rebind()], boot("before", Device.of(rebind())))
    (whole,) = vm.samples_of(one, [private], boot("before", Device.of(private)))
    assert (namespace.time_ns, whole.time_ns) == (10**9, 3 * 10**9)


def test_what_users_wait_for_stands_beside_what_is_measured() -> None:
    names = {row.name: {name for one in counted(row) for name in one.sample.times} for row in ROWS}
    assert names["fsdax-bind"] == {"ndctl create-namespace"}
    assert names["devdax-rebind"] == {"whole bind", "whole unbind"}
    assert names["private-first"] == {"memmap_init_zone_device()"}
    assert names["private-memremap"] == {"memmap_init_zone_device()", "memunmap_pages()"}


def test_counts_are_told_as_counts_and_get_no_verdict(receipt: Receipt) -> None:
    row = rebind()
    its = guests_of_row(row)
    taken = counted(row, its)
    samples: list[Sample] = [one.sample for one in taken]
    summary = summarise(
        EXPERIMENT,
        [row],
        samples,
        load_tables(),
        receipt.model_copy(update={"guest": guest()}),
        run="20261121T021500Z-zone-device-vm-ab12",
        stage="vm",
        unit="instructions",
        remarks={row.name: tuple(its.remarks(row, list(COUNTS)))},
    )
    (only,) = summary.rows
    whole, unbind = only.beside
    assert (whole.name, whole.unit, unbind.name) == ("whole bind", "instructions", "whole unbind")
    # The whole is the part and a second more, which no variant changes.
    assert whole.variants["published"].median == 1_820_000_000
    ratio = whole.variants["published"].over_before
    assert ratio is not None
    assert ratio.ratio == pytest.approx(1.82 / 2, rel=1e-3)
    published = only.variants["published"]
    assert only.unit == "instructions"
    assert (published.ratio, published.low, published.high) == (0.82, 0.82, 0.82)
    assert (published.effect, published.ns_per_page, published.gb_per_s) == ("fewer", None, None)
    assert published.per_page == pytest.approx(820e6 / 25804288, rel=1e-4)
    assert only.variants["before-again"].effect == "equal"
    assert only.published_table is not None
    assert only.published_table.verdict == "not-run"
    assert "neither caches nor a store bandwidth" in (only.published_table.reason or "")
    text = table.render(summary)
    assert "TCG, instructions counted, no time" in text
    assert "1.22x fewer" in text
    said = "whole bind, G instr: before 2.00, technique 1.82 (0.910 [0.910 .. 0.910])"
    assert said in " ".join(text.split())
    assert "whole bind, G instr: before 2.00" in " ".join(letter.render(summary).split())
    assert "before 1000.00, technique 820.00, ours 540.00" in " ".join(text.split())
    assert "limit" not in text
    assert max(map(len, text.splitlines())) <= 100
    pasted = letter.render(summary)
    assert "M instr" in pasted
    assert max(map(len, pasted.splitlines())) < 75


def test_two_boots_that_do_not_count_the_same_are_doubted_whatever_is_booted() -> None:
    def unit(_row: str) -> Unit:
        return "instructions"

    samples = list(samples_of(rebind(), shift=2_000_000))
    (doubt,) = guests.doubts(samples, unit)
    assert "more than 0.0001 of their count: fsdax-rebind 2e-03;" in doubt
    assert "take two launches at least" in doubt
    alone = [sample for sample in samples if sample.subject != "before-again"]
    assert list(guests.doubts(alone, unit)) == []
    assert list(guests.doubts(samples, lambda _row: "ns")) == []
    same = list(samples_of(rebind(), shift=1000))
    assert list(guests.doubts(same, unit)) == []


def test_a_boot_that_is_done_says_again_what_it_said(tmp_path: Path) -> None:
    bind = Bind(number=1, calls=(CALL,), message=None, bind_ns=5, unbind_ns=None)
    event = Checked(bind, 64)
    assert_says_again(vm.DeviceBoot, event, tmp_path)
