# SPDX-License-Identifier: GPL-2.0-only
"""Wrong patches of experiments, each on top of the variant that it breaks."""

import re
from collections.abc import Mapping
from pathlib import Path

from ream.experiment import named
from ream.kernel.series import Patch, Series, load_series, named_series
from ream.values import read_toml

_ON = re.compile(rb"(?m)^On: (\S+)$")
"""Behind `---`, the variant that a patch breaks; the base if there is no such line."""


def wrong_series(path: Path) -> tuple[Series, ...]:
    """The series of the variant that experiments/NAME/wrong/FILE breaks, and the patch itself."""
    own = load_series(path)
    if (found := _ON.search(own.patches[0].body)) is None:
        return (own,)
    folder = path.parents[1]
    below = named(folder.name.replace("_", "-")).variants[found[1].decode()]
    return (*(named_series(one, folder) for one in below), own)


def wrong_patches(path: Path) -> tuple[Patch, ...]:
    """The patches of `wrong_series`, in order."""
    return tuple(patch for series in wrong_series(path) for patch in series.patches)


def number_of(path: Path) -> str:
    """The number that a wrong patch's name begins with."""
    return path.name[:2]


def unshown(folder: Path) -> Mapping[str, str]:
    """By number: why no run of hosted code can show it."""
    return dict(read_toml(listed)) if (listed := folder / "unshown.toml").is_file() else {}


def on_base(place: Path) -> dict[str, Series]:
    """By name, the wrong patches as they are on the base that a folder in `wrong` is named after.

    Those that differ there are in that folder, and those that are not tried are named there with
    the reason.
    """
    gone = {*unshown(place.parent), *unshown(place)}
    names = {Path(one.name): one for one in load_series(place).patches}
    return {
        path.stem: Series(path.stem, (one,))
        for path, one in names.items()
        if number_of(path) not in gone
    }
