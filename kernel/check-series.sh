#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# check-series.sh TREE SERIES... - is each patch clean, and does it build by itself?
#
# TREE is an unpacked pristine kernel source; it is not written to. Of ports, which
# `tests/ports.py FOLDER --whole INTO` writes whole, it has to be that of their base. The
# patches of the SERIES folders are applied to a copy of it one after another, in the order
# given: series that do not build on each other are checked by calls of their own. A folder
# whose file `series` lists folders, as that of all does, stands for these. Each patch has to
# pass `checkpatch.pl --strict`, and after each one the objects that the series are about have
# to build, in nine configurations, with no warning of the compiler (W=1), of sparse or of
# kernel-doc that TREE itself does not have. Of the kernel's own tests of mm, the compiler may
# say nothing; and a section of MAINTAINERS has to be about each file that is added.
#
# CONFIGS in the environment names some of the nine. Prints one TAP line for each patch.
# Exits 1 if any is not clean, 2 on wrong usage, 3 if a tool is missing, 6 if TREE itself
# does not build.
#
# shellcheck disable=SC2317 # for_each_config() reaches most functions

set -u -o pipefail
export LC_ALL=C
exec </dev/null

HERE=$(cd "$(dirname "$0")" && pwd) || exit 2
readonly HERE
readonly CONFIGS=${CONFIGS:-native ram pagedebug kasan xen uniprocessor i386 arm64 sparc64}
readonly SELFTESTS=tools/testing/selftests/mm
readonly HEADERS="include/linux/migrate.h include/linux/migrate_copy_offload.h \
	mm/migrate_copy_offload.c mm/internal.h include/linux/mm.h include/linux/string.h \
	include/linux/cacheinfo.h include/linux/dmaengine.h include/linux/mm_types.h include/linux/rmap.h \
	include/linux/pgtable.h include/linux/padata.h mm/util.c mm/page_alloc.c kernel/padata.c"

die() { # EXIT-CODE MESSAGE
	echo "check-series.sh: $2" >&2
	exit "$1"
}

arch() { # CONFIG
	case $1 in
	i386 | arm64) echo "$1" ;;
	sparc64) echo sparc ;;
	*) echo x86_64 ;;
	esac
}

compilers() { # CONFIG
	case $1 in
	arm64) echo aarch64-linux-gnu- ;;
	sparc64) echo sparc64-linux-gnu- ;;
	esac
}

# Is an option on in a configuration, as the patches so far have it?
enabled() { # CONFIG OPTION
	grep -q "^CONFIG_$2=[ym]" "$WORK/$1/.config"
}

# Does any of the patches change one of these files?
changes() { # FILE...
	printf '+++ b/%s\n' "$@" | grep -q -s -x -F -f - "${patches[@]}"
}

