// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's side of the migrate experiment: compiled by kbuild against the
 * variant's own headers, linked to the variant's own migrate.o and rmap.o.
 *
 * It builds address spaces that map some folios, puts the folios on lists as
 * if they had been isolated, and calls migrate_pages(). Nothing here runs
 * inside the clock but that call, and the two functions that it is given. Where
 * folios are on several lists it is called for each, as compact_zone() does.
 */
#include <linux/gfp.h>
#include <linux/list_lru.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pgtable.h>
#include <linux/poison.h>
#include <linux/rmap.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <linux/vmstat.h>
#include <asm/pgalloc.h>
#include "internal.h"
#include "kernel.h"
#include "migrate.h"
#include "migrate_kernel.h"
#include "page_tables.h"

/* What an address space still has to know of, in mm->tlb_flush_batched. mm/rmap.c */
#define PENDING_FLUSHES 0x7fff

/* Most that a CPU counts by itself, as on any large node. mm/vmstat.c */
#define STAT_THRESHOLD 125

static DEFINE_PER_CPU(struct per_cpu_nodestat, node_stat[MIGRATE_NR_NODES]);

static struct {
	struct migrate_request request;
	struct mm_struct *mm[MIGRATE_MOST_MAPPINGS];
	struct vm_area_struct vma[MIGRATE_MOST_MAPPINGS];
	struct anon_vma_chain chain[MIGRATE_MOST_MAPPINGS];
	long nr_asked;
	long nr_put;
	unsigned int nr_succeeded;
	int ret;
} world;

/* --- Before ------------------------------------------------------------- */

static struct anon_vma *anon_vma(void)
{
	return (struct anon_vma *)MIGRATE_ANON_VMA_ADDRESS;
}

/* As anon_vma_alloc() leaves it, with the chains of all VMAs that map a folio. */
static void init_anon_vma(unsigned int nr_mappings)
{
	struct anon_vma *root = anon_vma();
	unsigned int i;

	memset(root, 0, sizeof(*root));
	init_rwsem(&root->rwsem);
	atomic_set(&root->refcount, 1);
	root->num_active_vmas = nr_mappings;
	root->root = root;
	root->parent = root;
	root->rb_root = RB_ROOT_CACHED;
	for (i = 0; i < nr_mappings; i++) {
		struct anon_vma_chain *chain = &world.chain[i];

		memset(chain, 0, sizeof(*chain));
		chain->vma = &world.vma[i];
		chain->anon_vma = root;
		INIT_LIST_HEAD(&world.vma[i].anon_vma_chain);
		list_add(&chain->same_vma, &world.vma[i].anon_vma_chain);
		host_link_anon_vma(chain, root);
	}
}

/* Two CPUs run it: TLB flushes are deferred, as they are where that pays. */
static void init_mm_struct(struct mm_struct *mm, long rss)
{
	int i;

	memset(mm, 0, sizeof(*mm));
	atomic_set(&mm->mm_users, 1);
	atomic_set(&mm->mm_count, 1);
	init_rwsem(&mm->mmap_lock);
	spin_lock_init(&mm->page_table_lock);
	INIT_LIST_HEAD(&mm->mmlist);
	for (i = 0; i < NR_MM_COUNTERS; i++)
		raw_spin_lock_init(&mm->rss_stat[i].lock);
	mm->rss_stat[MM_ANONPAGES].count = rss;
	mm->pgd = (pgd_t *)get_zeroed_page(GFP_KERNEL);
	cpumask_clear(mm_cpumask(mm));
	cpumask_set_cpu(0, mm_cpumask(mm));
	cpumask_set_cpu(1, mm_cpumask(mm));
}

static void init_vma(struct vm_area_struct *vma, struct mm_struct *mm)
{
	const struct migrate_request *request = &world.request;

	memset(vma, 0, sizeof(*vma));
	vma->vm_mm = mm;
	vma->vm_start = MIGRATE_VMA_ADDRESS;
	vma->vm_end = MIGRATE_VMA_ADDRESS + request->nr_pmds * PMD_SIZE;
	host_set_pgoff(vma);
	vma->vm_page_prot = __pgprot(request->page_prot);
	vm_flags_init(vma, request->vm_flags);
	vma->anon_vma = anon_vma();
}

/* The middle entry of @address, made as a fault would make its table. */
static pmd_t *pmd_of(struct mm_struct *mm, unsigned long address)
{
	p4d_t *p4d = p4d_alloc(mm, pgd_offset(mm, address), address);
	pud_t *pud = pud_alloc(mm, p4d, address);

	return pmd_alloc(mm, pud, address);
}

