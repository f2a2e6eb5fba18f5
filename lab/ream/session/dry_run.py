# SPDX-License-Identifier: GPL-2.0-only
"""What a run would do, in words: `--dry-run`."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ream.counted import counted
from ream.errors import CannotRunHere
from ream.experiment import Compact, CompactRow, DeferredInit, Fork, Migrate, Row, format_size
from ream.kernel.series import Patch
from ream.kernel.source import LATEST
from ream.kernel.variant import try_to_apply
from ream.measure.plan import estimated_seconds, plan_launches, plan_programs
from ream.session import (
    guests,
    live,
    vm_compact,
    vm_deferred,
    vm_fork,
    vm_migrate,
    vm_zone_device,
)
from ream.session.native import suited_rows
from ream.session.request import Request
from ream.stage.live import offered_kib, plan_settings
from ream.stage.live_compact import background_settings, plan_here, wanted_settings
from ream.variants import Variant
from ream.width import width

LABEL = 12
_PROSE = (
    "applies", "experiment", "guest", "not run", "not timed", "not tried", "row", "tables",
    "until", "variant",
)  # fmt: skip
"""What is read; commands and paths stay in one line, to be pasted."""


def plan_text(request: Request) -> str:
    """What a run would do, and where its record would go; nothing is built or kept.

    Raises DoesNotApply if a patch does not, and for the vm stage what choosing an accelerator
    raises.
    """
    experiment = request.experiment
    head = [
        f"experiment  {experiment.name}, {request.stage} stage: {experiment.question}",
        f"tree        {request.tree or 'the newest linux-source-6.12 of the package archive'}",
        *(f"variant     {_variant_line(variant)}" for variant in request.variants),
        *_tried(request),
    ]
    tail = [
        *_until(request),
        f"cache       {request.cache}",
        f"record      {request.resume or f'a new directory in {request.runs}'}",
    ]
    work = {"native": _launches, "vm": _guests, "live": _live}[request.stage](request)
    return "\n".join(wrapped([*head, *work, *tail]))


def wrapped(lines: Iterable[str]) -> Iterator[str]:
    """The same lines; those of words go on in the next where they are too long."""
    for line in lines:
        if line[:LABEL].rstrip() not in _PROSE:
            yield line
            continue
        yield from textwrap.wrap(
            line, width(), subsequent_indent=" " * LABEL, break_on_hyphens=False
        )


def _tried(request: Request) -> Iterator[str]:
    """Whether the patches of all variants apply, if the tree is here to try it on."""
    patched = _whole(request.variants)
    if request.stage == "live" or not patched:
        return
    try:
        labels = [try_to_apply(one, request.tree, cache=request.cache) for one in patched]
    except CannotRunHere as cause:
        yield f"not tried   whether the patches apply: {cause}"
        return
    if labels[-1] is None:
        way = "downloaded" if request.tree in (None, LATEST) else "unpacked"
        yield f"not tried   whether the patches apply: the kernel source has to be {way} first"
    else:
        yield f"applies     every patch of every variant, to {labels[-1]}"


def _whole(variants: Iterable[Variant]) -> list[tuple[Patch, ...]]:
    """The patches of each variant that has any, but for what others begin with."""
    found: dict[object, tuple[Patch, ...]] = {}
    begun: set[object] = {()}
    for variant in sorted(variants, key=lambda one: len(one.patches), reverse=True):
        if variant.content not in begun:
            found[variant.content] = variant.patches
        begun.update(variant.content[:end] for end in range(len(variant.content) + 1))
    return list(found.values())


def _until(request: Request) -> Iterator[str]:
    """How long it goes on measuring, if that depends on what it measures."""
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
    experiment = request.experiment
    yield from (_row_line(row) for row in experiment.rows)
    yield f"launches    {experiment.launches}, seed {request.seed}"
    rows = []
    for row in live.rows_of(experiment):
        if reason := live.why_not_row(row):
            yield f"not run     {row.name}: {reason}"
        rows += [] if reason and isinstance(row, CompactRow) else [row]
    for row in rows:
        if isinstance(row, CompactRow):
            memory = plan_here(row.nr_huge, row.buffer_bytes, row.reserve_bytes)
            yield f"memory      {row.name}: {memory}"
    yield from _live_settings(rows)
    yield "afterwards  every setting is put back; after a kill, `ream restore` does it"


def _live_settings(rows: Sequence[live.LiveRow]) -> Iterator[str]:
    if any(isinstance(row, CompactRow) for row in rows):
        for setting in (*wanted_settings(), *background_settings()):
            yield f"setting     {setting.path} = {setting.value}, meanwhile"
        return
    for kib in sorted({row.folio_bytes >> 10 for row in rows}):
        for setting in plan_settings(kib, offered_kib()):
            if setting.value != "never":
                yield f"setting     {setting.path} = {setting.value}, other sizes never, meanwhile"


def _guests(request: Request) -> Iterator[str]:
    if isinstance(request.experiment, Compact):
        yield from _compact_guests(request.experiment, request)
        return
    if isinstance(request.experiment, DeferredInit):
        yield from _deferred_guests(request.experiment, request)
        return
    setting = _setting(request)
    yield f"guest       {setting.accel.upper()}: {setting.reason}"
    launches = guests.launches_as_run(request.experiment.launches, setting)
    if isinstance(request.experiment, Fork | Migrate):
        yield from (_row_line(row) for row in request.experiment.rows)
        yield _boots_line(launches, len(request.variants), request.seed)
        yield _workload_line(request.experiment, setting, request.seed)
        return
    rows = vm_zone_device.rows_as_run(request.experiment.rows, setting)
    by_device = vm_zone_device.devices(rows)
    yield from (_row_line(row) for row in rows)
    yield _boots_line(launches, len(by_device) * len(request.variants), request.seed)
    for device, its_rows in by_device.items():
        command = vm_zone_device.shown_command(setting, device, its_rows)
        yield f"{device.name:<11} {command}"


def _workload_line(experiment: Fork | Migrate, setting: guests.Setting, seed: int) -> str:
    if isinstance(experiment, Fork):
        forks = vm_fork.plan_of(experiment.rows, seed)
        return f"{forks.name:<11} {vm_fork.shown_command(setting, forks)}"
    moves = vm_migrate.plan_of(experiment.rows, seed)
    return f"{moves.name:<11} {vm_migrate.shown_command(setting, moves)}"


def _compact_guests(experiment: Compact, request: Request) -> Iterator[str]:
    settings = vm_compact.Settings.of_options(
        experiment.rows, request.guest, lambda options: _setting(replace(request, guest=options))
    )
    yield f"guest       {settings.idle.accel.upper()}: {settings.idle.reason}"
    nr_boots = 0
    launches = experiment.launches
    for setting, rows in settings.kinds(experiment.rows).values():
        nr_boots += launches * len(rows) * len(request.variants)
        for row in rows:
            yield f"{_row_line(row)}, {counted(launches, 'launch', 'launches')}, in {setting.unit}"
    yield f"launches    seed {request.seed}: {counted(nr_boots, 'boot')} in all"
    largest = max(vm_compact.plan_of(row, 0).least_bytes for row in experiment.rows)
    yield f"memory      {format_size(largest)} of the host for each guest, nearly all of it written"
    (first, *_) = plan_launches([], launches=1, seed=request.seed)
    for row in experiment.rows:
        setting = settings.of(row)
        plan = vm_compact.plan_of(row, vm_compact.seed_of(first), icount=setting.icount)
        yield f"{row.name:<11} {vm_compact.shown_command(setting, plan)}"


def _deferred_guests(experiment: DeferredInit, request: Request) -> Iterator[str]:
    setting = vm_deferred.choose(
        request.guest, lambda options: _setting(replace(request, guest=options))
    )
    yield f"guest       {setting.accel.upper()}: {setting.reason}"
    launches = guests.launches_as_run(experiment.launches, setting)
    suited = vm_deferred.booted_rows(experiment.rows, setting)
    by_shape = vm_deferred.shapes(suited.rows, setting)
    only_verified = {
        shape: reason for shape in by_shape if (reason := vm_deferred.why_not(shape, setting))
    }
    yield from (_row_line(row) for row in suited.rows)
    for reason, names in suited.by_reason().items():
        yield f"not run     {', '.join(names)}: {reason}"
    for shape, reason in only_verified.items():
        for row in by_shape[shape]:
            yield f"not timed   {row.name}: {reason}; its states are verified"
    nr_boots = launches * (len(by_shape) - len(only_verified)) + len(only_verified)
    nr_boots *= len(request.variants)
    yield f"launches    {launches}, seed {request.seed}: {counted(nr_boots, 'boot')} in all"
    for shape in by_shape:
        yield f"{shape.name:<11} {vm_deferred.shown_command(setting, shape)}"


def _boots_line(launches: int, each: int, seed: int) -> str:
    return f"launches    {launches}, seed {seed}: {counted(launches * each, 'boot')} in all"


def _setting(request: Request) -> guests.Setting:
    """As a run would have it; where that cannot be told yet, as it is on most machines."""
    try:
        return guests.choose_setting(request.guest, request.cache)
    except CannotRunHere as cause:
        if request.guest.accel == "kvm":
            raise
        tcg = replace(request.guest, accel="tcg")
        return replace(guests.choose_setting(tcg, request.cache), reason=f"as it stands: {cause}")


def _row_line(row: Row) -> str:
    return f"row         {row.name}: {row.title()}; {counted(row.rounds, 'round')}"


def _variant_line(variant: Variant) -> str:
    if not variant.series:
        return f"{variant.name}: the base, no patches"
    parts = (f"{s.name} ({counted(len(s.patches), 'patch', 'patches')})" for s in variant.series)
    return f"{variant.name}: {' + '.join(parts)}"
