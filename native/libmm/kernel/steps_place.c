// SPDX-License-Identifier: GPL-2.0-only
/* Steps for NUMA placement, migrations in progress, and pins. */
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/rmap.h>
#include <linux/workqueue.h>
#include "hosted.h"
#include "steps.h"

SYSTEM_CALL(move_pages);
SYSTEM_CALL(mbind);
SYSTEM_CALL(set_mempolicy);
SYSTEM_CALL(migrate_pages);

#define AT_ONCE 512
#define NODE_BITS (MOST_NODES + 1)	/* the kernel ignores the last bit */
#define MOST_PINS 64
#define PIN_WRITES 1
#define PIN_STAYS 2
#define PIN_GETS 4
#define MOST_MOVING 64

long step_move_pages(long number, long page, long nr, long node, long flags)
{
	static void *addresses[AT_ONCE];
	static int nodes[AT_ONCE], status[AT_ONCE];
	long done, i, moved = 0;

	if (page < 0 || nr <= 0 || page + nr > MOST_USER_PAGES)
		return -EINVAL;
	for (done = 0; done < nr; done += AT_ONCE) {
		long most = min(nr - done, (long)AT_ONCE), result;

		for (i = 0; i < most; i++) {
			addresses[i] = (void *)address_of_page(page + done + i);
			nodes[i] = node;
		}
		result = call(__x64_sys_move_pages, 0, most, (long)addresses, (long)nodes,
			      (long)status, flags);
		if (result < 0)
			return result;
		for (i = 0; i < most; i++)
			moved += status[i] == node;
	}
	return moved;
}

long step_mbind(long number, long page, long nr, long mode, long nodes, long flags)
{
	if (page < 0 || nr <= 0 || page + nr > MOST_USER_PAGES)
		return -EINVAL;
	return call(__x64_sys_mbind, address_of_page(page), nr << PAGE_SHIFT, mode,
		    nodes ? (long)&nodes : 0, nodes ? NODE_BITS : 0, flags);
}

long step_set_mempolicy(long number, long mode, long nodes)
{
	return call(__x64_sys_set_mempolicy, mode, nodes ? (long)&nodes : 0,
		    nodes ? NODE_BITS : 0, 0, 0, 0);
}

long step_migrate_pages(long number, long from, long to)
{
	return call(__x64_sys_migrate_pages, 0, NODE_BITS, (long)&from, (long)&to, 0, 0);
}

/* --- a migration in progress ------------------------------------------- */

static struct folio *moving[MOST_MOVING];
static unsigned int nr_moving;

long step_migrating(long number, long page, long nr)
{
	struct page *one;
	long i;

	if (page < 0 || nr <= 0 || page + nr > MOST_USER_PAGES)
		return -EINVAL;
	for (i = 0; i < nr && nr_moving < MOST_MOVING; i++) {
		if (get_user_pages_fast_only(address_of_page(page + i), 1, 0, &one) != 1)
			continue;
		/* Unmapping a hugetlb file page would need hugetlb's own locks. */
		if (is_zero_page(one) || is_huge_zero_folio(page_folio(one)) ||
		    (PageHuge(one) && !PageAnon(one)) || !folio_trylock(page_folio(one))) {
			put_page(one);
			continue;
		}
		moving[nr_moving] = page_folio(one);
		try_to_migrate(moving[nr_moving++], 0);
	}
	return nr_moving;
}

static void end_now(struct work_struct *work)
{
	end_migrations();
}

static DECLARE_DELAYED_WORK(late_end, end_now);

void end_migrations_later(void)
{
	if (nr_moving)
		queue_delayed_work(system_wq, &late_end, HZ);
}

bool end_migrations(void)
{
	bool were_any = nr_moving;

	cancel_delayed_work(&late_end);
	while (nr_moving) {
		struct folio *folio = moving[--nr_moving];

		remove_migration_ptes(folio, folio, 0);
		folio_unlock(folio);
		folio_put(folio);
	}
	return were_any;
}

/* --- pins -------------------------------------------------------------- */

static struct pin {
	struct page *page;
	struct process *process;
	unsigned long number;
	bool is_get;
} pins[MOST_PINS];

struct page *pinned_page(unsigned int number, long *references, bool *is_get)
{
	struct page *page = pins[number].page;

	*is_get = pins[number].is_get;
	*references = page && (PageCompound(page) || pins[number].is_get) ?
		      1 : GUP_PIN_COUNTING_BIAS;
	return page;
}

static void release(struct pin *pin)
{
	if (pin->is_get)
		put_page(pin->page);
	else
		unpin_user_page(pin->page);
	pin->page = NULL;
}

unsigned int nr_most_pins(void)
{
	return MOST_PINS;
}

long step_pin(long number, long page, long nr, long flags)
{
	const int how = (flags & PIN_WRITES ? FOLL_WRITE : 0) |
			(flags & PIN_STAYS ? FOLL_LONGTERM : 0);
	struct process *process = current_process();
	long done;

	if (page < 0 || nr <= 0 || page + nr > MOST_USER_PAGES)
		return -EINVAL;
	/* FOLL_LONGTERM requires FOLL_PIN. */
	if (flags & PIN_STAYS && flags & PIN_GETS)
		return -EINVAL;
	for (done = 0; done < nr; done++) {
		struct user_page *user = &process->pages[page + done];
		struct pin *pin = pins;
		int result;

		while (pin < pins + MOST_PINS && pin->page)
			pin++;
		if (pin == pins + MOST_PINS)
			break;
		if (flags & PIN_WRITES)
			end_uffd_wp_by_write(process, page + done, 1);
		pin->is_get = flags & PIN_GETS;
		result = TIMED((pin->is_get ? get_user_pages_fast : pin_user_pages_fast)
			       (address_of_page(page + done), 1, how, &pin->page));
		if (result != 1) {
			pin->page = NULL;
			return done ?: result;
		}
		pin->process = process;
		pin->number = page + done;
		/* FOLL_WRITE has made a private copy, as a write would. */
		if (flags & PIN_WRITES && user->kind == PRIVATE_FILE && !user->is_own) {
			user->value = *(u64 *)page_address(pin->page);
			user->is_own = true;
		}
	}
	return done;
}

long step_unpin(long number, long page, long nr)
{
	struct process *process = current_process();
	long released = 0;
	struct pin *pin;

	for (pin = pins; pin < pins + MOST_PINS; pin++) {
		if (!pin->page || pin->process != process || pin->number < page ||
		    pin->number >= page + nr)
			continue;
		enter_kernel();
		release(pin);
		leave_kernel();
		released++;
	}
	return released;
}

long step_device(long number)
{
	return attach_device(&current_process()->device, current->mm);
}

void release_pins(void)
{
	struct pin *pin;

	for (pin = pins; pin < pins + MOST_PINS; pin++)
		if (pin->page)
			release(pin);
}
