# SPDX-License-Identifier: GPL-2.0-only
"""`ream shell`: a variant's kernel to look around in."""

from typing import Annotated

import typer

from ream.cli.app import (
    BaseOption,
    ExperimentArgument,
    SeriesOption,
    SeriesVersionOption,
    TreeOption,
    app,
    wanted_tree,
)
from ream.cli.guest import (
    AccelOption,
    AppendOption,
    CpusOption,
    DistanceOption,
    MemoryOption,
    NumaOption,
    QemuOption,
    guest_options,
)
from ream.errors import BadUsage, ReamError
from ream.folders import given_file
from ream.nearest import hint
from ream.paths import cache_dir, data_dir


@app.command()
def shell(
    variant: Annotated[
        str, typer.Option(metavar="V", help="before, published, ream, or a --series of yours.")
    ] = "ream",
    *,
    experiment: ExperimentArgument = None,
    series: SeriesOption = None,
    series_version: SeriesVersionOption = None,
    base: BaseOption = None,
    tree: TreeOption = None,
    accel: AccelOption = "auto",
    cpus: CpusOption = None,
    memory: MemoryOption = None,
    numa: NumaOption = None,
    numa_distance: DistanceOption = None,
    append: AppendOption = None,
    qemu_opts: QemuOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print QEMU's command line, and do nothing.")
    ] = False,
) -> None:
    """Boot a variant's kernel into a shell on this terminal, with 16 GiB of emulated pmem.

    Exit status: 0 the guest was left, 2 usage or no terminal, 3 cannot run here, 6 QEMU failed.
    """
    from ream.experiment import load  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415
    from ream.session.request import Request  # noqa: PLC0415
    from ream.session.shell import run_shell, shown_shell  # noqa: PLC0415
    from ream.variants import base_meant, choose_variants, on_base  # noqa: PLC0415

    source = wanted_tree(base, tree)
    asked = on_base(load(given_file(experiment)).at("vm"), base_meant(source))
    variants = choose_variants(
        asked, user_series=series or (), version=series_version, repository=tree
    )
    if not (chosen := tuple(one for one in variants if one.name == variant)):
        known = [one.name for one in variants]
        raise BadUsage(f"no variant {variant!r}{hint(variant, known)}; there is {', '.join(known)}")
    request = Request(
        experiment=asked,
        stage="vm",
        variants=chosen,
        tree=source,
        threads=None,
        seed=0,
        runs=data_dir() / "runs",
        cache=cache_dir(),
        command="",
        guest=guest_options(
            accel=accel,
            cpus=cpus,
            memory=memory,
            numa=numa,
            distances=numa_distance,
            append=append,
            qemu_opts=qemu_opts,
        ),
    )
    if dry_run:
        print(shown_shell(request))
        return
    if run_shell(request, Reporter()):
        raise ReamError("QEMU failed; what it said is above")
