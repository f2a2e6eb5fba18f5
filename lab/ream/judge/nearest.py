# SPDX-License-Identifier: GPL-2.0-only
"""Finds the experiment nearest to a patch that reaches no hosted code, and the reason."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ream.experiment import Experiment
from ream.judge.hosted_code import HostedCode, hosted_names, named
from ream.kernel.diff import hunks
from ream.kernel.series import Patch, files
from ream.kernel.source import Tree

_IN_FUNCTION = re.compile(r"@@ .*? @@ .*?(\w+)\(")
"""Matches the function in a hunk's header, which begins at or before the hunk's first line."""
_DEFINED = re.compile(r"^[a-z_][^;={}()\n]*?\b(\w+)\([^;]*?\)\s*\{", re.MULTILINE)
MOST_NAMED = 3


def nearest(
    patches: Sequence[Patch],
    tree: Tree,
    experiments: Sequence[Experiment],
    codes: Sequence[HostedCode],
    unexecuted: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> str:
    """Return a sentence on the experiment nearest to what patches change.

    Experiments that host a changed file come first, then those that call a function of one, then
    the one that hosts most of the same folder. Of several, the one that hosts least is named, as
    it is the most specific.
    unexecuted: changed functions that no row executes, by experiment.
    """
    before = {name: path for code in codes for name, path in code.before.items()}
    differing = frozenset(name for code in codes for name in code.by_object)
    ordered = sorted(experiments, key=lambda one: len(hosted_names(one)))
    if (said := _unexecuted(patches, ordered, unexecuted)) is not None:
        return said
    sources = [one for one in _sources(patches) if one.suffix == ".c"]
    if (said := _host(sources, patches, ordered, before, differing)) is not None:
        return said
    for find in (_caller, _neighbour):
        if (said := find(sources, patches, tree, ordered, before)) is not None:
            return said
    touched = ", ".join(map(str, _sources(patches)))
    return f"none: no experiment hosts anything near {touched or 'these files'}"


def _unexecuted(
    patches: Sequence[Patch],
    experiments: Sequence[Experiment],
    unexecuted: Mapping[str, Sequence[str]],
) -> str | None:
    for one in experiments:
        if its := unexecuted.get(one.name):
            files_ = [str(s.with_suffix(".o")) for s in _sources(patches)]
            held = [name for name in files_ if name in hosted_names(one)]
            where = f" of {held[0]}" if held else ""
            each = _listed([f"{name}()" for name in its])
            return f"{one.name} hosts {each}{where}, which no row executes"
    return None


def _sources(patches: Sequence[Patch]) -> list[PurePosixPath]:
    return [PurePosixPath(name) for name in sorted({n for one in patches for n in files(one)})]


def _changed(patches: Sequence[Patch], source: PurePosixPath) -> list[str]:
    """Return the functions that hunk headers of a file name."""
    found = (
        match[1]
        for patch in patches
        for hunk in hunks(patch.body)
        if hunk.file == str(source) and (match := _IN_FUNCTION.search(hunk.header))
    )
    return [*dict.fromkeys(found)]


def _host(
    sources: Sequence[PurePosixPath],
    patches: Sequence[Patch],
    experiments: Sequence[Experiment],
    before: Mapping[str, Path],
    differing: frozenset[str],
) -> str | None:
    """Name the experiments that host a changed file. Objects that differ are looked at first.

    Rows may execute a function whose source changes although its instructions do not.
    """
    hosted = [(one, str(one.with_suffix(".o"))) for one in sources]
    for source, name in sorted(hosted, key=lambda its: its[1] not in differing):
        hosting = [one for one in experiments if name in hosted_names(one) and name in before]
        if hosting and name not in differing:
            verb = "hosts" if len(hosting) == 1 else "host"
            each = _listed([one.name for one in hosting])
            return f"{each} {verb} {name}, which is the same with the series"
        for one in hosting:
            there = named(before[name])
            known = [f"{its}()" for its in _changed(patches, source) if its in there]
            which = f", and no row executes its {_listed(known)}" if known else ""
            return f"{one.name} hosts {name}{which}"
    return None


def _caller(
    sources: Sequence[PurePosixPath],
    patches: Sequence[Patch],
    tree: Tree,
    experiments: Sequence[Experiment],
    before: Mapping[str, Path],
) -> str | None:
    """Name the experiment whose objects call functions of these files that it does not host."""
    best: tuple[int, str] | None = None
    for source in sources:
        changed = _changed(patches, source)
        there = {*changed, *_defined(tree.path / source)}
        for one in experiments:
            for name in (name for name in hosted_names(one) if name in before):
                called = sorted(there & _lacking(before[name]), key=lambda it: it not in changed)
                nr_changed = sum(its in changed for its in called)
                if called and (best is None or nr_changed > best[0]):
                    each = _listed([f"{its}()" for its in called])
                    said = f"{one.name}, whose {name} calls {each} of {source}, which is not hosted"
                    best = nr_changed, said
    return None if best is None else best[1]


def _neighbour(
    sources: Sequence[PurePosixPath],
    patches: Sequence[Patch],
    _tree: Tree,
    experiments: Sequence[Experiment],
    _before: Mapping[str, Path],
) -> str | None:
    for folder in dict.fromkeys(one.parent for one in (*sources, *_sources(patches))):
        near = Counter(
            {
                one.name: sum(PurePosixPath(name).parent == folder for name in hosted_names(one))
                for one in experiments
            }
        )
        (name, number), *_ = near.most_common(1)
        if number:
            return f"{name} hosts {number} objects of {folder}/, and none of the files that change"
    return None


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return ", ".join(texts[:MOST_NAMED]) + more


def _defined(source: Path) -> frozenset[str]:
    """Return the functions that a source file seems to define."""
    try:
        text = source.read_text(encoding="utf-8", errors="replace")
    except OSError:  # the patches add the file
        return frozenset()
    return frozenset(_DEFINED.findall(text))


def _lacking(path: Path) -> frozenset[str]:
    """Return the undefined symbols of an object."""
    return frozenset(_undefined(path))


def _undefined(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        for one in table.iter_symbols() if isinstance(table, SymbolTableSection) else ():
            if one["st_shndx"] == "SHN_UNDEF" and one.name:
                yield one.name
