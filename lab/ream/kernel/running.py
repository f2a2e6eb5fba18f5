# SPDX-License-Identifier: GPL-2.0-only
"""What hosted kernels can have of a whole configuration, as of the kernel that runs here."""

import gzip
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ream.counted import counted
from ream.errors import CannotRunHere
from ream.kernel.build import options

COPIED = (
    # What memory management does.
    *("MEMCG", "LRU_GEN", "LRU_GEN_ENABLED", "NUMA_BALANCING", "ZSWAP"),
    *("INIT_ON_ALLOC_DEFAULT_ON", "INIT_ON_FREE_DEFAULT_ON", "SHUFFLE_PAGE_ALLOCATOR"),
    *("SLAB_FREELIST_RANDOM", "SLAB_FREELIST_HARDENED"),
    # What is checked meanwhile.
    *("FORTIFY_SOURCE", "HARDENED_USERCOPY", "DEBUG_LIST", "DEBUG_VM", "PAGE_TABLE_CHECK"),
    # How code is called, preempted and returned from.
    *("PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT", "PREEMPT_LAZY", "PREEMPT_DYNAMIC"),
    *("CPU_MITIGATIONS", "MITIGATION_RETPOLINE", "MITIGATION_RETHUNK", "MITIGATION_UNRET_ENTRY"),
    *("MITIGATION_SRSO", "MITIGATION_SLS"),
)
"""Options that cost memory management time, and that hosted kernels can have."""

PARAVIRT = ("HYPERVISOR_GUEST", "PARAVIRT", "XEN", "XEN_PV", "PARAVIRT_XXL")
"""What makes page tables be written by calls that boot patches: Xen's, whoever else selects it."""

NOT_PATCHED = (
    *("MITIGATION_CALL_DEPTH_TRACKING", "MITIGATION_ITS"),
    "MITIGATION_PAGE_TABLE_ISOLATION",
)
"""What hosted kernels are not patched for: thunks of other CPUs, and what entering costs."""

NOT_HOSTED = (
    *("STACKPROTECTOR", "STACKPROTECTOR_STRONG", "RANDOMIZE_KSTACK_OFFSET", "FUNCTION_TRACER"),
    *("CFI", "CFI_CLANG", "KASAN", "KMSAN", "KCSAN", "PREEMPT_RT"),
)
"""Options that cost time, too, and that no hosted kernel can have."""

IS_LAZY = "ARCH_HAS_PREEMPT_LAZY"
"""A kernel that has it on is preempted or, in place of all that is less, preempted lazily."""

_WHOLE = re.compile(
    r"^(?:# Automatically generated file;.*|CONFIG_CC_VERSION_TEXT=.*)$", re.MULTILINE
)
"""What kconfig writes into each .config, and nobody asks for."""
_LEFT_OUT = "# left out: "

VULNERABILITIES = "sys/devices/system/cpu/vulnerabilities"
NEW_ZEN_FAMILY = 0x19
"""Zen 3 and 4, whose returns need another thunk than those of Zen 1 and 2."""


def running_config(root: Path = Path("/")) -> str:
    """The fragment of the running kernel's options; as hosted_config().

    Raises CannotRunHere where no file says how the kernel was configured.
    """
    return hosted_config(_options(root), root)


def is_whole(text: str) -> bool:
    """Whether options are a .config that kconfig has written, and no fragment."""
    return _WHOLE.search(text) is not None


def hosted_config(held: Mapping[str, str], root: Path = Path("/")) -> str:
    """A fragment with what memory management has of a whole configuration, where it can be hosted.

    A comment says what is left out, and lines `# boot NAME=VALUE` how boot patches such a kernel's
    code on this CPU. root: the file system to look into.
    """
    lines = list(_lines(held))
    lines += (f"# boot {one}" for one in _boot(root, held))
    lines.append(f"{_LEFT_OUT}{_left_out(held)}")
    return "".join(f"{line}\n" for line in lines)


def left_out(fragment: str) -> str | None:
    """What hosted_config() has left out, in words; None of a fragment that it has not made."""
    found = (line for line in fragment.splitlines() if line.startswith(_LEFT_OUT))
    return next((line.removeprefix(_LEFT_OUT) for line in found), None)


def _left_out(held: Mapping[str, str]) -> str:
    on = {name for name, value in held.items() if value != "n"}
    names = [f"CONFIG_{name}" for name in NOT_HOSTED if name in on]
    nr_others = len(on.difference(COPIED, PARAVIRT, NOT_HOSTED))
    others = counted(nr_others, "other option")
    return f"{', '.join(names)}, which no hosted kernel can have, and {others}" if names else others


def _options(root: Path) -> Mapping[str, str]:
    release = (root / "proc/sys/kernel/osrelease").read_text(encoding="ascii").strip()
    packed = root / "proc/config.gz"
    if packed.exists():
        return options(gzip.decompress(packed.read_bytes()).decode())
    places = (root / f"boot/config-{release}", root / f"lib/modules/{release}/config")
    for place in places:
        if place.exists():
            return options(place.read_text(encoding="utf-8"))
    raise CannotRunHere(
        f"--config running: neither {packed} nor {' nor '.join(map(str, places))} is there:"
        " name a file that says how the kernel was configured"
    )


def _lines(held: Mapping[str, str]) -> Iterator[str]:
    """Each option where the tree has it, whether it is on or off."""
    on = {name for name in COPIED if held.get(name) == "y"}
    if held.get("PREEMPT_RT") == "y":
        on.add("PREEMPT")  # which is nearest
    if not on.intersection({"PREEMPT", "PREEMPT_VOLUNTARY"}):
        on.add("PREEMPT_NONE")  # where a kernel has lazy preemption alone, in a tree that has none
    for name in COPIED:
        if name in ("PREEMPT_NONE", "PREEMPT_VOLUNTARY"):
            yield _line(name, name in on, f"without {IS_LAZY}")
        elif name == "PREEMPT_LAZY":
            yield _line(name, "PREEMPT" not in on, f"with {IS_LAZY}")
        else:
            yield _line(name, name in on)
    if held.get("PARAVIRT_XXL") == "y":
        yield from (_line(name, True) for name in PARAVIRT)
    yield from (_line(name, False) for name in NOT_PATCHED)


def _line(name: str, on: bool, where: str = "") -> str:
    line = f"CONFIG_{name}=y" if on else f"# CONFIG_{name} is not set"
    return f"{line} # {where or f'with {name}'}"


def _boot(root: Path, held: Mapping[str, str]) -> Iterator[str]:
    """How boot patched the running kernel's code: native/libmm/kernel/patched.c does the same."""
    said = {name: _said(root, name) for name in ("spectre_v2", "retbleed", "spec_rstack_overflow")}
    if held.get("MITIGATION_RETHUNK") == "y":
        if "Safe RET" in said["spec_rstack_overflow"]:
            new = _family(root) >= NEW_ZEN_FAMILY
            yield f"ream.returns={'srso_alias' if new else 'srso'}"
        elif "untrained return thunk" in said["retbleed"]:
            yield "ream.returns=retbleed"
    if held.get("MITIGATION_RETPOLINE") == "y" and "Retpolines" in said["spectre_v2"]:
        yield "ream.indirect=retpoline"
    yield "ream.vmemmap=2M"


def _said(root: Path, name: str) -> str:
    try:
        return (root / VULNERABILITIES / name).read_text(encoding="ascii")
    except OSError:
        return ""


def _family(root: Path) -> int:
    for line in (root / "proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("cpu family"):
            return int(line.partition(":")[2])
    return 0