# The code that is changed, and users of what it shares with others.
objects() { # CONFIG
	if changes mm/mm_init.c; then
		echo mm/mm_init.o
		# users of memcpy_flushcache()
		case $1 in i386 | arm64 | sparc64) ;; *) echo arch/x86/lib/usercopy_64.o ;; esac
		[ "$1" != pagedebug ] || echo lib/memcpy_kunit.o lib/tests/memcpy_kunit.o
		[ "$1" != native ] || echo lib/iov_iter.o mm/page_alloc.o mm/memremap.o mm/sparse.o \
			drivers/nvdimm/pmem.o drivers/nvdimm/claim.o drivers/md/dm-writecache.o
	fi
	if changes mm/page_alloc.c kernel/padata.c; then
		echo mm/page_alloc.o
		# what a job with many threads is made of
		case $1 in native | ram | pagedebug | kasan) echo mm/mm_init.o kernel/padata.o ;; esac
		[ "$1" != native ] || echo mm/hugetlb.o mm/compaction.o mm/memblock.o
	fi
	if changes mm/memory.c mm/rmap.c include/linux/rmap.h arch/x86/include/asm/pgtable.h; then
		echo mm/memory.o mm/rmap.o mm/mmu_gather.o
		# users of rmap and of mapcounts
		[ "$1" = i386 ] || echo mm/huge_memory.o mm/khugepaged.o mm/migrate.o
		[ "$1" != pagedebug ] || echo mm/debug.o
		[ "$1" != native ] || echo kernel/fork.o mm/util.o mm/page_alloc.o mm/madvise.o \
			mm/vmscan.o mm/hugetlb.o mm/ksm.o mm/swapfile.o mm/swap_state.o \
			mm/userfaultfd.o
	fi
	if changes mm/mprotect.c mm/mremap.c arch/x86/include/asm/pgtable.h; then
		echo mm/mprotect.o mm/mremap.o
		[ "$1" != xen ] || echo arch/x86/kernel/paravirt.o
		[ "$1" != native ] || echo mm/memory.o mm/mempolicy.o fs/exec.o
	fi
	if changes mm/compaction.c; then
		! enabled "$1" COMPACTION || echo mm/compaction.o
		echo mm/page_alloc.o
		[ "$1" != native ] || echo mm/vmscan.o
	fi
	if changes mm/migrate.c; then
		! enabled "$1" MIGRATION || echo mm/migrate.o
		[ "$1" != native ] || echo mm/compaction.o mm/mempolicy.o mm/memory_hotplug.o
		! enabled "$1" MIGRATION_COPY_OFFLOAD || echo mm/migrate_copy_offload.o \
			drivers/migrate_offload/dcbm/dcbm.o \
			drivers/migrate_offload/mtcopy/mtcopy.o
	fi
	if [ "$1" = xen ] && changes include/linux/dmaengine.h drivers/dma/idxd/dma.c; then
		# whose engines may copy
		echo drivers/dma/idxd/{dma,submit,device}.o drivers/dma/ioat/{init,dma}.o
		echo drivers/dma/{,amd/}ptdma/ptdma-{dev,dmaengine}.o
	fi
}

# What the series say to a configuration, as soon as the tree has these options.
options_of_series() { # CONFIG
	case $1 in
	uniprocessor | i386) ;; # as without them
	*) [ ${#options[@]} -eq 0 ] || cat "${options[@]}" ;;
	esac
}

# What a configuration has on top of tinyconfig, and must have in the end. Where an option
# is named twice, the last line counts.
fragment() { # CONFIG
	local native="$HERE/config/native.config"

	case $1 in
	native)
		cat "$native"
		printf 'CONFIG_%s=y\n' BLOCK BLK_DEV LIBNVDIMM BLK_DEV_PMEM MD BLK_DEV_DM \
			DM_WRITECACHE HUGETLBFS SHMEM SWAP KSM USERFAULTFD CHECKPOINT_RESTORE \
			MEM_SOFT_DIRTY PROC_FS PROC_PAGE_MONITOR
		;;
	ram) # no device memory
		sed '/ZONE_DEVICE\|DEVICE_PRIVATE\|PCI_P2PDMA/d' "$native"
		printf '# CONFIG_%s is not set\n' ZONE_DEVICE
		;;
	pagedebug) # page_ref_tracepoint_active() is a static key
		cat "$native"
		printf 'CONFIG_%s=y\n' DEBUG_KERNEL FTRACE ENABLE_DEFAULT_TRACERS \
			DEBUG_PAGE_REF DEBUG_VM DEBUG_VM_PGFLAGS \
			RUNTIME_TESTING_MENU KUNIT MEMCPY_KUNIT_TEST
		;;
	kasan)
		cat "$native"
		printf 'CONFIG_%s=y\n' DEBUG_KERNEL SYSFS KASAN KASAN_GENERIC \
			UNWINDER_FRAME_POINTER
		printf '# CONFIG_%s is not set\n' SLUB_TINY UNWINDER_GUESS
		;;
	uniprocessor) # no nodes either
		sed '/SMP\|NR_CPUS\|NUMA\|DEFERRED_STRUCT_PAGE_INIT/d' "$native"
		printf '# CONFIG_%s is not set\n' SMP NUMA
		;;
	xen) # each PTE is read and written by a call that is patched
		cat "$native"
		printf 'CONFIG_%s=y\n' PCI ACPI HYPERVISOR_GUEST PARAVIRT XEN XEN_PV \
			PCI_MSI PCI_PASID BLOCK DMADEVICES INTEL_IDXD INTEL_IOATDMA AMD_PTDMA
		;;
	arm64 | sparc64) # pages have more than their bytes
		printf 'CONFIG_%s=y\n' SMP MIGRATION COMPACTION TRANSPARENT_HUGEPAGE MODULES
		[ "$1" = sparc64 ] && printf 'CONFIG_%s=y\n' 64BIT || printf 'CONFIG_%s=y\n' ARM64_PAN ARM64_TAGGED_ADDR_ABI ARM64_MTE
		;;
	i386) # keeps the section number in page->flags; has no ZONE_DEVICE
		printf 'CONFIG_%s=y\n' SMP SPARSEMEM_MANUAL SPARSEMEM
		;;
	esac | awk '/^(# )?CONFIG_/ {
		option = $0; sub(/^# /, "", option); sub(/[ =].*/, "", option)
		line[option] = $0
	} END { for (option in line) print line[option] }'
}

