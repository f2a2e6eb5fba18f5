# SPDX-License-Identifier: GPL-2.0-only
"""The command line of a guest, what a machine can be, and whether KVM works here."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from ream.errors import BadUsage, CannotRunHere
from ream.stage import accel
from ream.stage.accel import choose_accel, kvm_fault, probe_guest
from ream.stage.qemu import QEMU, Machine, Node, parse_distance, parse_node, qemu_command

GIB = 1 << 30


def command(machine: Machine, **changed: object) -> str:
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


def starts(machine: Machine, tmp_path: Path) -> str:
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
    line = command(Machine("tcg", icount=True, memory_bytes=106 * GIB))
    assert " -accel tcg,thread=single -cpu Nehalem-v1,pdpe1gb=on -smp 1 " in line
    assert " -icount shift=0,sleep=off,align=off -rtc base=2026-01-01,clock=vm " in line
    assert " -seed 1 " in line
    assert " nokaslr random.trust_cpu=off memmap=100G!4G -- experiment=zone-device " in line


def test_memory_is_reserved_and_not_committed() -> None:
    line = command(Machine("tcg", memory_bytes=106 * GIB))
    assert "-m 108544M -machine q35,memory-backend=ram" in line
    assert "memory-backend-ram,id=ram,size=108544M,reserve=off" in line


def test_a_kvm_guest_has_the_hosts_cpu_and_clock() -> None:
    line = command(Machine("kvm", cpus=4))
    assert " -accel kvm -cpu host -smp 4 " in line
    assert "icount" not in line
    assert "nokaslr" not in line


def test_a_panic_ends_qemu() -> None:
    line = command(Machine("tcg"))
    assert " -no-reboot " in line
    assert " panic=-1 oops=panic " in line


def test_the_users_words_come_last_and_win() -> None:
    machine = Machine("tcg", options=("-cpu", "max"))
    assert command(machine).endswith(" -cpu max")
    assert " panic=-1 oops=panic panic=5 --" in command(machine, append=("panic=5",))


def test_a_comma_in_a_path_is_not_qemus() -> None:
    assert "path=a,,b/port" in command(Machine("tcg"), port=Path("a,b/port"))


def test_without_words_for_init_there_is_no_dash_dash() -> None:
    assert "--" not in shlex.split(command(Machine("tcg"), init=()))[-1]


@pytest.mark.parametrize("word", ["a b", "", 'a="b"', "a\nb"])
def test_a_word_that_the_kernel_would_split_is_refused(word: str) -> None:
    with pytest.raises(BadUsage, match="no space or quote"):
        command(Machine("tcg"), append=(word,))


# --- nodes -----------------------------------------------------------------------------------


def test_nodes_are_written_as_virtme_ng_writes_them() -> None:
    assert parse_node("2G,cpus=0-1,cpus=4") == Node(2 * GIB, "0-1,4")
    assert parse_node("512M") == Node(512 << 20)
    assert parse_node("0,cpus=2") == Node(0, "2")
    assert parse_node("0G") == Node(0)
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
    nodes = (Node(2 * GIB, "0"), Node(0, "1"), Node(2 * GIB))
    machine = Machine("tcg", cpus=2, nodes=nodes, distances=((0, 2, 40), (2, 0, 50), (1, 2, 30)))
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
        ({"cpus": 2, "icount": True}, "--cpus 2: a guest whose clock counts"),
        ({"accel": "kvm", "icount": True}, "--accel kvm: instructions are counted by TCG only"),
        ({"memory_bytes": 1 << 20}, "--memory 1 MiB: a guest needs at least 256 MiB"),
        ({"memory_bytes": GIB + 1}, "--memory 1073741825: not a multiple"),
        ({"options": ("",)}, "--qemu-opts: holds an empty word"),
        ({"nodes": (Node(GIB, "0"),)}, "adds up to 1 GiB, --memory is 4 GiB"),
        ({"nodes": (Node(4 * GIB, "0-1"),)}, "node 0 has CPU 1, --cpus is 1"),
        ({"nodes": (Node(4 * GIB, "0"), Node(0, "0"))}, "CPU 0 is in node 0 and node 1"),
        ({"cpus": 2, "nodes": (Node(4 * GIB, "0"),)}, "CPU 1 is in no node; add cpus=1"),
        ({"distances": ((0, 1, 20),)}, "--numa-distance 0,1=20: there is no node 0"),
    ],
)
def test_a_machine_that_cannot_be_is_refused_by_option(
    machine: dict[str, object], says: str
) -> None:
    with pytest.raises(BadUsage) as refused:
        Machine(**{"accel": "tcg", **machine})
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
        Machine("tcg", nodes=(Node(4 * GIB, "0"), Node(0)), distances=distances)


@pytest.mark.parametrize(
    "machine",
    [
        Machine("tcg", icount=True, memory_bytes=106 * GIB),
        Machine(
            "tcg",
            cpus=3,
            nodes=(Node(2 * GIB, "0,2"), Node(0, "1"), Node(2 * GIB)),
            distances=((0, 1, 30), (2, 0, 40), (0, 2, 50)),
        ),
    ],
)
def test_qemu_takes_such_a_machine_without_a_word(machine: Machine, tmp_path: Path) -> None:
    needs_qemu()
    assert starts(machine, tmp_path) == ""


# --- KVM or not ------------------------------------------------------------------------------


def test_kvm_is_taken_if_a_guest_boots_under_it() -> None:
    assert choose_accel("auto", probe=lambda: None) == ("kvm", "a guest boots under it")
    assert choose_accel("kvm", probe=lambda: None) == ("kvm", "asked for")


def test_tcg_is_taken_otherwise_and_the_reason_is_kept() -> None:
    assert choose_accel("auto", probe=lambda: "no /dev/kvm") == ("tcg", "no /dev/kvm")


def test_kvm_that_is_asked_for_and_not_usable_cannot_run_here() -> None:
    with pytest.raises(CannotRunHere, match="--accel kvm: no /dev/kvm; --accel tcg needs"):
        choose_accel("kvm", probe=lambda: "no /dev/kvm")


def test_nobody_asks_kvm_when_tcg_is_wanted() -> None:
    def never() -> str:
        raise AssertionError

    assert choose_accel("tcg", probe=never) == ("tcg", "asked for")


def test_without_a_kvm_device_there_is_nothing_to_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accel, "KVM", tmp_path / "kvm")
    assert kvm_fault(tmp_path) == f"there is no {tmp_path / 'kvm'}"


def test_the_answer_is_remembered_until_the_host_boots_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def probe(which: str) -> str | None:
        asked.append(which)
        return None if len(asked) > 1 else "it hangs"

    device, boot_id = tmp_path / "kvm", tmp_path / "boot_id"
    device.touch()
    boot_id.write_text("one\n")
    monkeypatch.setattr(accel, "KVM", device)
    monkeypatch.setattr(accel, "BOOT_ID", boot_id)
    monkeypatch.setattr(accel, "probe_guest", probe)
    cache = tmp_path / "cache"
    assert [kvm_fault(cache), kvm_fault(cache)] == ["it hangs", "it hangs"]
    assert len(asked) == 1
    boot_id.write_text("two\n")
    assert [kvm_fault(cache), kvm_fault(cache)] == [None, None]
    assert asked == ["kvm", "kvm"]
    assert [path.name for path in cache.iterdir()] == ["kvm-two"]


def test_the_probe_guest_comes_up_where_emulation_surely_works() -> None:
    needs_qemu()
    assert probe_guest("tcg") is None


def test_a_probe_guest_that_does_not_come_up_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_qemu()
    monkeypatch.setattr(accel, "PROBE_DEADLINE_S", 0.01)
    assert probe_guest("tcg") == "a guest did not come up under tcg within 0.01 s"
    monkeypatch.undo()
    monkeypatch.setattr(accel, "PROBE_MARK", b"another mark\n")
    assert str(probe_guest("tcg")).startswith("a guest does not come up under tcg (")


def test_without_qemu_there_is_nothing_to_probe_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CannotRunHere, match=f"{QEMU}: not installed"):
        probe_guest("tcg")
