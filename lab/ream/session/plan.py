# SPDX-License-Identifier: GPL-2.0-only
"""plan.json: the request of a run and its basis, from which an interrupted run is resumed.

It is part of the record. While the record is unfinished, the patches are stored beside it, so that
editing a series meanwhile does not change the run that measures it.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from ream.compare import facts
from ream.compare.alike import Facts, Thing, check, differences
from ream.errors import BadUsage
from ream.experiment import Experiment
from ream.experiment.registry import revived
from ream.kernel.base import base_named
from ream.kernel.series import Patch, Series, named_series
from ream.kernel.setup import OURS, Setup
from ream.kernel.source import Commit, Wanted, base_of
from ream.measure.stable import Stable
from ream.paths import EXPERIMENTS
from ream.record.journal import Journal
from ream.record.packed import content_of
from ream.record.partial import read_plan, run_of
from ream.record.receipt import anonymous
from ream.record.record import SCHEMA, SERIES
from ream.session.request import CountOptions, GuestOptions, Request
from ream.variants import Variant

T = TypeVar("T")

_GUEST = TypeAdapter(GuestOptions)
_SETUP = TypeAdapter(Setup)
_STABLE = TypeAdapter(Stable | None)
_COUNT = TypeAdapter(CountOptions | None)


@dataclass(frozen=True)
class Basis:
    """What all rounds of a run share besides the request. It must not change before a resume."""

    benchmark: str
    machine: str | None
    """The id of the machine; None if it has none."""
    nr_usable_cpus: int
    tree_key: str
    compiler: str
    other_trees: Mapping[str, str] = field(default_factory=dict)
    """Keys of the kernel sources of variants that do not use the run's source."""
    qemu: str | None = None
    """The version that QEMU prints; None where no guests run."""

    def fields(self) -> dict[str, Any]:
        """Return the fields of plan.json by name."""
        return dict(vars(self))


def plan_object(request: Request, run: str, basis: Basis) -> dict[str, Any]:
    """Return the object of plan.json; docs/format.md documents its fields."""
    return {
        "schema": SCHEMA,
        "run": run,
        "command": anonymous(request.command),
        "experiment": request.experiment.model_dump(mode="json", exclude_unset=True, by_alias=True),
        "experiment_folder": _folder_elsewhere(request.experiment),
        "stage": request.stage,
        "rows": {row.name: row.params() for row in request.experiment.rows},
        "launches": request.experiment.launches,
        "rounds": {row.name: row.rounds for row in request.experiment.rows},
        "seed": request.seed,
        "threads": request.threads,
        **_source_fields(request.tree),
        "setup": _SETUP.dump_python(request.setup, mode="json"),
        "asked": request.asked,
        "guest": _GUEST.dump_python(request.guest, mode="json"),
        "stable": _STABLE.dump_python(request.stable, mode="json"),
        "cell": request.cell,
        "control": request.control,
        "count": _COUNT.dump_python(request.count, mode="json"),
        "measure_anyway": request.measure_anyway,
        "confined": request.confined,
        "beside_live": request.beside_live,
        "cpu": request.cpu,
        "verify_minutes": request.verify_minutes,
        "variants": {
            variant.name: [{"name": one.name, "id": one.id} for one in variant.series]
            for variant in request.variants
        },
        **basis.fields(),
    }


def _source_fields(tree: Wanted) -> dict[str, str | None]:
    """Return the fields of a requested kernel source. The archive's latest may change later."""
    if isinstance(tree, Commit):
        return {"base": None, "tree_path": _short(tree.repository), "commit": tree.revision}
    base = base_of(tree)
    path = None if base or not isinstance(tree, Path) else _short(tree)
    return {"base": base.name if base else None, "tree_path": path}


def _source(fields: Mapping[str, Any]) -> Wanted:
    if path := fields["tree_path"]:
        tree = Path(path).expanduser()
        return Commit(tree, fields["commit"]) if fields.get("commit") else tree
    base = fields.get("base")
    return base_named(base) if base else None


def _folder_elsewhere(experiment: Experiment) -> str | None:
    """Return the folder of an experiment outside of this checkout; None if it is inside."""
    folder = experiment.folder
    return None if folder.parent == EXPERIMENTS else _short(folder)


def series_text(request: Request) -> str:
    """Return the patches of every variant as the text of series.json."""
    return json.dumps(
        [
            {
                "name": variant.name,
                "compared_with": variant.compared_with,
                **({} if variant.tree is None else _source_fields(variant.tree)),
                **({} if variant.setup is None else {"setup": _SETUP.dump_python(variant.setup)}),
                "series": [
                    {"name": one.name, "patches": [_patch_fields(p) for p in one.patches]}
                    for one in variant.series
                ],
            }
            for variant in request.variants
        ]
    )


