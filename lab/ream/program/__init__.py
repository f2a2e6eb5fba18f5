# SPDX-License-Identifier: GPL-2.0-only
"""Programs: texts with one step of memory management per line, which a kernel can perform.

`text` reads people's text. `scene` resolves names to pages and numbers. `lines` writes what a
hosted kernel reads, and `reproducer` writes the same steps as a C program. `generate` draws random
programs, and `shrink` finds the shortest program that still fails.
"""
