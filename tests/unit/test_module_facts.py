# SPDX-License-Identifier: GPL-2.0-only
"""Facts out of a module's file: tried on an object that has them as the module has."""

import re
import subprocess
from pathlib import Path

import pytest

from ream.errors import ReamError
from ream.paths import KERNEL_MODULES
from ream.stage.module_facts import NAME_BYTES, SECTION, read_facts

SOURCE = """
static const struct { char name[%d]; unsigned long long value; } facts[]
__attribute__((used, section("%s"))) = { %s };
int other = 7;
"""


def compiled(tmp_path: Path, facts: str, section: str = SECTION) -> Path:
    source, out = tmp_path / "memmap.c", tmp_path / "memmap.ko"
    source.write_text(SOURCE % (NAME_BYTES, section, facts))
    subprocess.run(["gcc", "-c", source, "-o", out], check=True)
    return out


def test_names_and_values_are_read(tmp_path: Path) -> None:
    module = compiled(tmp_path, '{ "sizeof.page", 64 }, { "LIST_POISON1", 0xdead000000000100 }')
    assert read_facts(module, tmp_path) == {"sizeof.page": 64, "LIST_POISON1": 0xDEAD000000000100}


def test_a_module_without_facts_is_named(tmp_path: Path) -> None:
    module = compiled(tmp_path, '{ "a", 1 }', section=".data")
    with pytest.raises(ReamError, match=r"memmap\.ko: 0 bytes in its section"):
        read_facts(module, tmp_path)


def test_the_module_has_them_as_they_are_read() -> None:
    source = (KERNEL_MODULES / "memmap" / "memmap.c").read_text()
    assert f"#define FACT_NAME_BYTES {NAME_BYTES}\n" in source
    assert f'__section("{SECTION}")' in source
    for header in ("facts.h", "buddy_facts.h"):
        text = (KERNEL_MODULES / "memmap" / header).read_text()
        assert all(len(name) < NAME_BYTES for name in re.findall(r'"([^"]+)"', text))