def _patch_fields(patch: Patch) -> dict[str, Any]:
    return {
        "name": patch.name,
        "subject": patch.subject,
        "body": base64.b64encode(patch.body).decode("ascii"),
        "options": patch.options,
    }


def resumed_request(partial: Path, *, cache: Path) -> Request:
    """Return the request of an unfinished record from its plan.

    Raises BadUsage if the plan is damaged, or if this checkout's series are not the plan's.
    """
    request = request_of(partial, cache=cache)
    _check_series(read_plan(partial), request)
    return request


def request_of(partial: Path, *, cache: Path) -> Request:
    """Return the request of a record from its plan, without a check of this checkout's series."""
    plan = read_plan(partial)
    where = f"{partial}: the plan is damaged"
    way_out = f"`ream run --discard {run_of(partial)}` removes the run"
    try:
        request = Request(
            experiment=revived(plan["experiment"], plan.get("experiment_folder")),
            stage=plan["stage"],
            variants=_variants(partial),
            tree=_source(plan),
            asked=plan.get("asked", False),
            threads=plan["threads"],
            seed=plan["seed"],
            runs=partial.parent,
            cache=cache,
            command=plan["command"],
            guest=_of(_GUEST, plan["guest"]),
            setup=_of(_SETUP, plan["setup"]) if "setup" in plan else OURS,
            resume=partial,
            stable=_of(_STABLE, plan["stable"]),
            cell=plan["cell"],
            control=plan.get("control"),
            count=_of(_COUNT, plan.get("count")),
            measure_anyway=plan.get("measure_anyway", False),
            confined=plan.get("confined", True),
            beside_live=plan.get("beside_live", False),
            cpu=plan.get("cpu"),
            verify_minutes=plan.get("verify_minutes", 0.0),
        )
    except KeyError as cause:
        raise BadUsage(f"{where}: it has no {cause.args[0]}; {way_out}") from cause
    except (ValueError, TypeError) as cause:
        said = str(cause).splitlines()[0]
        raise BadUsage(f"{where}: {said}; {way_out}") from cause
    return request


def check_basis(partial: Path, now: Basis) -> None:
    """Raise BadUsage, naming both values, if an unfinished record has another basis."""
    _check(facts.of_basis(read_plan(partial)), facts.of_basis(now.fields()))


def check_guests(journal: Journal, now: str) -> None:
    """Raise BadUsage if the guests of a resumed run would differ from those that it began with."""
    guests = Thing("guests")
    _check({guests: journal.settle("guests", now)}, {guests: now})


def _check(then: Facts, now: Facts) -> None:
    head = "the run cannot go on, begin a new one"
    check("resume", then, now, sides=("when it began", "now"), head=head)


def _of(adapter: TypeAdapter[T], value: object) -> T:
    """Validate through JSON, as strict values accept JSON lists for tuples."""
    return adapter.validate_json(json.dumps(value))


def _variants(partial: Path) -> tuple[Variant, ...]:
    try:
        kept = json.loads(content_of(partial / SERIES))
    except OSError as cause:
        raise ValueError(f"{SERIES}: {cause.strerror}") from cause
    return tuple(
        Variant(
            variant["name"],
            tuple(
                Series(one["name"], tuple(_patch(patch) for patch in one["patches"]))
                for one in variant["series"]
            ),
            variant.get("compared_with"),
            _source(variant) if "tree_path" in variant else None,
            _of(_SETUP, variant["setup"]) if "setup" in variant else None,
        )
        for variant in kept
    )


def _patch(fields: Mapping[str, Any]) -> Patch:
    options = tuple((where, option) for where, option in fields["options"])
    return Patch(fields["name"], fields["subject"], base64.b64decode(fields["body"]), options)


def _check_series(plan: Mapping[str, Any], request: Request) -> None:
    """Raise BadUsage unless the stored patches and this checkout's are those of the plan."""
    planned: dict[Thing, object] = {}
    kept: dict[Thing, object] = {}
    for name, entries in plan["variants"].items():
        planned[Thing("series", name)] = facts.series_ids(entries)
    for variant in request.variants:
        kept.update(facts.series(variant.name, variant.series))
    _check(planned, kept)
    for folder in (one for its in request.experiment.variants.values() for one in its):
        here = named_series(folder, request.experiment.folder)
        # Variants of single patches share the name with others; one of them has to match.
        then = [
            facts.series(here.name, [one])
            for variant in request.variants
            for one in variant.series
            if one.name == here.name
        ]
        now = facts.series(here.name, [here])
        if then and all(differences("resume", one, now) for one in then):
            _check(then[0], now)


def _short(path: Path) -> str:
    """Return an absolute path with `~` for the home directory; expanduser() restores it."""
    home, path = Path.home(), path.absolute()
    return str(Path("~") / path.relative_to(home)) if path.is_relative_to(home) else str(path)