# One job only: asked for single objects, parallel jobs meet in arch/x86/lib and delete each
# other's files. The configurations are built side by side instead.
make_in() { # CONFIG ARGUMENTS...
	make -s -C "$WORK/linux" O="$WORK/$1" ARCH="$(arch "$1")" \
		CROSS_COMPILE="$(compilers "$1")" -j1 "${@:2}"
}

# What merge_config.sh writes meanwhile lies where it is called, and is left if it is killed.
merge() ( # CONFIG
	cd "$WORK/$1" && "$WORK/linux/scripts/kconfig/merge_config.sh" -m -Q -O . \
		.config "$WORK/$1.fragment"
)

configure() { # CONFIG
	make_in "$1" tinyconfig &&
	fragment "$1" | suited "$1" >"$WORK/$1.fragment" &&
	merge "$1" &&
	make_in "$1" olddefconfig || return

	# An option that is off may also be absent.
	while read -r line; do
		option=${line#\# }
		option=${option%%[ =]*}
		case $line in
		\#*) ! grep "^$option=" "$WORK/$1/.config" ;;
		*) grep -q "^$line\$" "$WORK/$1/.config" ;;
		esac || { echo "$1: cannot have: $line"; return 1; }
	done <"$WORK/$1.fragment"
}

# Where pages have tags, copy_highpage() alone copies all of a page: nobody calls what copies its
# bytes, and no engine can be had where it is not found out at run time whether there are tags.
tags_are_lost() { # CONFIG
	local object streams='migrate_stream_page|folios?_mc_stream'
	local -A copies=(
		[mm/migrate.o]="memcpy|__memcpy|$streams"
		[drivers/migrate_offload/mtcopy/mtcopy.o]="memcpy|__memcpy|$streams"
		# Has arrays of its own to copy.
		[drivers/migrate_offload/dcbm/dcbm.o]=$streams
	)

	case $1 in arm64 | sparc64) ;; *) return ;; esac
	for object in "${!copies[@]}"; do
		[ ! -f "$WORK/$1/$object" ] ||
			! nm -u "$WORK/$1/$object" | grep -qwE "${copies[$object]}" ||
			echo "$object: warning: copies pages without their tags"
	done
	[ "$1" = arm64 ] || ! enabled "$1" DCBM_DMA ||
		echo "dcbm: warning: an engine copies pages without their tags"
}

# What spares PTEs an exchange has to be in the object that changes them: mprotect.o, or what pv_ops
# point to. There, both bits that hardware sets are asked for at once.
settled_is_missing() { # CONFIG
	local object=mm/mprotect.o both=0x60

	[ "$(arch "$1")" = x86_64 ] &&
		grep -q pte_hw_settled "$WORK/linux/include/linux/pgtable.h" || return
	! enabled "$1" PARAVIRT_XXL || object=arch/x86/kernel/paravirt.o
	objdump -d "$WORK/$1/$object" | grep -q "\$$both," ||
		echo "$object: warning: exchanges PTEs that hardware cannot change"
}

