# SPDX-License-Identifier: GPL-2.0-only
"""Makes untrusted text safe for a terminal."""


def plain(text: str) -> str:
    """The text without what moves a terminal's cursor, colours it or names its window."""
    return "".join(one if one.isprintable() else "?" for one in text)


def plain_lines(text: str) -> str:
    """The same of several lines, which stay lines."""
    return "\n".join(map(plain, text.split("\n")))
