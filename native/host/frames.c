// SPDX-License-Identifier: GPL-2.0-only
/*
 * Check that each frame of a node has exactly one owner and is counted once. All
 * lists are walked link by link: free blocks, per-CPU lists and LRU lists.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "frames.h"
#include "launch.h"

const char *const owner_names[] = {
	[OWNER_NOBODY] = "nobody", [OWNER_PAGE] = "the process", [OWNER_KERNEL] = "the kernel",
	[OWNER_HUGE] = "a huge page", [OWNER_BALLAST] = "a huge page that was free",
	[OWNER_FREE] = "a free block", [OWNER_PCP] = "a CPU's free pages",
};

static const char *const kind_names[] = {
	[NODE_FREE] = "free list", [NODE_PCP] = "list of a CPU", [NODE_LRU] = "LRU list",
};

static const char *row_name;
static unsigned int of_variant;

void frames_begin(const char *name, unsigned int variant)
{
	row_name = name;
	of_variant = variant;
}

bool frames_fail(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: %s: ", row_name, launch.variant_names[of_variant]);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return false;
}

bool frames_same(const char *what, long is, long expected)
{
	return is == expected || frames_fail("%s: %ld, expected %ld", what, is, expected);
}

void frames_check_layout(const struct node_layout *layout)
{
	if (layout->page_bytes != DESCRIPTOR_BYTES)
		die(RUNNER_USAGE, "a descriptor has %lu bytes; this is written for %lu",
		    layout->page_bytes, DESCRIPTOR_BYTES);
}

bool frames_own(struct frames *frames, unsigned long frame, unsigned long nr, enum owner owner)
{
	unsigned long end = frame + nr;

	if (frame >= frames->nr || nr > frames->nr - frame || frame % nr)
		return frames_fail("%s: %lu frames from %#lx on", owner_names[owner], nr,
				    frame + NODE_PFN);
	for (; frame < end; frame++) {
		if (frames->owner[frame])
			return frames_fail("frame %#lx is of %s and of %s", frame + NODE_PFN,
					    owner_names[frames->owner[frame]], owner_names[owner]);
		frames->owner[frame] = (unsigned char)owner;
	}
	return true;
}

/* An unmapped frame must not keep state of its former use. */
bool frames_is_clean(const struct frames *frames, unsigned long frame)
{
	const struct node_layout *at = &frames->layout;
	const unsigned char *is = descriptor_of(NODE_PFN + frame);
	enum owner owner = frames->owner[frame];
	bool is_huge = owner == OWNER_HUGE || owner == OWNER_BALLAST;
	unsigned int type = (unsigned int)int_at(is, at->mapcount);

	if (!owner)
		return frames_fail("frame %#lx is lost", frame + NODE_PFN);
	if (word_at(is, at->flags) & ~at->links_mask ||
	    (owner == OWNER_FREE && word_at(is, at->mapping)) ||
	    (!is_huge && int_at(is, at->refcount)))
		return frames_fail("frame %#lx is of %s: flags %#lx, mapping %#lx, %d references",
				    frame + NODE_PFN, owner_names[owner], word_at(is, at->flags),
				    word_at(is, at->mapping), int_at(is, at->refcount));
	if ((type & at->type_mask) == at->buddy_type && owner != OWNER_FREE)
		return frames_fail("frame %#lx is of %s and looks free", frame + NODE_PFN,
				    owner_names[owner]);
	return true;
}

/* The kernel's layout. */
struct list_head {
	struct list_head *next, *prev;
};

/* Number of blocks found on the lists of each kind and group. */
struct found {
	unsigned long nr[NODE_LRU + 1][HOST_MOST_CPUS];
};

static unsigned long frame_of(const struct frames *frames, const struct list_head *node)
{
	unsigned long offset = (unsigned long)node - (unsigned long)descriptor_of(NODE_PFN) -
			       frames->layout.links;

	return offset % DESCRIPTOR_BYTES ? frames->nr : offset / DESCRIPTOR_BYTES;
}

static unsigned long number_at(unsigned long frame, unsigned long offset, size_t bytes)
{
	unsigned long number = 0;

	memcpy(&number, descriptor_of(NODE_PFN + frame) + offset, bytes);
	return number;
}

static bool check_block(struct frames *frames, const struct node_list *list, unsigned long frame)
{
	const struct node_layout *at = &frames->layout;
	unsigned int type = (unsigned int)number_at(frame, at->mapcount, sizeof(type));

	if (!frames_own(frames, frame, 1UL << list->order, OWNER_FREE))
		return false;
	if ((type & at->type_mask) == at->buddy_type &&
	    number_at(frame, at->private, sizeof(long)) == list->order)
		return true;
	return frames_fail("free list of order %u: frame %#lx has type %#x, order %lu",
			    list->order, frame + NODE_PFN, type,
			    number_at(frame, at->private, sizeof(long)));
}

