// SPDX-License-Identifier: GPL-2.0-only
/* Which pages of a process are given back, and in which order. */
#include "row.h"

/* Of each group of pages one is unlike the others: the only one that stays, or that goes. */
static unsigned int which_of(const struct row *row, unsigned int group, uint64_t *seed)
{
	switch ((enum hole_kind)row->holes) {
	case HOLES_EVEN:
		return group - 1;
	case HOLES_ODD:
		return 0;
	case HOLES_SCATTERED:
		break;
	}
	return (unsigned int)(random_next(seed) % group);
}

static unsigned int *add_group(const struct row *row, unsigned int first, unsigned int chosen,
			       unsigned int *to)
{
	unsigned int group = (unsigned int)row->request.group;
	bool up = row->freed_order != ORDER_DOWN, goes = row->used_every == 2;

	for (unsigned int i = 0; i < group; i++) {
		unsigned int at = up ? i : group - 1 - i;

		bool is_chosen = at == chosen;

		if (is_chosen == goes)
			*to++ = first + at;
	}
	return to;
}

void holes_draw(struct row *row, uint64_t seed)
{
	unsigned int group = (unsigned int)row->request.group;
	unsigned int nr = (unsigned int)(row->request.nr_pages / group), at;
	unsigned int *turn = host_alloc(nr * sizeof(*turn));
	unsigned int *chosen = host_alloc(nr * sizeof(*chosen));
	unsigned int *end = row->freed;

	for (at = 0; at < nr; at++) {
		turn[at] = row->freed_order == ORDER_DOWN ? nr - 1 - at : at;
		chosen[at] = which_of(row, group, &seed);
	}
	if (row->freed_order == ORDER_RANDOM)
		random_order(turn, nr, &seed);
	for (at = 0; at < nr; at++)
		end = add_group(row, turn[at] * group, chosen[turn[at]], end);
	row->request.freed = row->freed;
	row->request.nr_freed = (unsigned long)(end - row->freed);
	host_free(chosen);
	host_free(turn);
}
