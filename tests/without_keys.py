# SPDX-License-Identifier: GPL-2.0-only
"""The list of mprotect() and mremap() in kernels and on CPUs without protection keys."""

from dataclasses import replace

from ream.stage.selftests import Selftests

OF_KEYS = ("protection_keys", "pkey_sighandler_tests", "mseal_test")
"""Programs that say less, or nothing, where there are no protection keys."""


def without_keys(tests: Selftests) -> Selftests:
    """A list without these programs."""
    return replace(
        tests, programs=tuple(one for one in tests.programs if not one.endswith(OF_KEYS))
    )
