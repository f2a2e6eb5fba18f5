# SPDX-License-Identifier: GPL-2.0-only
"""A field of a row that is a size."""

from typing import Annotated

from pydantic import BeforeValidator

from ream.size import read_size

Size = Annotated[int, BeforeValidator(read_size)]
"""Bytes, in a file a number or a text as "64 KiB"; each field adds its own bounds."""
