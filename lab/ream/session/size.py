# SPDX-License-Identifier: GPL-2.0-only
"""`ream size`: what a series adds to a kernel in several configurations, as lines of text."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ream.counted import counted
from ream.kernel.series import Series
from ream.kernel.size import KINDS, SizeChange, size_change
from ream.kernel.source import Wanted, fetch_tree
from ream.paths import KERNEL_CONFIG
from ream.progress import Reporter

CONFIGURATIONS: Mapping[str, tuple[str, ...]] = {
    "native": ("native.config",),
    "vm": ("vm.config",),
    "distro": ("vm.config", "vm-distro.config"),
}
"""By name, its fragments in kernel/config."""

MOST_SYMBOLS = 12


def size(
    series: Sequence[Series],
    tree: Wanted,
    configurations: Sequence[str],
    *,
    cache: Path,
    reporter: Reporter,
) -> Iterator[tuple[str, SizeChange]]:
    """Of each configuration, what the series together change.

    Raises DoesNotApply for a series, and what building raises.
    """
    patches = tuple(patch for one in series for patch in one.patches)
    fetched = fetch_tree(tree, cache=cache, step=reporter.step)
    for name in configurations:
        reporter.step(f"configuration {name}")
        fragments = [KERNEL_CONFIG / fragment for fragment in CONFIGURATIONS[name]]
        yield (
            name,
            size_change(fetched, patches, cache=cache, fragments=fragments, step=reporter.step),
        )


def lines(name: str, change: SizeChange, *, most: int | None = MOST_SYMBOLS) -> Iterator[str]:
    """A block about one configuration. most: symbols that are listed; None: all."""
    whole = counted(change.nr_objects, "object")
    if not change.differing:
        yield f"{name}: the same code and data in all of {whole}"
        return
    shown = ", ".join(change.differing[:MOST_SYMBOLS])
    more = len(change.differing) - MOST_SYMBOLS
    yield f"{name}: {len(change.differing)} of {whole} differ: {shown}" + (
        f" and {more} more" if more > 0 else ""
    )
    yield f"  {'':32} {'before':>9} {'after':>9} {'change':>8}"
    for kind in KINDS:
        before, after = change.totals[kind]
        yield f"  {f'{kind} of these objects':32} {before:9,} {after:9,} {after - before:+8,}"
    listed = change.symbols if most is None else change.symbols[:most]
    for one in listed:
        label = one.name if one.kind == "text" else f"{one.name} ({one.kind})"
        yield f"  {label:32} {one.before:9,} {one.after:9,} {one.delta:+8,}"
    if left := change.symbols[len(listed) :]:
        total = sum(one.delta for one in left)
        yield f"  {counted(len(left), 'smaller change'):32} {'':9} {'':9} {total:+8,}"
