# SPDX-License-Identifier: GPL-2.0-only
"""Variants that are one source in several configurations, where each is a computer of its own."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ream.errors import BadUsage
from ream.experiment import named
from ream.kernel.setup import Setup
from ream.kernel.source import Tree
from ream.progress import Reporter
from ream.session import computer
from ream.variants import Variant, asked_variants


def test_variants_of_two_configurations_are_two_computers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have the same source and the same patches."""
    built: list[Setup] = []

    def build(tree: Tree, *_: Any, **__: Any) -> Setup:
        built.append(tree.setup)
        return tree.setup

    monkeypatch.setattr(computer, "build_parts", build)
    tree, srso = (
        Tree(tmp_path, "key", "6.12", "6.12.1"),
        Setup("CONFIG_MITIGATION_SRSO=y", "srso.config"),
    )
    request: Any = SimpleNamespace(
        variants=[Variant(name, ()) for name in ("before", "before-again", "srso")],
        trees={"srso": tree.built(srso)},
        cache=tmp_path,
    )
    parts: Any = computer._parts(request, tree, work=tmp_path, reporter=Reporter())
    assert built == [Setup(), srso]
    assert [parts[name] for name in ("before", "before-again", "srso")] == [Setup(), Setup(), srso]


def test_a_variant_is_not_called_as_the_kernel_of_this_machine() -> None:
    texts = ["before", "running=before+distro.config"]
    with pytest.raises(BadUsage, match="is what the kernel of this machine is called"):
        asked_variants(named("mm").at("native"), texts, tree=None, version=None, control=False)
