// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compare what /proc reports of a process's memory with its page tables.
 * calls.def lists these functions. Source:
 * Documentation/filesystems/proc.rst.
 */
#include <linux/ctype.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/seq_file.h>
#include <linux/shmem_fs.h>
#include "../fs/proc/internal.h"
#include "calls.h"
#include "entry.h"
#include "hosted.h"
#include "proc.h"
#include "steps.h"
#include "trees.h"

#define KIB(pages) ((pages) << (PAGE_SHIFT - 10))

enum proc_file_name { MAPS, SMAPS, SMAPS_ROLLUP, NUMA_MAPS, STATUS, STATM };

/**
 * struct sums - totals over the page tables of a process, in pages
 * @kind: Pages in RSS, by kind as in mm_counter().
 * @broken, @broken_huge: Hwpoison entries. It is unspecified whether they count as resident.
 * @swapped: Swap entries, which are for pages of the process's own.
 * @swapped_of_files: Shmem pages in swap, which have no entry in the page table.
 * @may_be_swapped: More such pages, which may count or not.
 * @huge: Hugetlb memory, which is counted separately.
 * @on_node: Present pages on each node. A hugetlb page counts as one.
 */
struct sums {
	long kind[NR_MM_COUNTERS];
	long broken, broken_huge;
	long swapped;
	long swapped_of_files;
	long may_be_swapped;
	long huge;
	long on_node[MOST_NODES];
};

static char text[1 << 20];
static bool is_in_use;

/* --- sums over the page tables ----------------------------------------- */

static bool is_in_swap(struct vm_area_struct *vma, unsigned long address)
{
	return vma->vm_file && shmem_mapping(vma->vm_file->f_mapping) &&
	       xa_is_value(xa_load(&vma->vm_file->f_mapping->i_pages,
				   linear_page_index(vma, address)));
}

static void add_folio(struct sums *sums, struct folio *folio, const struct entry *entry)
{
	int kind = folio_test_anon(folio) ? MM_ANONPAGES :
		   folio_test_swapbacked(folio) ? MM_SHMEMPAGES : MM_FILEPAGES;

	sums->kind[kind]++;
	if (entry->state == IS_PRESENT)
		sums->on_node[folio_nid(folio)]++;
}

static void add_page(struct sums *sums, struct vm_area_struct *vma, unsigned long address)
{
	struct entry entry = entry_at(vma->vm_mm, address);
	struct folio *folio = folio_at(&entry);

	if (is_vm_hugetlb_page(vma)) {
		sums->huge += folio && entry.state == IS_PRESENT;
		sums->broken_huge += entry.state == IS_BROKEN;
		if (folio && entry.state == IS_PRESENT && IS_ALIGNED(address, HPAGE_PMD_SIZE))
			sums->on_node[folio_nid(folio)]++;
		return;
	}
	if (folio)
		add_folio(sums, folio, &entry);
	sums->broken += entry.state == IS_BROKEN;
	sums->swapped += entry.state == IS_SWAPPED;
	if (!is_in_swap(vma, address))
		return;
	/* If a part of a large swap entry is mapped, the whole entry may count. */
	sums->may_be_swapped += (1L << xa_get_order(&vma->vm_file->f_mapping->i_pages,
						    linear_page_index(vma, address))) - 1;
	if (vma->vm_flags & VM_SHARED || (entry.state == IS_NONE && vma->vm_flags & VM_WRITE))
		sums->swapped_of_files++;
	else
		sums->may_be_swapped++;
}

static struct sums sum_up(struct mm_struct *mm)
{
	struct vm_area_struct *vma;
	struct sums sums = { };
	unsigned long address;

	VMA_ITERATOR(vmi, mm, 0);

	for_each_vma(vmi, vma)
		for (address = vma->vm_start; address < vma->vm_end; address += PAGE_SIZE)
			add_page(&sums, vma, address);
	return sums;
}

static long resident(const struct sums *sums)
{
	return sums->kind[MM_ANONPAGES] + sums->kind[MM_FILEPAGES] + sums->kind[MM_SHMEMPAGES];
}

/* --- parsing the text -------------------------------------------------- */

static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return *line ? line + 1 : line;
}

static long number_at(const char *at)
{
	long number = 0;

	for (; isdigit(*at); at++)
		number = 10 * number + *at - '0';
	return number;
}

/* Sum of the lines with this name, over the mappings between two addresses. */
static long said_between(unsigned long start, unsigned long end, const char *name)
{
	unsigned long from, to;
	bool is_inside = true;
	const char *line;
	long sum = 0;

	for (line = text; *line; line = next_line(line))
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			is_inside = from < end && to > start;
		else if (is_inside && strstarts(line, name))
			sum += number_at(skip_spaces(line + strlen(name)));
	return sum;
}

static long said(const char *name)
{
	return said_between(0, ULONG_MAX, name);
}

static void expect(const char *file, const char *name, long least, long most)
{
	long is = said(name);

	if (is < least || is > most)
		wrong("/proc/PID/%s says %s %ld kB, and the page table has %ld kB",
		      file, name, is, least);
}

static void expect_exactly(const char *file, const char *name, long pages)
{
	expect(file, name, KIB(pages), KIB(pages));
}

