# SPDX-License-Identifier: GPL-2.0-only
"""contrib/ci: the host test and the action, with a small kernel repository and a stub of ream."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from ruamel.yaml import YAML

from ream.paths import CHECKOUT

CI = CHECKOUT / "contrib" / "ci"
FINDING = {
    "file": "mm/a,b.c", "line": 7, "rule": "a: rule", "message": "100 %\n::error::x",
    "program": None, "step": None,
}  # fmt: skip
STUB = """#!/bin/sh
printf '%s\\n' "$@" >"{seen}"
for patch in "$2"/*; do echo "${{patch##*/}}" >>"{seen}"; done
echo "::error::from a compiler" >&2
printf 'ream: what it said of 5 %% of\\n' >&2
case $STUB_STATUS in
2|3|6) [ -n "${{STUB_SAYS_NOTHING-}}" ] || echo '{{"error": 1}}'; exit "$STUB_STATUS" ;;
124|137|143) exit "$STUB_STATUS" ;;
sleeps) echo begun >"{seen}.begun"; exec sleep 60 ;;
esac
while [ $# -gt 0 ]; do
	case $1 in
	--markdown) echo '## summary' >"$2" ;;
	--junit) echo '<testsuites />' >"$2" ;;
	esac
	shift
done
echo '{judgement}' | sed "s/STATUS/$STUB_STATUS/"
exit "$STUB_STATUS"
"""
"""What `ream judge` does, as far as the script sees it; it writes down its words and patches."""

NEUTRAL = "::warning title=ream judge::not judged, exit status {}: what it said of 5 %25 of"
ENDS = {
    0: (0, "ream judge: nothing was wrong, and no regression was found"),
    1: (1, "::error title=ream judge::what it said of 5 %25 of"),
    2: (0, NEUTRAL.format(2)),
    3: (0, NEUTRAL.format(3)),
    4: (0, "::notice title=ream judge::what it said of 5 %25 of"),
    5: (1, "::error title=ream judge::what it said of 5 %25 of"),
    6: (0, NEUTRAL.format(6)),
    **{
        status: (0, NEUTRAL.format(status).replace(": what", ": out of time: what"))
        for status in (124, 137, 143)
    },
}
"""By status of ream, that of the script, and its last line."""
UNJUDGED = (2, 3, 6, 124, 137, 143)

Ran = subprocess.CompletedProcess[str]
Run = Callable[..., Ran]


def git(linux: Path, *words: str) -> str:
    own = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    words = ("git", *own, *words)
    return subprocess.run(
        words, cwd=linux, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(linux: Path, text: str, subject: str) -> str:
    (linux / "mm/mm_init.c").write_text(text)
    git(linux, "add", ".")
    git(linux, "commit", "-q", "-m", subject)
    return git(linux, "rev-parse", "HEAD")


@pytest.fixture
def linux(tmp_path: Path) -> Path:
    """A tree with two branches: mm, and mine with two commits on an older commit of mm."""
    linux = tmp_path / "linux"
    (linux / "mm").mkdir(parents=True)
    (linux / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 0\nEXTRAVERSION =\n")
    git(linux, "init", "-q", "-b", "mm")
    commit(linux, "int x;\n", "base")
    git(linux, "checkout", "-q", "-b", "mine")
    commit(linux, "/* one */\nint x;\n", "mm: add a comment")
    commit(linux, "/* one */\n/* two */\nint x;\n", "mm: add another")
    git(linux, "checkout", "-q", "mm")
    commit(linux, "int y;\n", "meanwhile")
    return linux


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose ream is a stub."""
    checkout = tmp_path / "checkout"
    shutil.copytree(CI, checkout / "contrib/ci")
    judgement = json.dumps({"exit": "STATUS", "findings": [FINDING]}).replace('"STATUS"', "STATUS")
    stub = STUB.format(seen=tmp_path / "seen", judgement=judgement.replace("\\", "\\\\"))
    for name, text in (("ream", stub), ("lab/setup.sh", "#!/bin/sh\necho setup: $*\n")):
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text(text)
        (checkout / name).chmod(0o755)
    return checkout


def run(tmp_path: Path, words: tuple[str, ...], environment: dict[str, str]) -> Ran:
    known = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "REAM_RESULTS": "results"}
    known |= {"GITHUB_STEP_SUMMARY": str(tmp_path / "step.md"), "GITHUB_ACTIONS": "true"}
    known |= environment
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "timeout": 120}
    return subprocess.run(words, cwd=tmp_path, env=known, check=False, **pipe)  # type: ignore[call-overload]


@pytest.fixture
def script(tmp_path: Path, checkout: Path, linux: Path) -> Run:
    """Run the script of the checkout with the stub."""

    def call(*words: str, status: int = 0, **environment: str) -> Ran:
        path = str(checkout / "contrib/ci/ream-judge.sh")
        given = words or (str(linux), "mm..mine")
        return run(tmp_path, (path, *given), {"STUB_STATUS": str(status), **environment})

    return call


# --- The script ------------------------------------------------------------------------


