// SPDX-License-Identifier: GPL-2.0-only
/* The vmalloc area: faults map what the kernel's own page tables have there. */
#include <linux/extable.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/vmalloc.h>
#include "hosted.h"
#include "traps.h"

unsigned long vmalloc_base = LIBMM_VMALLOC_ADDRESS;

/* Map the page that init_mm has at an address. Return: whether it has one. */
int resolve_fault(unsigned long address)
{
	struct translation found;
	unsigned long pfn;

	if (address - LIBMM_VMALLOC_ADDRESS >= LIBMM_VMALLOC_BYTES)
		return 0;
	found = translate(&init_mm, address);
	pfn = (found.entry & PTE_PFN_MASK) >> PAGE_SHIFT;
	if (!(found.entry & _PAGE_PRESENT) || !is_ram(pfn))
		return 0;
	host_map(address & PAGE_MASK, pfn, 1);
	return 1;
}

unsigned long find_fixup(unsigned long ip)
{
	const struct exception_table_entry *entry;

	for (entry = __start___ex_table; entry < __stop___ex_table; entry++)
		if ((unsigned long)&entry->insn + entry->insn == ip)
			return (unsigned long)&entry->fixup + entry->fixup;
	return 0;
}

void flush_tlb_kernel_range(unsigned long start, unsigned long end)
{
	unsigned long first = max(start, LIBMM_VMALLOC_ADDRESS) & PAGE_MASK;
	unsigned long last = min(PAGE_ALIGN(end), LIBMM_VMALLOC_ADDRESS + LIBMM_VMALLOC_BYTES);

	HOST_STUB("custom");
	if (first < last)
		host_unmap(first, last - first);
}

