// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the migrate experiment: functions that are deliberately not the
 * kernel's, and how each differs. See native/host/kernel/kernel.h for the
 * kinds.
 */
#include <linux/bitmap.h>
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/swap.h>
#include <asm/page.h>
#include <asm/tlbflush.h>
#include <asm/tsc.h>
#include "internal.h"
#include "kernel.h"
#include "migrate.h"
#include "migrate_kernel.h"
#include "page_tables.h"

static struct {
	const struct migrate_request *request;
	struct migrate_result counts;
	const struct task_struct *task;	/* that calls migrate_pages() */
	atomic_long_t nr_failed_reads;	/* several threads may meet poison */
	atomic_long_t nr_early_reads;
} state;

void migrate_reset(const struct migrate_request *request)
{
	memset(&state, 0, sizeof(state));
	state.request = request;
	state.task = current;
	host_reset_tables(MIGRATE_TABLE_PFN);
}

/* --- A freed frame belongs to another owner ------------------------------- */

#define MOST_WATCHED 0x8000UL	/* pages */

/* By page number: whether the new owner of the frame has written to it. */
static DECLARE_BITMAP(written, MOST_WATCHED);

static void flip(unsigned long number)
{
	unsigned long *word = __va(PFN_PHYS(MIGRATE_SRC_PFN + number));
	unsigned long *end = word + PAGE_SIZE / sizeof(*word);

	for (; word < end; word++)
		*word = ~*word;
}

/*
 * What would be freed is counted. Where nothing is timed all of it changes
 * until engines are still: one that copies a frame which is not the folio's
 * any more copies something else then. A model copies after the clock.
 */
void __folio_put(struct folio *folio)
{
	unsigned long number = folio_pfn(folio) - MIGRATE_SRC_PFN;
	unsigned long end = number + folio_nr_pages(folio);

	state.counts.nr_freed++;
	if (!state.request->watched || state.request->mb_per_s || end > MOST_WATCHED)
		return;
	for (; number < end; number++)
		if (!__test_and_set_bit(number, written))
			flip(number);
}

/* Sources keep their contents for the next sample. */
static void restore_freed(void)
{
	unsigned long number;

	for_each_set_bit(number, written, MOST_WATCHED)
		flip(number);
	bitmap_zero(written, MOST_WATCHED);
}

/* Engines are still. */
void migrate_read_counts(struct migrate_result *result)
{
	restore_freed();
	result->nr_freed = state.counts.nr_freed;
	result->nr_added = state.counts.nr_added;
	result->nr_drained = state.counts.nr_drained;
	result->nr_failed_reads = atomic_long_read(&state.nr_failed_reads);
	result->nr_early_reads = atomic_long_read(&state.nr_early_reads);
	result->nr_batch_flushes = state.counts.nr_batch_flushes;
	result->nr_single_flushes = state.counts.nr_single_flushes;
}

bool migrate_among(unsigned long number, const unsigned long *numbers, unsigned long nr)
{
	unsigned long low = 0;

	while (low < nr) {
		unsigned long middle = low + (nr - low) / 2;

		if (numbers[middle] == number)
			return true;
		if (numbers[middle] < number)
			low = middle + 1;
		else
			nr = middle;
	}
	return false;
}

/*
 * The reference of the LRU's batch, which would hold it until the batch is
 * full; what the batch then does is not here.
 */
void folio_add_lru(struct folio *folio)
{
	folio_get(folio);
	state.counts.nr_added++;
}

void lru_add_drain(void)
{
	state.counts.nr_drained++;
}

/* As the kernel's, of pages that are not in the swap cache: of what is split. */
#ifdef HAVE_FREE_FOLIO_AND_SWAP_CACHE
void free_folio_and_swap_cache(struct folio *folio)
{
	folio_put(folio);
}
#else
void free_page_and_swap_cache(struct page *page)
{
	put_page(page);
}
#endif

/*
 * The flag alone, and at once: what the kernel's batches do besides is for
 * folios on an LRU list, and these are isolated.
 */
void mlock_folio(struct folio *folio)
{
	folio_set_mlocked(folio);
}

void munlock_folio(struct folio *folio)
{
	folio_clear_mlocked(folio);
}

void mlock_drain_local(void)
{
}

/* Nobody waits for a folio's lock. */
void folio_unlock(struct folio *folio)
{
	folio_xor_flags_has_waiters(folio, 1 << PG_locked);
}