@pytest.mark.parametrize("status", ENDS)
def test_each_status_of_ream_has_one_of_the_script(
    status: int, script: Run, tmp_path: Path
) -> None:
    ran = script(status=status)
    code, last = ENDS[status]
    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (code, last)
    assert ET.parse(tmp_path / "results/junit.xml").getroot().tag == "testsuites"  # noqa: S314
    summary = (tmp_path / "results/summary.md").read_text()
    assert (tmp_path / "step.md").read_text() == summary
    assert summary.startswith("## ream judge: not judged" if status in UNJUDGED else "## summary")
    assert "what it said of 5 % of" in summary or status not in UNJUDGED


def test_a_command_line_that_ream_does_not_take_is_not_neutral(script: Run) -> None:
    ran = script(status=2, STUB_SAYS_NOTHING="1")
    assert (ran.returncode, "was called wrongly" in ran.stdout) == (2, True)


def test_all_statuses_are_in_the_table() -> None:
    rows = re.findall(r"^\| ([\d, ]+) \|.*\| (\d)", (CI / "README.md").read_text(), re.MULTILINE)
    told = {int(one): int(code) for ones, code in rows for one in ones.split(", ")}
    assert told == {status: code for status, (code, _) in ENDS.items()} | {70: 0, 124: 0}


def test_commits_are_judged_on_the_one_that_they_left(
    script: Run, linux: Path, tmp_path: Path
) -> None:
    ran = script(str(linux), "mm..mine", "--minutes", "3")
    assert ran.returncode == 0, ran.stdout
    seen = (tmp_path / "seen").read_text().splitlines()
    assert seen[0] == "judge"
    assert Path(seen[1]).name == git(linux, "rev-parse", "--short=12", "mine")
    base = git(linux, "rev-parse", "mm~1")
    assert seen[2:7] == ["--tree", str(linux), "--base-ref", base, "--json"]
    assert seen[-4:-2] == ["--minutes", "3"]
    assert seen[-2:] == ["0001-mm-add-a-comment.patch", "0002-mm-add-another.patch"]


@pytest.mark.parametrize(("status", "level"), [(5, "error"), (4, "warning")])
def test_a_finding_is_shown_beside_its_line(status: int, level: str, script: Run) -> None:
    lines = script(status=status).stdout.splitlines()
    where = "file=mm/a%2Cb.c,line=7,title=a%3A rule"
    assert lines[-2] == f"::{level} {where}::100 %25%0A::error::x"


def test_words_of_a_compiler_are_no_command(script: Run) -> None:
    text = script().stdout
    (token,) = re.findall(r"^::stop-commands::(\w{32})$", text, re.MULTILINE)
    asleep = text.split(token)[1]
    assert "::error::from a compiler\n" in asleep
    assert text.count(f"::{token}::\n") == 1


def test_what_is_not_judged_may_be_a_skip(script: Run) -> None:
    assert script(status=3, REAM_NEUTRAL="4").returncode == 4
    assert script(status=4, REAM_NEUTRAL="4").returncode == 0


def test_nothing_to_judge_is_neutral(script: Run, linux: Path, tmp_path: Path) -> None:
    ran = script(str(linux), "mm..mm")
    said = "::notice title=ream judge::mm..mm has no commit with a patch"
    assert (ran.returncode, ran.stdout.splitlines()) == (0, [said])
    assert not (tmp_path / "seen").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("linux",), "usage: "),
        (("linux", "HEAD"), "HEAD: no range of commits; give BASE..HEAD"),
        (("linux", "gone..mm"), "linux: git knows no commit where mm left gone; a shallow clone"),
    ],
)
def test_what_cannot_be_meant_is_usage(words: tuple[str, ...], said: str, script: Run) -> None:
    ran = script(*words)
    assert ran.returncode == 2
    assert said in ran.stdout


def test_an_aborted_ream_ends_the_script_likewise(script: Run) -> None:
    assert script(status=134).returncode == 134


