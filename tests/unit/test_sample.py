# SPDX-License-Identifier: GPL-2.0-only
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ream.errors import ReamError
from ream.measure.sample import Sample

FIELDS = {
    "row": "fsdax-100GB",
    "launch": 0,
    "round": 1,
    "role": "variant",
    "subject": "before",
    "threads": 1,
    "time_ns": 176000000,
    "nr_bytes": 1677721600,
    "verified": True,
}

samples = st.builds(
    Sample,
    row=st.text(),
    launch=st.integers(0, 1 << 40),
    round=st.integers(0, 1 << 40),
    role=st.sampled_from(["variant", "limit"]),
    subject=st.text(),
    threads=st.integers(1, 1 << 20),
    time_ns=st.integers(1, (1 << 63) - 1),
    nr_bytes=st.integers(1, (1 << 63) - 1),
    verified=st.booleans(),
    cpu_ns=st.none() | st.integers(0, (1 << 63) - 1),
    beside=st.dictionaries(st.sampled_from(["asked", "slot", "pgmigrate_success"]), st.integers()),
    times=st.dictionaries(st.text(), st.integers()),
)


@given(samples)
def test_a_sample_survives_its_line(sample: Sample) -> None:
    line = sample.to_json({"digest": "ab", "message_ms": 0.5})
    assert "\n" not in line
    assert Sample.from_json(line, where="here") == sample


def test_keys_that_are_not_ours_are_left_alone() -> None:
    line = json.dumps({**FIELDS, "message": "ab", "first_bad_pfn": None, "beside": [3]})
    found = Sample.from_json(line, where="here")
    assert (found.time_ns, found.beside, found.times) == (176000000, {}, {})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"time_ns": 0}, "time_ns is no whole number from 1 on (it is 0)"),
        ({"time_ns": 1.5}, "time_ns is no whole number"),
        ({"time_ns": 10**400}, "time_ns is no whole number"),
        ({"threads": True}, "threads is no whole number from 1 on (it is True)"),
        ({"launch": -1}, "launch is no whole number from 0 on"),
        ({"nr_bytes": None}, "nr_bytes is no whole number"),
        ({"verified": 1}, "verified is no bool"),
        ({"cpu_ns": -1}, "cpu_ns is no whole number from 0 on (it is -1)"),
        ({"cpu_ns": 1.5}, "cpu_ns is no whole number"),
        ({"row": 7}, "row is no str"),
        ({"role": "fill"}, "role is neither variant nor limit nor live (it is 'fill')"),
        ({"role": []}, "role is neither"),
    ],
)
def test_a_wrong_field_is_named_with_its_value(change: dict[str, object], said: str) -> None:
    with pytest.raises(ReamError) as refused:
        Sample.from_json(json.dumps({**FIELDS, **change}), where="samples.jsonl:12")
    assert str(refused.value).startswith("samples.jsonl:12: not a sample: ")
    assert said in str(refused.value)


@pytest.mark.parametrize("name", FIELDS)
def test_a_missing_field_is_named(name: str) -> None:
    fields = {key: value for key, value in FIELDS.items() if key != name}
    with pytest.raises(ReamError, match=f"{name} is .*missing"):
        Sample.from_fields(fields, where="here")


@pytest.mark.parametrize("line", ["", "{", "[1]", "null", '{"row": "a"', "[" * 100_000, "\x1b[2J"])
def test_a_broken_line_is_one_line_of_complaint(line: str) -> None:
    with pytest.raises(ReamError, match=r"^runner: not a sample") as refused:
        Sample.from_json(line, where="runner")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 200


@given(st.text())
def test_no_text_makes_the_reader_fail_otherwise(line: str) -> None:
    with pytest.raises(ReamError):
        Sample.from_json(line, where="here")
