# SPDX-License-Identifier: GPL-2.0-only
"""Which versions of the kernel code a run compares, each an ordered list of patches on one base."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ream.errors import BadUsage
from ream.experiment import (
    AGAIN,
    BASE,
    BEFORE,
    CONTROL,
    IMPLIED,
    RUNNING,
    Experiment,
    is_copy,
    recorded,
    shown,
)
from ream.folders import base_names, version_numbers
from ream.kernel.base import LATEST_BASE, base_named, default_base
from ream.kernel.series import Options, Patch, Series, load_series, named_series, ported, prefixes
from ream.kernel.setup import SUFFIX, Setup, named_config
from ream.kernel.source import Wanted, base_of, named_source
from ream.kernel.variant import DoesNotApply
from ream.nearest import hint


@dataclass(frozen=True)
class Variant:
    """A version of the kernel code: the base plus these series, in order."""

    name: str
    series: tuple[Series, ...]
    compared_with: str | None = None
    """For a given series, the variant of the tree that it applies to, with which it is compared.
    None: this is one of the experiment's own variants, compared with `before`."""
    tree: Wanted = None
    """The kernel source of this variant; None: the run's."""
    setup: Setup | None = None
    """How the kernel of this variant is configured; None: as the run's."""

    @property
    def given(self) -> bool:
        """Whether it is a series given by the user: a run can go on without it."""
        return self.compared_with is not None

    @property
    def patches(self) -> tuple[Patch, ...]:
        return tuple(patch for series in self.series for patch in series.patches)

    @property
    def content(self) -> tuple[tuple[str, Options], ...]:
        """What tells its kernel from another's: of equal ones a single one is built."""
        return tuple((patch.diff_sha256, patch.options) for patch in self.patches)


def on_base(experiment: Experiment, base: str) -> Experiment:
    """The experiment with its variants of a base: ports in place of what they are ports of.

    Where the base has other lists and two variants become the same one, the first is left.
    """
    others = experiment.variants_on.get(base, {})
    its: dict[str, tuple[str, ...]] = {}
    for name, folders in {**experiment.variants, **others}.items():
        series = tuple(ported(one, base, experiment.folder) for one in folders)
        if not others or series not in its.values():
            its[name] = series
    return experiment.model_copy(update={"variants": MappingProxyType(its)})


def editions(experiment: Experiment, version: str) -> Iterator[Experiment]:
    """The experiment on each base that its series are written for, the nearest to a version first.

    Series that are in no base's folder are written for the default base.
    """
    written_for = default_base().name
    plain = on_base(experiment, written_for)
    for base in sorted(base_names(), key=lambda base: abs(_release(base) - _release(version))):
        one = on_base(experiment, base)
        if base == written_for or one.variants != plain.variants:
            yield one


def base_meant(tree: Wanted) -> str:
    """The base whose ports are used when a series of this checkout is named for a tree."""
    base = base_of(tree)
    if base is None:
        return default_base().name
    return base_names()[0] if base.package is None else base.name


def _release(version: str) -> int:
    """The place of a release in the row of them: v7.0 comes after v6.19."""
    major, minor = version_numbers(version)[:2]
    return 20 * major + minor


