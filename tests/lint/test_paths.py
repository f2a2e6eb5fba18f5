# SPDX-License-Identifier: GPL-2.0-only
"""Every path that a comment, a message or a document names leads to a file or a folder.

A path is relative to the checkout or to the folder of the file that names it. A path of the
kernel's begins with a folder of the kernel's tree and exists in the default base or in a series.
"""

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from checkout import absent, files, named, none_of
from ream.errors import CannotRunHere
from ream.kernel.source import fetch_tree
from ream.paths import CHECKOUT, EXPERIMENTS, KERNEL_HOSTED, SERIES, cache_dir

pytestmark = pytest.mark.xdist_group("paths")

SUFFIXES = "py|c|h|S|md|toml|sh|def|patch|config|probes|lds|pml|list|j2"

_BEGIN = r"(?<![\w./<>{}*$…%@~+:-])"
"""Before a path stands no other part of one, and nothing that is put in for one."""

_PARTS = r"(?:\.\.?/)*(?:[A-Za-z0-9_][\w.+-]*/)"

PATH = re.compile(rf"{_BEGIN}({_PARTS}+[\w.+-]*\.(?:{SUFFIXES}))(?![\w/*{{<-]|\.\w)", re.ASCII)
FOLDER = re.compile(rf"{_BEGIN}({_PARTS}+)(?![\w.*{{<|…-])", re.ASCII)

INCLUDES = re.compile(r"\s*#\s*(include\b|if.*\b__has_include\b)")

PLACEHOLDER = re.compile(r"[A-Z][A-Z_]+")
"""A part of a path that a reader puts in, as in experiments/NAME."""

DOCUMENTS = {path.stem for path in CHECKOUT.glob("[A-Z]*.md")} | {"README"}
"""Names in capitals that are no placeholders."""

TOPS_OF_KERNEL = re.compile(
    "Documentation|arch|block|certs|crypto|drivers|fs|include|init|io_uring|ipc|kernel|lib|mm|net"
    "|rust|samples|scripts|security|sound|tools|usr|virt"
)
"""Folders of the kernel's tree. Of these the checkout has kernel/, too."""

KERNEL_OF_KERNEL = re.compile(
    r"kernel/((bpf|cgroup|dma|entry|events|futex|irq|locking|module|power|printk|rcu|sched|time"
    r"|trace)/.*|[\w-]+(\.lds)?\.[chS])?"
)
"""Paths below kernel/ that are the kernel's. All others are of the checkout."""

HEADERS_OF_KERNEL = ("asm/", "asm-generic/", "linux/", "uapi/")
"""Beginnings of headers' names as C includes them, below include/ or an architecture's."""

ALSO_FROM = {
    "ARCHITECTURE.md": "experiments/*",
    "CONTRIBUTING.md": "experiments/*",
    "docs/format.md": "docs/records/*",
    "lab/ream/report/ran.py": "lab/ream",
    "lab/ream/stage/selftests.py": "kernel/selftests",
}
"""By file, other folders that its paths are relative to: it describes any of them, or joins it."""

NEITHER = {
    "a/mm/mm_init.c": "as a diff names a file",
    "mm/hugetlb_cma.c": "in kernels after 6.12",
    "mm/vma_init.c": "in kernels after 6.12",
    "mprotect-shared-dirty-toggle/README.md": "in the repository of the table's source",
    "plan/run.sh": "written by ream plan",
    "ream/have.h": "written into a variant's tree",
    "ream/runs/": "made for records below XDG_DATA_HOME",
    "records/": "made by the hosts of a plan",
    "series/": "a folder that an experiment may have, and none here has",
    "swdma/": "the beginning of a kernel thread's name",
}
"""Paths that neither the checkout nor the default base has, with what they are."""


@dataclass(frozen=True)
class Mention:
    """A path where a file names it."""

    path: str
    file: Path
    line: int

    def __str__(self) -> str:
        return f"{named(self.file)}:{self.line}: {self.path}"


def _python_texts(source: str, *, strings: bool) -> Iterator[tuple[int, str]]:
    """Comments and docstrings with their first lines; with strings, all texts."""
    kinds = {tokenize.COMMENT, *([tokenize.STRING] if strings else [])}
    kinds |= {getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)} if strings else set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds:
            yield token.start[0], token.string
    for node in () if strings else ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, str(node.value.value)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """What people read in a file, with line numbers.

    Strings of tests are left out, which are made of invented trees, and so are diffs and the
    lines of C that include headers.
    """
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _python_texts(source, strings="tests" not in path.relative_to(CHECKOUT).parts)
        return
    if path.suffix == ".patch" and not path.name.startswith("0000-"):
        source = re.split(r"^---(?: a/.*)?$", source, maxsplit=1, flags=re.MULTILINE)[0]
    for number, line in enumerate(source.splitlines(), start=1):
        if not INCLUDES.match(line):
            yield number, line


