// SPDX-License-Identifier: GPL-2.0-only
/* mremap() that does other than it should, as WRONG says: the workload has to notice. */
#include "wrong.h"
#include <stdarg.h>

#define PAGE_BYTES 4096

/* The workload always gives a new address. */
void *__wrap_mremap(void *from, size_t old_bytes, size_t new_bytes, int flags,
		    ...)
{
	char *last = (char *)from + old_bytes - PAGE_BYTES;
	va_list more;
	void *to;

	va_start(more, flags);
	to = va_arg(more, void *);
	va_end(more);
	switch (WRONG) {
	case 1:		/* the last page stays where it is */
		old_bytes -= PAGE_BYTES;
		new_bytes -= PAGE_BYTES;
		break;
	case 2:		/* the old place can be used as well */
		flags |= MREMAP_DONTUNMAP;
		break;
	case 3:		/* a page has other contents */
		++*last;
		break;
	case 4:		/* a page is lost; reads find zeroes */
		madvise(last, PAGE_BYTES, MADV_DONTNEED);
		break;
	}
	return __real_mremap(from, old_bytes, new_bytes, flags, to);
}
