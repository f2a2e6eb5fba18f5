# SPDX-License-Identifier: GPL-2.0-only
"""The command line: what users type, and the exit codes they get. One file for each subject."""

# Each of these adds its commands, in the order in which the help names them.
from ream.cli import run, shell, look, report, comfort  # noqa: F401, I001
from ream.cli.app import app
from ream.cli.main import main

__all__ = ["app", "main"]
