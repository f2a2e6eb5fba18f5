// SPDX-License-Identifier: GPL-2.0-only
/*
 * Another CPU that uses the page tables while they are changed: a thread that
 * sets the accessed bit of entries that are present, and the dirty bit of those
 * that are writable, by locked operations, as a page walk does. No bit that it
 * has set may be lost, and it sets none in an entry that is not present.
 */
#include "hardware.h"
#include "launch.h"
#include "paging.h"
#include "program.h"

#define PTE_PRESENT	0x001UL
#define PTE_RW		0x002UL
#define PTE_ACCESSED	0x020UL
#define PTE_DIRTY	0x040UL
#define PTE_SAVED_DIRTY	(1UL << 58)

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
	unsigned long bits = PTE_ACCESSED;

	if (!(old & PTE_PRESENT))
		return;
	if (write && (old & PTE_RW))
		bits |= PTE_DIRTY;
	if ((old & bits) == bits)
		return;
	if (__atomic_compare_exchange_n(entry, &old, old | bits, false,
					__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		hardware->set[at] |= (unsigned char)bits;
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
			__builtin_ia32_pause();
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
		if ((hardware->set[at] & PTE_ACCESSED) && !(is[at] & PTE_ACCESSED))
			break;
		if ((hardware->set[at] & PTE_DIRTY) && !(is[at] & (PTE_DIRTY | PTE_SAVED_DIRTY)))
			break;
	}
	return at;
}