def choose_variants(
    experiment: Experiment,
    *,
    user_series: Sequence[Path] = (),
    version: int | None = None,
    repository: Path | None = None,
    per_patch: bool = False,
    control: bool = False,
) -> tuple[Variant, ...]:
    """The variants of a run: before twice, the experiment's own, the user's, and prefixes.

    user_series: patches on the base, each a variant named after its file or folder. They are
    compared with the tree that they were put on, so that is a variant of the run, too, twice.
    version, repository: of these, as `load_series` has it.
    per_patch: adds every proper prefix of the user's series or, if there is none, of `before`
        and of the experiment's longest variant; what each step buys is then a ratio of neighbours.
        control: adds `before` once more, under the name of the variant that the runner slows.
        Raises BadUsage for a series that cannot be read or a name that is taken.
    """
    own = [
        Variant(name, tuple(named_series(one, experiment.folder) for one in folders))
        for name, folders in experiment.variants.items()
    ]
    if version is not None and not user_series:
        raise BadUsage(f"--version {version} says which version of a --series; there is none")
    read = (load_series(one, version=version, repository=repository) for one in user_series)
    before = next((variant for variant in own if variant.name == BEFORE), Variant(BEFORE, ()))
    own = [variant for variant in own if variant.name != BEFORE]
    tree = next((one for one in (before, *own) if not one.patches), Variant(BASE, ()))
    given = [Variant(series.name, (series,), tree.name) for series in read]
    chosen = [*(Variant(name, before.series) for name in IMPLIED), *own, *given]
    if given and tree is not before:
        chosen += [] if tree in own else [tree]
        chosen.append(Variant(tree.name + AGAIN, tree.series))
    if per_patch:
        longest = max(own, key=lambda variant: len(variant.patches))
        chosen += [
            step for variant in given or (before, longest) for step in _prefixes(variant, own)
        ]
    chosen += [Variant(CONTROL, before.series)] if control else []
    if any(variant.name == CONTROL for variant in given):
        raise BadUsage(f"a series is called {CONTROL}, as the positive control is; rename it")
    if copy := next((variant.name for variant in given if is_copy(variant.name)), None):
        raise BadUsage(f"a series is called {copy}; names that end in {AGAIN} are of second copies")
    names = [shown(variant.name) for variant in chosen]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadUsage(f"two variants are called {', '.join(twice)}; rename the file or folder")
    return tuple(chosen)


def wanted_variants(
    experiment: Experiment, *, only: str | None, **options: Any
) -> tuple[Variant, ...]:
    """The variants of a run, or of them those that --only names; options: of `choose_variants`."""
    variants = choose_variants(experiment, **options)
    return variants if only is None else only_variants(variants, only.split(","))


def only_variants(variants: Sequence[Variant], names: Sequence[str]) -> tuple[Variant, ...]:
    """Select the named variants of a run, and those that they are compared with.

    Raises BadUsage for a name that none has.
    """
    known = {one.name: one for one in variants}
    theirs = [shown(name) for name in known]
    names = [recorded(name) for name in names]
    for name in names:
        if name not in known:
            raise BadUsage(f"--only {name}: no variant{hint(name, theirs)}; of {', '.join(theirs)}")
    kept = {*_BEFORES, *names}
    for name in names:
        if (tree := known[name].compared_with) is not None:
            kept |= {tree, tree + AGAIN}
    return tuple(one for one in variants if one.name in kept)


@dataclass(frozen=True)
class _Asked:
    """A variant as --variant has it."""

    name: str
    tree: Wanted
    series: tuple[Series, ...]
    setup: Setup | None


def asked_variants(
    experiment: Experiment,
    texts: Sequence[str],
    *,
    tree: Wanted = None,
    version: int | None = None,
    control: bool = False,
) -> tuple[Wanted, tuple[Variant, ...]]:
    """The variants that `--variant [NAME=]TREE[+SERIES...]` asks for, and the run's kernel source.

    TREE: the version of a base, a kernel source, or one of the experiment's own variants, which is
    patches on the run's own kernel source. The first is `before`, twice, and its kernel source the
    run's; all others are compared with it. tree: of the run, as --base or --tree names it.
    version: of series that are files. control: as `choose_variants` has it.
    Raises BadUsage for what there is not, and for two of a name.
    """
    first = _asked(experiment, texts[0], tree, version)
    if first.setup is not None:
        raise BadUsage(
            f"--variant {texts[0]}: the first one is configured as the run is; --config FILE"
            " says how"
        )
    if tree is not None and first.tree is not None:
        raise BadUsage(
            f"--variant {texts[0]}: the first one names the kernel source of the run;"
            " leave --base or --tree out"
        )
    tree = first.tree or tree
    others = [_asked(experiment, text, tree, version) for text in texts[1:]]
    names = (*IMPLIED, *([CONTROL] if control else []))
    chosen = [Variant(name, first.series) for name in names]
    chosen += [
        Variant(one.name, one.series, tree=None if one.tree == tree else one.tree, setup=one.setup)
        for one in others
    ]
    held = [shown(variant.name) for variant in chosen]
    if twice := sorted({name for name in held if held.count(name) > 1}):
        raise BadUsage(
            f"--variant: two variants are called {', '.join(twice)}; NAME=TREE names one"
        )
    return tree, tuple(chosen)


