/* SPDX-License-Identifier: GPL-2.0-only */
/* Queues of folios that wait to be split, where a kernel may fill them or not; see expect.c. */
#ifndef REAM_MIGRATE_QUEUE_H
#define REAM_MIGRATE_QUEUE_H

#include <stdbool.h>
#include "plan.h"
#include "row.h"

/* Whether an address is of a descriptor, or of a node. */
bool queue_in_memory(const struct row *row, unsigned long address);

/**
 * queue_settle() - make queued what the answer says is queued, or the other way round
 * @row: The row; its deferrable heads are those for which either will do.
 * @pfn: The first frame of a side.
 * @expected: Descriptors of that side, as the answer has them.
 * @write: Give the folios' words the answer's; else links are looked at alone.
 *
 * Then all is compared alike.
 *
 * Return: how many are not as the answer says, or a negative number if one is
 * neither.
 */
long queue_settle(const struct row *row, unsigned long pfn, const struct image *expected,
		  bool write);

/**
 * queue_settle_waiting() - the same of links of folios that waited before
 * @row: The row.
 * @pfn: The first frame of a side.
 * @expected: Descriptors of that side, as the answer has them.
 * @write: As above.
 *
 * Those of queue_settle() are their neighbours. Whether they are on a queue, and
 * their flags, have to be the answer's.
 *
 * Return: whether all are, or may become so.
 */
bool queue_settle_waiting(const struct row *row, unsigned long pfn,
			  const struct image *expected, bool write);

#endif
