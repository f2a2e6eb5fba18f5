// SPDX-License-Identifier: GPL-2.0-only
/* Queues of folios that wait to be split: links that may be one or the other way. */
#include <string.h>
#include "memory.h"
#include "queue.h"

/* Places of what may differ, in struct page; the oracle checks them. */
#define FLAGS_OFFSET 0UL
#define QUEUE_OFFSET 16UL	/* of _deferred_list in the third descriptor */
#define QUEUE_BYTES 16UL

bool queue_in_memory(const struct row *row, unsigned long address)
{
	size_t bytes = row->request.nr_pages * DESCRIPTOR_BYTES;

	return address - (unsigned long)memory_descriptor(MIGRATE_SRC_PFN) < bytes ||
	       address - (unsigned long)memory_descriptor(MIGRATE_DST_PFN) < bytes ||
	       address - MIGRATE_NODE_ADDRESS < MIGRATE_NR_NODES * MIGRATE_NODE_BYTES;
}

/* A link is on a list, or is one by itself. */
static bool is_linked(const struct row *row, const unsigned long *link)
{
	unsigned long address = (unsigned long)link;

	return queue_in_memory(row, link[0]) && queue_in_memory(row, link[1]) &&
	       ((const unsigned long *)link[0])[1] == address &&
	       ((const unsigned long *)link[1])[0] == address;
}

static unsigned long *flags_of(unsigned long pfn, unsigned int head)
{
	return (unsigned long *)(memory_descriptor(pfn + head + 1) + FLAGS_OFFSET);
}

static unsigned long *link_of(unsigned long pfn, unsigned long head)
{
	return (unsigned long *)(memory_descriptor(pfn + head + 2) + QUEUE_OFFSET);
}

long queue_settle(const struct row *row, unsigned long pfn, const struct image *expected,
		  bool write)
{
	const unsigned int *head = (const unsigned int *)row->deferrable.start;
	unsigned long mask = row->deferrable_flag;
	long nr = 0;

	for (size_t i = 0; i < row->deferrable.bytes / sizeof(*head); i++) {
		size_t at = (head[i] + 1) * DESCRIPTOR_BYTES + FLAGS_OFFSET;
		size_t queue_at = (head[i] + 2) * DESCRIPTOR_BYTES + QUEUE_OFFSET;
		unsigned long *flags = flags_of(pfn, head[i]);
		unsigned long *link = link_of(pfn, head[i]);
		unsigned long wanted = *(const unsigned long *)(expected->start + at) & mask;
		const void *wanted_link = expected->start + queue_at;

		if ((*flags & mask) == wanted && !memcmp(link, wanted_link, QUEUE_BYTES))
			continue;
		nr++;
		if (write) {
			*flags = (*flags & ~mask) | wanted;
			memcpy(link, wanted_link, QUEUE_BYTES);
		} else if (!is_linked(row, link)) {
			return -1;
		}
	}
	return nr;
}

bool queue_settle_waiting(const struct row *row, unsigned long pfn,
			  const struct image *expected, bool write)
{
	const struct migrate_request *request = &row->request;

	for (unsigned long i = 0; i < request->nr_queued; i++) {
		unsigned long *link = link_of(pfn, request->queued[i]);
		const unsigned long *wanted =
			(const unsigned long *)(expected->start + QUEUE_OFFSET +
						(request->queued[i] + 2) * DESCRIPTOR_BYTES);
		bool is_alone = link[0] == (unsigned long)link;
		bool to_be_alone = wanted[0] == (unsigned long)link;

		if (write)
			memcpy(link, wanted, QUEUE_BYTES);
		else if (memcmp(link, wanted, QUEUE_BYTES) &&
			 (is_alone != to_be_alone || !is_linked(row, link)))
			return false;
	}
	return true;
}