def is_read(path: Path) -> bool:
    """Whether people read a file; records and mails of others name what they like."""
    others = ("docs/records/", "requirements.lock")
    return not named(path).startswith(others) and not named(path).endswith(
        (".txt", ".log", ".gz", ".zip", ".svg", ".png", ".js", ".css", "COPYING")
    )


def mentions(path: Path, read: Iterable[tuple[int, str]]) -> Iterator[Mention]:
    """Paths in texts of a file, which are given with the numbers of their first lines."""
    for first, text in read:
        for number, line in enumerate(text.splitlines(), start=first):
            for found in (*PATH.finditer(line), *FOLDER.finditer(line)):
                yield Mention(found[1], path, number)


def is_placeholder(path: str) -> bool:
    parts = (*PurePosixPath(path).parts, PurePosixPath(path).stem)
    return any(PLACEHOLDER.fullmatch(part) and part not in DOCUMENTS for part in parts)


def is_the_kernels(path: str) -> bool:
    top = path.split("/", maxsplit=1)[0]
    if path.startswith(HEADERS_OF_KERNEL):
        return True
    if top == "kernel":
        return bool(KERNEL_OF_KERNEL.fullmatch(path))
    return bool(TOPS_OF_KERNEL.fullmatch(top))


def is_here(mention: Mention) -> bool:
    others = ALSO_FROM.get(named(mention.file))
    homes = (CHECKOUT, mention.file.parent, *(CHECKOUT.glob(others) if others else ()))
    return any((home / mention.path).exists() for home in homes)


def folders() -> frozenset[str]:
    """Names of all folders of the checkout."""
    return frozenset(part for path in files() for part in path.relative_to(CHECKOUT).parts[:-1])


def dead(found: Iterable[Mention], known: frozenset[str]) -> Iterator[Mention]:
    """Mentions that lead nowhere, of those that are the checkout's.

    known: names of folders. A word with a slash behind it is a path if it begins with one.
    """
    for one in found:
        if is_placeholder(one.path) or one.path in NEITHER or is_here(one):
            continue
        if one.path.endswith("/") and one.path.split("/")[0] not in known:
            continue
        if not is_the_kernels(one.path):
            yield one


@functools.cache
def all_mentions() -> tuple[Mention, ...]:
    """What all files name; read once for the tests that ask."""
    return tuple(one for path in filter(is_read, files()) for one in mentions(path, texts(path)))


def test_paths_that_are_named_exist() -> None:
    none_of(map(str, dead(all_mentions(), folders())))


def of_series() -> frozenset[str]:
    """Paths of the kernel's tree that a series of the project adds or changes."""
    patches = (*SERIES.rglob("*.patch"), *KERNEL_HOSTED.rglob("*.patch"))
    found = re.compile(r"^\+\+\+ b/(\S+)$", re.MULTILINE)
    return frozenset(name for path in patches for name in found.findall(path.read_text("utf-8")))


def test_a_path_that_leads_nowhere_is_found() -> None:
    text = """kernel/variant.py, `kernel/base/6.12.toml`, kernel/sched/core.c and kernel/gone/x.c;
    mm/memory.c, /etc/gone/x.toml, a/b/NAME.py, and/or stage/link.py: ../docs/gone.md, tests/gone/
    https://example.org/lab/gone.py, {folder}/gone/x.py, experiments/NAME/guest.c, docs/method.md"""
    found = dead(mentions(CHECKOUT / "README.md", [(1, text)]), folders())
    wrong = ["kernel/variant.py", "kernel/gone/x.c", "stage/link.py", "../docs/gone.md"]
    assert [one.path for one in found] == [*wrong, "tests/gone/"]


def test_strings_are_read_where_they_are_no_fixtures() -> None:
    source = '"""One."""\n# two\nx = f"three {x}"\n'
    assert [line for line, _ in _python_texts(source, strings=True)] == [1, 2, 3]
    assert sorted(_python_texts(source, strings=False)) == [(1, "One."), (2, "# two")]


def test_what_neither_tree_has_is_still_named() -> None:
    assert set(NEITHER) - {one.path for one in all_mentions()} == set()


def test_architecture_names_files_by_their_full_paths() -> None:
    """Names that every experiment's native/ has, such as glue.c, need no path."""
    blocks = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
    text = blocks.sub("", (CHECKOUT / "ARCHITECTURE.md").read_text())
    bare = re.findall(rf"`([\w.-]+\.(?:{SUFFIXES}))`", text)
    assert [one for one in bare if not [*EXPERIMENTS.glob(f"*/native/{one}")]] == []


def test_paths_of_the_kernel_exist() -> None:
    try:
        tree = fetch_tree(None, cache=cache_dir(), step=print).path
    except CannotRunHere as cause:
        absent(str(cause))
    homes = (tree, tree / "include", tree / "include/uapi", tree / "arch/x86/include")
    ours = of_series()
    none_of(
        str(one)
        for one in all_mentions()
        if is_the_kernels(one.path) and not is_here(one) and not is_placeholder(one.path)
        if one.path not in ours and one.path not in NEITHER
        if not any((home / one.path).exists() for home in homes)
    )