static void check_smaps(const char *file, const struct sums *sums)
{
	long swapped = sums->swapped + sums->swapped_of_files, rss = said("Rss:");
	long huge = KIB(sums->huge) - said("Private_Hugetlb:");
	long parts = said("Shared_Clean:") + said("Shared_Dirty:") + said("Private_Clean:") +
		     said("Private_Dirty:");

	expect(file, "Rss:", KIB(resident(sums)), KIB(resident(sums) + sums->broken));
	expect(file, "Anonymous:", KIB(sums->kind[MM_ANONPAGES]),
	       KIB(sums->kind[MM_ANONPAGES] + sums->broken));
	expect(file, "Swap:", KIB(swapped), KIB(swapped + sums->may_be_swapped));
	expect(file, "Shared_Hugetlb:", huge, huge + KIB(sums->broken_huge));
	if (parts != rss)
		wrong("/proc/PID/%s says Rss: %ld kB, and its parts are %ld kB", file, rss, parts);
	if (said("Pss:") > rss)
		wrong("/proc/PID/%s says Pss: %ld kB of Rss: %ld kB", file, said("Pss:"), rss);
}

static void check_status(const struct sums *sums)
{
	expect_exactly("status", "RssAnon:", sums->kind[MM_ANONPAGES]);
	expect_exactly("status", "RssFile:", sums->kind[MM_FILEPAGES]);
	expect_exactly("status", "RssShmem:", sums->kind[MM_SHMEMPAGES]);
	expect_exactly("status", "VmRSS:", resident(sums));
	expect_exactly("status", "VmSwap:", sums->swapped);
	expect_exactly("status", "HugetlbPages:", sums->huge);
	if (said("VmHWM:") < said("VmRSS:") || said("VmPeak:") < said("VmSize:"))
		wrong("/proc/PID/status says that there was never so much as there is");
}

static void check_statm(const struct sums *sums)
{
	unsigned long shared, code, data, all;

	task_statm(current->mm, &shared, &code, &data, &all);
	if (all != resident(sums) || shared != all - sums->kind[MM_ANONPAGES])
		wrong("/proc/PID/statm says %lu pages, %lu of files, and the page table has %ld",
		      all, shared, resident(sums));
}

/* Lines of numa_maps contain words such as N0=4. */
static void check_nodes(const struct sums *sums)
{
	int node;

	for (node = 0; node < MOST_NODES; node++) {
		const char *at = text;
		char name[8];
		long sum = 0;

		snprintf(name, sizeof(name), " N%d=", node);
		while ((at = strstr(at, name))) {
			at += strlen(name);
			sum += number_at(at);
		}
		if (sum != sums->on_node[node])
			wrong("/proc/PID/numa_maps says %ld pages of node %d, and entries map %ld",
			      sum, node, sums->on_node[node]);
	}
}

static bool names_file(const char *line, struct vm_area_struct *vma)
{
	return !vma->vm_file ||
	       strnstr(line, (const char *)vma->vm_file->f_path.dentry->d_name.name,
		       strcspn(line, "\n"));
}

static void check_maps(void)
{
	struct vm_area_struct *vma;
	const char *line = text;
	char begin[48];

	VMA_ITERATOR(vmi, current->mm, 0);

	for_each_vma(vmi, vma) {
		snprintf(begin, sizeof(begin), "%08lx-%08lx %c%c%c%c ", vma->vm_start,
			 vma->vm_end, vma->vm_flags & VM_READ ? 'r' : '-',
			 vma->vm_flags & VM_WRITE ? 'w' : '-',
			 vma->vm_flags & VM_EXEC ? 'x' : '-',
			 vma->vm_flags & VM_MAYSHARE ? 's' : 'p');
		if (!strstarts(line, begin) || !names_file(line, vma))
			wrong("/proc/PID/maps says \"%.*s\", and the VMA is %s",
			      (int)strcspn(line, "\n\""), line, begin);
		line = next_line(line);
	}
	if (*line)
		wrong("/proc/PID/maps has a line \"%.*s\" that no VMA is behind",
		      (int)strcspn(line, "\n\""), line);
}

/* --- the call ---------------------------------------------------------- */

static long show_status(void)
{
	struct seq_file file = { .buf = text, .size = sizeof(text) - 1 };

	TIMED((task_mem(&file, current->mm), 0));
	return file.count;
}

static long show(enum proc_file_name name)
{
	static const struct file_operations *const files[] = {
		[MAPS] = &proc_pid_maps_operations, [SMAPS] = &proc_pid_smaps_operations,
		[SMAPS_ROLLUP] = &proc_pid_smaps_rollup_operations,
		[NUMA_MAPS] = &proc_pid_numa_maps_operations,
	};

	return name == STATUS ? show_status() : name == STATM ? 0 :
	       read_proc_file(files[name], text, sizeof(text) - 1, 0);
}

static void check_text(enum proc_file_name name, const struct sums *sums)
{
	switch (name) {
	case MAPS:
		return check_maps();
	case SMAPS:
		return check_smaps("smaps", sums);
	case SMAPS_ROLLUP:
		return check_smaps("smaps_rollup", sums);
	case NUMA_MAPS:
		return check_nodes(sums);
	case STATUS:
		return check_status(sums);
	case STATM:
		return check_statm(sums);
	}
}

/* @what: 1 to 3 make it return Rss, Swap or Anonymous of smaps for the range, in KiB. */
long call_proc(long start, long bytes, long name, long what)
{
	static const char *const sums[] = { [1] = "Rss:", [2] = "Swap:", [3] = "Anonymous:" };
	struct sums before, after;
	long done, returned = 0;

	if (name < MAPS || name > STATM || is_in_use)
		return -EINVAL;
	is_in_use = true;
	before = sum_up(current->mm);
	done = show(name);
	after = sum_up(current->mm);
	if (done >= 0 && done < sizeof(text) - 1) {
		text[done] = '\0';
		if (what > 0 && what < ARRAY_SIZE(sums))
			returned = said_between(start, start + bytes, sums[what]);
		/* Allocations for the text may have reclaimed pages of the process. */
		if (!memcmp(&before, &after, sizeof(before)))
			check_text(name, &after);
	}
	is_in_use = false;
	return done < 0 ? done : returned;
}
