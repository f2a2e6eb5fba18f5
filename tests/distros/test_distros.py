# SPDX-License-Identifier: GPL-2.0-only
"""README's first command, on systems that have nothing installed."""

import json
import time

import pytest

SUITES = {"bookworm": "12", "trixie": "13"}
WRONG = "experiments/fork/tests/native/patches/fork-parent-writable.patch"
JUDGE = ("./ream", "judge", WRONG, "--json")
RUN = ("./ream", "run", "zone-device", "--row", "small-256MB", "--launches", "2", "--json")


@pytest.mark.parametrize("suite", SUITES)
def test_the_first_command_in_a_fresh_clone_works_on_a_minimal_debian(system, suite: str) -> None:
    debian = system(suite)
    began = time.monotonic()
    judged = debian.run(*JUDGE)
    first_s = time.monotonic() - began
    assert judged.returncode == 5, judged.stderr
    assert json.loads(judged.stdout)["findings"]
    ran = debian.run(*RUN)
    assert ran.returncode == 0, ran.stderr
    (row,) = json.loads(ran.stdout)["rows"]
    assert all(one["verified"] for one in row["variants"].values())
    assert {"before", "published", "ream"} <= {*row["variants"]}
    began = time.monotonic()
    again = debian.run(*RUN)
    assert again.returncode == 0, again.stderr
    assert "installing" not in again.stderr
    print(
        f"\nDebian {SUITES[suite]}: made in {debian.made_s:.0f} s, first command {first_s:.0f} s,"
        f" the same again {time.monotonic() - began:.0f} s"
    )