/*
 * The last table first: behind a table's last entry in memory is never the
 * next table's first one, which only its middle entry leads to.
 */
static void fill_tables(struct mm_struct *mm, const struct migrate_mapping *from)
{
	unsigned long i;

	for (i = world.request.nr_pmds; i--;) {
		pmd_t *pmd = pmd_of(mm, MIGRATE_VMA_ADDRESS + i * PMD_SIZE);

		if (from->pmds[i]) {
			*pmd = __pmd(from->pmds[i]);
			continue;
		}
		/* Our allocator does not fail; a warning would fail the launch. */
		WARN_ON(pte_alloc(mm, pmd));
		memcpy((void *)pmd_page_vaddr(*pmd), from->ptes + i * PTRS_PER_PTE,
		       PAGE_SIZE);
	}
}

/* Folios of a node that wait to be split. */
#ifdef HAVE_DEFERRED_SPLIT_QUEUE

#define QUEUES_OFFSET MIGRATE_NODE_BYTES
#define QUEUE_AT offsetof(struct pglist_data, deferred_split_queue.split_queue)
#define QUEUE_STRIDE MIGRATE_NODE_BYTES

static struct list_head *queue_of(int nid)
{
	return &NODE_DATA(nid)->deferred_split_queue.split_queue;
}

static void init_queue(int nid)
{
	spin_lock_init(&NODE_DATA(nid)->deferred_split_queue.split_queue_lock);
	INIT_LIST_HEAD(queue_of(nid));
}

static void set_queue_length(unsigned long length)
{
	NODE_DATA(0)->deferred_split_queue.split_queue_len = length;
}

#else

/* All nodes' lie in the first one's area, behind what is the node. */
#define QUEUES_OFFSET (MIGRATE_NODE_BYTES / 2)
#define QUEUE_AT (QUEUES_OFFSET + offsetof(struct list_lru_node, lru.list))
#define QUEUE_STRIDE sizeof(struct list_lru_node)

static struct list_lru_node *lru_of(int nid)
{
	deferred_split_lru.node = (void *)MIGRATE_NODE_ADDRESS + QUEUES_OFFSET;
	return &deferred_split_lru.node[nid];
}

static struct list_head *queue_of(int nid)
{
	return &lru_of(nid)->lru.list;
}

static void init_queue(int nid)
{
	struct list_lru_node *lru = lru_of(nid);

	BUILD_BUG_ON(MIGRATE_NR_NODES * sizeof(*lru) > MIGRATE_NODE_BYTES - QUEUES_OFFSET);
	memset(lru, 0, sizeof(*lru));
	spin_lock_init(&lru->lru.lock);
	INIT_LIST_HEAD(queue_of(nid));
}

static void set_queue_length(unsigned long length)
{
	lru_of(0)->lru.nr_items = length;
	atomic_long_set(&lru_of(0)->nr_items, length);
}

#endif

static void init_node(int nid)
{
	struct pglist_data *pgdat = (void *)MIGRATE_NODE_ADDRESS + nid * MIGRATE_NODE_BYTES;
	int cpu;

	BUILD_BUG_ON(sizeof(*pgdat) > QUEUES_OFFSET);
	node_data[nid] = pgdat;
	memset(pgdat, 0, sizeof(*pgdat));
	pgdat->node_id = nid;
	pgdat->per_cpu_nodestats = &node_stat[nid];
	for_each_possible_cpu(cpu) {
		struct per_cpu_nodestat *stat = per_cpu_ptr(&node_stat[nid], cpu);

		memset(stat, 0, sizeof(*stat));
		stat->stat_threshold = STAT_THRESHOLD;
	}
	init_queue(nid);
}

static void reset_events(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		memset(per_cpu_ptr(&vm_event_states, cpu), 0, sizeof(vm_event_states));
		memset(per_cpu_ptr(&mthp_stats, cpu), 0, sizeof(mthp_stats));
	}
}

static struct list_head *callers_lists(void)
{
	BUILD_BUG_ON(sizeof(struct list_head) != MIGRATE_LIST_BYTES);
	return (struct list_head *)MIGRATE_LIST_ADDRESS;
}

static struct folio *folio_at(unsigned long page_number)
{
	return pfn_folio(MIGRATE_SRC_PFN + page_number);
}

