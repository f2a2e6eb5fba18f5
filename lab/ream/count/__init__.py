# SPDX-License-Identifier: GPL-2.0-only
"""What a hosted kernel executes, counted under QEMU's user mode by a plugin of ours."""
