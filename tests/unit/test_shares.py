# SPDX-License-Identifier: GPL-2.0-only
"""What verdicts say of hosted times on a type of CPU: from the newest run that compared them."""

import json
from pathlib import Path
from types import SimpleNamespace

from ream.experiment import named
from ream.history.shares import share_remarks
from ream.record.record import PLAN, RECEIPT, RUN

CPU = {"cpu": "A CPU", "family": 6, "model": 7}
TYPE = "A CPU (family 6 model 7)"
ROWS = (
    SimpleNamespace(name="fork-4k", published=("table",), size_of="fork 4K"),
    SimpleNamespace(name="fork-64k", published=("table",), size_of="fork 64K"),
    SimpleNamespace(name="no-table", published=(), size_of="fork 4K"),
    SimpleNamespace(name="no-call", published=("table",), size_of=None),
)


def record(
    runs: Path,
    name: str,
    ratio: float | None,
    *,
    beside: bool = True,
    machine: dict[str, object] = CPU,
) -> None:
    over = None if ratio is None else {"ratio": ratio, "low": ratio - 0.1, "high": ratio + 0.1}
    slope = {"kind": "fork 4K", "over": {"before": over}}
    files = {
        RUN: {"run": name, "rows": [{"row": "large", "live": {"slope": slope}}, {"row": "small"}]},
        RECEIPT: {"machine": machine},
        PLAN: {"beside_live": beside},
    }
    (runs / name).mkdir(parents=True)
    for file, content in files.items():
        (runs / name / file).write_text(json.dumps({"schema": 1, **content}))


def test_rows_with_a_table_quote_the_newest_run_on_this_type_of_cpu(tmp_path: Path) -> None:
    record(tmp_path, "1-mm-native-a", 1.5)
    record(tmp_path, "2-mm-native-b", 1.25)
    record(tmp_path, "3-mm-native-c", 9.0, beside=False)
    record(tmp_path, "4-mm-native-d", 9.0, machine={**CPU, "model": 8})
    (tmp_path / "5-mm-native-e").mkdir()
    found = share_remarks(ROWS, TYPE, (tmp_path / "nothing", tmp_path))
    words = (
        "on this type of CPU the running kernel takes 1.25 [1.15 .. 1.35] times as long for each"
        " further page as hosted before (2-mm-native-b)"
    )
    assert found == {"fork-4k": (words,)}


def test_noise_and_other_types_of_cpu_say_nothing(tmp_path: Path) -> None:
    record(tmp_path, "1-mm-native-a", None)
    assert share_remarks(ROWS, TYPE, (tmp_path,)) == {}
    assert share_remarks(ROWS, "another CPU", (tmp_path,)) == {}
    (tmp_path / "1-mm-native-a" / RUN).write_text("{")
    assert share_remarks(ROWS, TYPE, (tmp_path,)) == {}


def test_rows_of_fork_and_those_that_the_running_kernel_performs_have_names_in_common() -> None:
    calls = {row.size_of for row in named("fork").rows if row.published}
    beside = {row.size_of for row in named("mm").rows if row.beside_live}
    assert {"fork 4K", "fork 64K", "fork 2M"} <= calls & beside
