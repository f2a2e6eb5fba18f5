// SPDX-License-Identifier: GPL-2.0-only
/*
 * Another CPU that uses the page tables while they are changed: a thread that
 * notes that entries which are present were accessed, and that those which are
 * writable were written, by atomic operations, as a page walk does. Nothing that
 * it has noted may be lost, and it notes nothing in an entry that is not present.
 */
#include "arch_walk.h"
#include "hardware.h"
#include "launch.h"
#include "paging.h"
#include "program.h"

/* What it did with an entry. */
#define HARDWARE_ACCESSED 1
#define HARDWARE_WROTE 2

struct race {
	struct hardware *hardware;
	void (*run)(void *context);
	void *context;
};

bool hardware_is_there(void)
{
	return launch.nr_cpus > 1 && !turns_taken();
}

/* One access through an entry: a load, or a write where that is allowed. */
static void use(struct hardware *hardware, unsigned long at, bool write)
{
	unsigned long *entry = hardware->tables[at / PTES_PER_TABLE] + at % PTES_PER_TABLE;
	unsigned long old = __atomic_load_n(entry, __ATOMIC_RELAXED);
	unsigned long used = walk_use(old, write);

	if (used == old)
		return;
	if (!__atomic_compare_exchange_n(entry, &old, used, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return;
	hardware->set[at] |= HARDWARE_ACCESSED;
	if (walk_is_dirty(used) && !walk_is_dirty(old))
		hardware->set[at] |= HARDWARE_WROTE;
}

static void race(void *context, unsigned int index, unsigned int nr)
{
	struct race *both = context;
	struct hardware *hardware = both->hardware;
	unsigned long at = hardware->nr;
	unsigned long seed = 1;

	(void)nr;
	if (!index) {
		while (!__atomic_load_n(&hardware->ready, __ATOMIC_ACQUIRE))
			walk_relax();
		both->run(both->context);
		__atomic_store_n(&hardware->done, true, __ATOMIC_RELEASE);
		return;
	}
	__atomic_store_n(&hardware->ready, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&hardware->done, __ATOMIC_ACQUIRE)) {
		seed = seed * 6364136223846793005UL + 1442695040888963407UL;
		at = at ? at - 1 : hardware->nr - 1;
		use(hardware, at, seed >> 63);
	}
}

void hardware_run(struct hardware *hardware, void (*run)(void *context), void *context)
{
	struct race both = { hardware, run, context };

	hardware->ready = false;
	hardware->done = false;
	pool_run(2, race, &both);
}

unsigned long hardware_first_loss(const struct hardware *hardware, const unsigned long *is)
{
	unsigned long at;

	for (at = 0; at < hardware->nr; at++) {
		if ((hardware->set[at] & HARDWARE_ACCESSED) && !walk_is_accessed(is[at]))
			break;
		if ((hardware->set[at] & HARDWARE_WROTE) && !walk_is_dirty(is[at]))
			break;
	}
	return at;
}
