#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Set up what the named stages need; where nothing is missing, do nothing, quickly.
#
# usage: lab/setup.sh [--no-install] STAGE...
#
#   python  .venv with the packages of requirements.lock (every stage needs it)
#   native  what compiles kernel objects and links them into a program
#   vm      what boots a whole kernel and divides its memory; native builds that kernel
#   count   what runs a native program that is counted
#   arm64   what compiles kernels of arm64 and runs the programs that they become
#   quick   what makes building many variants quick: a store of compiled objects
#   arch    what compiles headers of other architectures and runs the result: 240 MB to load
#   test    what `make test` and `make lint` judge patches, scripts, reports and plans with
#   sshd    what tests/machines makes its hosts of: for CI, since it starts a server
#   distros what `make test-distros` makes minimal systems with
#
# lab/packages.txt has the packages. Nothing else on the system changes: Debian packages by
# apt-get, and only as root; Python packages into .venv. --no-install, or REAM_NO_INSTALL=1,
# forbids the former. On other systems nothing is installed: the packages are named.
# REAM_PYTHON names the Python to make .venv with.
# Exit status: 0 ready, 2 usage, 3 cannot be set up here (the last line says why).

set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
venv=$root/.venv
lock=$root/requirements.lock
may_install=yes

say() {
	printf 'ream: %s\n' "$*" >&2
}

die() {
	say "$*"
	exit 3
}

usage() {
	echo "usage: lab/setup.sh [--no-install] python|native|vm|count|arm64|quick|arch|test|sshd|distros ..." >&2
	exit 2
}

# --- What is missing --------------------------------------------------------------------

package_manager() {
	for name in apt-get dnf pacman zypper; do
		if command -v "$name" >/dev/null 2>&1; then
			printf '%s\n' "$name"
			return
		fi
	done
}

# is_there KIND NAME PACKAGE: whatever provides a program will do; a compiler from elsewhere
# needs no package. PACKAGE is Debian's.
is_there() {
	case $1 in
	program) command -v "$2" >/dev/null 2>&1 ;;
	header) has_header "$2" "$3" ;;
	perl) perl -M"$2" -e 1 2>/dev/null ;;
	venv) venv_is_ready || find_python >/dev/null ;;
	esac
}

# The header decides only where there is no dpkg to ask.
has_header() {
	if command -v dpkg-query >/dev/null 2>&1; then
		case $(dpkg-query -W -f '${db:Status-Status} ' "$2" 2>/dev/null) in
		*installed\ *) return 0 ;;
		*) return 1 ;;
		esac
	fi
	[ -e "/usr/include/$1" ]
}

# add LIST WORD: print the list with the word, once.
add() {
	case "$1 " in
	*" $2 "*) printf '%s' "$1" ;;
	*) printf '%s' "$1 $2" ;;
	esac
}

# $missing becomes the packages that the stages lack; $nameless what no package is known of.
look() {
	missing=
	nameless=
	while read -r stage kind name apt dnf pacman zypper; do
		case " python$stages " in
		*" $stage "*) ;;
		*) continue ;;
		esac
		! is_there "$kind" "$name" "$apt" </dev/null || continue
		case $manager in
		apt-get) package=$apt ;;
		dnf) package=$dnf ;;
		pacman) package=$pacman ;;
		zypper) package=$zypper ;;
		*) package=- ;;
		esac
		if [ "$package" = - ] && [ "$stage" = arm64 ]; then
			continue # all else is of use without
		elif [ "$package" = - ]; then
			[ "$kind" != venv ] || name='python3 (3.11 or newer, with venv)'
			nameless=$(add "$nameless" "$name")
		else
			missing=$(add "$missing" "$package")
		fi
	done <"$root/lab/packages.txt"
}

# Elsewhere than on Debian nothing is installed: the names of packages there are untried.
say_what_is_missing() {
	unknown=${nameless:+no package is known of$nameless}
	case $manager in
	dnf) install='dnf install' ;;
	pacman) install='pacman -S --needed' ;;
	zypper) install='zypper install' ;;
	*) die "missing, and neither apt-get nor dnf, pacman or zypper is here:$nameless" ;;
	esac
	[ -n "$missing" ] || die "missing, and $unknown"
	die "missing packages; to install them, by names that are untried here:" \
		"sudo $install$missing${unknown:+; $unknown}"
}

# --- Debian packages -------------------------------------------------------------------

