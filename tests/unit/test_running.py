# SPDX-License-Identifier: GPL-2.0-only
"""The running kernel's options, and how its boot patched code: of made-up machines."""

import gzip
from pathlib import Path

import pytest

from ream.errors import CannotRunHere
from ream.kernel.build import options, suited
from ream.kernel.running import NOT_HOSTED, VULNERABILITIES, left_out, running_config
from ream.kernel.setup import Setup, named_config, unhosted, wanted_setup

ON = (
    *("MEMCG", "LRU_GEN", "MITIGATION_RETHUNK", "MITIGATION_RETPOLINE", "PARAVIRT_XXL"),
    "STACKPROTECTOR_STRONG",
)
VERSION = 'CONFIG_CC_VERSION_TEXT="gcc (Debian 14.2.0-19) 14.2.0"'


def machine(
    root: Path, *, on: tuple[str, ...] = ON, packed: bool = True, family: int = 6, **says: str
) -> Path:
    """A root directory of a machine; says: what its files of vulnerabilities hold."""
    config = "".join(f"CONFIG_{name}=y\n" for name in on) + "# CONFIG_DEBUG_VM is not set\n"
    files = {
        "proc/sys/kernel/osrelease": b"6.18.1-x\n",
        "proc/cpuinfo": f"processor\t: 0\ncpu family\t: {family}\n".encode(),
        **{f"{VULNERABILITIES}/{name}": text.encode() for name, text in says.items()},
    }
    name = "proc/config.gz" if packed else "boot/config-6.18.1-x"
    files[name] = gzip.compress(config.encode()) if packed else config.encode()
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return root


@pytest.mark.parametrize("packed", [True, False])
def test_options_are_as_the_running_kernel_has_them_where_the_tree_has_any(
    tmp_path: Path, packed: bool
) -> None:
    text = running_config(machine(tmp_path, packed=packed))
    held = options(text)
    assert {held[name] for name in ON[:-1]} == {"y"}
    assert {held[name] for name in ("DEBUG_VM", "NUMA_BALANCING", "MITIGATION_ITS")} == {"n"}
    assert "CONFIG_LRU_GEN=y # with LRU_GEN\n" in text
    assert held["XEN_PV"] == "y"
    assert "XEN_PV" not in options(running_config(machine(tmp_path, on=ON[:2], packed=packed)))


def test_what_cannot_be_hosted_is_said_and_not_asked_for(tmp_path: Path) -> None:
    text = running_config(machine(tmp_path))
    assert left_out(text) == (
        "CONFIG_STACKPROTECTOR_STRONG, which no hosted kernel can have, and 0 other options"
    )
    assert not options(Setup(text, "running").asked).keys() & set(NOT_HOSTED)


@pytest.mark.parametrize(
    ("family", "says", "boot"),
    [
        (6, {"spectre_v2": "Mitigation: Enhanced / Automatic IBRS"}, ()),
        (6, {"spectre_v2": "Mitigation: Retpolines"}, ("ream.indirect=retpoline",)),
        (23, {"retbleed": "Mitigation: untrained return thunk"}, ("ream.returns=retbleed",)),
        (23, {"spec_rstack_overflow": "Mitigation: Safe RET"}, ("ream.returns=srso",)),
        (25, {"spec_rstack_overflow": "Mitigation: Safe RET"}, ("ream.returns=srso_alias",)),
        (25, {"spec_rstack_overflow": "Vulnerable"}, ()),
    ],
)
def test_code_is_patched_as_on_this_cpu(
    tmp_path: Path, family: int, says: dict[str, str], boot: tuple[str, ...]
) -> None:
    text = running_config(machine(tmp_path, family=family, **says))
    assert Setup(text, "running").boot == (*boot, "ream.vmemmap=2M")


def test_without_returns_by_thunks_there_are_none_to_patch(tmp_path: Path) -> None:
    says = {"spec_rstack_overflow": "Mitigation: Safe RET", "spectre_v2": "Mitigation: Retpolines"}
    text = running_config(machine(tmp_path, on=("MEMCG",), family=25, **says))
    assert Setup(text, "running").boot == ("ream.vmemmap=2M",)


def test_a_kernel_that_does_not_say_how_it_was_configured_is_told(tmp_path: Path) -> None:
    (machine(tmp_path) / "proc/config.gz").unlink()
    with pytest.raises(CannotRunHere, match="name a file that says how the kernel was configured"):
        running_config(tmp_path)


def test_the_native_stage_takes_it_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ream.kernel.setup.running_config", lambda: "CONFIG_MEMCG=y\n")
    expected = Setup("CONFIG_MEMCG=y\n", "running")
    assert named_config("running", "native") == named_config("running.config", "native") == expected


@pytest.mark.parametrize("first", ["# Automatically generated file; DO NOT EDIT.", VERSION])
def test_of_a_whole_configuration_the_same_is_taken_as_of_the_running_kernel(
    tmp_path: Path, first: str
) -> None:
    file = tmp_path / "my.config"
    names = ("LRU_GEN", "STACKPROTECTOR", "KASAN", "EXT4_FS", "USB")
    file.write_text(f"{first}\n" + "".join(f"CONFIG_{name}=y\n" for name in names))
    said: list[str] = []
    setup = wanted_setup(str(file), "gcc", "native", step=said.append)
    held = options(setup.config)
    assert (held["LRU_GEN"], held["MEMCG"], setup.name) == ("y", "n", "my.config")
    assert not held.keys() & {*unhosted(), "EXT4_FS"}
    (line,) = said
    assert line.startswith("my.config: what costs memory management time is taken; left out: CON")
    assert "CONFIG_STACKPROTECTOR, CONFIG_KASAN, which no hosted kernel can have, and" in line
    assert named_config(str(file), "vm").config == file.read_text()


def test_of_a_fragment_nothing_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "few.config").write_text("CONFIG_64BIT=y\nCONFIG_EXT4_FS=y\n")
    said: list[str] = []
    setup = wanted_setup(str(tmp_path / "few.config"), "gcc", "native", step=said.append)
    assert options(setup.config) == {"64BIT": "y", "EXT4_FS": "y"}
    assert not said


def test_no_option_that_is_refused_is_taken_of_a_whole_configuration() -> None:
    assert set(unhosted()) <= set(NOT_HOSTED)


@pytest.mark.parametrize("model", ["NONE", "VOLUNTARY", "LAZY", "RT", ""])
@pytest.mark.parametrize("has_lazy", [True, False])
def test_one_way_to_preempt_is_asked_for_that_the_tree_has(
    tmp_path: Path, model: str, has_lazy: bool
) -> None:
    models = ("NONE", "VOLUNTARY", "LAZY", "") if has_lazy else ("NONE", "VOLUNTARY", "")
    names = [f"PREEMPT_{one}".rstrip("_") for one in models]
    lazy = "config ARCH_HAS_PREEMPT_LAZY\n" if has_lazy else ""
    (tmp_path / "Kconfig").write_text(lazy + "".join(f"config {name}\n" for name in names))
    name = f"PREEMPT_{model}".rstrip("_")
    held = options(suited(running_config(machine(tmp_path, on=(name,))), tmp_path))
    asked = [one for one in names if held.get(one) == "y"]
    other = "PREEMPT_LAZY" if has_lazy else name if name in names else "PREEMPT_NONE"
    assert asked == ["PREEMPT" if model in {"RT", ""} else other]
