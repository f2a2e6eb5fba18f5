# SPDX-License-Identifier: GPL-2.0-only
"""What docs/results.md quotes of types of CPU is pooled over runs."""

import re

from ream.history.pooled import lines, pooled, ratios_in
from ream.paths import CHECKOUT, RECORDS


def test_results_md_prints_what_the_command_prints() -> None:
    text = (CHECKOUT / "docs/results.md").read_text()
    (block,) = re.findall(r"ream history --pooled.*?```\n\n```\n(.*?)```", text, re.DOTALL)
    printed = list(lines(pooled(ratios_in(RECORDS))))
    shown = block.splitlines()
    heads = [number for number, line in enumerate(shown) if not line.startswith(" ")]
    assert len(heads) >= 10
    for begin, end in zip(heads, [*heads[1:], len(shown)], strict=True):
        at = printed.index(shown[begin])
        assert printed[at : at + end - begin] == shown[begin:end]
