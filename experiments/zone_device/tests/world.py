# SPDX-License-Identifier: GPL-2.0-only
"""Rows of zone-device from fields."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from experiments.zone_device.rows import ZoneDeviceRow
from ream.values import faults


def make_row(fields: Mapping[str, Any]) -> ZoneDeviceRow:
    try:
        return ZoneDeviceRow.model_validate(dict(fields))
    except ValidationError as cause:
        raise faults("command line", cause) from cause
