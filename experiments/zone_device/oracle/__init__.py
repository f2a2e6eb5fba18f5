# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel must hold behind a call; of the memory map itself ream.oracle.memmap says it."""