def _asked(experiment: Experiment, text: str, runs: Wanted, version: int | None) -> _Asked:
    """runs: the kernel source of the run."""
    head, *parts = text.split("+")
    series = [one for one in parts if not one.endswith(SUFFIX)]
    configs = [named_config(one, "native") for one in parts if one.endswith(SUFFIX)]
    if len(configs) > 1:
        raise BadUsage(f"--variant {text}: more than one file of options; make one of them")
    name, _, where = head.rpartition("=")
    where = recorded(where)
    tree: Wanted = None
    own: Sequence[str] = ()
    if where in (*base_names(), LATEST_BASE):
        tree = base_named(where)
    elif where == BEFORE or where in experiment.variants:
        own = on_base(experiment, base_meant(runs)).variants.get(where, ())
    elif where and ((source := named_source(Path(where))) != Path(where) or Path(where).exists()):
        tree = source
    else:
        known = ", ".join((*base_names(), LATEST_BASE, *map(shown, experiment.variants)))
        raise BadUsage(
            f"--variant {text}: {where or 'nothing'} is neither a kernel source nor one of {known}"
        )
    base = base_meant(tree or runs)
    given = {
        one: load_series(Path(one), version=version)
        if Path(one).exists()
        else named_series(ported(one, base, experiment.folder), experiment.folder)
        for one in series
    }
    words = [its.name if Path(one).exists() else one for one, its in given.items()]
    words += [one.name.removesuffix(SUFFIX) for one in configs]
    whole = (*(named_series(one, experiment.folder) for one in own), *given.values())
    named = name or "+".join((Path(where).name, *words))
    if named == RUNNING:
        raise BadUsage(
            f"--variant {text}: {RUNNING} is what the kernel of this machine is called; give it"
            " another name"
        )
    return _Asked(named, tree, whole, configs[0] if configs else None)


@dataclass(frozen=True)
class Suited:
    """The variants of a run that apply to a tree, and a line on each of the others."""

    variants: tuple[Variant, ...]
    notes: tuple[str, ...] = ()


def suited_to(variants: Sequence[Variant], attempt: Callable[[Sequence[Patch]], object]) -> Suited:
    """Leave out variants of this checkout that do not apply to a tree, which may be newer.

    attempt: raises DoesNotApply if these patches do not apply; the error is passed on for a series
    that the user gave. If `before` does not apply, the tree itself replaces it. Variants of this
    checkout without patches are then left out, since they would be compared with themselves.
    """
    why: dict[str, DoesNotApply] = {}
    tried: set[object] = {()}
    for variant in sorted(variants, key=lambda one: len(one.patches), reverse=True):
        if variant.content in tried:  # another begins with these
            continue
        try:
            attempt(variant.patches)
        except DoesNotApply as cause:
            if variant.given:
                raise
            why[variant.name] = cause
        else:
            tried.update(variant.content[:end] for end in range(len(variant.content) + 1))
    left = [one.name for one in variants if one.name in why.keys() - _BEFORES]
    notes = [f"{shown(name)} is left out: {why[name].short}" for name in left]
    if BEFORE not in why:
        return Suited(tuple(one for one in variants if one.name not in why), tuple(notes))
    suited = []
    for one in variants:
        if one.name in _BEFORES:
            suited.append(replace(one, series=()))
        elif one.patches and one.name not in why:
            suited.append(replace(one, compared_with=BEFORE if one.given else None))
    return Suited(tuple(suited), (f"before is the tree itself: {why[BEFORE].short}", *notes))


_BEFORES = frozenset({*IMPLIED, CONTROL})


def _prefixes(variant: Variant, others: Sequence[Variant]) -> Iterator[Variant]:
    """Every proper prefix that is no variant already, its last series named as far as it goes."""
    known = {other.content for other in (variant, *others)}
    whole: tuple[Series, ...] = ()
    for series in variant.series:
        for part in prefixes(series):
            step = Variant(part.name, (*whole, part), variant.compared_with)
            if step.content not in known:
                yield step
        whole = (*whole, series)
