# SPDX-License-Identifier: GPL-2.0-only
"""Describes what a run would do, for `--dry-run`."""

import os
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ream.counted import counted
from ream.errors import CannotRunHere
from ream.experiment import Row, shown
from ream.kernel.arch import X86_64
from ream.kernel.build import GCC
from ream.kernel.series import Patch
from ream.kernel.source import base_of, expected_version
from ream.kernel.variant import try_to_apply
from ream.measure.plan import estimated_seconds, plan_programs
from ream.session.edition import of_tree
from ream.session.guests import QEMU_BYTES, GuestSetting, choose_setting, launches_as_run
from ream.session.live import live_of
from ream.session.request import Request
from ream.session.suited import suited_rows
from ream.session.vm import by_reason, planned
from ream.variants import Variant
from ream.width import width

LABEL = 12
_PROSE = (
    "applies", "experiment", "guest", "not run", "not timed", "not tried", "row", "tables",
    "time", "until", "variant",
)  # fmt: skip
"""Lines that are wrapped. Commands and paths stay on one line for pasting."""


def plan_text(request: Request) -> str:
    """Return what a run would do, and the place of its record; nothing is built or written.

    Raises DoesNotApply if a patch does not apply, and for the vm stage what choosing an accelerator
    raises.
    """
    request, tried = _tried(request)
    experiment, base = request.experiment, base_of(request.tree)
    head = [
        f"experiment  {experiment.name}, {request.stage} stage: {experiment.question}",
        f"tree        {f'{base} of the package archive' if base else request.tree}",
        *_setup(request),
        *(f"variant     {_variant_line(variant)}" for variant in request.variants),
        *tried,
    ]
    tail = [
        *_until(request),
        f"cache       {request.cache}",
        f"record      {request.resume or _place(request.runs)}",
    ]
    work = {"native": _launches, "vm": _guests, "live": _live}[request.stage](request)
    return "\n".join(wrapped([*head, *work, *tail]))


def _place(runs: Path) -> str:
    """Return where a record would be written, and whether that is possible."""
    there = next(one for one in (runs, *runs.absolute().parents) if one.exists())
    fault = "" if there.is_dir() and os.access(there, os.W_OK) else "; but nothing can be put there"
    return f"a new directory in {runs}{fault}"


def _setup(request: Request) -> Iterator[str]:
    setup = request.setup
    if setup.target != X86_64 or request.cpu is not None:
        cpu = request.cpu or setup.target.default_cpu
        on = "this machine's" if request.count is None and setup.target.is_here else cpu
        yield f"kernels     of {setup.arch}, on the CPU {on}"
    if setup.config:
        yield f"options     {setup.name} over ours"
    if setup.cc != GCC:
        yield f"compiler    {setup.cc}"


