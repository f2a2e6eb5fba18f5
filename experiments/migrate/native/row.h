/* SPDX-License-Identifier: GPL-2.0-only */
/* A row of the migrate experiment, as the runner's files have it. */
#ifndef REAM_MIGRATE_ROW_H
#define REAM_MIGRATE_ROW_H

#include "launch.h"
#include "migrate.h"

#define PATH_BYTES 48

enum pre_state_of_migrate {
	PRE_WARM,	/* just written, as far as it fits into the caches */
	PRE_COLD,	/* no line of it in any cache */
	PRE_ISOLATED,	/* descriptors warm, all else cold: as scanners leave it */
};

/**
 * struct row - one buffer of folios, moved
 * @name: As the record spells it.
 * @rounds: How often everything is measured.
 * @limits: Whether plain copies of the same pages are measured, too.
 * @moved_bytes: What one sample moves.
 * @folio_bytes: Of each folio; for plain copies.
 * @pre_state: What the caches hold before each sample: enum pre_state_of_migrate.
 * @flush: Whether a flush of other CPUs' TLBs takes the time it takes here.
 * @request: What the kernel is asked; pointers are filled in later.
 * @lists: A struct migrate_list for each call.
 * @heads: Page numbers of heads, in the order of the lists; for plain copies,
 *	else absent.
 * @src: Descriptors to begin with.
 * @dst: Likewise, of the targets.
 * @ptes: Entries to begin with, by address space.
 * @pmds: Likewise.
 * @no_target: Page numbers for struct migrate_request; may be absent.
 * @no_large_target: Likewise.
 * @queued: Likewise, in the order of the queue.
 * @poisoned: Likewise.
 * @deferrable: Page numbers of heads, uint32_t, that may be in either of two
 *	states in the end; see expect.c. May be absent.
 * @deferrable_flag: The bit of their second descriptors' flags that goes with it.
 * @after: A plan of what memory must hold in the end: a line for each answer
 *	that a kernel may give, see expect.c.
 */
struct row {
	char name[64];
	unsigned int rounds;
	unsigned int limits;
	unsigned long moved_bytes;
	unsigned long folio_bytes;
	unsigned int pre_state;
	unsigned int flush;
	struct migrate_request request;
	char lists[PATH_BYTES];
	char heads[PATH_BYTES];
	char src[PATH_BYTES];
	char dst[PATH_BYTES];
	char ptes[MIGRATE_MOST_MAPPINGS][PATH_BYTES];
	char pmds[MIGRATE_MOST_MAPPINGS][PATH_BYTES];
	char no_target[PATH_BYTES];
	char no_large_target[PATH_BYTES];
	char queued[PATH_BYTES];
	char poisoned[PATH_BYTES];
	char deferrable[PATH_BYTES];
	unsigned long deferrable_flag;
	char after[PATH_BYTES];
};

#endif
