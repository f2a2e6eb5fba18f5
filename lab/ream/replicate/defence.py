# SPDX-License-Identifier: GPL-2.0-only
"""Tells the author of a table, in one sentence, why the verdict on it is fair."""

from collections import Counter
from collections.abc import Iterable, Mapping

from ream.counted import counted
from ream.measure.verdict import Word
from ream.replicate.outcome import Line, Replication
from ream.replicate.rule import counted_words
from ream.report.shared import alike, together

_MEANS: Mapping[Word, str] = {
    "agrees": (
        "within 15 % the interval contains the published effect, and it is narrow enough to tell "
        "that from half of it, so the effect is there on this CPU, too"
    ),
    "stronger": (
        "the same direction was found by more than the author claims, so the claim holds on this "
        "CPU, and a published cost is larger on it"
    ),
    "weaker": (
        "the author's direction was found, but less of it, which says how far the effect carries "
        "over to this CPU and not that the author's numbers are wrong"
    ),
    "contradicts": (
        "the interval has no room for what is published, so that does not carry over to this CPU, "
        "which does not say that the author's numbers are wrong"
    ),
}


def defence(replication: Replication) -> str:
    """One sentence for the table's author on the verdict, made of what was published and measured.

    A table that was not run says why it cannot be tried, and one whose device is modelled says what
    the model is.
    """
    word, table = replication.word, replication.table
    if not replication.deciding:
        return "the source compares no two of the kernels that rows have, so no word is on it"
    if word == "not-run":
        return (
            f"no word is for or against the table, because it cannot be tried here: "
            f"{_most(replication.deciding, word)}"
        )
    if word == "modelled":
        return f"no word is for or against the device: {_most(replication.deciding, word)}"
    if replication.too_few:
        tried = [line for line in replication.deciding if line.tried]
        words = counted_words(line.judged.word for line in tried)
        return (
            f"no word is for or against the table, because {len(tried)} of"
            f" {counted(len(replication.deciding), 'claim')} could be tried ({words}), and it takes"
            f" half of them: {_most(replication.deciding, 'not-run')}"
        )
    if word == "inconclusive":
        return f"no word is for or against the table: {_most(replication.deciding, word)}"
    tried = [line for line in replication.deciding if line.tried]
    number = sum(line.judged.word == word for line in tried)
    kernels = ", ".join(dict.fromkeys(source.kernel for source in replication.sources))
    return (
        f"one kernel ({kernels or 'unknown'}) with and without the technique was measured on "
        f"{replication.machine.cpu or 'an unknown CPU'}, where the author had {table.machine}; "
        f"of {number} of {counted(len(tried), 'claim')} that could be tried it is said that "
        f"{_MEANS[word]}"
    )


def _most(lines: Iterable[Line], word: Word) -> str:
    """The reason that most lines of this verdict have; if none has it, that most lines have.

    A table of controls alone is inconclusive where none of them is.
    """
    judged = [line.verdict for line in lines if line.verdict is not None]
    own = [one for one in judged if one.word == word]
    reasons = [one.reason for one in own or judged]
    most = Counter(reasons).most_common(1)[0][0]
    said = [most]
    for reason in reasons:
        if alike([*said, reason]):
            said.append(reason)
    rest = f" ({len(said) - 1} of {len(reasons)} lines)" if len(said) <= len(reasons) else ""
    return f"{together(said)}{rest}"
