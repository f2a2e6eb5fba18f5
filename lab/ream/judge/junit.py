# SPDX-License-Identifier: GPL-2.0-only
"""Renders a judgement as JUnit XML: a case for the whole, one for all of mm/, one for each row."""

from collections.abc import Iterator, Mapping

from ream.errors import ClaimFails, ReamError, VerificationFailed
from ream.judge import words
from ream.judge.explain import bare_text, for_others
from ream.judge.judgement import DIFFERS, Judgement
from ream.report import junit
from ream.report.case import Case, CaseOutcome

WRONG = "wrong"
SUITE = "ream.judge"
ENDS: Mapping[int, CaseOutcome] = {
    0: "pass",
    ClaimFails.exit_code: "fail",
    VerificationFailed.exit_code: "fail",
}
"""Outcome of a case by exit status; for any other status, the case is skipped."""


def render(its: Judgement) -> str:
    """Return the XML, without paths of this machine. A case fails only for exit status 1 or 5."""
    its = for_others(its)
    about = {"series": its.series, "tree": its.tree, "machine": its.machine, "exit": its.exit_code}
    return junit.render(SUITE, [*_cases(its)], about)


def unjudged(series: str, cause: ReamError) -> str:
    """Return the XML for a series that could not be judged: one case, with the reason."""
    outcome: CaseOutcome = ENDS.get(cause.exit_code, "skip")
    case = Case("series", "judgement", outcome, bare_text(str(cause)), fault=WRONG)
    return junit.render(SUITE, [case], {"series": series, "exit": cause.exit_code})


def _cases(its: Judgement) -> Iterator[Case]:
    fault = "regression" if its.wrong is None else WRONG
    outcome: CaseOutcome = ENDS.get(its.exit_code, "skip")
    yield Case("series", "judgement", outcome, words.sentence(its), fault=fault)
    if (whole := its.whole) is not None:
        says_nothing = not whole.same and (not whole.nr_programs or whole.misses_all)
        ran: CaseOutcome = "fail" if whole.wrong else "skip" if says_nothing else "pass"
        said = whole.wrong.lines[0] if whole.wrong else whole.words()
        yield Case("whole", "programs", ran, said, fault=WRONG)
    for finding in its.findings:
        if finding.rule == DIFFERS:
            yield Case("finding", finding.id, "skip", finding.message)
    unshown = {(one.experiment, one.row) for one in its.unshown}
    allowed = its.is_little and not its.strict
    for one in its.ordered():
        is_doubted = its.are_counts_misleading and one.outcome == "more"
        open_ = one.outcome in ("undecided", "mixed") or (one.experiment, one.row) in unshown
        worse = one.loss > 0 and not (allowed or is_doubted)
        reason = ", ".join(filter(None, (words.OF_OUTCOME[one.outcome], words.decided(one))))
        outcome = "fail" if worse else "skip" if open_ or is_doubted else "pass"
        yield Case(one.experiment, one.row, outcome, reason)
    for name, why in its.unhosted.items():
        yield Case(name, "hosted", "skip", why)
