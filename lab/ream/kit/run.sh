#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Measures what this kit contains on this machine, and writes one result file.
#
#   sh run.sh               measure, and write KIT-ID.result into the current directory
#   sh run.sh -o FILE       write FILE instead
#   sh run.sh -m MINUTES    begin no launch that would end later than that
#
# It needs no root, no network, no compiler and no Python. Each program is confined: it has no
# network, no other process and no file but its own. Nothing but the result stays behind.
# Send the result to whoever gave you the kit: `ream merge FILE` reads it.
#
# The result has the type of CPU, its caches and nodes, the size of memory, the kernel's release,
# the load, and all times. It has no name of a host or a user, and no path.
#
# Exit status: 0 measured, 2 usage or a damaged kit, 3 cannot run here, 5 a kernel's memory was
# wrong (the result says which), 6 a program failed, 130 interrupted.

set -u
LC_ALL=C
export LC_ALL
umask 077

say() {
	printf 'ream kit: %s\n' "$*" >&2
}

fail() {
	status=$1
	shift
	say "$*"
	exit "$status"
}

kit=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P) || exit 2
minutes=
result=
while getopts 'm:o:h' option; do
	case $option in
	m) minutes=$OPTARG ;;
	o) result=$OPTARG ;;
	h)
		sed -n '3,/^$/s/^# \{0,1\}//p' "$kit/run.sh"
		exit 0
		;;
	*) fail 2 'usage: sh run.sh [-m MINUTES] [-o FILE]' ;;
	esac
done
for tool in sha256sum tar gzip sed grep cut cat find mkdir mktemp rm mv date dirname uname; do
	command -v "$tool" >/dev/null || fail 3 "$tool is not installed, and is needed"
done

