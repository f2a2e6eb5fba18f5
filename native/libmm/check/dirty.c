// SPDX-License-Identifier: GPL-2.0-only
/* Check that a clean folio may be dropped, because its data is also stored elsewhere. */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>
#include <linux/string.h>
#include "census.h"
#include "devices.h"
#include "hosted.h"

/* A clean shmem page would come back zeroed, unless unmapping a dirty entry dirties it. */
static void check_clean_in_memory(struct folio *folio, unsigned long first, unsigned long nr)
{
	unsigned long i;

	if (memchr(census.is_dirty + first, true, nr))
		return;
	for (i = 0; i < nr; i++)
		if (*(u64 *)page_address(folio_page(folio, i)))
			wrong("folio %#lx of shared memory is clean, and its page %lu was written",
			      folio_pfn(folio), i);
}

void check_clean(struct folio *folio, unsigned long nr)
{
	unsigned long first = frame_of(&folio->page), i;

	if (folio_test_dirty(folio) || folio_test_writeback(folio) || folio_test_anon(folio) ||
	    !folio_test_uptodate(folio))
		return;
	if (folio->mapping && shmem_mapping(folio->mapping))
		check_clean_in_memory(folio, first, nr);
	for (i = 0; i < nr; i++) {
		const void *written = on_disk(folio, i);

		if (written && !census.is_dirty[first + i] &&
		    *(u64 *)written != *(u64 *)page_address(folio_page(folio, i)))
			wrong("folio %#lx is clean, and its page %lu is not as on the disk",
			      folio_pfn(folio), i);
	}
}
