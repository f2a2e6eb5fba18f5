// SPDX-License-Identifier: GPL-2.0-only
/* mprotect() that does other than it should, as WRONG says: the workload has to notice. */
#include "wrong.h"

#define PAGE_BYTES 4096

/* What happens while a range becomes read-only; other changes are as they should be. */
int __wrap_mprotect(void *at, size_t nr_bytes, int protection)
{
	char *last = (char *)at + nr_bytes - PAGE_BYTES;

	if (protection != PROT_READ)
		return __real_mprotect(at, nr_bytes, protection);
	switch (WRONG) {
	case 1:		/* the last page stays as it is */
		nr_bytes -= PAGE_BYTES;
		break;
	case 2:		/* nothing is allowed */
		protection = PROT_NONE;
		break;
	case 3:		/* a page has other contents */
		++*last;
		break;
	case 4:		/* a page is lost; reads find zeroes */
		madvise(last, PAGE_BYTES, MADV_DONTNEED);
		break;
	}
	return __real_mprotect(at, nr_bytes, protection);
}
