# SPDX-License-Identifier: GPL-2.0-only
"""Ports: which series stand in for which on the kernel of a base, or near it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from ream.errors import BadUsage
from ream.experiment import Experiment, load, named
from ream.kernel.base import base_named
from ream.kernel.series import Patch
from ream.kernel.variant import DoesNotApply
from ream.session.dry_run import plan_text
from ream.session.edition import of_tree
from ream.session.request import Request
from ream.variants import asked_variants, choose_variants, editions, on_base

PATCH = "--- a/mm/{0}.c\n+++ b/mm/{0}.c\n@@ -1 +1 @@\n-a\n+b\n"
FIRST, SECOND = "zone-device", "zone-device-parallel"


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """Two series, of which the first has a port to 7.3."""
    monkeypatch.setattr("ream.kernel.series.SERIES", tmp_path)
    for folder in (FIRST, SECOND, f"7.3/{FIRST}"):
        place = tmp_path / folder
        place.mkdir(parents=True)
        name = folder.replace("/", "-")
        (place / f"0001-{name}.patch").write_text(PATCH.format(name))
    return named("zone-device").at("native").only(["small-256MB"])


def _request(experiment: Experiment, tmp_path: Path, **fields: object) -> Request:
    request = Request(
        experiment=experiment,
        stage="native",
        variants=choose_variants(experiment),
        tree=tmp_path,
        threads=None,
        seed=1,
        runs=tmp_path,
        cache=tmp_path,
        command="",
        choose=choose_variants,
    )
    return replace(request, **fields)  # type: ignore[arg-type]


def _folders(experiment: Experiment) -> dict[str, tuple[str, ...]]:
    return dict(experiment.variants)


def _only(*names: str):
    def attempt(patches: Sequence[Patch]) -> None:
        for patch in patches:
            if patch.name not in {f"0001-{name}.patch" for name in names}:
                raise DoesNotApply(patch, "does not apply")

    return attempt


def test_a_port_is_used_in_place_of_its_series(experiment: Experiment) -> None:
    ported = on_base(experiment, "7.3")
    assert _folders(ported) == {
        "published": (f"7.3/{FIRST}",),
        "ream": (f"7.3/{FIRST}", SECOND),
    }
    assert on_base(experiment, "6.12").variants == experiment.variants
    named_in_records = [one.name for one in choose_variants(ported)[-1].series]
    assert named_in_records == [f"7.3-{FIRST}", SECOND]
    assert on_base(ported, "7.3").variants == ported.variants


@pytest.mark.parametrize(
    ("version", "first"),
    [("7.3.4", True), ("7.2.13", True), ("7.0.0-rc1", True), ("6.19.2", True), ("6.12.1", False)],
)
def test_the_nearest_base_is_tried_first(experiment: Experiment, version: str, first: bool) -> None:
    tried = [f"7.3/{FIRST}" in _folders(one)["published"] for one in editions(experiment, version)]
    assert tried == [first, not first]


def test_what_applies_decides_and_not_the_version(experiment: Experiment, tmp_path: Path) -> None:
    asked = _request(experiment, tmp_path)
    for version in ("6.12.117", "7.3.4"):
        suited, notes = of_tree(asked, version, _only(f"7.3-{FIRST}", SECOND))
        assert not notes
        assert f"7.3/{FIRST}" in _folders(suited.experiment)["ream"]
        suited, notes = of_tree(asked, version, _only(FIRST))
        assert [one.name for one in suited.variants] == ["before", "before-again", "published"]
        assert suited.experiment.variants == experiment.variants
        assert len(notes) == 1


def test_a_base_s_variants_may_be_other_lists(experiment: Experiment) -> None:
    taken = {"7.3": {"before": (f"before/{FIRST}",), "published": ()}}
    its = experiment.model_copy(update={"variants_on": MappingProxyType(taken)})
    assert _folders(on_base(its, "7.3")) == {
        "before": (f"before/{FIRST}",),
        "published": (),
        "ream": (f"7.3/{FIRST}", SECOND),
    }
    assert _folders(on_base(its, "7.2")) == _folders(experiment)


def test_of_variants_that_a_base_makes_the_same_the_first_is_left(experiment: Experiment) -> None:
    twice = experiment.model_copy(
        update={
            "variants": MappingProxyType({"published": (FIRST,), "base": (), "ream": (SECOND,)}),
            "variants_on": MappingProxyType({"7.3": {"published": ()}}),
        }
    )
    assert _folders(on_base(twice, "7.3")) == {"published": (), "ream": (SECOND,)}
    assert _folders(on_base(twice, "6.12")) == twice.variants


def test_the_bases_of_a_file_are_bases(tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    whole = named("zone-device").folder / "experiment.toml"
    file.write_text(f"{whole.read_text()}\n[variants_on.'7.33']\npublished = []\n")
    with pytest.raises(BadUsage, match=r"variants_on\.7\.33.*no such base \(did you mean 7\.3\?\)"):
        load(file)


def test_a_variant_that_is_asked_for_is_the_port_of_its_tree(experiment: Experiment) -> None:
    texts = ["before", "ream", f"mine=7.3+{FIRST}", f"old=6.12+{FIRST}"]
    _, variants = asked_variants(experiment, texts, tree=base_named("7.3"))
    series = {one.name: [its.name for its in one.series] for one in variants}
    assert series["ream"] == [f"7.3-{FIRST}", SECOND]
    assert series["mine"] == [f"7.3-{FIRST}"]
    assert series["old"] == [FIRST]


def test_a_dry_run_names_the_ports_before_the_kernel_source_is_here(
    experiment: Experiment, tmp_path: Path
) -> None:
    asked = _request(experiment, tmp_path, tree=base_named("7.3"), cache=tmp_path / "empty")
    said = plan_text(asked)
    assert f"ours: 7.3-{FIRST} (1 patch) + {SECOND} (1 patch)" in said
    assert "not tried   whether the patches apply" in said
