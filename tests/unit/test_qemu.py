# SPDX-License-Identifier: GPL-2.0-only
"""The command line of a guest, what a machine can be, and whether KVM works here."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ream import doctor
from ream.errors import BadUsage, CannotRunHere
from ream.kernel.arch import ARM64
from ream.session.guests import GuestSetting
from ream.session.request import GuestOptions
from ream.stage import accel
from ream.stage.accel import (
    KVM_CPUS,
    Kvm,
    ask_kvm,
    choose_accel,
    host_module,
    kvm_fault,
    probe_guest,
)
from ream.stage.qemu import (
    QEMU,
    GuestMachine,
    GuestNode,
    parse_distance,
    parse_node,
    qemu_command,
)

GIB = 1 << 30


def command(machine: GuestMachine, **changed: object) -> str:
    words = qemu_command(
        machine,
        **{
            "kernel": Path("bzImage"),
            "initramfs": Path("initramfs"),
            "append": ("memmap=100G!4G",),
            "init": ("experiment=zone-device", "size=107374182400"),
            "port": Path("run/port"),
            "qmp": Path("run/qmp"),
            **changed,
        },
    )
    return shlex.join(words)


def needs_qemu() -> None:
    if shutil.which(QEMU) is None:
        pytest.skip(f"{QEMU} is not installed")


def starts(machine: GuestMachine, tmp_path: Path) -> str:
    """What QEMU complains of when it builds this machine; "" if it does not."""
    words = qemu_command(
        machine,
        kernel=Path("k"),
        initramfs=None,
        append=(),
        init=(),
        port=tmp_path / "p",
        qmp=tmp_path / "q",
    )
    # Neither a kernel, a console nor anybody to talk to: only what the machine is made of.
    first, last = words.index("-accel"), words.index("virtio-serial-pci,max_ports=2")
    ended = subprocess.run(
        [QEMU, "-nographic", "-nodefaults", "-S", "-monitor", "stdio", *words[first : last + 1]],
        input="quit\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.stderr


# --- the command line ----------------------------------------------------------------------


def test_a_repeatable_guest_counts_instructions_on_a_pinned_cpu() -> None:
    line = command(GuestMachine("tcg", icount=True, memory_bytes=106 * GIB))
    assert " -accel tcg,thread=single -cpu Nehalem-v1,pdpe1gb=on -smp 1 " in line
    assert " -icount shift=0,sleep=off,align=off -rtc base=2026-01-01,clock=vm " in line
    assert " -seed 1 " in line
    assert " nokaslr random.trust_cpu=off memmap=100G!4G -- experiment=zone-device " in line


def test_memory_is_reserved_and_not_committed() -> None:
    line = command(GuestMachine("tcg", memory_bytes=106 * GIB))
    assert "-m 108544M -machine q35,memory-backend=ram" in line
    assert "memory-backend-ram,id=ram,size=108544M,reserve=off" in line


def test_a_kvm_guest_has_the_hosts_cpu_and_clock() -> None:
    line = command(GuestMachine("kvm", cpus=4))
    assert " -accel kvm -cpu host -smp 4 " in line
    assert "icount" not in line
    assert "nokaslr" not in line


def test_a_panic_ends_qemu() -> None:
    line = command(GuestMachine("tcg"))
    assert " -no-reboot " in line
    assert " panic=-1 oops=panic " in line


def test_the_users_words_come_last_and_win() -> None:
    machine = GuestMachine("tcg", options=("-cpu", "max"))
    assert command(machine).endswith(" -cpu max")
    assert " panic=-1 oops=panic panic=5 --" in command(machine, append=("panic=5",))


def test_a_comma_in_a_path_is_not_qemus() -> None:
    assert "path=a,,b/port" in command(GuestMachine("tcg"), port=Path("a,b/port"))


def test_without_words_for_init_there_is_no_dash_dash() -> None:
    assert "--" not in shlex.split(command(GuestMachine("tcg"), init=()))[-1]


@pytest.mark.parametrize("word", ["a b", "", 'a="b"', "a\nb"])
def test_a_word_that_the_kernel_would_split_is_refused(word: str) -> None:
    with pytest.raises(BadUsage, match="no space or quote"):
        command(GuestMachine("tcg"), append=(word,))


# --- nodes -----------------------------------------------------------------------------------


def test_nodes_are_written_as_virtme_ng_writes_them() -> None:
    assert parse_node("2G,cpus=0-1,cpus=4") == GuestNode(2 * GIB, "0-1,4")
    assert parse_node("512M") == GuestNode(512 << 20)
    assert parse_node("0,cpus=2") == GuestNode(0, "2")
    assert parse_node("0G") == GuestNode(0)
    assert parse_distance("0,1=20") == (0, 1, 20)


@pytest.mark.parametrize(
    "text", ["", "2G,cpu=0", "2G,cpus=", "2G,cpus=1-", "2G,cpus=3-1", "two", "2GB", "2G,,cpus=0"]
)
def test_what_is_no_node_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadUsage, match="--numa"):
        parse_node(text)


@pytest.mark.parametrize("text", ["", "0,1", "0=20", "0,1=x", "0,1,2=20", "-1,0=20"])
def test_what_is_no_distance_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadUsage, match="--numa-distance"):
        parse_distance(text)


def test_each_node_has_its_own_memory_and_distances_are_a_whole_matrix() -> None:
    nodes = (GuestNode(2 * GIB, "0"), GuestNode(0, "1"), GuestNode(2 * GIB))
    machine = GuestMachine(
        "tcg", cpus=2, nodes=nodes, distances=((0, 2, 40), (2, 0, 50), (1, 2, 30))
    )
    line = command(machine)
    assert "-machine q35 " in line
    assert "memory-backend-ram,id=ram0,size=2048M,reserve=off -numa" in line
    assert "-numa node,nodeid=0,memdev=ram0,cpus=0 " in line
    assert "-numa node,nodeid=1,cpus=1 " in line
    assert "-numa node,nodeid=2,memdev=ram2 " in line
    for words in ("src=0,dst=1,val=20", "src=0,dst=2,val=40", "src=2,dst=0,val=50"):
        assert words in line
    for words in ("src=1,dst=2,val=30", "src=2,dst=1,val=30", "src=1,dst=0,val=20"):
        assert words in line


@pytest.mark.parametrize(
    ("machine", "says"),
    [
        ({"cpus": 0}, "--cpus 0: give 1 to 255"),
        ({"cpus": 9, "arch": "arm64"}, "--cpus 9: give 1 to 8"),
        ({"cpus": 2, "icount": True}, "--cpus 2: a guest whose clock counts"),
        ({"accel": "kvm", "icount": True}, "--accel kvm: instructions are counted by TCG only"),
        ({"memory_bytes": 1 << 20}, "--memory 1 MiB: a guest needs at least 256 MiB"),
        ({"memory_bytes": GIB + 1}, "--memory 1073741825: not a multiple"),
        ({"options": ("",)}, "--qemu-opts: holds an empty word"),
        ({"nodes": (GuestNode(GIB, "0"),)}, "adds up to 1 GiB, --memory is 4 GiB"),
        ({"nodes": (GuestNode(4 * GIB, "0-1"),)}, "node 0 has CPU 1, --cpus is 1"),
        ({"nodes": (GuestNode(4 * GIB, "0"), GuestNode(0, "0"))}, "CPU 0 is in node 0 and node 1"),
        ({"cpus": 2, "nodes": (GuestNode(4 * GIB, "0"),)}, "CPU 1 is in no node; add cpus=1"),
        ({"distances": ((0, 1, 20),)}, "--numa-distance 0,1=20: there is no node 0"),
    ],
)
def test_a_machine_that_cannot_be_is_refused_by_option(
    machine: dict[str, object], says: str
) -> None:
    with pytest.raises(BadUsage) as refused:
        GuestMachine(**{"accel": "tcg", **machine})
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("distances", "says"),
    [
        (((0, 0, 20),), "from a node to itself it is always 10"),
        (((0, 1, 10),), "give 11 to 254"),
        (((0, 1, 255),), "give 11 to 254"),
        (((0, 1, 20), (0, 1, 30)), "given twice"),
    ],
)
def test_a_distance_that_cannot_be_is_refused(
    distances: tuple[tuple[int, int, int], ...], says: str
) -> None:
    with pytest.raises(BadUsage, match=says):
        GuestMachine("tcg", nodes=(GuestNode(4 * GIB, "0"), GuestNode(0)), distances=distances)


@pytest.mark.parametrize(
    "machine",
    [
        GuestMachine("tcg", icount=True, memory_bytes=106 * GIB),
        GuestMachine(
            "tcg",
            cpus=3,
            nodes=(GuestNode(2 * GIB, "0,2"), GuestNode(0, "1"), GuestNode(2 * GIB)),
            distances=((0, 1, 30), (2, 0, 40), (0, 2, 50)),
        ),
    ],
)
def test_qemu_takes_such_a_machine_without_a_word(machine: GuestMachine, tmp_path: Path) -> None:
    needs_qemu()
    assert starts(machine, tmp_path) == ""


# --- KVM or not ------------------------------------------------------------------------------


def test_kvm_is_taken_if_a_guest_boots_under_it() -> None:
    plain, less = Kvm("host", None), Kvm("host,-arch-capabilities", None)
    assert choose_accel("auto", probe=lambda: plain) == ("kvm", "host", "a guest boots under it")
    assert choose_accel("kvm", probe=lambda: plain) == ("kvm", "host", "asked for")
    assert choose_accel("auto", probe=lambda: less)[1:] == (
        "host,-arch-capabilities",
        "a guest boots under it, with -cpu host,-arch-capabilities",
    )


NO_KVM = Kvm(None, "no /dev/kvm")


def test_tcg_is_taken_otherwise_and_the_reason_is_kept() -> None:
    assert choose_accel("auto", probe=lambda: NO_KVM) == ("tcg", None, "no /dev/kvm")


def test_kvm_that_is_asked_for_and_not_usable_cannot_run_here() -> None:
    with pytest.raises(CannotRunHere, match="--accel kvm: no /dev/kvm; --accel tcg needs"):
        choose_accel("kvm", probe=lambda: NO_KVM)


def test_nobody_asks_kvm_when_tcg_is_wanted() -> None:
    def never() -> Kvm:
        raise AssertionError

    assert choose_accel("tcg", probe=never) == ("tcg", None, "asked for")
    assert choose_accel("auto", probe=never, cpu="max") == ("tcg", "max", "asked for")
    said = ("tcg", None, "guests of arm64 are emulated")
    assert choose_accel("auto", probe=never, arch=ARM64) == said
    with pytest.raises(CannotRunHere, match="--accel kvm: guests of arm64: emulated alone"):
        choose_accel("kvm", probe=never, arch=ARM64)


def test_a_guest_of_arm64_is_qemus_virt_machine() -> None:
    said = command(GuestMachine("tcg", icount=True, arch="arm64"))
    assert said.startswith("qemu-system-aarch64 ")
    for words in (" -cpu neoverse-n1 ", " -machine virt,memory-backend=ram ", "console=ttyAMA0 "):
        assert words in said
    assert " -cpu max " in command(GuestMachine("tcg", arch="arm64", cpu="max"))


def test_the_cpu_that_came_up_is_the_guests() -> None:
    setting = GuestSetting("kvm", "said", False, GuestOptions(), "EPYC-v1,enforce")
    assert " -accel kvm -cpu EPYC-v1,enforce -smp 2 " in command(setting.machine_of(4 * GIB))


def test_without_a_kvm_device_there_is_nothing_to_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accel, "KVM", tmp_path / "kvm")
    assert kvm_fault(tmp_path) == f"there is no {tmp_path / 'kvm'}"


REFUSES = "-cpu ONE) echo 'qemu-system-x86_64: error: failed to set MSR 0x10a' >&2; exit 134 ;;"
LACKS = (
    "-cpu ONE) echo 'qemu-system-x86_64: warning: no pni' >&2;"
    ' echo "qemu-system-x86_64: Host doesn\'t support requested features" >&2; exit 1 ;;'
)
COMES_UP = "-cpu ONE) echo ream; exit 33 ;;"
HANGS = "-cpu ONE) exec sleep 30 ;;"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A function that makes a host whose QEMU answers each -cpu so; it returns the count."""

    def make(module: str, *answers: tuple[str, str]) -> Path:
        cases = [answer.replace("-cpu ONE", f"*'-cpu {cpu} '*") for cpu, answer in answers]
        script = ["#!/bin/sh", f"echo >> {tmp_path}/starts", 'case "$* " in', *cases, "esac"]
        bin_ = tmp_path / "bin"
        bin_.mkdir(exist_ok=True)
        (bin_ / QEMU).write_text("\n".join(script) + "\n")
        (bin_ / QEMU).chmod(0o755)
        (tmp_path / "modules" / module).mkdir(parents=True, exist_ok=True)
        (tmp_path / "kvm").touch()
        (tmp_path / "boot_id").write_text("one\n")
        monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
        monkeypatch.setattr(accel, "KVM", tmp_path / "kvm")
        monkeypatch.setattr(accel, "BOOT_ID", tmp_path / "boot_id")
        monkeypatch.setattr(accel, "PROBE_DEADLINE_S", 2.0)
        monkeypatch.setattr(accel, "host_module", lambda: host_module(tmp_path / "modules"))
        return tmp_path / "starts"

    return make


