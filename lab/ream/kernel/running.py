# SPDX-License-Identifier: GPL-2.0-only
"""The configuration of the kernel that this machine runs, as far as a hosted kernel can have it."""

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path

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

NOT_HOSTED = ("STACKPROTECTOR_STRONG", "RANDOMIZE_KSTACK_OFFSET", "FUNCTION_TRACER", "CFI")
"""Options that cost time, too, and that no hosted kernel can have."""

VULNERABILITIES = "sys/devices/system/cpu/vulnerabilities"
NEW_ZEN_FAMILY = 0x19
"""Zen 3 and 4, whose returns need another thunk than those of Zen 1 and 2."""


def running_config(root: Path = Path("/")) -> str:
    """A fragment with the running kernel's options, with comments that say what is not hosted.

    Lines `# boot NAME=VALUE` say how its boot patched code on this CPU. root: the file system to
    look into. Raises CannotRunHere where no file says how the kernel was configured.
    """
    held = _options(root)
    lines = list(_lines(held))
    lines += (f"# boot {one}" for one in _boot(root, held))
    lines += (f"# not hosted: CONFIG_{name}" for name in NOT_HOSTED if held.get(name) == "y")
    return "".join(f"{line}\n" for line in lines)


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
    for name in COPIED:
        yield _line(name, held.get(name) == "y")
    if held.get("PARAVIRT_XXL") == "y":
        yield from (_line(name, True) for name in PARAVIRT)
    yield from (_line(name, False) for name in NOT_PATCHED)


def _line(name: str, on: bool) -> str:
    line = f"CONFIG_{name}=y" if on else f"# CONFIG_{name} is not set"
    return f"{line} # with {name}"


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
