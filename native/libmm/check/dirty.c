// SPDX-License-Identifier: GPL-2.0-only
/* What is clean: memory that may be dropped, since what was written to it is elsewhere as well. */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include "census.h"
#include "devices.h"
#include "hosted.h"

void check_clean(struct folio *folio, unsigned long nr)
{
	unsigned long first = frame_of(&folio->page), i;

	if (folio_test_dirty(folio) || folio_test_writeback(folio) || folio_test_anon(folio) ||
	    !folio_test_uptodate(folio))
		return;
	for (i = 0; i < nr; i++) {
		const void *written = on_disk(folio, i);

		if (written && !census.is_dirty[first + i] &&
		    *(u64 *)written != *(u64 *)page_address(folio_page(folio, i)))
			wrong("folio %#lx is clean, and its page %lu is not as on the disk",
			      folio_pfn(folio), i);
	}
}