/* Of a folio without a mapping there is nobody to tell. */
bool folio_mark_dirty(struct folio *folio)
{
	return !folio_test_dirty(folio) && !folio_test_set_dirty(folio);
}

/* --- Nothing is read that another CPU may still write to ------------------ */

#define NEEDS_NO_FLUSH -1L

/* By a head's page number: how many flushes there had been when its target was asked for. */
static long flushes_before[MOST_WATCHED];

static bool has_ptes(struct folio *folio)
{
	if (!folio_test_large(folio))
		return folio_mapped(folio);
	return atomic_read(&folio->_nr_pages_mapped) & FOLIO_PAGES_MAPPED;
}

static long *flushes_before_of(struct folio *folio)
{
	unsigned long number = folio_pfn(folio) - MIGRATE_SRC_PFN;

	if (!state.request->watched || number >= MOST_WATCHED)
		return NULL;
	return &flushes_before[number];
}

/* Flushes of huge entries are never put off. */
void migrate_note_asked(struct folio *src)
{
	long *before = flushes_before_of(src);

	if (before)
		*before = has_ptes(src) ? state.counts.nr_batch_flushes : NEEDS_NO_FLUSH;
}

/*
 * A flush that is pending is of this folio's entries if there has been none
 * since a target was asked for; later folios' may be pending as well.
 */
void migrate_check_flushed(struct page *page)
{
	const long *before = flushes_before_of(page_folio(page));

	if (before && *before == READ_ONCE(state.counts.nr_batch_flushes) &&
	    READ_ONCE(state.task->tlb_ubc.flush_required))
		atomic_long_inc(&state.nr_early_reads);
}

/* --- Copying ------------------------------------------------------------ */

unsigned long copy_mc_enhanced_fast_string(void *to, const void *from,
					   unsigned int bytes);

/*
 * For all copies: pages that the experiment calls poisoned fail, with half of
 * them copied; and where only the rest is to be measured, nothing is copied.
 * Returns whether that is all, and then how many bytes are left.
 */
static bool copied(void *to, const void *from, unsigned int bytes, unsigned long *left)
{
	const struct migrate_request *request = state.request;

	migrate_check_flushed(virt_to_page(from));
	*left = 0;
	if (request->no_copy)
		return true;
	if (!request->nr_poisoned ||
	    !migrate_among((__pa(from) >> PAGE_SHIFT) - MIGRATE_SRC_PFN, request->poisoned,
			   request->nr_poisoned))
		return false;
	memcpy(to, from, bytes / 2);
	*left = bytes - bytes / 2;
	return true;
}

/* What the kernel's does on a CPU without need for a careful copy. */
unsigned long copy_mc_to_kernel(void *to, const void *from, unsigned int bytes)
{
	unsigned long left;

	if (copied(to, from, bytes, &left))
		return left;
	if (cpu_feature_enabled(X86_FEATURE_ERMS))
		return copy_mc_enhanced_fast_string(to, from, bytes);
	memcpy(to, from, bytes);
	return 0;
}

unsigned long __wrap___copy_mc_page_streaming(void *to, const void *from)
{
	unsigned long left;

	if (copied(to, from, PAGE_SIZE, &left))
		return left;
	return __real___copy_mc_page_streaming(to, from);
}

void memory_failure_queue(unsigned long pfn, int flags)
{
	atomic_long_inc(&state.nr_failed_reads);
}

/* --- Translations ------------------------------------------------------- */

/*
 * No other CPU has these address spaces loaded: what flushing theirs takes is
 * waited for, if the experiment says how long that is.
 */
static void flush_others(void)
{
	unsigned long nr_ticks = state.request->flush_ticks;
	u64 start;

	if (!nr_ticks)
		return;
	start = rdtsc_ordered();
	while (rdtsc_ordered() - start < nr_ticks)
		cpu_relax();
}

void arch_tlbbatch_flush(struct arch_tlbflush_unmap_batch *batch)
{
	state.counts.nr_batch_flushes++;
	flush_others();
	cpumask_clear(&batch->cpumask);
}

void flush_tlb_mm_range(struct mm_struct *mm, unsigned long start,
			unsigned long end, unsigned int stride_shift,
			bool freed_tables)
{
	state.counts.nr_single_flushes++;
	flush_others();
}
