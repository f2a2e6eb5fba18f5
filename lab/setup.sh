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
#   arch    what compiles headers of other architectures and runs the result: 240 MB to load
#   test    what `make test` and `make lint` judge patches, scripts, reports and plans with
#   sshd    what tests/machines makes its hosts of: for CI, since it starts a server
#
# Nothing else on the system changes: Debian packages by apt-get, and only as root;
# Python packages into .venv. --no-install, or REAM_NO_INSTALL=1, forbids the former;
# REAM_PYTHON names the Python to make .venv with.
# Exit status: 0 ready, 2 usage, 3 cannot be set up here (the last line says why).

set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
venv=$root/.venv
lock=$root/requirements.lock
may_install=yes
missing=

say() {
	printf 'ream: %s\n' "$*" >&2
}

die() {
	say "$*"
	exit 3
}

usage() {
	echo "usage: lab/setup.sh [--no-install] python|native|vm|arch|test|sshd ..." >&2
	exit 2
}

# --- Debian packages -------------------------------------------------------------------

# Whatever provides the program will do: a compiler from elsewhere needs no package.
need_program() {
	command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

# need_library PACKAGE HEADER: the header decides only where there is no dpkg to ask.
need_library() {
	if command -v dpkg-query >/dev/null 2>&1; then
		case $(dpkg-query -W -f '${db:Status-Status} ' "$1" 2>/dev/null) in
		*installed\ *) ;;
		*) missing="$missing $1" ;;
		esac
	elif ! [ -e "/usr/include/$2" ]; then
		missing="$missing $1"
	fi
}

need_python() {
	venv_is_ready || find_python >/dev/null || missing="$missing python3-venv"
}

need_native() {
	need_program gcc gcc
	need_program ld binutils
	need_program make make
	need_program flex flex   # kconfig and objtool's decoder
	need_program bison bison
	need_program bc bc       # kernel/time/timeconst.bc
	need_program git git     # git apply
	need_program xz xz-utils # the source archive
	need_library libc6-dev stdio.h
	need_library libelf-dev gelf.h # objtool, which JUMP_LABEL selects
}

need_vm() {
	need_program qemu-system-x86_64 qemu-system-x86
	need_program ndctl ndctl # init runs it in the guest
	need_program daxctl daxctl
	need_program busybox busybox # for `ream shell`, in the guest
}

# A C library, so that what is compiled is a program; the emulator brings its own kernel.
need_arch() {
	while read -r tools libc; do
		need_program "$tools-gcc" "gcc-$tools"
		need_library "libc6-dev-$libc-cross" "../$tools/include/stdio.h"
	done <<-END
		aarch64-linux-gnu arm64
		arm-linux-gnueabihf armhf
		powerpc64le-linux-gnu ppc64el
		riscv64-linux-gnu riscv64
		s390x-linux-gnu s390x
		sparc64-linux-gnu sparc64
	END
	need_program qemu-aarch64 qemu-user # and all others
}

need_test() {
	need_program sparse sparse
	need_program patch patch
	need_program shellcheck shellcheck
	need_program spin spin
	need_program chromium chromium # reports are looked at in it
	need_program mandoc mandoc     # and man pages
	need_program zsh zsh           # completion
	need_program fish fish
	need_program parallel parallel # cells of a plan, on hosts that ssh reaches
	need_program ssh openssh-client
	need_program rsync rsync
	# checkpatch.pl uses modules that perl-base lacks.
	perl -MTerm::ANSIColor -MEncode -e 1 2>/dev/null || missing="$missing perl"
}

# Apart from the rest: on an ordinary machine this package opens a port.
need_sshd() {
	[ -x /usr/sbin/sshd ] || missing="$missing openssh-server"
}

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
	if ! command -v apt-get >/dev/null 2>&1; then
		die "not a Debian system, and these Debian packages (or what they hold)" \
			"are missing:$missing"
	fi
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
# that has moved needs a new one.
stamp() {
	printf '%s\n%s\n' "$(sha256sum <"$lock")" "$root"
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
	python=$(find_python) || die "needs Python 3.11 or newer with venv: none found on PATH"
	say "installing Python packages into .venv (half a minute)"
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
	python | native | vm | arch | test | sshd) stages="$stages $word" ;;
	*) usage ;;
	esac
done
[ -n "$stages" ] || usage

look() {
	missing=
	need_python
	for stage in $stages; do
		[ "$stage" = python ] || "need_$stage"
	done
}

look
if [ -z "$missing" ] && venv_is_ready; then
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
if [ -n "$missing" ]; then
	install_missing
	look
	[ -z "$missing" ] || die "still not found after installing:$missing; is it on PATH?"
fi
venv_is_ready || make_venv
