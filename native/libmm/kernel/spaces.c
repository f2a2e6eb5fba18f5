// SPDX-License-Identifier: GPL-2.0-only
/*
 * Report what user space can see of address spaces. On a running kernel the
 * reproducer reports the same: lab/ream/program/reproducer_show.h.
 */
#include <linux/mm.h>
#include <linux/percpu_counter.h>
#include "hosted.h"
#include "steps.h"

/* The names of VmFlags in fs/proc/task_mmu.c. */
static const struct {
	vm_flags_t flag;
	const char *word;
} words[] = {
	{ VM_LOCKED, "lo" }, { VM_LOCKONFAULT, "lf" }, { VM_SEQ_READ, "sr" },
	{ VM_RAND_READ, "rr" }, { VM_DONTCOPY, "dc" }, { VM_ACCOUNT, "ac" },
	{ VM_NORESERVE, "nr" }, { VM_WIPEONFORK, "wf" }, { VM_DONTDUMP, "dd" },
	{ VM_HUGEPAGE, "hg" }, { VM_NOHUGEPAGE, "nh" }, { VM_MERGEABLE, "mg" },
	{ VM_UFFD_MISSING, "um" }, { VM_UFFD_WP, "uw" }, { VM_UFFD_MINOR, "ui" },
};

static void report_area(const struct process *process, const struct vm_area_struct *vma)
{
	const unsigned long first = LIBMM_USER_ADDRESS >> PAGE_SHIFT;
	char flags[3 * ARRAY_SIZE(words) + 1] = "";
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (vma->vm_flags & words[i].flag)
			snprintf(flags + strlen(flags), sizeof(flags) - strlen(flags), " %s",
				 words[i].word);
	report("{\"line\": %u, \"process\": %d, \"vma\": [%lu, %lu, \"%c%c%c%c\", %lu, \"%s\"]}",
	       line_under_way(), process->number, (vma->vm_start >> PAGE_SHIFT) - first,
	       (vma->vm_end >> PAGE_SHIFT) - first, vma->vm_flags & VM_READ ? 'r' : '-',
	       vma->vm_flags & VM_WRITE ? 'w' : '-', vma->vm_flags & VM_EXEC ? 'x' : '-',
	       vma->vm_flags & VM_MAYSHARE ? 's' : 'p', vma->vm_file ? vma->vm_pgoff : 0, flags);
}

static void report_space(const struct process *process, struct mm_struct *mm)
{
	struct vm_area_struct *vma;
	long long rss[NR_MM_COUNTERS];
	int kind;

	VMA_ITERATOR(vmi, mm, 0);

	for_each_vma(vmi, vma)
		report_area(process, vma);
	for (kind = 0; kind < NR_MM_COUNTERS; kind++)
		rss[kind] = percpu_counter_sum(&mm->rss_stat[kind]);
	report("{\"line\": %u, \"process\": %d, \"rss\": [%lld, %lld, %lld, %lld]}",
	       line_under_way(), process->number, rss[MM_ANONPAGES], rss[MM_FILEPAGES],
	       rss[MM_SHMEMPAGES], rss[MM_SWAPENTS]);
}

long step_spaces(void)
{
	long number;

	for (number = 0; number < MOST_PROCESSES; number++) {
		const struct process *process = process_of(number);
		struct mm_struct *mm = process ? mm_of(process) : NULL;

		if (mm && mm->map_count)
			report_space(process, mm);
	}
	return 0;
}

/* Digest of the first and the last word of each page that can be read. */
long step_contents(long number)
{
	struct process *process = current_process();
	struct vm_area_struct *vma;
	unsigned long all = 0;

	VMA_ITERATOR(vmi, mm_of(process), 0);

	for_each_vma(vmi, vma) {
		unsigned long address = vma->vm_start, first, last;

		for (; address < vma->vm_end; address += PAGE_SIZE)
			if (!access_word(address, false, &first) &&
			    !access_word(address + PAGE_SIZE - sizeof(last), false, &last))
				all = (all * 31 + address) * 31 + (first ^ last << 1);
	}
	return all & LONG_MAX;
}
