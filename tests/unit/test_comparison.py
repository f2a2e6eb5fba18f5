# SPDX-License-Identifier: GPL-2.0-only
"""A row that is compared with several published machines, each at its nearest thread count."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ream.errors import BadUsage
from ream.experiment import Experiment, load
from ream.measure.sample import Sample
from ream.published import check_references, load_tables
from ream.record.receipt import GuestFacts, Receipt
from ream.report import table
from ream.report.contract import Comparison, Summary
from summary_world import summarise

Simulated = Callable[..., list[Sample]]

FILE = """
name = "deferred-init"
question = "Do more threads initialise the struct pages of a node faster?"
launches = 8
variants = { before = ["before/deferred-init"], published = [] }

[[rows]]
name = "two"
memory_bytes = "4GiB"
threads = 2
rounds = 2
differs = ["a clock around the call here, the kernel's own there"]
[[rows.published]]
id = "deferred-init-skylake"
before = { threads = 0 }
value = "init_ms"
nearest = "threads"
[[rows.published]]
id = "deferred-init-zen-guest-4cpu"
before = { threads = 0 }
value = "init_ms"
nearest = "threads"
[[rows.published]]
id = "deferred-init-haswell-guest-4cpu"
params = { threads = 4 }
before = { threads = 0 }
value = "init_ms"

[[rows]]
name = "all"
memory_bytes = "16GiB"
rounds = 1
[rows.published]
id = "deferred-init-zen-guest-4cpu"
before = { threads = 0 }
value = "init_ms"
nearest = "threads"

[[rows]]
name = "alone"
memory_bytes = "4GiB"
threads = 2
rounds = 1
"""

TABLES = load_tables()
CPUS = {"published": 2}
FILLS = {("movnti-8", 1): 2.7}


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    path = tmp_path_factory.mktemp("experiment") / "deferred-init.toml"
    path.write_text(FILE)
    found = load(path)
    check_references(found.rows, TABLES)
    return found


def times(before: float, published: float) -> Mapping[str, float]:
    """Nanoseconds per struct page."""
    return {"before": before, "before-again": before, "published": published}


def summary_of(
    experiment: Experiment, samples: list[Sample], receipt: Receipt, **options: Any
) -> Summary:
    kernel = receipt.kernel.model_copy(update={"variants": {"before": (), "published": ()}})
    return summarise(
        experiment,
        options.pop("rows", experiment.rows),
        samples,
        TABLES,
        receipt.model_copy(update={"kernel": kernel}),
        run="20261121T021500Z-deferred-init-native-ab12",
        stage="native",
        **options,
    )


@pytest.fixture(scope="module")
def summary(experiment: Experiment, simulated: Simulated, receipt: Receipt) -> Summary:
    samples = [
        one
        for seed, row in enumerate(experiment.rows)
        for one in simulated(row, times(6.0, 3.3), FILLS, threads=CPUS, seed=seed)
    ]
    return summary_of(experiment, samples, receipt)


def test_one_counterpart_of_a_row_is_as_it_always_was(summary: Summary) -> None:
    _, all_cpus, alone = json.loads(json.dumps(summary.to_object()))["rows"]
    assert all_cpus["published_tables"] == alone["published_tables"] == []
    assert alone["published_table"] is None
    assert all_cpus["published_table"]["params"] == {"node_pct": 50, "threads": 2}
    assert not any("GiB" in text for text in all_cpus["published_table"]["differs"])
    assert [len(row.comparisons) for row in summary.rows] == [3, 1, 0]


def test_a_summary_in_short_counts_the_verdicts(summary: Summary) -> None:
    first, words = summary.rows[0], ("contradicts", "agrees", "agrees")
    several = tuple(
        one.model_copy(update={"verdict": word})
        for one, word in zip(first.published_tables, words, strict=True)
    )
    row = first.model_copy(update={"published_tables": several})
    said = table.render(summary.model_copy(update={"rows": (row,)})).splitlines()
    assert said[-1].endswith("not as published 1, agrees 2 of 3")  # the first is a control
    more = {f"mine-{n}": first.variants["published"] for n in range(2)}
    crowded = row.model_copy(update={"variants": {**row.variants, **more}})
    said = table.render(summary.model_copy(update={"rows": (crowded,)})).splitlines()
    assert said[-1].split()[-1] == "mixed"  # each stands above, in a line of its own
    assert max(map(len, said)) <= 100


def test_fewer_cpus_than_asked_for_count_as_what_they_were(
    experiment: Experiment, simulated: Simulated, receipt: Receipt
) -> None:
    rows = experiment.rows[:1]
    samples = simulated(rows[0], times(6.0, 5.8), FILLS)
    found = summary_of(experiment, samples, receipt, rows=rows).rows[0].published_tables
    assert [one.threads for one in found] == [1, 1, 4]
    assert [one.reason for one in found][2] == "4 threads there, 1 here"


def test_no_rate_is_made_of_a_time_that_is_not_the_maps(
    experiment: Experiment, simulated: Simulated, receipt: Receipt
) -> None:
    class Boot(type(experiment.rows[1])):
        @property
        def times_the_map(self) -> bool:
            return False

    boot = Boot.model_validate(dict(experiment.rows[1]))
    samples = simulated(boot, times(6.0, 3.3), FILLS, threads=CPUS)
    (found,) = summary_of(experiment, samples, receipt, rows=(boot,)).rows[0].comparisons
    assert found.gb_per_s is None
    assert not any("GB/s" in text for text in found.differs)


def test_an_emulated_guest_is_given_neither_verdict_nor_rate(
    experiment: Experiment, simulated: Simulated, receipt: Receipt
) -> None:
    guest = GuestFacts(
        qemu="QEMU", accel="tcg", accel_reason="no KVM", icount=False, cpus=1,
        memory_bytes={}, commands={}, kernels={},
    )  # fmt: skip
    row = experiment.rows[0]
    samples = simulated(row, times(6.0, 3.3), FILLS, threads=CPUS)
    emulated = receipt.model_copy(update={"guest": guest})
    found = summary_of(experiment, samples, emulated, rows=(row,)).rows[0].published_tables
    assert {one.verdict for one in found} == {"not-run"}
    assert "104 CPUs there, 2 here" in found[0].differs
    assert not any("GB/s" in text for one in found for text in one.differs)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("before = { threads = 0 }\n", "", "published.2: value is given, but not before"),
        ('nearest = "threads"', 'nearest = "cpus"', "nearest: must be 'threads'"),
        ('value = "init_ms"', "valeu = 1", "valeu: Extra inputs are not permitted"),
    ],
)
def test_a_faulty_reference_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "deferred-init.toml"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(BadUsage, match=said):
        load(path)


@given(
    of=st.integers(0, 2),
    field=st.sampled_from(sorted(Comparison.model_fields)),
    junk=st.none() | st.floats() | st.integers() | st.text(max_size=200) | st.just("x" * 200),
)
def test_no_damage_to_a_comparison_breaks_a_report(
    summary: Summary, of: int, field: str, junk: Any
) -> None:
    value = summary.to_object()
    value["rows"][0]["published_tables"][of][field] = junk
    try:
        damaged = Summary.from_object(value, source="run.json")
    except BadUsage:
        return
    lines = table.render(damaged).splitlines()
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() and line.isascii() for line in lines)
