# SPDX-License-Identifier: GPL-2.0-only
"""A computer with every remedy returns and calls as its boot is told, and does what it did."""

from collections.abc import Mapping
from dataclasses import replace
from errno import ENOSPC
from pathlib import Path

import pytest

from ream.command import Command, run
from ream.kernel.base import default_base
from ream.kernel.setup import named_config
from ream.kernel.source import fetch_tree
from ream.paths import NATIVE
from ream.stage.computer import Checks, Computer, build_parts

pytestmark = pytest.mark.xdist_group("computer")

OK = 0
NM_S = 20.0

PROGRAM = """\
0 memory 131072 65536 0 0
1 mmap 0 0 512 3 34 -1 0
2 write 0 0 512 0
3 fork 0 1
4 write 1 0 64 0
5 mprotect 0 0 256 1
6 move_pages 0 0 256 1 2
7 mremap 0 0 512 512 3 4096
8 read 0 4096 512
9 exit 1
10 munmap 0 4096 512
"""

RETURNS = {
    "retbleed": "retbleed_return_thunk",
    "srso": "srso_return_thunk",
    "srso_alias": "srso_alias_return_thunk",
}
SETTER, IDENTITY = "native_set_pmd", "_paravirt_ident_64"
"""Functions of pv_ops: no instruction replaces a call of the first, and one does of the other."""

THUNK, PLAIN = "__x86_indirect_thunk_rax", "__x86_return_thunk"
"""What indirect calls and returns are compiled to use; nothing returns by the latter after boot."""

WAYS: Mapping[tuple[str, str], frozenset[str]] = {
    ("rethunk", ""): frozenset(),
    ("rethunk", "ream.indirect=retpoline"): frozenset({THUNK}),
    **{("rethunk", f"ream.returns={kind}"): frozenset({its}) for kind, its in RETURNS.items()},
    ("rethunk", "ream.returns=srso ream.indirect=retpoline"): frozenset({THUNK, RETURNS["srso"]}),
    ("paravirt", ""): frozenset({SETTER}),
    ("paravirt", "ream.pv=direct"): frozenset({SETTER, IDENTITY}),
    ("paravirt", "ream.pv=indirect"): frozenset({SETTER, IDENTITY}),
}
"""By options and what boot is told, the functions that are executed of those above."""


@pytest.fixture(scope="module")
def bare(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Computer:
    return linked("bare", cache, tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module")
def patching(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Computer]:
    """Computers whose code boot patches, by their options. All of mm/ is compiled for each."""
    names = ("rethunk", "paravirt")
    return {name: linked(name, cache, tmp_path_factory.mktemp(name)) for name in names}


def linked(name: str, cache: Path, work: Path) -> Computer:
    """A computer whose kernel has the options of a file, or ours alone."""
    tree = fetch_tree(default_base(), cache=cache, step=print)
    its = tree if name == "bare" else tree.built(named_config(name, "native"))
    return build_parts(its, [], NATIVE / "libmm", cache=cache, work=work, step=print).link(work)


def places(computer: Computer) -> dict[int, str]:
    """The functions above by their addresses."""
    named = run(Command(("nm", str(computer.program)), computer.program.parent, NM_S))
    symbols = (line.split() for line in named.splitlines())
    wanted = {SETTER, IDENTITY, THUNK, PLAIN, *RETURNS.values()}
    return {int(one[0], 16): one[2] for one in sorted(symbols) if one[-1] in wanted}


@pytest.mark.vm
@pytest.mark.parametrize(("name", "words"), WAYS, ids=" ".join)
def test_code_is_patched_as_boot_is_told_and_does_the_same(
    patching: Mapping[str, Computer], name: str, words: str
) -> None:
    told = replace(patching[name], boot=tuple(words.split()))
    code, said = told.report(PROGRAM)
    assert (code, said[-1]["alarms"]) == (OK, 0), said[-3:]
    at = places(told)
    blocks = told.program.with_name("blocks")
    blocks.write_text("".join(f"{address:x}\n" for address in at))
    met = told.report(PROGRAM, checks=Checks.NEVER, blocks=blocks)[1][-1]["met"]
    assert {[*at.values()][number] for number in met} == WAYS[name, words]


@pytest.mark.vm
def test_the_state_is_the_same_with_every_kind_of_returns_and_calls(
    patching: Mapping[str, Computer],
) -> None:
    told = (replace(patching[name], boot=tuple(words.split())) for name, words in WAYS)
    assert len({one.report(PROGRAM)[1][-1]["digest"] for one in told}) == 1


def test_a_computer_without_the_memory_controller_charges_nobody(bare: Computer) -> None:
    """The step `group` finds none to make, and all of memory is checked as ever."""
    made = PROGRAM.replace("1 mmap", "1 group 0 0\n1 mmap")
    for words, returned in ((), 0), (("ream.memcg=off",), -ENOSPC):
        code, said = replace(bare, boot=words).report(made)
        assert (code, said[-1]["alarms"]) == (OK, 0), said[-3:]
        steps = [one for one in said if one.get("step") == "group"]
        assert [one["returned"] for one in steps] == [returned]


def test_descriptors_in_huge_pages_change_no_state(bare: Computer) -> None:
    told = (replace(bare, boot=words) for words in ((), ("ream.vmemmap=2M",)))
    assert len({one.report(PROGRAM)[1][-1]["digest"] for one in told}) == 1


@pytest.mark.vm
def test_a_kernel_whose_preemption_is_chosen_at_boot_runs_programs(
    cache: Path, tmp_path: Path
) -> None:
    code, said = linked("preempt", cache, tmp_path).report(PROGRAM)
    assert (code, said[-1]["alarms"]) == (OK, 0), said[-3:]


@pytest.mark.vm
def test_a_word_that_boot_does_not_know_ends_the_run(patching: Mapping[str, Computer]) -> None:
    code, said = replace(patching["rethunk"], boot=("ream.returns=never",)).report(PROGRAM)
    assert code != OK
    assert "there is no such way" in str(said)