# One line for each warning, without line numbers: these move with every patch. Make builds,
# and sparse looks at, only what has changed since the last time.
warnings() { # CONFIG
	local log="$WORK/$1.log" targets
	# Of a file that a later patch adds there is nothing to build yet.
	read -r -d '' -a targets < <(objects "$1" | tr ' ' '\n' | sort -u |
		while read -r object; do
			[ ! -f "$WORK/linux/${object%.o}.c" ] || echo "$object"
		done)

	[ ${#targets[@]} -gt 0 ] || return 0
	make_in "$1" W=1 C=1 "${targets[@]}" >"$log" 2>&1 || {
		cat "$log" >&2
		return 1
	}
	tags_are_lost "$1" >>"$log"
	settled_is_missing "$1" >>"$log"
	if [ "$1" = native ]; then
		for header in $HEADERS; do
			[ -f "$WORK/linux/$header" ] || continue
			changes "$header" || continue
			(cd "$WORK/linux" && scripts/kernel-doc -none "$header") >>"$log" 2>&1
		done
	fi
	sed -n 's/:[0-9]\+\(:[0-9]\+\)\?: /: /; /warning:\|error:/p' "$log" | sort
}

# What a configuration of the tree warns about before the first patch.
baseline() { # CONFIG
	configure "$1" >&2 && make_in "$1" prepare >&2 && warnings "$1" >"$WORK/$1.base"
}

# What a configuration of the tree warns about since.
news() { # CONFIG
	if $kconfig_changed; then
		# It says which options it had been given before, which is no news.
		options_of_series "$1" >>"$WORK/$1/.config" &&
			make_in "$1" olddefconfig 2>/dev/null || return
	fi
	if warnings "$1" >"$WORK/$1.new"; then
		comm -13 "$WORK/$1.base" "$WORK/$1.new"
	else
		echo "does not build"
	fi
}

# Of what a fragment says, what is for kernels like this: lines may end in `# with OPTION`, of
# the tree's Kconfig files, those of other architectures aside, or `# without OPTION`.
suited() { # CONFIG
	local line
	while IFS= read -r line; do
		case $line in
		*' # with '*) has_option "$1" "${line##* }" || continue ;;
		*' # without '*) ! has_option "$1" "${line##* }" || continue ;;
		esac
		printf '%s\n' "${line%% # with*}"
	done
}

has_option() { # CONFIG OPTION
	local declared="^[[:space:]]*(menu)?config $2\$" folder

	folder=$(arch "$1")
	case $folder in x86_64 | i386) folder=x86 ;; esac
	grep -rqE --include='Kconfig*' --exclude-dir=arch "$declared" "$WORK/linux" ||
		grep -rqE --include='Kconfig*' "$declared" "$WORK/linux/arch/Kconfig" \
			"$WORK/linux/arch/$folder"
}

# Runs a function for each configuration, side by side. Its output ends up in CONFIG.said.
for_each_config() { # FUNCTION
	local config failed=0 pid
	local -A pids

	for config in $CONFIGS; do
		"$1" "$config" >"$WORK/$config.said" 2>&1 &
		pids[$config]=$!
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || failed=1
	done
	return $failed
}

# Files that a patch adds and that no section of MAINTAINERS is about, but that for all of them.
orphans() { # PATCH
	sed -n '/^--- \/dev\/null$/{n;s,^+++ b/,,p}' "$1" | while read -r file; do
		sections=$(cd "$WORK/linux" && scripts/get_maintainer.pl --no-git \
			--no-git-fallback --sections -f "$file" | grep -v -e '^.:' -e '^$')
		case $sections in '' | "THE REST") echo "$file: nobody maintains it" ;; esac
	done
}

