// SPDX-License-Identifier: GPL-2.0-only
/* The free lists of a zone, walked and held against the oracle's blocks. */
#include <stdio.h>
#include <stdlib.h>
#include "buddy.h"

/* As the kernel lays it out. */
struct list_head {
	struct list_head *next, *prev;
};

struct list {
	struct list_head *head;
	unsigned int order;
	unsigned int type;
};

struct walk {
	const char *who;
	const struct deferred_zone *zone;
	const struct memory_map *map;
	const struct block *blocks;
	size_t nr_blocks;
	size_t nr_found;
	bool ascending;
};

static struct list list_at(const struct deferred_zone *zone, unsigned int order, unsigned int type)
{
	char *area = zone->free_area + order * zone->area_bytes;

	return (struct list){ (struct list_head *)area + type, order, type };
}

static bool say(const struct walk *walk, const struct list *list, const char *what,
		unsigned long value)
{
	fprintf(stderr, "%s: free list of order %u, type %u: %s %#lx\n",
		walk->who, list->order, list->type, what, value);
	return false;
}

static int by_pfn(const void *a, const void *b)
{
	const struct block *one = a, *other = b;

	return one->pfn < other->pfn ? -1 : one->pfn > other->pfn;
}

/* The frame whose descriptor holds @node, or 0 if it is nobody's. */
static unsigned long pfn_of(const struct walk *walk, const struct list_head *node)
{
	unsigned long offset = (unsigned long)node - (unsigned long)walk->map->start -
			       walk->zone->lru_offset;

	if (offset % DESCRIPTOR_BYTES || offset / DESCRIPTOR_BYTES >= walk->map->nr_pages)
		return 0;
	return walk->map->first_pfn + offset / DESCRIPTOR_BYTES;
}

static bool check_node(struct walk *walk, const struct list *list, const struct list_head *node)
{
	const struct block wanted = { .pfn = pfn_of(walk, node) };
	const struct block *block;

	if (!wanted.pfn)
		return say(walk, list, "linked to what is no descriptor of the map:",
			   (unsigned long)node);
	block = bsearch(&wanted, walk->blocks, walk->nr_blocks, sizeof(*block), by_pfn);
	if (!block || block->order != list->order || block->type != list->type)
		return say(walk, list, "holds a block that the oracle does not have there, pfn",
			   wanted.pfn);
	return true;
}

/* A node in two lists, or twice in one, has a wrong link: no need to mark them. */
static bool check_list(struct walk *walk, const struct list *list, size_t *nr_in_area)
{
	const struct list_head *before = list->head;
	unsigned long last_pfn = 0;

	for (struct list_head *node = list->head->next; node != list->head; node = node->next) {
		if (!check_node(walk, list, node))
			return false;
		if (node->prev != before)
			return say(walk, list, "wrong link back from pfn", pfn_of(walk, node));
		if (walk->ascending && pfn_of(walk, node) < last_pfn)
			return say(walk, list, "not in the order of one thread's frees at pfn",
				   pfn_of(walk, node));
		last_pfn = pfn_of(walk, node);
		before = node;
		++*nr_in_area;
		if (++walk->nr_found > walk->nr_blocks)
			return say(walk, list, "more blocks than the oracle's",
				   walk->nr_blocks);
	}
	if (list->head->prev != before)
		return say(walk, list, "wrong link back from the head, to",
			   (unsigned long)list->head->prev);
	return true;
}

static void make_canonical(struct list_head *head)
{
	struct list_head *next;

	for (struct list_head *node = head->next; node != head; node = next) {
		next = node->next;
		node->next = node;
		node->prev = node;
	}
	head->next = head;
	head->prev = head;
}

static bool check_area(struct walk *walk, unsigned int order)
{
	const struct deferred_zone *zone = walk->zone;
	const char *area = zone->free_area + order * zone->area_bytes;
	unsigned long nr_free = *(const unsigned long *)(area + zone->nr_free_offset);
	struct list list = list_at(zone, order, 0);
	size_t nr_in_area = 0;

	for (; list.type < zone->nr_types; list.type++, list.head++)
		if (!check_list(walk, &list, &nr_in_area))
			return false;
	if (nr_free == nr_in_area)
		return true;
	fprintf(stderr, "%s: nr_free of order %u is %lu, its lists hold %zu\n",
		walk->who, order, nr_free, nr_in_area);
	return false;
}

bool buddy_check(const char *who, const struct deferred_zone *zone,
		 const struct memory_map *map, const struct block *blocks, size_t nr_blocks,
		 bool ascending)
{
	struct walk walk = {
		.who = who, .zone = zone, .map = map, .blocks = blocks, .nr_blocks = nr_blocks,
		.ascending = ascending,
	};

	for (unsigned int order = 0; order < zone->nr_orders; order++)
		if (!check_area(&walk, order))
			return false;
	if (walk.nr_found != nr_blocks) {
		fprintf(stderr, "%s: the free lists hold %zu blocks, the oracle has %zu\n",
			who, walk.nr_found, nr_blocks);
		return false;
	}
	for (unsigned int order = 0; order < zone->nr_orders; order++)
		for (unsigned int type = 0; type < zone->nr_types; type++)
			make_canonical(list_at(zone, order, type).head);
	return true;
}