# KIT, ARCH, MINUTES
# shellcheck source=/dev/null
. "$kit/kit.env" || exit 2
minutes=${minutes:-$MINUTES}
case $minutes in
'' | *[!0-9]*) fail 2 "-m $minutes: not a whole number of minutes" ;;
esac
result=${result:-$KIT.result}
case $result in
/*) ;;
*) result=$PWD/$result ;;
esac
[ ! -e "$result" ] || fail 2 "$result is there already; move it, or name another file with -o"
[ -w "$(dirname -- "$result")" ] || fail 2 "$(dirname -- "$result") cannot be written to"
[ "$(uname -s)" = Linux ] || fail 3 "this is $(uname -s), and the programs are for Linux"
[ "$(uname -m)" = "$ARCH" ] || fail 3 "this is $(uname -m), and the programs are for $ARCH"

cd -- "$kit" || exit 2
say 'checking the kit'
damaged=$(sha256sum -c SHA256SUMS 2>&1 | grep -v ': OK$' | sed -n 1p)
[ -z "$damaged" ] || fail 2 "the kit is damaged: $damaged; unpack it again"
facts=$(./facts) || fail 3 'the programs do not run here; is the file system mounted noexec?'
fact() {
	printf '%s\n' "$facts" | sed -n "s/^$1=//p"
}

# mib_of FILE NAME: a number of KiB, in MiB
mib_of() {
	echo $(($(sed -n "s/^$2: *\([0-9]*\) kB/\1/p" "$1") / 1024))
}

# Memory that may be taken: what is free, or what a control group leaves.
available=$(mib_of /proc/meminfo MemAvailable)
limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
used=$(cat /sys/fs/cgroup/memory.current 2>/dev/null || echo 0)
case $limit in
*[!0-9]*) ;;
*)
	left=$(((limit - used) / 1048576))
	[ "$left" -ge "$available" ] || available=$left
	;;
esac
memory_bytes=$(($(mib_of /proc/meminfo MemTotal) * 1048576))

# The plans for the largest number of CPUs that this machine has.
usable=$(fact nr_usable_cpus)
count=
needed=0
while read -r cpus mib; do
	if [ "$cpus" -le "$usable" ]; then
		count=$cpus
		needed=$mib
	fi
done <memory
[ -n "$count" ] || fail 3 "$usable CPUs are too few for any plan of this kit"
[ "$needed" -le $((available * 7 / 10)) ] ||
	fail 3 "$needed MiB of memory are needed, and 70 % of the $available MiB that are available" \
		'are less: free some, or ask for a smaller kit'

model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | sed -n 1p)
say "machine: ${model:-$ARCH}, $usable CPUs, $(mib_of /proc/meminfo MemTotal) MiB of memory," \
	"Linux $(uname -r)"

work=$(mktemp -d "${TMPDIR:-/tmp}/ream-kit.XXXXXX") || fail 3 'no place for temporary files'
child=
leave() {
	trap - EXIT HUP INT TERM
	if [ -n "$child" ]; then
		kill -TERM "$child" 2>/dev/null
		wait "$child" 2>/dev/null
	fi
	rm -rf -- "$work" "$result.new"
	exit "$1"
}
trap 'leave $?' EXIT
trap 'say "interrupted: nothing is left behind"; leave 130' INT
trap 'leave 129' HUP
trap 'leave 143' TERM
out=$work/result
mkdir "$out" "$out/said" "$out/root" || exit 3

# keep FILE...: files of the machine, under their own names
keep() {
	for file; do
		[ -r "$file" ] || continue
		mkdir -p "$out/root$(dirname "$file")"
		cat "$file" >"$out/root$file" 2>/dev/null
	done
}
keep /proc/sys/kernel/osrelease /sys/fs/cgroup/cpu.max /sys/kernel/mm/transparent_hugepage/enabled \
	/sys/kernel/mm/transparent_hugepage/defrag /sys/devices/system/cpu/smt/control \
	/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor /sys/devices/system/cpu/cpufreq/boost \
	/sys/devices/system/cpu/intel_pstate/no_turbo \
	/sys/devices/system/clocksource/clocksource0/current_clocksource
for index in /sys/devices/system/cpu/cpu0/cache/index*; do
	keep "$index/level" "$index/type" "$index/size" "$index/coherency_line_size" \
		"$index/shared_cpu_list"
done
for node in /sys/devices/system/node/node[0-9]*; do
	keep "$node/cpulist" "$node/meminfo"
done
mkdir -p "$out/root/proc"
sed '/^$/q' /proc/cpuinfo >"$out/root/proc/cpuinfo"
grep '^MemTotal' /proc/meminfo >"$out/root/proc/meminfo"

# What tells this machine from others of its kind, and reveals nothing else: as ream has it.
machine=
if [ -s /etc/machine-id ]; then
	machine=$({ printf 'ream\0' && printf %s "$(cat /etc/machine-id)"; } | sha256sum | cut -c1-12)
fi

# moment NAME: load and CPU times
moment() {
	cat /proc/loadavg >"$out/$1.loadavg"
	sed -n 1p /proc/stat >"$out/$1.stat"
	times >"$out/$1.times"
}

began=$(date +%s)
{
	printf 'schema=1\nkit=%s\ncpus=%s\nmachine=%s\n' "$KIT" "$count" "$machine"
	printf 'minutes=%s\nbegan=%s\n' "$minutes" "$(date -u +%Y%m%dT%H%M%SZ)"
	printf '%s\n' "$facts"
} >"$out/run"
moment before

# has_plan: whether $name has something to do on a machine of so many CPUs
has_plan() {
	plan=l/$name/plan-any
	[ -f "$plan" ] || plan=l/$name/plan-$count
	[ -f "$plan" ]
}

# Seconds that all launches were found to take, of those that this machine has a plan for.
all_s=0
number=0
total=0
while read -r name seconds; do
	if has_plan; then
		all_s=$((all_s + seconds))
		total=$((total + 1))
	fi
done <launches

# launch: the program of $name, its words in files, its output into the result
launch() {
	set --
	while IFS= read -r word; do
		[ "$word" != @memory@ ] || word=$memory_bytes
		set -- "$@" "$word"
	done <"l/$name/words"
	while IFS= read -r word; do
		set -- "$@" "$word"
	done <"$plan"
	sha256sum "l/$name/runner" | cut -d ' ' -f 1 >"$out/said/$name.sha256"
	"$@" >"$out/said/$name.jsonl" 2>"$out/said/$name.err" </dev/null &
	child=$!
	wait "$child"
	code=$?
	child=
	echo "$code" >"$out/said/$name.code"
}

status=3
wrong=0
done_s=0
skipped=0
why='no launch was whole'
while read -r name seconds <&3; do
	has_plan || continue
	number=$((number + 1))
	elapsed=$(($(date +%s) - began))
	expected=$seconds
	left=$((all_s - done_s))
	if [ "$done_s" -gt 0 ] && [ "$elapsed" -gt 0 ]; then
		expected=$((seconds * elapsed / done_s))
		left=$((left * elapsed / done_s))
	fi
	case $name in
	*.[1-9]*) most=$((minutes * 60)) ;;
	*) most=$((minutes * 120)) ;; # of every program one, as long as there is any time
	esac
	if [ "$number" -gt 1 ] && [ $((elapsed + expected)) -gt "$most" ]; then
		skipped=$((skipped + 1))
		continue
	fi
	say "launch $number of $total: $name; about $(((left + 59) / 60)) min left"
	launch
	done_s=$((done_s + seconds))
	case $code in
	0) status=0 ;;
	3) why=$(sed -n '$p' "$out/said/$name.err") && say "$name: $why" ;;
	*)
		wrong=6
		case $code in 5 | 8) wrong=5 ;; esac
		say "$name ended with $code: $(sed -n '$p' "$out/said/$name.err")"
		;;
	esac
done 3<launches
moment after
[ "$status" -eq 0 ] || [ "$wrong" -ne 0 ] || fail 3 "$why"
[ "$skipped" -eq 0 ] || say "$skipped of $total launches did not fit into $minutes minutes"

cat kit.json >"$out/kit.json"
pack() {
	(cd "$out" && find . -type f -exec sha256sum {} + >"$work/sums") &&
		mv "$work/sums" "$out/SHA256SUMS" &&
		tar -C "$work" -cf "$work/tar" result &&
		gzip -c "$work/tar" >"$result.new" &&
		mv -- "$result.new" "$result"
}
pack || fail 3 "$result: cannot be written"
say "the result, to send back: $result"
[ "$wrong" -eq 0 ] || exit "$wrong"
