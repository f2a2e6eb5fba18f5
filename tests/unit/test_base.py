# SPDX-License-Identifier: GPL-2.0-only
"""kernel/base: the kernels that can be asked for by their version."""

import re
from pathlib import Path

import pytest

from ream.cli.app import wanted_tree
from ream.errors import BadUsage
from ream.folders import base_names
from ream.kernel import base
from ream.kernel.base import base_named, default_base, newest_package
from ream.paths import KERNEL_BASE


def test_every_file_is_a_base_of_its_version() -> None:
    names = base_names()
    assert {"6.1", "6.12", "7.2", "7.3"} <= set(names)
    for name in names:
        one = base_named(name)
        assert (one.name, one.package) == (name, f"linux-source-{name}")
    assert default_base().name == "6.12"


def test_versions_are_compared_as_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("6.1", "6.12", "6.9", "10.0"):
        (tmp_path / f"{name}.toml").touch()
    monkeypatch.setattr("ream.folders.KERNEL_BASE", tmp_path)
    assert base_names() == ["10.0", "6.12", "6.9", "6.1"]
    assert newest_package(["linux-source-6.9", "linux-source-6.12"]) == "linux-source-6.12"
    assert newest_package(["linux-source", "linux-source-rt", "gcc"]) is None


def test_latest_is_looked_for_in_the_suites_of_all() -> None:
    latest = base_named("latest")
    assert latest.package is None
    assert {"unstable", "trixie-backports"} <= set(latest.suites)


def test_a_base_that_there_is_none_of_is_one_line_with_those_there_are() -> None:
    with pytest.raises(BadUsage, match=r"--base 7.4: no such base.*7\.3, 7\.2, .*--tree") as said:
        base_named("7.4")
    assert "\n" not in str(said.value)


def test_base_and_tree_name_one_thing() -> None:
    with pytest.raises(BadUsage, match=r"--base 7\.3 --tree /x: each names the kernel source"):
        wanted_tree("7.3", Path("/x"))
    assert wanted_tree(None, Path("/x")) == Path("/x")
    assert wanted_tree("7.3", None) == base_named("7.3")
    assert wanted_tree(None, None) is None


def test_a_faulty_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "9.9.toml").write_text("package = 3\nsuit = []\n")
    monkeypatch.setattr("ream.folders.KERNEL_BASE", tmp_path)
    monkeypatch.setattr(base, "KERNEL_BASE", tmp_path)
    with pytest.raises(BadUsage, match=re.escape(f"{tmp_path}/9.9.toml: package: ")) as said:
        base_named("9.9")
    assert "suit" in str(said.value)


def test_no_file_names_a_host() -> None:
    for file in KERNEL_BASE.glob("*.toml"):
        assert "://" not in file.read_text()