/* The folios are linked by isolation; set the head of their list. */
static void begin_list(struct list_head *head, const struct migrate_list *list)
{
	head->next = &folio_at(list->first)->lru;
	head->prev = &folio_at(list->last)->lru;
}

/* Likewise, the folios that wait to be split. */
static void begin_queue(const struct migrate_request *request)
{
	struct list_head *queue = queue_of(0);

	if (!request->nr_queued)
		return;
	set_queue_length(request->nr_queued);
	queue->next = &folio_at(request->queued[0])->_deferred_list;
	queue->prev = &folio_at(request->queued[request->nr_queued - 1])->_deferred_list;
}

static void choose_engine(const struct migrate_request *request)
{
	const struct offload_request wanted = {
		.engine = request->engine,
		.channels = request->channels,
		.setup_ns = request->setup_ns,
		.mb_per_s = request->mb_per_s,
		/* A descriptor copies a page at least, and each page is copied once. */
		.nr_copies = request->nr_pages,
		.shares_cpus = request->shares_cpus,
		/* Its copy past the caches does not ask kernel_custom.c what cannot be read. */
		.streams = !request->nr_poisoned,
		.faults = request->faults,
		.reads = request->watched ? migrate_check_flushed : NULL,
	};

	offload_choose(&wanted);
}

static enum offload_engine prepare(const struct migrate_request *request)
{
	unsigned long list;
	unsigned int i;

	host_place_map(MIGRATE_TABLE_PFN, (void *)MIGRATE_MAP_ADDRESS);
	host_place_contents(MIGRATE_TABLE_PFN, (void *)MIGRATE_RAM_ADDRESS);
#ifndef HAVE_EMPTY_ZERO_PAGE_WORDS
	__zero_page = virt_to_page(empty_zero_page);
	zero_page_pfn = page_to_pfn(__zero_page);
#endif
	world.request = *request;
	/* What channels copy for a trial is as if nobody had asked for anything. */
	migrate_reset(&world.request);
	choose_engine(&world.request);
	world.nr_asked = 0;
	world.nr_put = 0;
	world.nr_succeeded = 0;
	world.ret = 0;
	for (i = 0; i < MIGRATE_NR_NODES; i++)
		init_node(i);
	begin_queue(&world.request);
	reset_events();
	migrate_reset(&world.request);
	for (i = 0; i < request->nr_mappings; i++) {
		if (!world.mm[i])
			world.mm[i] = host_alloc(sizeof(struct mm_struct) + cpumask_size());
		init_mm_struct(world.mm[i], request->rss[i]);
#ifdef CONFIG_MM_ID
		world.mm[i]->mm_id = MM_ID_MIN + i;
#endif
		init_vma(&world.vma[i], world.mm[i]);
		fill_tables(world.mm[i], &request->mapping[i]);
	}
	init_anon_vma(request->nr_mappings);
	/* Another task asks each time: what the last one left is not its affair. */
	memset(&current->tlb_ubc, 0, sizeof(current->tlb_ubc));
	for (list = 0; list < request->nr_lists; list++)
		begin_list(&callers_lists()[list], &request->lists[list]);
	return offload_in_use();
}

/* --- The operation ------------------------------------------------------ */

/* As alloc_migration_target(), with the allocator's work done already. */
static struct folio *new_folio(struct folio *src, unsigned long private)
{
	unsigned long number = folio_pfn(src) - MIGRATE_SRC_PFN;
	const struct migrate_request *request = &world.request;

	world.nr_asked++;
	migrate_note_asked(src);
	if (migrate_among(number, request->no_target, request->nr_no_target))
		return NULL;
	if (folio_test_large(src) &&
	    migrate_among(number, request->no_large_target, request->nr_no_large_target))
		return NULL;
	return pfn_folio(MIGRATE_DST_PFN + number);
}

/* Its descriptor is compared as it is: nobody takes it back. */
static void put_folio(struct folio *dst, unsigned long private)
{
	world.nr_put++;
}

/*
 * The loop is that of compact_zone(), which calls for each list that it has
 * isolated, and ends where memory does. Lists are made before the clock runs;
 * all but compaction have one.
 */
static void run(void)
{
	struct list_head *list = callers_lists();
	struct list_head *end = list + world.request.nr_lists;

	for (; list < end && world.ret >= 0; list++) {
		unsigned int nr_succeeded = 0;
		int ret = migrate_pages(list, new_folio, put_folio, 0,
					world.request.mode, world.request.reason,
					&nr_succeeded);

		world.ret = ret < 0 ? ret : world.ret + ret;
		world.nr_succeeded += nr_succeeded;
	}
}

