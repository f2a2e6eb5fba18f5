# SPDX-License-Identifier: GPL-2.0-only
"""The series' helpers on their own: copies of every size, and the section number in the flags."""

import subprocess
from pathlib import Path

import pytest

from ream.experiment import named
from ream.kernel.source import Tree
from ream.measure.plan import Launch
from ream.stage.bench import NATIVE_CONFIG, build_bench
from ream.stage.native import runner_argv
from ream.variants import choose_variants

HELPERS = Path(__file__).parent / "helpers"


@pytest.mark.parametrize(
    ("model", "in_flags"),
    [
        pytest.param("", "0", id="vmemmap"),
        pytest.param(
            "# CONFIG_SPARSEMEM_VMEMMAP is not set\n# CONFIG_ZONE_DEVICE is not set\n",
            "1",
            id="classic sparse memory",
            marks=pytest.mark.vm,
        ),
    ],
)
@pytest.mark.parametrize("variant", ["published"])
def test_helpers_do_what_their_comments_promise(  # noqa: PLR0917
    kernel: Tree,
    cache: Path,
    tmp_path: Path,
    variant: str,
    model: str,
    in_flags: str,
) -> None:
    # The last word counts: kconfig takes a fragment's later line over an earlier one.
    dropped = ("X86_5LEVEL", "SPARSEMEM_VMEMMAP", "ZONE_DEVICE", "DEVICE_PRIVATE", "PCI_P2PDMA")
    lines = NATIVE_CONFIG.read_text().splitlines()
    kept = [line for line in lines if not (model and any(f"CONFIG_{d}=" in line for d in dropped))]
    fragment = tmp_path / "helpers.config"
    fragment.write_text("\n".join(kept) + "\n" + model)
    (chosen,) = (one for one in choose_variants(named("zone-device")) if one.name == variant)
    bench = build_bench(
        kernel,
        (chosen,),
        folder=HELPERS,
        cache=cache,
        work=tmp_path,
        step=print,
        config=fragment,
    )
    program = bench.link(Launch(0, 1, 0, (variant,)))
    plan = tmp_path / "plan"
    plan.write_text("name=all\n")
    argv = [*runner_argv(program), "--plan", str(plan), "--launch", "0", "--seed", "1"]
    said = subprocess.check_output(argv, text=True)
    assert dict(line.split() for line in said.splitlines() if not line.startswith("{")) == {
        "section_in_page_flags": in_flags,
        "streaming": "0",
        "flushcache": "0",
        "section": "0",
    }
