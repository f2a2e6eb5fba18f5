# SPDX-License-Identifier: GPL-2.0-only
"""What memory must hold: predicted from the rules, never from the code that is judged."""
