# SPDX-License-Identifier: GPL-2.0-only
import json
import string
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ream.errors import BadUsage
from ream.experiment import format_size, load, named, parse_size
from ream.experiment.shape import FINER_LAUNCHES, MOST_FINER
from ream.published import load_tables, lookup

MINIMAL = """
name = "zone-device"
question = "Is it?"
launches = 2
[variants]
published = ["zone-device"]
[[rows]]
name = "small"
device_bytes = "128MiB"
order = 0
type = "FS_DAX"
rounds = 1
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "fork.toml"
    path.write_text(text)
    return path


def test_the_zone_device_experiment_is_valid_and_its_published_rows_exist() -> None:
    experiment = named("zone-device")
    tables = load_tables()
    assert experiment.variant_names() == ("before", "before-again", "published", "ream")
    for row in experiment.rows:
        for ref in row.published:
            table = lookup(tables, ref.id)
            assert table.experiment == experiment.name
            assert table.printed(ref).ratio is not None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("100GiB", 100 << 30),
        ("64G", 64 << 30),
        ("2M", 2 << 20),
        ("2m", 2 << 20),
        ("1 TiB", 1 << 40),
        ("16k", 16 << 10),
        (" 4096 ", 4096),
    ],
)
def test_a_size_is_read_in_binary_units(text: str, size: int) -> None:
    assert parse_size(text) == size


GRID = (
    MINIMAL.replace("small", "{order}-{type}")
    .replace("order = 0", "order = [0, 9]")
    .replace(
        'type = "FS_DAX"',
        'type = ["FS_DAX", "GENERIC"]\ndiffers = ["order {order} of {this}", "else"]',
    )
)


def test_a_row_whose_name_has_fields_in_braces_is_one_for_each_of_their_values(
    tmp_path: Path,
) -> None:
    rows = load(written(tmp_path, GRID)).rows
    names = ["0-FS_DAX", "0-GENERIC", "9-FS_DAX", "9-GENERIC"]
    assert [row.name for row in rows] == names
    assert [(row.params()["order"], row.params()["type"]) for row in rows] == [
        (0, "FS_DAX"), (0, "GENERIC"), (9, "FS_DAX"), (9, "GENERIC"),
    ]  # fmt: skip
    assert rows[2].differs == ("order 9 of {this}", "else")


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("[0, 9]", "0", "rows.0.name: {order}: no list of values (it is '{order}-{type}')"),
        ("[0, 9]", "[]", "rows.0.name: {order}: no list of values (it is '{order}-{type}')"),
        ("order = [0, 9]", "", "rows.0.name: {order}: no field of this row (it is '{order}-{type}"),
        ("[0, 9]", '[0, "x"]', "rows.0.order: must be a valid integer (it is 'x')"),
        ("[0, 9]", "[0, 0]", "more than one row is called 0-FS_DAX, 0-GENERIC"),
        ("{order}", "{}", "rows.0.name: {}: no field of this row"),
        ("{order}-{type}", "small", "rows.0.order: must be a valid integer (it is [0, 9])"),
        ('"128MiB"', '"1 fathom"', "rows.0.device_bytes: not a size"),
    ],
)
def test_a_fault_of_a_grid_is_told_once_and_of_its_place_in_the_file(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    with pytest.raises(BadUsage) as refused:
        load(written(tmp_path, GRID.replace(right, wrong)))
    assert said in str(refused.value)
    assert str(refused.value).count(said) == 1


def test_a_row_after_a_grid_is_told_by_its_place_in_the_file(tmp_path: Path) -> None:
    second = MINIMAL[MINIMAL.index("[[rows]]") :].replace("order = 0", "order = -1")
    with pytest.raises(BadUsage, match=r"rows\.1\.order: .*\(it is -1\)"):
        load(written(tmp_path, GRID + second))


@pytest.mark.parametrize("text", ["100GB", "", "G", "1.5G", "-1G", "12iB", "0x10", "1G 2M", "٣G"])
def test_what_is_no_size_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadUsage, match="not a size") as refused:
        parse_size(text)
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize("text", ["0", "0G", "000KiB"])
def test_a_size_of_zero_is_refused(text: str) -> None:
    with pytest.raises(BadUsage, match="size of 0"):
        parse_size(text)


@given(st.integers(min_value=1, max_value=1 << 52))
def test_a_formatted_size_reads_back_as_itself(size: int) -> None:
    assert parse_size(format_size(size).removesuffix(" B")) == size


@given(st.text(alphabet=string.printable))
def test_no_text_makes_the_size_parser_fail_otherwise(text: str) -> None:
    with suppress(BadUsage):
        assert parse_size(text) > 0


def test_every_fault_of_a_file_is_told_at_once_one_line_each(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
name = "zone-device"
question = "Is it?"
launches = 0
quux = 1
[variants]
before-again = ["zone-device"]
[[rows]]
name = "a"
device_bytes = "100MiB"
order = 19
type = "FSDAX"
rounds = -4
[[rows]]
name = "b"
device_bytes = "128MiB"
order = 0
type = "GENERIC"
rounds = 1
no_verdict = "no table"
""",
    )
    with pytest.raises(BadUsage) as refused:
        load(path)
    again, twice = "before-again", "is implied: before itself, linked a second time"
    kinds = "'PRIVATE', 'COHERENT', 'FS_DAX', 'GENERIC' or 'PCI_P2PDMA'"
    assert sorted(str(refused.value).splitlines()) == sorted(
        f"{path}: {fault}"
        for fault in (
            "launches: must be greater than or equal to 1 (it is 0)",
            "quux: Extra inputs are not permitted (it is 1)",
            f"variants.{again}.[key]: {twice} (it is '{again}')",
            "rows.0.device_bytes: not a whole number of sections of 128 MiB (it is '100MiB')",
            "rows.0.order: must be less than or equal to 18 (it is 19)",
            f"rows.0.type: must be {kinds} (it is 'FSDAX')",
            "rows.0.rounds: must be greater than or equal to 1 (it is -4)",
            "rows.1: no_verdict is given, but no published table to have a verdict on",
        )
    )


