/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: what the migrate experiment's substitutes offer glue.c. */
#ifndef REAM_MIGRATE_KERNEL_H
#define REAM_MIGRATE_KERNEL_H

#include <linux/types.h>
#include "migrate.h"

struct device;
struct dma_device;
struct folio;
struct page;

#ifndef HAVE_EMPTY_ZERO_PAGE_WORDS
extern unsigned long zero_page_pfn;
#endif
#ifndef HAVE_DEFERRED_SPLIT_QUEUE
extern struct list_lru deferred_split_lru;
#endif

/* Forget all allocations and counts, and go by @request from now on. */
void migrate_reset(const struct migrate_request *request);
void migrate_read_counts(struct migrate_result *result);

/* Have those folios copied by whom @request says, as far as this kernel can. */
void migrate_choose(const struct migrate_request *request);

/* Do what an engine that is a model has put off until nothing is timed. */
void migrate_settle(void);

/* Who that is, and how many folios he has copied since. */
enum migrate_engine migrate_engine_in_use(void);
unsigned long migrate_nr_offloaded(void);

/* A target is asked for: @src is unmapped next, if at all. */
void migrate_note_asked(struct folio *src);

/* Somebody reads a page to copy it: nobody may be able to write to it any more. */
void migrate_check_flushed(struct page *page);

/* Which engine dcbm finds: one of threads, or a model with what @request says. */
void migrate_choose_device(const struct migrate_request *request);

/* kernel_model.c: the model, behind @dev. */
struct dma_device *model_engine(struct device *dev, const struct migrate_request *request);

/* Move the bytes of all that the model has completed. */
void model_settle(void);

/* Static in the modules; see the file `objects`. */
int dcbm_init(void);
int swdma_init(void);
int mtcopy_init(void);

/* Whether @number is one of @nr ascending ones. */
bool migrate_among(unsigned long number, const unsigned long *numbers, unsigned long nr);

/*
 * A series' own, where there is one: linked with --wrap, so that a copy asks
 * kernel_custom.c, too.
 */
unsigned long __real___copy_mc_page_streaming(void *to, const void *from);
unsigned long __wrap___copy_mc_page_streaming(void *to, const void *from);

#endif
