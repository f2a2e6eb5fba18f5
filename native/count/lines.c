// SPDX-License-Identifier: GPL-2.0-only
/*
 * The distinct cache lines that were touched, and how: pages of memory in a
 * hash table, each with a bit for every line read and written.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lines.h"

#define PAGE_BYTES 4096
#define LINES_PER_PAGE (PAGE_BYTES / LINE_BYTES)
#define FIRST_SLOTS 4096UL

/*
 * From here on experiments map what their kernels work on. Stacks, the heap and
 * the kernels' own data lie below: where in a line, or a page, they begin
 * depends on the link and on the environment.
 */
static uint64_t least_address = 0x100000000000UL;

void lines_begin_at(uint64_t address)
{
	least_address = address;
}

struct touched_page {
	uint64_t number;	/* 0 = the slot is free: nothing is mapped there */
	uint64_t read, written;	/* a bit for each of its 64 lines */
};

static struct {
	pthread_mutex_t lock;
	struct touched_page *slots;
	size_t nr_slots, nr_used;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct touched_page *slot_of(struct touched_page *slots, size_t nr, uint64_t page)
{
	size_t at = page * 0x9e3779b97f4a7c15ULL >> 32 & (nr - 1);

	while (slots[at].number && slots[at].number != page)
		at = (at + 1) & (nr - 1);
	return &slots[at];
}

/* Double the table, unless less than half of it is used. */
static void make_room(void)
{
	size_t nr = table.nr_slots ? table.nr_slots * 2 : FIRST_SLOTS;
	struct touched_page *slots;

	if (table.nr_used * 2 < table.nr_slots)
		return;
	slots = calloc(nr, sizeof(*slots));
	if (!slots) {
		fputs("counting: no memory for the pages that were touched\n", stderr);
		exit(EXIT_FAILURE);
	}
	for (size_t i = 0; i < table.nr_slots; i++)
		if (table.slots[i].number)
			*slot_of(slots, nr, table.slots[i].number) = table.slots[i];
	free(table.slots);
	table.slots = slots;
	table.nr_slots = nr;
}

static void touch_line(uint64_t line, enum line_touch how)
{
	uint64_t page = line / LINES_PER_PAGE, bit = 1ULL << line % LINES_PER_PAGE;
	struct touched_page *slot;

	make_room();
	slot = slot_of(table.slots, table.nr_slots, page);
	if (!slot->number) {
		slot->number = page;
		table.nr_used++;
	}
	if (how == LINE_READ)
		slot->read |= bit;
	else
		slot->written |= bit;
}

void lines_touch(uint64_t address, unsigned int bytes, enum line_touch how)
{
	uint64_t last = (address + bytes - 1) / LINE_BYTES;

	if (address < least_address)
		return;
	pthread_mutex_lock(&table.lock);
	for (uint64_t line = address / LINE_BYTES; line <= last; line++)
		touch_line(line, how);
	pthread_mutex_unlock(&table.lock);
}

struct lines lines_count(void)
{
	struct lines found = { .nr_pages = table.nr_used };

	for (size_t i = 0; i < table.nr_slots; i++) {
		const struct touched_page *page = &table.slots[i];

		if (!page->number)
			continue;
		found.nr_read += (size_t)__builtin_popcountll(page->read);
		found.nr_written += (size_t)__builtin_popcountll(page->written);
		found.nr_only_written +=
			(size_t)__builtin_popcountll(page->written & ~page->read);
	}
	return found;
}

void lines_forget(void)
{
	memset(table.slots, 0, table.nr_slots * sizeof(*table.slots));
	table.nr_used = 0;
}
