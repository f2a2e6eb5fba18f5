# SPDX-License-Identifier: GPL-2.0-only
"""What a run would do, in words: `--dry-run`."""

from collections.abc import Iterator
from dataclasses import replace

from ream.errors import CannotRunHere
from ream.experiment import Row
from ream.measure.plan import estimated_seconds
from ream.session import vm
from ream.session.request import Request
from ream.variants import Variant


def plan_text(request: Request) -> str:
    """What a run would do, and where its record would go; nothing is built or kept.

    Raises what choosing an accelerator raises, for the vm stage.
    """
    experiment = request.experiment
    head = [
        f"experiment  {experiment.name}, {request.stage} stage: {experiment.question}",
        f"tree        {request.tree or 'the newest linux-source-6.12 of the package archive'}",
        *(f"variant     {_variant_line(variant)}" for variant in request.variants),
    ]
    tail = [
        f"cache       {request.cache}",
        f"record      a new directory in {request.runs}",
    ]
    work = _guests(request) if request.stage == "vm" else _launches(request)
    return "\n".join([*head, *work, *tail])


def _launches(request: Request) -> Iterator[str]:
    experiment = request.experiment
    seconds = estimated_seconds(
        experiment.rows, nr_variants=len(request.variants), launches=experiment.launches
    )
    yield from (_row_line(row) for row in experiment.rows)
    yield f"launches    {experiment.launches}, seed {request.seed}"
    yield f"time        about {seconds:.0f} s to measure on a slow machine, after the build"


def _guests(request: Request) -> Iterator[str]:
    setting = _setting(request)
    rows = vm.rows_as_run(request.experiment.rows, setting)
    launches = vm.launches_as_run(request.experiment.launches, setting)
    by_device = vm.devices(rows)
    yield f"guest       {setting.accel.upper()}: {setting.reason}"
    yield from (_row_line(row) for row in rows)
    boots = launches * len(by_device) * len(request.variants)
    yield f"launches    {launches}, seed {request.seed}: {_count(boots, 'boot')} in all"
    for device, its_rows in by_device.items():
        yield f"{device.name:<11} {vm.shown_command(setting, device, its_rows)}"


def _setting(request: Request) -> vm.Setting:
    """As a run would have it; where that cannot be told yet, as it is on most machines."""
    try:
        return vm.choose_setting(request.guest, request.cache)
    except CannotRunHere as cause:
        if request.guest.accel == "kvm":
            raise
        tcg = replace(request.guest, accel="tcg")
        return replace(vm.choose_setting(tcg, request.cache), reason=f"as it stands: {cause}")


def _row_line(row: Row) -> str:
    return f"row         {row.name}: {row.title()}; {_count(row.rounds, 'round')}"


def _variant_line(variant: Variant) -> str:
    if not variant.series:
        return f"{variant.name}: the base, no patches"
    parts = (f"{s.name} ({_count(len(s.patches), 'patch', 'es')})" for s in variant.series)
    return f"{variant.name}: {' + '.join(parts)}"


def _count(number: int, what: str, plural: str = "s") -> str:
    return f"{number} {what}{plural if number != 1 else ''}"
