# SPDX-License-Identifier: GPL-2.0-only
"""What a source does not print, but what follows from it: shown as inferred, wherever it is."""

import pytest

from ream.experiment import named
from ream.published import Table, load_tables, lookup
from ream.record.machine import read_machine
from ream.replicate import contract
from ream.replicate.claims import claims
from ream.replicate.outcome import Replication, replicate_all
from ream.replicate.render import render
from ream.report.contract import Comparison, RowResult
from ream.report.html.tables import _counterpart
from ream.report.table import _several

TABLES = load_tables()


@pytest.fixture(scope="module")
def boot_log() -> Table:
    return lookup(TABLES, "deferred-init-triplett")


@pytest.fixture(scope="module")
def replication(boot_log: Table) -> Replication:
    """With no record, on a small machine."""
    experiments = [named("deferred-init")]
    machine = read_machine().model_copy(update={"nr_cpus": 2})
    (one,) = replicate_all([boot_log], (), experiments, machine, absent={}, failed={})
    return one


def test_the_boot_logs_nodes_had_half_of_its_cpus_each(boot_log: Table) -> None:
    assert [claim.printed.threads for claim in claims(boot_log)] == [48, 48]
    assert boot_log.cpus == 2 * 48
    assert [table.id for table in TABLES if table.inferred] == [boot_log.id]


def test_a_line_says_that_its_threads_are_inferred_and_others_do_not(boot_log: Table) -> None:
    (one, _) = claims(boot_log)
    assert one.printed.threads_there == "48 threads (inferred) there"
    assert (one.printed.param("threads"), one.printed.param("node")) == ("48 (inferred)", "0")
    printed = claims(lookup(TABLES, "deferred-init-skylake"))[2].printed
    assert printed.threads_there == "1 thread there"


def test_a_replication_shows_it_in_text_and_json(replication: Replication) -> None:
    assert "48 (inferred)" in " ".join(render([replication]).split())
    (shown,) = contract.to_object([replication])["tables"]
    assert [line["inferred"] for line in shown["lines"]] == [["threads"]] * 2
    assert {line["reason"] for line in shown["lines"]} == {"48 CPUs are needed, 2 are here"}


def test_a_rows_tables_show_it() -> None:
    one = Comparison(
        id="log", ratio=0.1, verdict="not-run", threads=48, inferred=("threads",), differs=()
    )
    row = RowResult(
        row="boot", params={}, unit="ns", better="lower", floor=None, limit=None, variants={},
        published_table=one, published_tables=(one, one),
    )  # fmt: skip
    assert "48 CPUs (inferred)" in _counterpart(one, row)[1]
    assert any("threads there: inferred" in line for line in _several(row, ""))
