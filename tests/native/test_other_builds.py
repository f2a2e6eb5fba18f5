# SPDX-License-Identifier: GPL-2.0-only
"""Kernels of another compiler and of other options, hosted and verified."""

import json
import shutil

import pytest

TINY = ("run", "zone-device", "--row", "small-256MB", "--launches", "1", "--rounds", "1")
USAGE = 2
CANNOT = 3

pytestmark = [pytest.mark.vm, pytest.mark.native]


def test_objects_of_clang_are_hosted_and_said_to_be_its(ream) -> None:
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed")
    said = ream(*TINY, "--only", "before", "--cc", "clang", "--json")
    assert said.code == 0, said.err
    run = json.loads(said.out)
    assert "clang version" in run["receipt"]["compiler"]
    assert run["rows"][0]["variants"]["before"]["verified"]


def test_options_of_distributions_are_hosted_beside_ours(ream) -> None:
    """Two configurations are two trees of one program; each is judged by its own build."""
    said = ream(*TINY, "--variant", "before", "--variant", "distro=before+distro.config", "--json")
    assert said.code == 0, said.err
    (row,) = json.loads(said.out)["rows"]
    assert row["variants"]["distro"]["verified"]
    assert "distro is of another configuration" in json.dumps(json.loads(said.out))


@pytest.mark.vm
@pytest.mark.parametrize(
    ("experiment", "row"),
    [
        ("fork", "fork-64k"),
        ("mprotect", "rw-to-r-4k"),
        ("mremap", "across-4k"),
        ("migrate", "64k-serial"),
        ("compact", "batch-32"),
        ("deferred-init", "1-thread"),
    ],
)
def test_options_of_distributions_are_hosted_in_every_experiment(ream, experiment, row) -> None:
    words = ("--stage", "native", "--row", row, "--only", "before", "--config", "distro", "--json")
    said = ream("run", experiment, "--launches", "1", "--rounds", "1", *words)
    assert said.code == 0, said.err
    (measured,) = json.loads(said.out)["rows"]
    assert measured["variants"]["before"]["verified"]


def test_rows_whose_lists_have_generations_are_left_out_with_the_reason(ream) -> None:
    """The oracle would call the kernel wrong."""
    rows = ("--row", "native-1gib", "--row", "batch-32")
    said = ream("run", "compact", "--stage", "native", *rows, "--config", "distro", "--dry-run")
    assert said.code == 0, said.err
    reason = "native-distro.config: CONFIG_LRU_GEN: which frames are on a list"
    assert reason in " ".join(said.out.split())
    alone = ream("run", "compact", "--stage", "native", *rows[:2], "--config", "distro")
    assert alone.code == CANNOT
    assert reason in alone.err


def test_a_variant_that_names_the_base_of_the_run_is_of_no_other_source(ream) -> None:
    said = ream(*TINY, "--variant", "before", "--variant", "same=6.12", "--json")
    assert said.code == 0, said.err
    run = json.loads(said.out)
    assert run["rows"][0]["variants"]["same"]["verified"]
    assert "same is of another" not in json.dumps(run)


def test_an_option_that_the_kernel_does_not_take_is_named(ream, tmp_path) -> None:
    (tmp_path / "mine.config").write_text("CONFIG_NO_SUCH_OPTION=y\n")
    said = ream(*TINY, "--config", "mine.config")
    assert said.code == USAGE
    assert "mine.config: CONFIG_NO_SUCH_OPTION: asked for y, got n (linux-source-6.12" in said.err
    assert said.err.rstrip().endswith("has no such option)")
