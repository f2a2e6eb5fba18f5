# SPDX-License-Identifier: GPL-2.0-only
"""Reads judgements that were written: what `ream judge --json` printed, or --watch wrote."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ream.errors import BadUsage
from ream.judge.judgement import Judgement

DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What reading a file raises that is no judgement."""


def object_in(told: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The object of a judgement in what was written; None if the series could not be judged."""
    its = told.get("judgement") or (told if "operations" in told else None)
    return None if its is None else dict(its)


def judgement_in(path: Path) -> Judgement:
    """The judgement of a file. Raises BadUsage if there is none in it."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if (its := object_in(told)) is not None:
            return Judgement.from_object(its)
        said = told["sentence"] if "sentence" in told else told["error"]["message"]
    except DAMAGED as cause:
        raise BadUsage(
            f"{path}: neither a record nor what `ream judge --json` or --watch wrote"
        ) from cause
    raise BadUsage(f"{path}: the series was not judged: {said}")