apt() {
	# Descriptor 9 is our lock; a daemon that a package starts must not keep it.
	DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@" \
		>>"$log" 2>&1 </dev/null 9<&-
}

last_error() {
	error=$(grep -E '^(E:|ERROR|error)' "$log" | tail -n 1)
	printf '%s' "${error:-$(tail -n 1 "$log")}"
}

# Word splitting is meant: $missing is a list of package names.
# shellcheck disable=SC2086
install_missing() {
	[ "$manager" = apt-get ] || say_what_is_missing
	if [ "$may_install" = no ]; then
		die "missing Debian packages, and installing is forbidden; to install them:" \
			"apt-get install --no-install-recommends$missing"
	fi
	if [ "$(id -u)" -ne 0 ]; then
		die "missing Debian packages; to install them:" \
			"sudo apt-get install --no-install-recommends$missing"
	fi
	say "installing Debian packages:$missing"
	apt-cache show $missing >/dev/null 2>&1 || apt update || true
	apt install --no-install-recommends $missing ||
		{ apt update && apt install --no-install-recommends $missing; } ||
		die "cannot install$missing: $(last_error);" \
			"is a package archive reachable?"
}

# --- The virtual environment -----------------------------------------------------------

# What the environment was made from. An environment knows its own path, so a checkout
# that has moved needs a new one. One that is linked may be another checkout's, of the same lock.
stamp() {
	made_for=$root
	[ ! -L "$venv" ] || made_for=$(sed -n 2p "$venv/ream-stamp" 2>/dev/null)
	printf '%s\n%s\n' "$(sha256sum <"$lock")" "$made_for"
	"$venv/bin/python" -V 2>/dev/null || echo "no python"
}

venv_is_ready() {
	[ -e "$venv/ream-stamp" ] && [ "$(cat "$venv/ream-stamp")" = "$(stamp)" ]
}

# Print the first Python that is new enough and can make an environment.
find_python() {
	for candidate in ${REAM_PYTHON:-python3 python3.13 python3.12 python3.11 /usr/bin/python3}; do
		if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' \
			2>/dev/null; then
			printf '%s\n' "$candidate"
			return 0
		fi
	done
	return 1
}

make_venv() {
	[ ! -L "$venv" ] || die ".venv is a link, to $(readlink "$venv"), which has not what" \
		"requirements.lock asks for; remove the link, and one is made here"
	python=$(find_python) || die "needs Python 3.11 or newer with venv: none found on PATH"
	say "installing Python packages into .venv (a minute or two)"
	rm -rf "$venv"
	if command -v uv >/dev/null 2>&1; then
		uv --no-config venv -q --no-project --python "$python" "$venv" >>"$log" 2>&1 &&
			uv --no-config pip install -q --python "$venv/bin/python" --no-deps \
				--only-binary :all: --require-hashes -r "$lock" >>"$log" 2>&1
	else
		"$python" -m venv "$venv" >>"$log" 2>&1 &&
			"$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input \
				--retries 2 --no-deps --only-binary :all: --require-hashes \
				-r "$lock" >>"$log" 2>&1
	fi </dev/null || die "cannot install the Python packages: $(last_error);" \
		"is a package index reachable, and the disk not full?"
	# So that `import ream` works from any directory, with nothing installed twice.
	for site in "$venv"/lib/python3*/site-packages; do
		echo "$root/lab" >"$site/ream.pth"
	done
	stamp >"$venv/ream-stamp.partial" # last: a half-made environment has no stamp
	mv "$venv/ream-stamp.partial" "$venv/ream-stamp"
}

# --- ---------------------------------------------------------------------------------------

[ "${REAM_NO_INSTALL:-}" != 1 ] || may_install=no
stages=
for word in "$@"; do
	case $word in
	--no-install) may_install=no ;;
	python | native | vm | count | arm64 | quick | arch | test | sshd | distros) stages="$stages $word" ;;
	*) usage ;;
	esac
done
[ -n "$stages" ] || usage

manager=$(package_manager)
look
if [ -z "$missing$nameless" ] && venv_is_ready; then
	exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# One set-up at a time in a checkout; what another has done meanwhile need not be redone.
exec 9<"$root"
if ! flock -n 9; then
	say "waiting for another set-up of this checkout"
	flock 9
fi
look
if [ -n "$missing$nameless" ]; then
	install_missing
	look
	[ -z "$missing" ] || die "still not found after installing:$missing; is it on PATH?"
fi
venv_is_ready || make_venv
