// SPDX-License-Identifier: GPL-2.0-only
/* The lists of a node, followed link by link: free blocks, those of CPUs, and LRU lists. */
#include <string.h>
#include "lists.h"

const char *const owner_names[] = {
	[OWNER_NOBODY] = "nobody", [OWNER_PAGE] = "the process", [OWNER_HUGE] = "a huge page",
	[OWNER_BALLAST] = "a huge page that was free", [OWNER_FREE] = "a free block",
	[OWNER_PCP] = "a CPU's free pages",
};

static const char *const kind_names[] = {
	[COMPACT_FREE] = "free list", [COMPACT_PCP] = "list of a CPU", [COMPACT_LRU] = "LRU list",
};

/* As the kernel lays it out. */
struct list_head {
	struct list_head *next, *prev;
};

/* How many blocks there are on lists of a kind and a group. */
struct found {
	unsigned long nr[COMPACT_LRU + 1][HOST_MOST_CPUS];
};

static unsigned long frame_of(const struct row *row, const struct list_head *node)
{
	unsigned long offset = (unsigned long)node - (unsigned long)descriptor_of(COMPACT_PFN) -
			       row->layout.links;

	return offset % DESCRIPTOR_BYTES ? row->request.nr_pages : offset / DESCRIPTOR_BYTES;
}

static unsigned long number_at(unsigned long frame, unsigned long offset, size_t bytes)
{
	unsigned long number = 0;

	memcpy(&number, descriptor_of(COMPACT_PFN + frame) + offset, bytes);
	return number;
}

static bool check_block(struct row *row, const struct compact_list *list, unsigned long frame)
{
	const struct compact_layout *at = &row->layout;
	unsigned int type = (unsigned int)number_at(frame, at->mapcount, sizeof(type));

	if (!verify_own(row, frame, 1UL << list->order, OWNER_FREE))
		return false;
	if ((type & at->type_mask) == at->buddy_type &&
	    number_at(frame, at->private, sizeof(long)) == list->order)
		return true;
	return verify_fails("free list of order %u: frame %#lx has type %#x, order %lu",
			    list->order, frame + COMPACT_PFN, type,
			    number_at(frame, at->private, sizeof(long)));
}

static bool check_member(struct row *row, const struct compact_list *list, unsigned long frame)
{
	unsigned long flags = number_at(frame, row->layout.flags, sizeof(flags));

	switch (list->kind) {
	case COMPACT_FREE:
		return check_block(row, list, frame);
	case COMPACT_PCP:
		return verify_own(row, frame, 1UL << list->order, OWNER_PCP);
	case COMPACT_LRU:
		break;
	}
	if (row->owner[frame] != OWNER_PAGE || !(flags & row->layout.lru))
		return verify_fails("an LRU list has frame %#lx, of %s", frame + COMPACT_PFN,
				    owner_names[row->owner[frame]]);
	return true;
}

/* A node in two lists, or twice in one, has a wrong link. */
static bool check_list(struct row *row, const struct compact_list *list, unsigned long *nr)
{
	const struct list_head *head = list->head, *before = head, *node = head->next;

	for (; node != head; before = node, node = node->next) {
		unsigned long frame = frame_of(row, node);

		if (frame >= row->request.nr_pages)
			return verify_fails("%s: linked to what is no descriptor of the node: %p",
					    kind_names[list->kind], (const void *)node);
		if (node->prev != before)
			return verify_fails("%s: wrong link back from frame %#lx",
					    kind_names[list->kind], frame + COMPACT_PFN);
		if (!check_member(row, list, frame))
			return false;
		++*nr;
	}
	return head->prev == before ||
	       verify_fails("%s: wrong link back from its head", kind_names[list->kind]);
}

/* Of two free buddies one block would have been made. */
static bool are_merged(const struct row *row, const struct compact_list *list)
{
	const struct list_head *head = list->head, *node = head->next;
	unsigned long nr = 1UL << list->order;

	for (; node != head; node = node->next) {
		unsigned long buddy = frame_of(row, node) ^ nr;
		unsigned int type;

		if (buddy + nr > row->request.nr_pages || row->owner[buddy] != OWNER_FREE)
			continue;
		type = (unsigned int)number_at(buddy, row->layout.mapcount, sizeof(type));
		if ((type & row->layout.type_mask) == row->layout.buddy_type &&
		    number_at(buddy, row->layout.private, sizeof(long)) == list->order)
			return verify_fails("frames %#lx and %#lx are free buddies of order %u",
					    (buddy ^ nr) + COMPACT_PFN, buddy + COMPACT_PFN,
					    list->order);
	}
	return true;
}

static bool check_free_counts(const struct row *row, const struct found *found)
{
	const struct compact_result *result = &row->result;
	unsigned long nr_free = 0;

	for (unsigned int order = 0; order < result->nr_orders; order++) {
		unsigned long nr = found->nr[COMPACT_FREE][order];

		nr_free += nr << order;
		if (nr != result->free_area_nr[order])
			return verify_fails("free blocks of order %u: %lu on lists, %lu counted",
					    order, nr, result->free_area_nr[order]);
	}
	return (long)nr_free == result->nr_free ||
	       verify_fails("free frames: %lu on lists, %ld counted", nr_free, result->nr_free);
}

static bool check_other_counts(const struct row *row, const struct found *found)
{
	unsigned long nr_evictable = 0;

	for (unsigned int cpu = 0; cpu < launch.nr_hosted_cpus; cpu++)
		if ((long)found->nr[COMPACT_PCP][cpu] != row->result.pcp_count[cpu])
			return verify_fails("CPU %u has %lu free frames on its lists, counts %ld",
					    cpu, found->nr[COMPACT_PCP][cpu],
					    row->result.pcp_count[cpu]);
	for (unsigned long frame = 0; frame < row->request.nr_pages; frame++)
		nr_evictable += row->owner[frame] == OWNER_PAGE &&
				!(number_at(frame, row->layout.flags, sizeof(long)) &
				  row->layout.unevictable);
	return found->nr[COMPACT_LRU][0] == nr_evictable ||
	       verify_fails("%lu pages on LRU lists, expected %lu", found->nr[COMPACT_LRU][0],
			    nr_evictable);
}

bool lists_check(struct row *row)
{
	static struct found found;
	const struct compact_list *list = row->result.lists, *end = list + row->result.nr_lists;

	memset(&found, 0, sizeof(found));
	for (; list < end; list++) {
		unsigned long nr = 0;

		if (!check_list(row, list, &nr))
			return false;
		found.nr[list->kind][list->group] +=
			list->kind == COMPACT_PCP ? nr << list->order : nr;
	}
	for (list = row->result.lists; list < end; list++)
		if (list->kind == COMPACT_FREE && list->order + 1 < row->result.nr_orders &&
		    !are_merged(row, list))
			return false;
	return check_free_counts(row, &found) && check_other_counts(row, &found);
}
