# SPDX-License-Identifier: GPL-2.0-only
"""Reads stored judgements, which `ream judge --json` printed or --watch wrote."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ream.errors import BadUsage
from ream.judge.judgement import Judgement

DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Exceptions raised by reading a file that is no judgement."""


def object_in(told: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the object of a judgement in stored data; None if the series could not be judged."""
    its = told.get("judgement") or (told if "operations" in told else None)
    return None if its is None else dict(its)


def judgement_in(path: Path) -> Judgement:
    """Return the judgement in a file; raises BadUsage if there is none."""
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
