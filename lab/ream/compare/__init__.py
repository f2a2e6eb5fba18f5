# SPDX-License-Identifier: GPL-2.0-only
"""Whether two runs, plans or checkouts are alike, and what follows for their numbers."""