def starts_of(counted: Path) -> int:
    return len(counted.read_text())


def test_a_guest_that_the_hosts_own_cpu_keeps_down_comes_up_with_less_of_it(
    host: Callable[..., Path], tmp_path: Path
) -> None:
    counted = host("kvm_intel", ("host", REFUSES), ("host,-arch-capabilities", COMES_UP))
    cache = tmp_path / "cache"
    assert ask_kvm(cache) == Kvm("host,-arch-capabilities", None)
    assert starts_of(counted) == 2
    assert ask_kvm(cache) == Kvm("host,-arch-capabilities", None)
    assert kvm_fault(cache) is None
    assert starts_of(counted) == 2  # remembered until the host boots again
    (tmp_path / "boot_id").write_text("two\n")
    assert ask_kvm(cache).fault is None
    assert starts_of(counted) == 4
    assert [path.name for path in cache.iterdir()] == ["kvm-guests-two"]


def test_a_named_model_is_taken_where_nothing_of_the_hosts_own_comes_up(
    host: Callable[..., Path], tmp_path: Path
) -> None:
    own = [(cpu, REFUSES) for cpu in ("host", "host,-arch-capabilities")]
    host("kvm_amd", *own, ("EPYC-v1,enforce", COMES_UP))
    assert ask_kvm(tmp_path / "cache") == Kvm("EPYC-v1,enforce", None)


