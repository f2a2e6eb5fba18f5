# SPDX-License-Identifier: GPL-2.0-only
"""What a series reaches, in words; functions that only move; and what comes nearest."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ream.experiment import Row, named
from ream.judge import hosted_code, reach
from ream.judge.hosted_code import HostedCode, groups, hosted_names
from ream.judge.nearest import nearest
from ream.judge.reach import Reach, WholeReach, lines
from ream.kernel.objects import ObjectDifference, differences
from ream.kernel.series import Patch
from ream.kernel.source import Tree
from ream.progress import Reporter

HELPER = "int outside(int);\nint helper(int of) { return outside(of) * 3; }\n"
CALLER = "int helper(int);\nint caller(int of) { return helper(of) + 1; }\n"
FLAGS = ("-O2", "-fno-pie", "-mcmodel=kernel", "-ffreestanding", "-c")

PATCH = b"""\
Subject: a change
---
--- a/%s
+++ b/%s
@@ -10,3 +10,3 @@ static int %s(struct page *page)
 a
-b
+c
 d
"""


def compiled(where: Path, text: str) -> Path:
    where.parent.mkdir(parents=True, exist_ok=True)
    source = where.with_suffix(".c")
    source.write_text(text)
    subprocess.run(["gcc", *FLAGS, str(source), "-o", str(where)], check=True)
    return where


def code_of(tmp_path: Path, before: dict[str, str], after: dict[str, str]) -> HostedCode:
    old, new = (
        {
            f"mm/{name}.o": compiled(tmp_path / when / f"{name}.o", text)
            for name, text in its.items()
        }
        for when, its in (("before", before), ("after", after))
    )
    by_object = {name: its for name in old if (its := differences(old[name], new[name]))}
    return HostedCode(old, new, by_object, ())


def test_a_function_that_another_object_has_now_has_moved(tmp_path: Path) -> None:
    before = {"one": HELPER, "two": "int other(void) { return 7; }\n"}
    after = {"one": "int none;\n", "two": before["two"] + HELPER}
    code = code_of(tmp_path, before, after)
    assert code.moved() == ("helper",)


def test_a_function_that_changes_on_its_way_has_not_moved(tmp_path: Path) -> None:
    before = {"one": HELPER, "two": "int other(void) { return 7; }\n"}
    after = {"one": "int none;\n", "two": before["two"] + HELPER.replace("* 3", "* 5")}
    code = code_of(tmp_path, before, after)
    assert code.moved() == ()
    assert code.by_object["mm/one.o"].removed == ("helper",)
    assert code.by_object["mm/two.o"].added == ("helper",)


def test_every_hosted_function_is_counted_once_for_each_object(tmp_path: Path) -> None:
    code = code_of(
        tmp_path, {"one": HELPER, "two": HELPER + CALLER}, {"one": HELPER, "two": HELPER}
    )
    assert code.functions() == {
        ("mm/one.o", "helper"), ("mm/two.o", "helper"), ("mm/two.o", "caller"),
    }  # fmt: skip


def whole(*experiments: Reach, **more: tuple[str, ...]) -> WholeReach:
    fields: dict[str, tuple[str, ...]] = dict.fromkeys(
        ("changed", "added", "removed", "moved", "data", "layout"), ()
    )
    return WholeReach(
        1912, text_bytes=(0, 0), experiments=experiments, nearest=None, **{**fields, **more}
    )


FORK = Reach("fork", ("copy_page_range",), ("fork-4k", "fork-64k"), 64, None)
COMPACT = Reach("compact", ("copy_page_range",), (), 20, "it changes that, which no row executes")
NULL = Reach("null", (), (), 2, "the same object code as the base in all 2 objects")


def test_one_sentence_says_what_is_changed_reached_and_left() -> None:
    found = whole(FORK, COMPACT, NULL, changed=("copy_page_range",), added=("one", "two"))
    assert found.sentence() == (
        "changes 1 of 1,912 hosted functions (adds 2); reaches fork (2 rows); changes nothing that"
        " rows execute of compact; leaves the code of null as it is"
    )


def test_a_series_that_only_moves_code_is_said_to() -> None:
    found = whole(NULL, moved=("helper",))
    assert found.sentence() == (
        "changes 0 of 1,912 hosted functions (moves 1); reaches nothing that a row executes; leaves"
        " the code of null as it is"
    )


def test_what_only_moves_changes_no_object(tmp_path: Path) -> None:
    before = {"one": HELPER, "two": CALLER}
    code = code_of(tmp_path, before, {"one": "int none;\n", "two": CALLER + HELPER})
    moved = frozenset(code.moved())
    left = {name: reach._unmoved(its, moved) for name, its in code.by_object.items()}
    assert left["mm/one.o"].removed == left["mm/two.o"].added == ()
    assert whole(NULL, moved=("helper",)).only_moves
    assert not whole(NULL, moved=("helper",), changed=("caller",)).only_moves
    assert not whole(NULL).only_moves


def test_another_layout_is_told_beside_what_is_reached() -> None:
    found = whole(FORK, layout=("struct page has 72 bytes, not 64",))
    said = dict(lines(found))
    assert said["layout"].startswith("struct page has 72 bytes, not 64")
    assert said["fork"] == (
        "it changes copy_page_range(): 2 of 64 rows execute it: fork-4k, fork-64k"
    )


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "linux/mm").mkdir(parents=True)
    (tmp_path / "linux/mm/swap_state.c").write_text("void free_swap_cache(int of)\n{\n}\n")
    return Tree(tmp_path / "linux", "key", "label", "6.12.1")


def said_of(
    tree: Tree, tmp_path: Path, file: str, function: str, text: str, *, same: bool = False
) -> str:
    body = PATCH % (file.encode(), file.encode(), function.encode())
    name = "mm/memory.o"
    by_object = {} if same else {name: ObjectDifference(data=("table",))}
    code = HostedCode({name: compiled(tmp_path / name, text)}, {}, by_object, ())
    return nearest([Patch("a.patch", "a change", body)], tree, [named("fork")], [code])


def test_who_hosts_the_file_is_nearest(tree: Tree, tmp_path: Path) -> None:
    said = said_of(tree, tmp_path, "mm/memory.c", "helper", HELPER)
    assert said == "fork hosts mm/memory.o, and no row executes its helper()"


def test_a_function_whose_code_stays_the_same_may_well_be_executed(
    tree: Tree, tmp_path: Path
) -> None:
    said = said_of(tree, tmp_path, "mm/memory.c", "helper", HELPER, same=True)
    assert said == "fork hosts mm/memory.o, which is the same with the series"


def test_every_experiment_that_hosts_the_same_object_is_named(tmp_path: Path) -> None:
    source = b"mm/memory.c"
    code = HostedCode({"mm/memory.o": compiled(tmp_path / "memory.o", HELPER)}, {}, {}, ())
    its = Patch("a.patch", "a change", PATCH % (source, source, b"helper"))
    both = [named("fork"), named("mremap")]
    said = nearest([its], Tree(tmp_path, "", "", "6.12"), both, [code])
    assert said == "mremap, fork host mm/memory.o, which is the same with the series"


def test_who_calls_a_function_of_the_file_is_next(tree: Tree, tmp_path: Path) -> None:
    text = "void free_swap_cache(int);\nint zap(int of) { free_swap_cache(of); return of; }\n"
    said = said_of(tree, tmp_path, "mm/swap_state.c", "free_swap_cache", text)
    assert said == (
        "fork, whose mm/memory.o calls free_swap_cache() of mm/swap_state.c, which is not hosted"
    )


def test_who_hosts_most_of_the_folder_is_last(tree: Tree, tmp_path: Path) -> None:
    said = said_of(tree, tmp_path, "mm/slub.c", "slab_alloc", HELPER)
    assert said.startswith("fork hosts ")
    assert said.endswith(" objects of mm/, and none of the files that change")


def test_nothing_near_is_said(tree: Tree, tmp_path: Path) -> None:
    said = said_of(tree, tmp_path, "drivers/gpu/a.c", "draw", HELPER)
    assert said == "none: no experiment hosts anything near drivers/gpu/a.c"


def test_experiments_of_one_configuration_are_compiled_together() -> None:
    # Two of fork's three programs have options of their own.
    by_fragments = groups([named("fork"), named("null"), named("migrate")])
    assert [[*programs] for programs in by_fragments.values()] == [
        ["fork", "null"], ["fork"], ["fork"], ["migrate"],
    ]  # fmt: skip
    assert "mm/memory.o" in hosted_names(named("fork"))
    assert not any(name.startswith("ream/") for name in hosted_names(named("fork")))


@pytest.fixture
def found(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., WholeReach]:
    """What a series reaches that has one object otherwise; each row executes the same functions."""

    def find(before: str, after: str, *executed: str, file: str = "mm/memory.c") -> WholeReach:
        code = code_of(tmp_path, {"memory": before}, {"memory": after})
        monkeypatch.setattr(reach, "hosted_code", lambda *_, **__: code)

        def entered(_: object, __: object, ___: object, rows: Any, *____: Any, **_____: Any) -> Any:
            return {row.name: frozenset(executed) for row in rows}

        monkeypatch.setattr(reach, "_entered_by", entered)
        body = PATCH % (file.encode(), file.encode(), b"helper")
        reporter = Reporter(quiet=True)
        patches = (Patch("a.patch", "a change", body),)
        return reach.find_reach(patches, tree, cache=tmp_path, reporter=reporter)

    return find


def test_the_rows_are_reached_that_execute_what_is_changed(
    found: Callable[..., WholeReach],
) -> None:
    whole = found(HELPER, HELPER.replace("* 3", "* 5"), "helper")
    names = {one.experiment for one in whole.reached}
    assert {"fork", "mremap"} <= names
    assert "null" not in names
    fork = next(one for one in whole.reached if one.experiment == "fork")
    assert (fork.functions, len(fork.rows)) == (("helper",), fork.nr_rows)
    assert (whole.changed, whole.nearest, whole.nr_functions) == (("helper",), None, 1)
    assert whole.text_bytes[0] > 0


def test_where_nothing_executes_it_what_comes_nearest_is_said(
    found: Callable[..., WholeReach],
) -> None:
    whole = found(HELPER, HELPER.replace("* 3", "* 5"), "another")
    assert whole.reached == ()
    assert whole.nearest is not None
    assert whole.nearest.endswith("hosts helper() of mm/memory.o, which no row executes")


def test_files_that_are_not_hosted_are_named(found: Callable[..., WholeReach]) -> None:
    whole = found(HELPER, HELPER, file="drivers/gpu/a.c")
    assert whole.same
    assert whole.elsewhere == ()  # there is no such file with or without the series


def test_what_rows_enter_is_found_once_for_each_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that the machine cannot run are left out; another kernel is looked at anew."""
    experiment, kernel = named("fork"), compiled(tmp_path / "memory.o", HELPER)
    rows = [row for row in experiment.rows if row.name in ("fork-4k", "fork-64k")]
    asked: list[list[str]] = []

    @contextmanager
    def plan_of(some: Any, *_: object) -> Iterator[Any]:
        yield some

    def entered(_: object, __: object, some: Any, **___: object) -> Any:
        asked.append([row.name for row in some])
        return {row.name: frozenset({"helper"}) for row in some}

    bench = SimpleNamespace(
        link=lambda _: None, work=tmp_path, kernels={"before": SimpleNamespace(objects=(kernel,))}
    )
    monkeypatch.setattr(reach, "build_bench", lambda *_, **__: bench)
    monkeypatch.setattr(reach, "read_build", lambda _: None)
    monkeypatch.setattr(reach, "fit_rows", lambda some, *_: (some, []))
    monkeypatch.setattr(reach, "entered", entered)
    its: Any = SimpleNamespace(
        folder=tmp_path,
        sized=lambda row: row.model_copy(),
        plan_of=plan_of,
        suit=lambda some, _: SimpleNamespace(
            rows=[one for one in some if "64k" in one.name], cpus=1
        ),
    )
    monkeypatch.setattr(reach, "small", lambda some, _: some)

    def find(*some: Row) -> Any:
        where: Any = {"cache": tmp_path, "reporter": Reporter(quiet=True)}
        return reach._entered_by(experiment, its, (), some, cast(Tree, None), **where)

    assert find(*rows) == find(*rows) == {"fork-64k": {"helper"}}
    assert find(*(row for row in rows if row.name == "fork-4k")) == {}
    assert asked == [["fork-64k"]]
    compiled(kernel, HELPER.replace("* 3", "* 5"))
    find(*rows)
    assert asked == [["fork-64k"], ["fork-64k"]]


