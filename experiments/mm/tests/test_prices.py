# SPDX-License-Identifier: GPL-2.0-only
"""The tables of prices in the page are what the records say that they name."""

import json
import re

from experiments.mm.prices import BEGIN, COUNTED, README, page, run_of


def test_the_tables_of_prices_are_what_prices_writes_of_the_records_that_they_name() -> None:
    text = README.read_text(encoding="utf-8")
    named = re.findall(r"\d{8}T\d{6}Z-mm-native-\w{4}", text.partition(BEGIN)[2])
    counted = json.loads(COUNTED.read_text(encoding="utf-8"))
    assert named == [counted["run"], *named[1:]]
    assert page(text, counted, run_of(named[1])) == text
