# SPDX-License-Identifier: GPL-2.0-only
"""Extracts from a whole configuration, as of the running kernel, what hosted kernels can have."""

import gzip
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ream.counted import counted
from ream.errors import CannotRunHere
from ream.kernel.build import options

COPIED = (
    # Features of memory management.
    *("MEMCG", "LRU_GEN", "LRU_GEN_ENABLED", "NUMA_BALANCING", "ZSWAP"),
    *("INIT_ON_ALLOC_DEFAULT_ON", "INIT_ON_FREE_DEFAULT_ON", "SHUFFLE_PAGE_ALLOCATOR"),
    *("SLAB_FREELIST_RANDOM", "SLAB_FREELIST_HARDENED"),
    # Checks at run time.
    *("FORTIFY_SOURCE", "HARDENED_USERCOPY", "DEBUG_LIST", "DEBUG_VM", "PAGE_TABLE_CHECK"),
    # Calls, preemption and returns.
    *("PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT", "PREEMPT_LAZY", "PREEMPT_DYNAMIC"),
    *("CPU_MITIGATIONS", "MITIGATION_RETPOLINE", "MITIGATION_RETHUNK", "MITIGATION_UNRET_ENTRY"),
    *("MITIGATION_SRSO", "MITIGATION_SLS"),
)
"""Options that cost memory management time, and that hosted kernels can have."""

PARAVIRT = ("HYPERVISOR_GUEST", "PARAVIRT", "XEN", "XEN_PV", "PARAVIRT_XXL")
"""Options under which page tables are written by calls that are patched at boot, as for Xen."""

NOT_PATCHED = (
    *("MITIGATION_CALL_DEPTH_TRACKING", "MITIGATION_ITS"),
    "MITIGATION_PAGE_TABLE_ISOLATION",
)
"""Options that hosted kernels are not patched for: thunks of other CPUs, and kernel entry."""

NOT_HOSTED = (
    *("STACKPROTECTOR", "STACKPROTECTOR_STRONG", "RANDOMIZE_KSTACK_OFFSET", "FUNCTION_TRACER"),
    *("CFI", "CFI_CLANG", "KASAN", "KMSAN", "KCSAN", "PREEMPT_RT"),
)
"""Options that cost time and that no hosted kernel can have."""

IS_LAZY = "ARCH_HAS_PREEMPT_LAZY"
"""With this option a kernel has full or lazy preemption, and none of the weaker modes."""

_WHOLE = re.compile(
    r"^(?:# Automatically generated file;.*|CONFIG_CC_VERSION_TEXT=.*)$", re.MULTILINE
)
"""Lines that kconfig writes into each .config and that no fragment has."""
_LEFT_OUT = "# left out: "

VULNERABILITIES = "sys/devices/system/cpu/vulnerabilities"
NEW_ZEN_FAMILY = 0x19
"""Family of Zen 3 and 4, whose returns need another thunk than those of Zen 1 and 2."""


def running_config(root: Path = Path("/")) -> str:
    """Return the fragment of the running kernel's options; see hosted_config().

    Raises CannotRunHere if no file has the kernel's configuration.
    """
    return hosted_config(_options(root), root)


def is_whole(text: str) -> bool:
    """Whether options are a .config that kconfig wrote, and not a fragment."""
    return _WHOLE.search(text) is not None


def hosted_config(held: Mapping[str, str], root: Path = Path("/")) -> str:
    """Return a fragment with the options of a whole configuration that hosted kernels can have.

    A comment lists what is left out, and lines `# boot NAME=VALUE` describe how boot patches such a
    kernel's code on this CPU. root: the root of the file system to read.
    """
    lines = list(_lines(held))
    lines += (f"# boot {one}" for one in _boot(root, held))
    lines.append(f"{_LEFT_OUT}{_left_out(held)}")
    return "".join(f"{line}\n" for line in lines)


def left_out(fragment: str) -> str | None:
    """Return what hosted_config() left out, in words; None for a fragment that it did not make."""
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
    """Yield a line for each option, on or off, that applies if the tree has the option."""
    on = {name for name in COPIED if held.get(name) == "y"}
    if held.get("PREEMPT_RT") == "y":
        on.add("PREEMPT")  # the nearest mode
    if not on.intersection({"PREEMPT", "PREEMPT_VOLUNTARY"}):
        on.add("PREEMPT_NONE")  # for a kernel with lazy preemption only, in a tree without it
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
    """Yield how boot patched the running kernel's code, for native/libmm/kernel/patched.c."""
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