def test_objects_that_only_one_kernel_has_are_new_or_gone(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = {
        "before": {"mm/one.o": HELPER, "mm/two.o": CALLER},
        "after": {"mm/one.o": HELPER.replace("* 3", "* 5"), "mm/new.o": HELPER},
    }
    whens = iter(objects)
    monkeypatch.setattr(hosted_code, "assemble", lambda *_, **__: tmp_path / next(whens))

    def built(place: Path, _: object, **__: object) -> dict[str, Path]:
        found = {n: compiled(place / n, text) for n, text in objects[place.name].items()}
        return {**found, hosted_code.LAYOUT: place}

    monkeypatch.setattr(hosted_code, "build_objects", built)
    monkeypatch.setattr(hosted_code, "held", lambda *_: [])
    monkeypatch.setattr(hosted_code, "layouts", lambda _: {})
    kernels = hosted_code.Kernel(tree), hosted_code.Kernel(tree)
    how: Any = {"fragments": (), "cache": tmp_path, "step": print}
    code = hosted_code.hosted_code(*kernels, {}, **how)
    assert code.sources == (tmp_path / "before", tmp_path / "after")
    assert {
        name: (its.changed, its.added, its.removed) for name, its in code.by_object.items()
    } == {
        "mm/new.o": ((), ("helper",), ()),
        "mm/one.o": (("helper",), (), ()),
        "mm/two.o": ((), (), ("caller",)),
    }
    assert not code.layout


def test_experiments_that_host_no_changed_file_are_not_compiled_for_a_series_that_was_executed(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("something was compiled")

    monkeypatch.setattr(reach, "hosted_code", never)
    body = PATCH % (b"mm/madvise.c", b"mm/madvise.c", b"helper")
    how: Any = {"cache": tmp_path, "reporter": Reporter(quiet=True), "is_examined": True}
    whole = reach.find_reach((Patch("a.patch", "a change", body),), tree, **how)
    assert (whole.reached, whole.nearest, whole.elsewhere) == ((), None, ("mm/madvise.c",))
    assert whole.sentence().startswith("reaches nothing that a row executes; no file of it is in")