# What the compiler says of the kernel's own tests that a patch changes, with their Makefile's flags.
tests() { # PATCH
	sed -n "s,^+++ b/\($SELFTESTS/.*\.c\)\$,\1,p" "$1" | while read -r file; do
		(cd "$WORK/linux" && gcc -Wall -O2 -U_FORTIFY_SOURCE -D_GNU_SOURCE= -I . \
			-I tools/include/uapi -I tools/testing/selftests -c -o /dev/null "$file" \
			2>&1 || echo "$file: does not build") | grep -F "$file"
	done
}

# Says on standard output what is wrong with a patch, nothing if all is well.
judge() { # PATCH
	# A source without its history knows no commit that a Fixes: tag names. Whether MAINTAINERS
	# has what a patch adds is looked at below, not guessed.
	"$WORK/linux/scripts/checkpatch.pl" --no-tree --strict --no-summary --terse \
		--ignore UNKNOWN_COMMIT_ID,FILE_PATH_CHANGES "$1" 2>&1

	# git am takes no fuzz either.
	patch -d "$WORK/linux" -p1 --fuzz=0 --no-backup-if-mismatch -s <"$1" || {
		echo "does not apply"
		return
	}
	orphans "$1"
	tests "$1"
	kconfig_changed=false
	! grep -q '^+++ b/.*/Kconfig' "$1" || kconfig_changed=true
	for_each_config news
	for config in $CONFIGS; do
		sed "s,$WORK/,,g; s/^/$config: /" "$WORK/$config.said"
	done
}

[ $# -ge 2 ] || die 2 "usage: check-series.sh TREE SERIES..."
[ -f "$1/MAINTAINERS" ] || die 2 "$1: not a kernel source"
for tool in make gcc sparse patch perl flex bison bc; do
	command -v $tool >/dev/null || die 3 "$tool: not installed"
done

WORK=$(mktemp -d "${TMPDIR:-/tmp}/check-series.XXXXXX") || die 3 "cannot make a temporary folder"
readonly WORK
trap 'rm -rf "$WORK"' EXIT
trap 'exit 130' INT TERM

folders=()
for series in "${@:2}"; do
	[ -d "$series" ] || die 2 "$series: not a folder"
	if [ -f "$series/series" ]; then
		while read -r listed; do
			[ -d "$series/$listed" ] || die 2 "$series/series: $listed: not a folder"
			folders+=("$series/$listed")
		done < <(grep -v '^#' "$series/series")
	else
		folders+=("$series")
	fi
done

patches=()
options=()
for series in "${folders[@]}"; do
	[ ! -f "$series/native.config" ] || options+=("$(realpath "$series/native.config")")
	for patch in "$series"/[0-9]*.patch; do
		case ${patch##*/} in
		0000-*) ;; # the cover letter
		*) [ -f "$patch" ] && patches+=("$patch") ;;
		esac
	done
done
[ ${#patches[@]} -gt 0 ] || die 2 "no patch in ${*:2}"

# Hard links are quick, and patch(1) replaces files; a copy where they cannot be had.
cp -al "$1" "$WORK/linux" 2>/dev/null ||
	{ rm -rf "$WORK/linux"; cp -a "$1" "$WORK/linux"; } || die 6 "cannot copy $1"

for_each_config baseline || {
	cat "$WORK"/*.said >&2
	die 6 "$1 does not build"
}
# A configuration may have nothing of it: one without migration, say.
known=$(for config in $CONFIGS; do objects "$config"; done)
[ -n "$known" ] || grep -q "^+++ b/$SELFTESTS/" "${patches[@]}" ||
	die 2 "${*:2}: change nothing that is known here"

echo "1..${#patches[@]}"
exit_code=0
number=0
for patch in "${patches[@]}"; do
	number=$((number + 1))
	patch=$(realpath "$patch")
	name=${patch#"$HERE/series/"}
	faults=$(judge "$patch")
	if [ -z "$faults" ]; then
		echo "ok $number $name"
	else
		echo "not ok $number $name"
		echo "# ${faults//$'\n'/$'\n'# }"
		exit_code=1
	fi
done
exit $exit_code