def wrapped(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines, with long lines of prose wrapped."""
    for line in lines:
        if line[:LABEL].rstrip() not in _PROSE:
            yield line
            continue
        yield from textwrap.wrap(
            line, width(), subsequent_indent=" " * LABEL, break_on_hyphens=False
        )


def _tried(request: Request) -> tuple[Request, list[str]]:
    """Return the run with what applies to its tree, and notes, if the tree is in the cache."""
    if request.stage == "live":
        return request, []
    labels: list[str | None] = []

    def attempt(patches: Sequence[Patch]) -> None:
        labels.append(try_to_apply(patches, request.tree, cache=request.cache))

    try:
        version = expected_version(request.tree, cache=request.cache)
        suited, notes = of_tree(request, version, attempt)
        if notes:
            return suited, [f"not there   {note}" for note in notes]
        if suited is request:
            for one in _whole(one for one in request.variants if one.tree is None):
                attempt(one)
    except CannotRunHere as cause:
        return request, [f"not tried   whether the patches apply: {cause}"]
    if not labels:
        return suited, []
    if labels[-1] is None:
        way = "downloaded" if base_of(request.tree) else "unpacked"
        said = f"the kernel source has to be {way} first"
        return suited, [f"not tried   whether the patches apply: {said}"]
    return suited, [f"applies     every patch of every variant, to {labels[-1]}"]


def _whole(variants: Iterable[Variant]) -> list[tuple[Patch, ...]]:
    """Return the patches of each variant that has any, without prefixes of others."""
    found: dict[object, tuple[Patch, ...]] = {}
    begun: set[object] = {()}
    for variant in sorted(variants, key=lambda one: len(one.patches), reverse=True):
        if variant.content not in begun:
            found[variant.content] = variant.patches
        begun.update(variant.content[:end] for end in range(len(variant.content) + 1))
    return list(found.values())


def _until(request: Request) -> Iterator[str]:
    """Yield when measuring ends, if that depends on the measurements."""
    if (stable := request.stable) is not None:
        most = stable.most_launches(request.experiment.launches)
        minutes = f", or {stable.max_minutes:g} minutes" if stable.max_minutes is not None else ""
        yield (
            f"until       every interval of a time is within {stable.within_pct:g} %: up to"
            f" {counted(most, 'launch', 'launches')}{minutes}"
        )


def _launches(request: Request) -> Iterator[str]:
    experiment, suited = request.experiment, suited_rows(request)
    names = [variant.name for variant in request.variants]
    planned = plan_programs(names, launches=experiment.launches, seed=request.seed)
    seconds = sum(
        estimated_seconds(suited.rows, nr_variants=len(one.link_order), launches=1)
        for one in planned
    )
    nr_programs = len(planned) // experiment.launches
    programs = f", each of {nr_programs} programs" if nr_programs > 1 else ""
    yield from (_row_line(row) for row in suited.rows)
    for reason, names in suited.by_reason().items():
        yield f"not run     {', '.join(names)}: {reason}"
    yield f"launches    {experiment.launches}{programs}, seed {request.seed}"
    yield f"time        about {seconds:.0f} s to measure on a slow machine, after the build"


def _live(request: Request) -> Iterator[str]:
    experiment, its = request.experiment, live_of(request.experiment)
    yield from (_row_line(row) for row in experiment.rows)
    yield f"launches    {experiment.launches}, seed {request.seed}"
    for row in experiment.rows:
        if reason := its.why_not(row):
            yield f"not run     {row.name}: {reason}"
    yield from its.plan_lines(experiment.rows)
    yield "afterwards  every setting is put back; after a kill, `ream restore` does it"


def _guests(request: Request) -> Iterator[str]:
    its = planned(request, lambda options: _setting(replace(request, guest=options)))
    setting = its.setting
    yield f"guest       {setting.accel.upper()}: {setting.reason}"
    for row in its.rows:
        unit = its.unit_of(row.name)
        yield _row_line(row) + ("" if unit == setting.unit else f", in {unit}")
    for reason, names in by_reason(its.skipped).items():
        yield f"not run     {', '.join(names)}: {reason}"
    for name, reason in its.not_timed().items():
        yield f"not timed   {name}: {reason}"
    launches = request.experiment.launches
    if its.counts_repeat:
        launches = launches_as_run(launches, setting)
    nr_boots = its.nr_boots(launches) * len(request.variants)
    yield f"launches    {launches}, seed {request.seed}: {counted(nr_boots, 'boot')} in all"
    most = max(its.touched_bytes().values(), default=0)
    yield f"memory      {most >> 20:,} MiB of the host, and {QEMU_BYTES >> 20:,}, for each guest"
    for name, kind in its.kinds().items():
        yield f"{name:<11} {kind.command}"


def _setting(request: Request) -> GuestSetting:
    """Return the setting of a run; if it is not known yet, that of most machines."""
    try:
        return choose_setting(request.guest, request.cache)
    except CannotRunHere as cause:
        if request.guest.accel == "kvm":
            raise
        tcg = replace(request.guest, accel="tcg")
        return replace(choose_setting(tcg, request.cache), reason=f"as it stands: {cause}")


def _row_line(row: Row) -> str:
    return f"row         {row.name}: {row.title()}; {counted(row.rounds, 'round')}"


def _variant_line(variant: Variant) -> str:
    source = "the base" if variant.tree is None else str(base_of(variant.tree) or variant.tree)
    options = "" if variant.setup is None else f", with options of {variant.setup.name}"
    if not variant.series:
        return f"{shown(variant.name)}: {source}, no patches{options}"
    parts = (f"{s.name} ({counted(len(s.patches), 'patch', 'patches')})" for s in variant.series)
    where = "" if variant.tree is None else f" on {source}"
    return f"{shown(variant.name)}: {' + '.join(parts)}{where}{options}"