@pytest.mark.parametrize(
    ("end", "number", "code"),
    [
        (os.killpg, signal.SIGTERM, 0),
        (os.kill, signal.SIGTERM, 0),
        (os.kill, signal.SIGINT, 130),
    ],
)
def test_a_signal_ends_ream_and_leaves_all_results(
    end: Callable[[int, int], None], number: int, code: int, checkout: Path, linux: Path
) -> None:
    """Both as `timeout` ends its group, and as a runner ends the script alone."""
    path, tmp_path = checkout / "contrib/ci/ream-judge.sh", checkout.parent
    folder = tmp_path / "tmp"
    folder.mkdir()
    environment = {"PATH": os.environ["PATH"], "STUB_STATUS": "sleeps", "TMPDIR": str(folder)}
    words = (str(path), str(linux), "mm..mine")
    with subprocess.Popen(
        words,
        cwd=tmp_path,
        env={**environment, "GITHUB_ACTIONS": "true"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as its:
        while not (tmp_path / "seen.begun").exists():
            assert its.poll() is None
            time.sleep(0.01)
        end(its.pid, number)
        said, _ = its.communicate(timeout=30)
    (token,) = re.findall(r"^::stop-commands::(\w{32})$", said, re.MULTILINE)
    assert (its.returncode, said.count(f"::{token}::\n")) == (code, 1)
    assert not [*folder.iterdir()]
    results = tmp_path / "ream-results"
    status = {signal.SIGTERM: 143, signal.SIGINT: 130}[signal.Signals(number)]
    judgement = json.loads((results / "judgement.json").read_text())
    assert (judgement["exit"], judgement["error"]["kind"]) == (status, "ended")
    reason = judgement["error"]["message"]
    assert reason.startswith("interrupted" if code else "out of time")
    assert reason in (results / "summary.md").read_text()
    case = ET.parse(results / "junit.xml").find(".//skipped")  # noqa: S314
    assert case is not None
    assert reason in case.attrib["message"]


@pytest.mark.parametrize("status", ENDS)
def test_elsewhere_than_on_github_lines_are_plain(status: int, script: Run) -> None:
    ran = script(status=status, GITHUB_ACTIONS="")
    code, last = ENDS[status]
    known = last.replace("%25", "%").replace("::error title=ream judge::", "ream judge: error: ")
    known = re.sub("^::(\\w+) title=ream judge::", r"ream judge: \1: ", known)
    lines = ran.stdout.splitlines()
    assert (ran.returncode, lines[-1]) == (code, known)
    assert [one for one in lines if one.startswith("::")] == ["::error::from a compiler"]
    if status == 5:
        assert lines[-2] == r"mm/a,b.c:7: error: a: rule: 100 %\n::error::x"


# --- The action ------------------------------------------------------------------------


def test_the_action_and_its_example_are_what_their_schemas_allow(tmp_path: Path) -> None:
    check = (sys.executable, "-P", "-m", "check_jsonschema")
    action, readme = ((CI / name).read_text() for name in ("action.yml", "README.md"))
    (workflow,) = re.findall(r"^```yaml\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    for kind, text, code in (
        ("actions", action, 0),
        ("actions", action.replace("using:", "uses:"), 1),
        ("workflows", workflow, 0),
        ("workflows", workflow.replace("runs-on:", "runs_on:"), 1),
    ):
        (tmp_path / "it.yml").write_text(text)
        words = (*check, "--builtin-schema", f"vendor.github-{kind}", str(tmp_path / "it.yml"))
        ran = run(tmp_path, words, {})
        assert ran.returncode == code, ran.stdout


def filled(text: str, known: dict[str, str]) -> str:
    """A text with GitHub's expressions replaced; a name that is not known is an error."""
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], text)


@pytest.mark.parametrize("status", ENDS)
def test_the_steps_of_the_action_run(
    status: int, checkout: Path, linux: Path, tmp_path: Path
) -> None:
    known = {
        "inputs.linux": str(linux), "inputs.base": "mm", "inputs.head": "mine",
        "inputs.minutes": "10", "inputs.neutral": "0", "runner.temp": str(tmp_path),
    }  # fmt: skip
    given, outputs = str(checkout / "contrib/ci"), tmp_path / "outputs"
    code, said = 0, ""
    for step in YAML(typ="safe").load(CI / "action.yml")["runs"]["steps"]:
        environment = {name: filled(its, known) for name, its in step.get("env", {}).items()}
        github = {"GITHUB_ACTION_PATH": given, "GITHUB_OUTPUT": str(outputs)}
        environment |= {**github, "RUNNER_TEMP": str(tmp_path), "STUB_STATUS": str(status)}
        if "run" not in step:
            key = filled(step["with"]["key"], known)
            assert key == f"ream-{git(linux, 'rev-parse', 'mm~1')}"
            continue
        assert "${{" not in step["run"]
        ran = run(tmp_path, ("bash", "-e", "-o", "pipefail", "-c", step["run"]), environment)
        code, said = ran.returncode, ran.stdout
        lines = outputs.read_text().splitlines()
        known |= {
            f"steps.base.outputs.{line.partition('=')[0]}": line.partition("=")[2] for line in lines
        }
    assert (code, said.splitlines()[-1]) == ENDS[status]
    assert (tmp_path / "ream-results/junit.xml").is_file()


# --- With ream itself ------------------------------------------------------------------


def test_a_change_of_comments_passes(script: Run, tmp_path: Path) -> None:
    ream = tmp_path / "ream"
    ream.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m ream "$@"\n')
    ream.chmod(0o755)
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(CHECKOUT / "lab")}
    ran = script(REAM=str(ream), **environment)
    assert ran.returncode == 0, ran.stdout
    results = tmp_path / "results"
    said = (results / "summary.md").read_text()
    assert "Nothing changes: the code and data of mm/mm_init.c are" in said
    its = json.loads((results / "judgement.json").read_text())
    assert (its["exit"], its["findings"], len(its["subjects"])) == (0, [], 2)
    suite = ET.parse(results / "junit.xml").getroot()  # noqa: S314
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "0")
