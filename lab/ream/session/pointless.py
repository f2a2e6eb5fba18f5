# SPDX-License-Identifier: GPL-2.0-only
"""Series of the user's that change nothing of what is run: that is said, and they are not timed."""

from collections.abc import Mapping, Sequence

from ream.errors import BadUsage
from ream.kernel.build import BUILD
from ream.kernel.image import Image
from ream.kernel.objects import is_same_code, kernel_objects
from ream.progress import Reporter
from ream.session.request import Request


def trees_of(request: Request) -> dict[str, str]:
    """For each given series, the variant without it, with which it is compared."""
    return {one.name: one.compared_with for one in request.variants if one.compared_with}


def left_out(
    reasons: Sequence[Mapping[str, str]], trees: Mapping[str, str], reporter: Reporter
) -> dict[str, str]:
    """Say which series are not measured and why; raises BadUsage if no other is given.

    reasons: of each configuration, by series that change nothing of it. Measured is what changes
    something in any.
    """
    found = {name: reasons[0][name] for name in trees if all(name in one for one in reasons)}
    if found and found.keys() == trees.keys():
        said = "\n".join(f"{name}: not measured: {why}" for name, why in found.items())
        raise BadUsage(f"{said}; --measure-anyway measures it all the same")
    for name, why in found.items():
        reporter.step(f"{name}: not measured: {why}")
    return found


def same_kernels(
    images: Mapping[str, Image], trees: Mapping[str, str], reporter: Reporter
) -> dict[str, str]:
    """By series, of which not one object of a whole kernel is other code: what to say of that.

    images: by variant. Which functions a guest executes is not known: any other code may matter.
    """
    if trees:
        reporter.step("comparing the objects of whole kernels")
    found = {}
    for name, tree in trees.items():
        theirs, its = (kernel_objects(images[one].tree / BUILD) for one in (tree, name))
        if its.keys() == theirs.keys() and all(
            is_same_code(theirs[where], path) for where, path in its.items()
        ):
            found[name] = f"the same object code as {tree} in all {len(its)} objects of the kernel"
    return found
