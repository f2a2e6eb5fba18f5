#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A host test: do commits of a kernel tree make memory management wrong, or slower?
#
# usage: contrib/ci/ream-judge.sh LINUX BASE..HEAD [OPTION of `ream judge`]...
#
# LINUX is a git work tree; the commits are judged on the one where HEAD left BASE. The results
# are judgement.json, summary.md and junit.xml in the folder REAM_RESULTS (ream-results). If
# GITHUB_ACTIONS is set, lines of GitHub's workflow commands point at what is wrong; otherwise
# plain lines do. GITHUB_STEP_SUMMARY gets the summary.
# REAM is the command; XDG_CACHE_HOME has what is built of the base, and is worth keeping.
# Exit status: 0 passed, or not judged for a reason that is printed; 1 wrong, or a regression;
# 2 usage. REAM_NEUTRAL replaces the 0 of what was not judged: 4 is a skip for kselftest.

set -eu

ream=${REAM:-$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)/ream}
results=${REAM_RESULTS:-ream-results}
neutral=${REAM_NEUTRAL:-0}

die() {
	printf 'ream-judge: %s\n' "$*" >&2
	exit 2
}

# say LEVEL TEXT: a line that GitHub shows beside the job; a plain one anywhere else.
say() {
	if [ -n "${GITHUB_ACTIONS:-}" ]; then
		printf '::%s title=ream judge::%s\n' "$1" "$(printf '%s' "$2" | sed 's/%/%25/g')"
	else
		printf 'ream judge: %s: %s\n' "$1" "$2"
	fi
}

# A line for each finding, which names the file and the line. Prints none without a judgement.
say_findings() {
	python3 - "$results/judgement.json" <<'END'
import json
import os
import sys


def data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def value(text: object) -> str:
    return data(str(text)).replace(":", "%3A").replace(",", "%2C")


with open(sys.argv[1], encoding="utf-8") as file:
    its = json.load(file)
level = "error" if its.get("exit") == 5 else "warning"
for one in its.get("findings", []):
    if not os.environ.get("GITHUB_ACTIONS"):
        place = "".join(f"{one[name]}:" for name in ("file", "line") if one[name] is not None)
        print(*filter(None, (place, f"{level}:", f"{one['rule']}:", ascii(one["message"])[1:-1])))
        continue
    where = {name: one[name] for name in ("file", "line") if one[name] is not None}
    words = (f"{name}={value(it)}" for name, it in {**where, "title": one["rule"]}.items())
    print(f"::{level} {','.join(words)}::{data(one['message'])}")
END
}

# quoted TEXT: as it may stand in an attribute of XML.
quoted() {
	printf '%s' "$1" | LC_ALL=C tr -cd '\40-\176' |
		sed 's/&/\&amp;/g; s/</\&lt;/g; s/"/\&quot;/g'
}

# What a reader of the results finds where no judgement was made. A usage error has no object.
write_unjudged() {
	if [ ! -s "$results/judgement.json" ] && [ "$status" != 2 ] && [ "$status" != none ]; then
		python3 - "$status" "$reason" >"$results/judgement.json" <<'END'
import json
import sys

error = {"kind": "ended", "message": sys.argv[2]}
print(json.dumps({"schema": 1, "exit": int(sys.argv[1]), "error": error}))
END
	fi
	cat >"$results/summary.md" <<END
## ream judge: not judged

Exit status: $status

\`\`\`\`text
$(printf '%s' "$reason" | tr -d '\`')
\`\`\`\`
END
	cat >"$results/junit.xml" <<END
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="1" failures="0" errors="0" skipped="1">
  <testsuite name="ream.judge" tests="1" failures="0" errors="0" skipped="1">
    <testcase classname="ream.judge.series" name="judgement">
      <skipped message="not judged, exit status $status: $(quoted "$reason")" />
    </testcase>
  </testsuite>
</testsuites>
END
}

# However the script ends, GitHub obeys commands again, and no file of the script remains.
finish() {
	close
	rm -rf "$work"
}

close() {
	[ -z "$token" ] || printf '\n::%s::\n' "$token"
	token=''
}

# stop SIGNAL: ream gets it, too. Once it has ended, the script says so and writes its results.
stop() {
	stopped=$1
	trap '' INT TERM HUP
	# A program that a shell runs in the background ignores SIGINT.
	[ -z "$child" ] || kill -TERM "$child" 2>/dev/null || :
}

# --- The series --------------------------------------------------------------------------

[ $# -ge 2 ] || die "usage: $0 LINUX BASE..HEAD [OPTION]..."
linux=$1 range=$2
shift 2
case $range in
?*..?*) ;;
*) die "$range: no range of commits; give BASE..HEAD" ;;
esac
head=${range##*..}
base=$(git -C "$linux" merge-base "${range%%..*}" "$head") ||
	die "$linux: git knows no commit where $head left ${range%%..*}; a shallow clone may lack it"

child='' stopped='' token=''
work=$(mktemp -d)
trap finish EXIT
trap 'stop INT' INT
trap 'stop TERM' TERM
trap 'stop HUP' HUP
series=$work/$(git -C "$linux" rev-parse --short=12 "$head")
git -C "$linux" format-patch -q --no-signature -o "$series" "$base..$head"
mkdir -p "$results"
rm -f "$results/judgement.json" "$results/summary.md" "$results/junit.xml"
status=0 reason=''
if [ -z "$(ls "$series" 2>/dev/null)" ]; then
	status=none reason="$range has no commit with a patch"
fi

# --- The judgement -----------------------------------------------------------------------

if [ $status = 0 ]; then
	# Words of strangers are no commands: GitHub obeys none until it reads the token again.
	if [ -n "${GITHUB_ACTIONS:-}" ]; then
		token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
		echo "::stop-commands::$token"
	fi
	mkfifo "$work/words"
	(trap '' INT TERM HUP && exec tee "$work/said" <"$work/words") &
	reader=$!
	"$ream" judge "$series" --tree "$linux" --base-ref "$base" --json \
		--markdown "$results/summary.md" --junit "$results/junit.xml" "$@" \
		>"$results/judgement.json" 2>"$work/words" &
	child=$!
	[ -z "$stopped" ] || kill -TERM "$child"
	# A signal ends a wait, and not the program.
	while :; do
		status=0
		wait "$child" || status=$?
		kill -0 "$child" 2>/dev/null || break
	done
	wait "$reader" || :
	close
	reason=$(sed -n 's/^ream: //p' "$work/said" | tail -n 1)
	case $stopped:$status in
	INT:*) status=130 reason=interrupted ;;
	HUP:*) status=129 reason=interrupted ;;
	*:124 | *:137 | *:143) reason="out of time${reason:+: $reason}" ;;
	esac
fi
if [ ! -s "$results/summary.md" ] || [ ! -s "$results/junit.xml" ]; then
	write_unjudged
fi
if [ -s "$results/judgement.json" ]; then
	say_findings
fi
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$results/summary.md" >>"$GITHUB_STEP_SUMMARY"

case $status in
0) echo "ream judge: nothing was wrong, and no regression was found" ;;
1 | 5) say error "$reason" && exit 1 ;;
4) say notice "$reason" ;;
none) say notice "$reason" && exit "$neutral" ;;
2 | 3 | 6 | 70 | 124 | 137 | 143)
	# Without an object it was the command line.
	[ "$status" != 2 ] || [ -s "$results/judgement.json" ] ||
		die "\`ream judge' was called wrongly: $*"
	say warning "not judged, exit status $status: $reason" && exit "$neutral"
	;;
*) exit "$status" ;;
esac
