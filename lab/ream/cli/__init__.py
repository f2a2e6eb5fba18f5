# SPDX-License-Identifier: GPL-2.0-only
"""The command line: what users type, and the exit codes they get. One file for each subject."""

# Each of these adds its commands, in the order in which the help names them.
from ream.cli import (  # noqa: I001
    run,  # noqa: F401
    judge,  # noqa: F401
    program,  # noqa: F401
    explore,  # noqa: F401
    replicate,  # noqa: F401
    report,  # noqa: F401
    history,  # noqa: F401
    check,  # noqa: F401
    bisect,  # noqa: F401
    export,  # noqa: F401
    site,  # noqa: F401
    kit,  # noqa: F401
    fleet,  # noqa: F401
    listed,  # noqa: F401
    show,  # noqa: F401
    manual,  # noqa: F401
    words,  # noqa: F401
)
from ream.cli.app import app
from ream.cli.main import main

__all__ = ["app", "main"]
