# SPDX-License-Identifier: GPL-2.0-only
"""`python -m ream` is the command."""

from ream.cli import main

main()
