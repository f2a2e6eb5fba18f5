# SPDX-License-Identifier: GPL-2.0-only
"""What there is: `ream list`, `doctor`, `restore`."""

import sys
from typing import TYPE_CHECKING

import typer

from ream.cli.app import app
from ream.paths import EXPERIMENTS, PUBLISHED

if TYPE_CHECKING:
    from ream.experiment import Experiment


@app.command("list")
def list_experiments() -> None:
    """List the experiments, their rows and variants, and the published tables."""
    from ream.experiment import load  # noqa: PLC0415
    from ream.published import load_tables  # noqa: PLC0415

    for path in sorted(EXPERIMENTS.glob("*.toml")):
        _print_experiment(load(path))
    print("\npublished tables")
    for table in load_tables(PUBLISHED):
        print(f"  {table.id:28} {table.author}: {table.title}")


def _print_experiment(experiment: "Experiment") -> None:
    print(f"{experiment.name}: {experiment.question}")
    print(f"  variants  {', '.join(experiment.variant_names())}")
    for row in experiment.rows:
        where = "" if row.stage == "native" else f"{row.stage}: "
        print(f"  {where + row.name:22} {row.title()}")


@app.command()
def doctor() -> None:
    """Say what can run on this machine, what cannot, and why; exit 3 if no stage can."""
    from ream.doctor import examine  # noqa: PLC0415

    findings = examine()
    for finding in findings:
        print(f"{finding.state:5} {finding.subject:22} {finding.text}")
    if any(finding.state == "NO" for finding in findings):
        raise typer.Exit(3)


@app.command()
def restore() -> None:
    """Put back the settings of this machine that a killed run of the live stage left changed."""
    from ream.session.restore import restore_settings  # noqa: PLC0415

    raise typer.Exit(restore_settings(lambda text: print(f"ream: {text}", file=sys.stderr)))