@pytest.mark.parametrize(
    "folder", ["../../etc", "..", "/etc", "zone-device/../../..", ".git", "", "a//b", "a\n"]
)
def test_a_series_that_leads_out_of_the_tree_is_refused(tmp_path: Path, folder: str) -> None:
    text = MINIMAL.replace('["zone-device"]', json.dumps([folder]))
    with pytest.raises(BadUsage) as refused:
        load(written(tmp_path, text))
    (line,) = str(refused.value).splitlines()
    assert ": variants.published.0: not a folder below kernel/series, as before/NAME is" in line
    assert f"(it is {folder!r})" in line


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"rows = [", "Invalid value"),
        (b"\xff\xfe", "not a text file"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"a = " + b"9" * 5000, "digits"),
        (b"", "name: Field required"),
    ],
)
def test_garbage_is_one_clear_complaint(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "garbage.toml"
    path.write_bytes(content)
    with pytest.raises(BadUsage, match=said) as refused:
        load(path)
    assert all(line.startswith(f"{path}: ") for line in str(refused.value).splitlines())


@given(st.text())
def test_no_text_makes_the_loader_fail_otherwise(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "any.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(BadUsage):
        load(path)


def test_a_missing_file_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="No such file"):
        load(tmp_path / "none.toml")


def test_two_rows_may_not_share_a_name(tmp_path: Path) -> None:
    twice = MINIMAL + MINIMAL[MINIMAL.index("[[rows]]") :]
    with pytest.raises(BadUsage, match="more than one row is called small"):
        load(written(tmp_path, twice))


def test_an_experiment_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="there is no row"):
        load(written(tmp_path, MINIMAL[: MINIMAL.index("[variants]")] + "rows = []\n[variants]\n"))


def test_an_experiment_cannot_be_changed_through_what_it_holds(tmp_path: Path) -> None:
    experiment = load(written(tmp_path, MINIMAL))
    with pytest.raises(TypeError):
        experiment.variants["mine"] = ()  # type: ignore[index]
    assert isinstance(experiment.rows, tuple)
    assert isinstance(experiment.variants["published"], tuple)


def test_rounds_and_launches_can_be_set_within_reason(tmp_path: Path) -> None:
    experiment = load(written(tmp_path, MINIMAL))
    resized = experiment.resized(launches=3, rounds=5)
    assert (resized.launches, resized.rows[0].rounds) == (3, 5)
    assert experiment.resized() == experiment
    with pytest.raises(BadUsage, match=r"rounds: must be between 1 and 1000 \(it is 0\)"):
        experiment.resized(rounds=0)


def test_few_rows_are_sampled_as_often_as_the_time_of_all_allows() -> None:
    whole = named("fork").at("native").unasked()
    one = whole.only(["fork-64k"])
    finer = one.finer(whole)
    nr_samples, planned = (it.launches * it.rows[0].rounds for it in (finer, one))
    assert nr_samples == MOST_FINER * planned
    assert finer.launches == FINER_LAUNCHES * one.launches
    assert whole.finer(whole) == whole
    half = whole.model_copy(update={"rows": whole.rows[::2]})
    of_half = half.finer(whole)
    assert sum(row.rounds for row in of_half.rows) * of_half.launches <= sum(
        row.rounds * row.nr_ptes // whole.rows[0].nr_ptes * whole.launches for row in whole.rows
    )


def test_an_unknown_row_is_refused_with_those_there_are(tmp_path: Path) -> None:
    experiment = load(written(tmp_path, MINIMAL))
    assert experiment.only(["small"]) == experiment
    with pytest.raises(BadUsage, match="no row big; it has small"):
        experiment.only(["big"])


def test_a_row_of_another_stage_is_refused_with_that_stage() -> None:
    whole = named("fork")
    native = whole.at("native")
    for asked, said in {
        "vm-fork-64k": r"no row vm-fork-64k \(--stage vm has it; did you mean fork-64k",
        "live-*": r"no row live-\* \(--stage live has it\)$",
        "frok-64k": r"no row frok-64k \(did you mean fork-64k or .*\)$",
        "vm-dontned-64k": r"\(did you mean vm-dontneed-64k of the vm stage\?\)$",
        "quux": "no row quux; it has fork-4k, ",
    }.items():
        with pytest.raises(BadUsage, match=said):
            native.only([asked], whole.rows)
    with pytest.raises(BadUsage, match="no row for the vm stage, but for native$"):
        native.at("vm")