/* --- After -------------------------------------------------------------- */

static void read_tables(struct mm_struct *mm, struct migrate_mapping *to)
{
	unsigned long i;

	for (i = 0; i < world.request.nr_pmds; i++) {
		pmd_t *pmd = host_look_up_pmd(mm, MIGRATE_VMA_ADDRESS + i * PMD_SIZE);
		unsigned long *ptes = to->ptes + i * PTRS_PER_PTE;

		to->pmds[i] = 0;
		if (pmd && pmd_present(*pmd) && !pmd_leaf(*pmd)) {
			memcpy(ptes, (void *)pmd_page_vaddr(*pmd), PAGE_SIZE);
			continue;
		}
		memset(ptes, 0, PAGE_SIZE);
		if (pmd)
			to->pmds[i] = pmd_val(*pmd);
	}
}

static long node_stat_of(int nid, enum node_stat_item item)
{
	struct pglist_data *pgdat = NODE_DATA(nid);
	long sum = atomic_long_read(&pgdat->vm_stat[item]);
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(pgdat->per_cpu_nodestats, cpu)->vm_node_stat_diff[item];
	return sum;
}

static long event_of(enum vm_event_item item)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(vm_event_states, cpu).event[item];
	return sum;
}

static long nr_anon_of(int order)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += (long)per_cpu(mthp_stats, cpu).stats[order][MTHP_STAT_NR_ANON];
	return sum;
}

static long rss_of(const struct mm_struct *mm)
{
	long sum = mm->rss_stat[MM_ANONPAGES].count;
	int i;

	/* Nothing is counted elsewhere, neither more nor less. */
	for (i = 0; i < NR_MM_COUNTERS; i++)
		if (i != MM_ANONPAGES && mm->rss_stat[i].count)
			return -1;
	return sum;
}

static void read(struct migrate_result *result)
{
	static const enum vm_event_item events[MIGRATE_NR_EVENTS] = {
		[MIGRATE_EVENT_SUCCESS] = PGMIGRATE_SUCCESS,
		[MIGRATE_EVENT_FAIL] = PGMIGRATE_FAIL,
		[MIGRATE_EVENT_THP_SUCCESS] = THP_MIGRATION_SUCCESS,
		[MIGRATE_EVENT_THP_FAIL] = THP_MIGRATION_FAIL,
		[MIGRATE_EVENT_THP_SPLIT] = THP_MIGRATION_SPLIT,
	};
	static const enum node_stat_item stats[MIGRATE_NR_STATS] = {
		[MIGRATE_STAT_ISOLATED_ANON] = NR_ISOLATED_ANON,
		[MIGRATE_STAT_ISOLATED_FILE] = NR_ISOLATED_FILE,
		[MIGRATE_STAT_ANON_MAPPED] = NR_ANON_MAPPED,
		[MIGRATE_STAT_ANON_THPS] = NR_ANON_THPS,
	};
	unsigned int i, nid;

	offload_settle();
	result->ret = world.ret;
	result->nr_succeeded = world.nr_succeeded;
	result->nr_asked = world.nr_asked;
	result->nr_put = world.nr_put;
	result->anon_vma_refs = atomic_read(&anon_vma()->refcount);
	result->nr_offloaded = offload_nr_copied();
	result->nr_dma_mapped = offload_nr_mapped();
	for (i = 0; i < MIGRATE_NR_EVENTS; i++)
		result->events[i] = event_of(events[i]);
	for (i = 0; i < MIGRATE_NR_ORDERS; i++)
		result->nr_anon[i] = nr_anon_of(i);
	for (i = 0; i < MIGRATE_NR_STATS; i++)
		for (nid = 0; nid < MIGRATE_NR_NODES; nid++)
			result->stats[i][nid] = node_stat_of(nid, stats[i]);
	for (i = 0; i < world.request.nr_mappings; i++) {
		read_tables(world.mm[i], &result->mapping[i]);
		result->rss[i] = rss_of(world.mm[i]);
		result->noted[i] =
			!!(atomic_read(&world.mm[i]->tlb_flush_batched) & PENDING_FLUSHES);
	}
	migrate_read_counts(result);
}

static const struct migrate_ops ops = {
	.prepare = prepare,
	.run = run,
	.read = read,
};

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
	{ "queue", QUEUE_AT },
	{ "queue_stride", QUEUE_STRIDE },
#include "facts.h"
	{ }
};
