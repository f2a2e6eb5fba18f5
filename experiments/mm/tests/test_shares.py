# SPDX-License-Identifier: GPL-2.0-only
"""The table of docs/bias.md is what the record says that it names."""

import re

from experiments.mm.shares import BEGIN, END, PAGE, page
from ream.paths import RECORDS
from ream.record.record import Record


def test_the_page_has_the_tables_of_the_records_that_it_names() -> None:
    text = PAGE.read_text(encoding="utf-8")
    told = text.split(BEGIN)[1].split(END)[0]
    names = re.findall(r"record `([^`]+)`", told)
    assert names
    assert page(text, [Record.load(name, RECORDS) for name in names]) == text