def test_pvm_runs_no_stock_kernel_even_if_the_probe_comes_up(
    host: Callable[..., Path], tmp_path: Path
) -> None:
    host("kvm_pvm", ("host", COMES_UP))
    said = Kvm(None, "the host's module kvm_pvm runs no stock kernel")
    assert ask_kvm(tmp_path / "cache") == said
    assert ask_kvm(tmp_path / "cache") == said


def test_every_cpu_that_was_tried_is_named_with_its_fault(
    host: Callable[..., Path], tmp_path: Path
) -> None:
    named = [(cpu, LACKS) for cpu in KVM_CPUS[2:]]
    counted = host("kvm_intel", (KVM_CPUS[0], REFUSES), (KVM_CPUS[1], REFUSES), *named)
    cache = tmp_path / "cache"
    said = str(ask_kvm(cache).fault)
    assert said == (
        "a guest does not come up under kvm (-cpu host or host,-arch-capabilities: error: failed"
        " to set MSR 0x10a; -cpu EPYC-v1,enforce or Skylake-Server-v1,enforce or"
        " Nehalem-v1,enforce: Host doesn't support requested features)"
    )
    assert ask_kvm(cache).fault == said
    assert starts_of(counted) == len(KVM_CPUS)


@pytest.mark.vm
def test_a_guest_that_was_only_too_slow_is_tried_again(
    host: Callable[..., Path], tmp_path: Path
) -> None:
    named = [(cpu, LACKS) for cpu in KVM_CPUS[1:]]
    counted = host("kvm_intel", (KVM_CPUS[0], HANGS), *named)
    assert "no sign of life" in str(kvm_fault(tmp_path / "cache"))
    assert "no sign of life" in str(kvm_fault(tmp_path / "cache"))
    assert starts_of(counted) == 2 * len(KVM_CPUS)


def test_doctor_names_the_module_that_runs_guests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "GUEST_TOOLS", ())
    monkeypatch.setattr(doctor, "kvm_fault", lambda _cache: "a fault")
    pvm = "kvm_pvm, which does not boot ordinary kernels as guests"
    for module, text in (("kvm_pvm", pvm), ("kvm_amd",) * 2):
        monkeypatch.setattr(doctor, "host_module", lambda module=module: module)
        found = {one.subject: one.text for one in doctor.examine()}
        assert found["KVM's module"] == text
        assert found["vm stage"].endswith(": a fault")


def test_the_probe_guest_comes_up_where_emulation_surely_works() -> None:
    needs_qemu()
    assert probe_guest("tcg") is None


def test_a_probe_guest_that_does_not_come_up_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_qemu()
    monkeypatch.setattr(accel, "PROBE_DEADLINE_S", 0.01)
    assert probe_guest("tcg") == "no sign of life within 0.01 s"
    monkeypatch.undo()
    monkeypatch.setattr(accel, "PROBE_MARK", "another mark\n")
    assert probe_guest("tcg") is not None


def test_without_qemu_there_is_nothing_to_probe_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CannotRunHere, match=f"{QEMU}: not installed"):
        probe_guest("tcg")
