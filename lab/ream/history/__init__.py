# SPDX-License-Identifier: GPL-2.0-only
"""Earlier runs: finding them, telling like from unlike, comparing them, and passing them on."""