static bool check_member(struct frames *frames, const struct node_list *list, unsigned long frame)
{
	unsigned long flags = number_at(frame, frames->layout.flags, sizeof(flags));

	switch (list->kind) {
	case NODE_FREE:
		return check_block(frames, list, frame);
	case NODE_PCP:
		return frames_own(frames, frame, 1UL << list->order, OWNER_PCP);
	case NODE_LRU:
		break;
	}
	if (frames->owner[frame] != OWNER_PAGE || !(flags & frames->layout.lru))
		return frames_fail("an LRU list has frame %#lx, of %s", frame + NODE_PFN,
				    owner_names[frames->owner[frame]]);
	return true;
}

/* A wrong link back also shows a node that is on two lists, or twice on one. */
static bool check_list(struct frames *frames, const struct node_list *list, unsigned long *nr)
{
	const struct list_head *head = list->head, *before = head, *node = head->next;

	for (; node != head; before = node, node = node->next) {
		unsigned long frame = frame_of(frames, node);

		if (frame >= frames->nr)
			return frames_fail("%s: linked to what is no descriptor of the node: %p",
					    kind_names[list->kind], (const void *)node);
		if (node->prev != before)
			return frames_fail("%s: wrong link back from frame %#lx",
					    kind_names[list->kind], frame + NODE_PFN);
		if (!check_member(frames, list, frame))
			return false;
		++*nr;
	}
	return head->prev == before ||
	       frames_fail("%s: wrong link back from its head", kind_names[list->kind]);
}

/* Two free buddies of the same order must have been merged into one block. */
static bool are_merged(const struct frames *frames, const struct node_list *list)
{
	const struct list_head *head = list->head, *node = head->next;
	unsigned long nr = 1UL << list->order;

	for (; node != head; node = node->next) {
		unsigned long buddy = frame_of(frames, node) ^ nr;
		unsigned int type;

		if (buddy + nr > frames->nr || frames->owner[buddy] != OWNER_FREE)
			continue;
		type = (unsigned int)number_at(buddy, frames->layout.mapcount, sizeof(type));
		if ((type & frames->layout.type_mask) == frames->layout.buddy_type &&
		    number_at(buddy, frames->layout.private, sizeof(long)) == list->order)
			return frames_fail("frames %#lx and %#lx are free buddies of order %u",
					    (buddy ^ nr) + NODE_PFN, buddy + NODE_PFN,
					    list->order);
	}
	return true;
}

static bool check_free_counts(const struct frames *frames, const struct found *found)
{
	const struct node_state *state = &frames->state;
	unsigned long nr_free = 0;

	for (unsigned int order = 0; order < state->nr_orders; order++) {
		unsigned long nr = found->nr[NODE_FREE][order];

		nr_free += nr << order;
		if (nr != state->free_area_nr[order])
			return frames_fail("free blocks of order %u: %lu on lists, %lu counted",
					    order, nr, state->free_area_nr[order]);
	}
	return (long)nr_free == state->nr_free ||
	       frames_fail("free frames: %lu on lists, %ld counted", nr_free, state->nr_free);
}

/* Only the first frame of a large folio has the flag. */
static bool is_evictable(const struct frames *frames, unsigned long frame)
{
	const struct node_layout *at = &frames->layout;
	unsigned long flags = number_at(frame, at->flags, sizeof(flags));

	return (flags & at->lru) && !(flags & at->unevictable);
}

static bool check_other_counts(const struct frames *frames, const struct found *found)
{
	unsigned long nr_evictable = 0;

	for (unsigned int cpu = 0; cpu < launch.nr_hosted_cpus; cpu++)
		if ((long)found->nr[NODE_PCP][cpu] != frames->state.pcp_count[cpu])
			return frames_fail("CPU %u has %lu free frames on its lists, counts %ld",
					    cpu, found->nr[NODE_PCP][cpu],
					    frames->state.pcp_count[cpu]);
	for (unsigned long frame = 0; frame < frames->nr; frame++)
		nr_evictable += frames->owner[frame] == OWNER_PAGE && is_evictable(frames, frame);
	return found->nr[NODE_LRU][0] == nr_evictable ||
	       frames_fail("%lu pages on LRU lists, expected %lu", found->nr[NODE_LRU][0],
			   nr_evictable);
}

bool frames_check_lists(struct frames *frames)
{
	static struct found found;
	const struct node_list *list = frames->state.lists, *end = list + frames->state.nr_lists;

	memset(&found, 0, sizeof(found));
	for (; list < end; list++) {
		unsigned long nr = 0;

		if (!check_list(frames, list, &nr))
			return false;
		found.nr[list->kind][list->group] +=
			list->kind == NODE_PCP ? nr << list->order : nr;
	}
	for (list = frames->state.lists; list < end; list++)
		if (list->kind == NODE_FREE && list->order + 1 < frames->state.nr_orders &&
		    !are_merged(frames, list))
			return false;
	return check_free_counts(frames, &found) && check_other_counts(frames, &found);
}
