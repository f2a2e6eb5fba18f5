# SPDX-License-Identifier: GPL-2.0-only
"""Requested options and compilers: which are refused, and that the build uses the others."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from ream.errors import BadUsage, CannotRunHere
from ream.experiment import named
from ream.kernel.build import BUILD, CC, compiler_version, make, options, require_whole
from ream.kernel.setup import OURS, Setup, check_options, named_config, unhosted, wanted_setup
from ream.kernel.source import Tree
from ream.paths import KERNEL_CONFIG
from ream.session.plan import Basis, plan_object, resumed_request, series_text
from ream.session.request import CountOptions, Request
from ream.session.suited import suited_rows
from ream.variants import asked_variants, choose_variants

KCONFIG = "config HAVE\n\tbool\nconfig OTHER\n\tbool\nconfig OURS\n\tbool\n"


def written(place: Path, text: str) -> str:
    (place / "mine.config").write_text(text)
    return str(place / "mine.config")


def test_a_file_of_options_is_taken_in_each_stage(tmp_path: Path) -> None:
    text = "# why\n\nCONFIG_HAVE=y\n# CONFIG_OTHER is not set\nCONFIG_NEW=y # with NEW\n"
    for stage in ("native", "vm"):
        assert named_config(written(tmp_path, text), stage) == Setup(text, "mine.config")


@pytest.mark.parametrize("stage", ["native", "vm"])
def test_each_stage_has_what_distributions_have(stage: str) -> None:
    assert options(named_config("distro", stage).config)["LRU_GEN"] == "y"


@pytest.mark.parametrize("line", ["HAVE=y", "CONFIG_HAVE", "CONFIG_HAVE is not set", "y"])
def test_a_line_that_is_no_option_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(BadUsage, match=f"mine.config: '{line}' is no option: neither CONFIG_NAME"):
        named_config(written(tmp_path, f"CONFIG_X=y\n{line}\n"), "vm")


def test_a_configuration_that_there_is_not_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match=r"--config distr: no such file, and none of the native"):
        named_config("distr", "native")
    with pytest.raises(BadUsage, match="is a directory|no such file"):
        named_config(str(tmp_path), "native")


@pytest.mark.parametrize("name", [*unhosted()])
def test_what_a_hosted_kernel_cannot_have_is_refused_with_the_reason(
    tmp_path: Path, name: str
) -> None:
    file = written(tmp_path, f"CONFIG_{name}=y\n")
    with pytest.raises(BadUsage) as said:
        named_config(file, "native")
    reason = unhosted()[name]
    assert str(said.value) == f"{file}: the native stage cannot have CONFIG_{name}: {reason}"
    assert named_config(file, "vm").config
    assert named_config(written(tmp_path, f"# CONFIG_{name} is not set\n"), "native").config


def test_ours_of_the_native_stage_ask_for_nothing_that_cannot_be_hosted() -> None:
    for file in KERNEL_CONFIG.glob("native*.config"):
        asked = {name for name, value in options(file.read_text()).items() if value != "n"}
        assert not asked & unhosted().keys()


@pytest.mark.parametrize("name", [*unhosted(several=True)])
def test_what_only_a_program_of_one_kernel_can_have_leaves_others_without_rows(
    tmp_path: Path, name: str
) -> None:
    setup = named_config(written(tmp_path, f"CONFIG_{name}=y\n"), "native")
    for experiment, runs in (("mm", True), ("fork", False)):
        request = replace(_of_arm64(experiment), experiment=named(experiment), setup=setup)
        with nullcontext() if runs else pytest.raises(CannotRunHere, match=f"CONFIG_{name}: "):
            assert suited_rows(request).rows


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("CONFIG_OURS=y\n", "CONFIG_HAVE: asked for y, got n (what it depends on is off, or"),
        ("CONFIG_HAVE=y\n", "CONFIG_OURS: asked for y, got n (ours, which does not hold with"),
    ],
)
def test_an_option_that_did_not_take_effect_is_named(tmp_path: Path, held: str, said: str) -> None:
    (tmp_path / "Kconfig").write_text(KCONFIG)
    mine = Setup("CONFIG_HAVE=y\n", "mine.config")
    with pytest.raises(BadUsage) as caught:
        check_options("CONFIG_OURS=y", mine, held, tmp_path, "linux 7.3")
    assert str(caught.value).startswith(f"mine.config: {said}")


def test_an_option_that_the_kernel_has_not_is_named(tmp_path: Path) -> None:
    (tmp_path / "Kconfig").write_text(KCONFIG)
    mine = Setup("CONFIG_QUUX=y\nCONFIG_GONE=y # with GONE\n", "mine.config")
    with pytest.raises(BadUsage, match=r"CONFIG_QUUX: .*\(linux 7.3 has no such option\)$"):
        check_options("", mine, "", tmp_path, "linux 7.3")
    check_options("", replace(mine, config="CONFIG_HAVE=y"), "CONFIG_HAVE=y", tmp_path, "linux")


def test_a_build_goes_on_with_the_compiler_that_it_was_configured_for(tmp_path: Path) -> None:
    (tmp_path / BUILD).mkdir()
    assert any(word.endswith("gcc") for word in make(tmp_path, [], deadline_s=1).argv)
    (tmp_path / BUILD / CC).write_text("clang")
    assert any(word.endswith("clang") for word in make(tmp_path, [], deadline_s=1).argv)


def test_a_compiler_that_is_not_there_cannot_build() -> None:
    with pytest.raises(CannotRunHere, match="--cc nowhere-cc: not installed"):
        compiler_version("nowhere-cc")
    assert wanted_setup(None, "gcc", "native") == OURS
    with pytest.raises(BadUsage, match="one word, the name or the path"):
        wanted_setup(None, "gcc -O3", "native")
    assert Path(wanted_setup(None, "./gcc", "native").cc).is_absolute()


def test_a_variant_may_have_options_of_its_own() -> None:
    _, variants = asked_variants(named("fork"), ["before", "before+distro.config", "x=6.12"])
    distro, other = variants[2:]
    assert distro.name == "before+native-distro"
    assert distro.setup == named_config("distro", "native")
    assert [one.setup for one in (*variants[:2], other)] == [None] * 3
    with pytest.raises(BadUsage, match="the first one is configured as the run is"):
        asked_variants(named("fork"), ["before+distro.config", "6.12"])


def test_the_source_of_a_run_says_how_it_is_built(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "key", "linux-source-6.12 x", "6.12.1")
    assert tree.built(OURS) == tree
    mine = tree.built(Setup("CONFIG_X=y", "mine.config"))
    assert mine.label == "linux-source-6.12 x, configured by mine.config"
    assert mine.key == tree.key  # the source is the same


def test_a_run_that_goes_on_is_built_as_it_began(tmp_path: Path) -> None:
    setup = Setup("CONFIG_X=y\n", "mine.config", "clang")
    experiment = named("fork").at("native").only(["fork-4k"])
    first, *others = choose_variants(experiment)
    request = Request(
        experiment=experiment,
        stage="native",
        variants=(first, *(replace(one, setup=replace(setup, cc="gcc")) for one in others)),
        tree=None,
        threads=None,
        seed=1,
        runs=tmp_path,
        cache=tmp_path,
        command="",
        setup=setup,
    )
    partial = tmp_path / "20261124T000000Z-fork-native-ab12.partial"
    partial.mkdir()
    plan = plan_object(request, partial.name, Basis("b", "m", 1, "key", "cc"))
    (partial / "plan.json").write_text(json.dumps(plan))
    (partial / "series.json").write_text(series_text(request))
    again = resumed_request(partial, cache=tmp_path)
    assert again.setup == setup
    assert [one.setup for one in again.variants] == [one.setup for one in request.variants]


def _of_arm64(name: str) -> Request:
    return Request(
        experiment=named(name).at("native", "arm64"),
        stage="native",
        variants=(),
        tree=None,
        threads=None,
        seed=1,
        runs=Path("runs"),
        cache=Path("cache"),
        command="ream",
        setup=Setup(arch="arm64"),
        count=CountOptions(),
    )


def test_rows_whose_program_hosts_no_kernels_of_an_architecture_are_left_out() -> None:
    found = suited_rows(_of_arm64("fork"))
    assert {"fork-64k", "fork-64k-contpte"} <= {row.name for row in found.rows}
    assert "freeing has kernels of x86_64 alone" in found.skipped["munmap-free-4k"]
    with pytest.raises(CannotRunHere, match="--arch arm64: compact has kernels of x86_64 alone"):
        suited_rows(_of_arm64("compact"))


def test_a_tree_without_what_every_build_needs_is_refused_with_the_way_out(tmp_path: Path) -> None:
    for folder in ("arch/x86", "include", "init"):
        (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(BadUsage, match=r"no scripts; give a whole one, or only the patch"):
        require_whole(tmp_path)
