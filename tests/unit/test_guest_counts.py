# SPDX-License-Identifier: GPL-2.0-only
"""What the plugin says of a whole kernel's functions, and which sample it says it of."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from ream.command import Command, run
from ream.count.counter import OF_MEMORY, QUANTITIES
from ream.count.guest import Counted, kernel_counter, together, with_counts
from ream.errors import BadUsage, ReamError
from ream.experiment import Experiment, named
from ream.measure.sample import Sample
from ream.session.request import CountOptions, GuestOptions, Request
from ream.session.vm import planned

KERNEL = """
int whole(int x) { return x + 1; }
__asm__(".globl same; .type same, @function; same: ret; .size same, . - same\\n"
        ".type whole.cold, @function; whole.cold: nop; ret; .size whole.cold, . - whole.cold");
"""


def window(name: int, *counts: list[int]) -> str:
    memory = dict.fromkeys(OF_MEMORY, 2)
    return json.dumps({"window": 1, "name": name, **memory, "functions": counts}) + "\n"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("kernel")
    (place / "kernel.c").write_text(KERNEL)
    run(Command(("gcc", "-c", "kernel.c", "-o", "vmlinux"), place, 60))
    return place / "vmlinux"


def test_parts_of_a_function_are_counted_with_it(kernel: Path, tmp_path: Path) -> None:
    counter = kernel_counter(Path("count.so"), kernel, tmp_path / "listed")
    assert sorted(counter.names) == ["same", "whole", "whole"]
    lines = [line.split() for line in (tmp_path / "listed").read_text().splitlines()]
    ends = [(int(start, 16), int(end, 16)) for start, end, _, _ in lines]
    assert all(first[1] <= then[0] for first, then in pairwise(ends))
    assert len({line[3] for line in lines}) == 2
    out = tmp_path / "out"
    counts = [[number, 10 + number, *[0] * (len(QUANTITIES) - 1)] for number in range(3)]
    out.write_text(window(7, *counts) + window(8, counts[0]))
    its = counter.counted(out, 7)
    assert sum(one["instructions"] for one in its.functions.values()) == 10 + 11 + 12
    assert its.functions.keys() == {"same", "whole"}
    with pytest.raises(ReamError, match="sample named 9"):
        counter.counted(out, 9)


def test_the_windows_of_a_sample_are_added() -> None:
    memory = dict.fromkeys(OF_MEMORY, 1)
    one = Counted(functions={"f": {"loads": 1}}, memory=memory)
    other = Counted(functions={"f": {"loads": 2}, "g": {"stores": 3}}, memory=memory)
    both = together([one, other])
    assert both is not None
    assert both.functions == {"f": {"loads": 3}, "g": {"stores": 3}}
    assert both.memory["pages"] == 2
    assert together([None, None]) is None


def test_a_sample_keeps_the_guest_s_own_clock() -> None:
    sample = Sample("r", 0, 0, "variant", "ream", 1, time_ns=99, nr_bytes=64, verified=True)
    assert with_counts(sample, None) is sample
    memory = dict.fromkeys(OF_MEMORY, 4)
    its = with_counts(sample, Counted(functions={"f": {"instructions": 7}}, memory=memory))
    assert (its.time_ns, its.functions) == (99, {"f": {"instructions": 7}})
    assert its.beside["lines_read"] == 4


def test_guests_that_tell_no_windows_are_refused() -> None:
    whole: Experiment = named("compact").at("vm")
    request = Request(
        experiment=whole,
        stage="vm",
        variants=(),
        tree=None,  # type: ignore[arg-type]
        threads=None,
        seed=1,
        runs=Path(),
        cache=Path(),
        command="",
        guest=GuestOptions(),
        count=CountOptions(),
    )
    with pytest.raises(BadUsage, match="guests of compact do not tell"):
        planned(request, lambda _options: pytest.fail("asked for a machine"))
