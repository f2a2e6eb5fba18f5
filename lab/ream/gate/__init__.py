# SPDX-License-Identifier: GPL-2.0-only
"""Whether a run is slower than a baseline allows: the gate that a CI job ends in."""
