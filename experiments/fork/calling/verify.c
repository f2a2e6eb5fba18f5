// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verify a fork made by one call: VMAs and counters are as the oracle predicts
 * (experiments/fork/oracle/address_space.py). An anonymous page is mapped by
 * the processes that may see it and counted for them. Once the child is gone,
 * all is as before.
 */
#include <string.h>
#include "row.h"

/* Bits of an entry. Source: Intel SDM volume 3, table 4-20, and pgtable_types.h. */
#define PTE_PRESENT (1UL << 0)
#define PTE_WRITE (1UL << 1)
#define PTE_ACCESSED (1UL << 5)
#define PTE_DIRTY (1UL << 6)
#define PTE_SAVED_DIRTY (1UL << 58)
#define PTE_PFN 0x000ffffffffff000UL

static unsigned long frame_in(unsigned long pte)
{
	return ((pte & PTE_PFN) >> 12) - NODE_PFN;
}

/* --- VMAs and counters ------------------------------------------------------ */

static bool same_vmas(const char *whose, const struct calling_space *space,
		      const struct image *expected)
{
	static const char *const names[VMA_WORDS] = {
		"start", "end", "flags", "file", "offset", "number of anon_vmas",
		"own anon_vma", "number of VMAs that rmap finds",
	};
	unsigned long nr = image_nr_words(expected) / VMA_WORDS;

	if (space->nr_vmas != nr)
		return frames_fail("%s has %lu VMAs, expected %lu", whose, space->nr_vmas, nr);
	for (unsigned long i = 0; i < nr * VMA_WORDS; i++)
		if (space->vmas[i] != expected->words[i])
			return frames_fail("%s: %s of VMA %lu: %#lx, expected %#lx", whose,
					   names[i % VMA_WORDS], i / VMA_WORDS, space->vmas[i],
					   expected->words[i]);
	return true;
}

static bool same_counters(const char *whose, const struct calling_space *space,
			  const long *expected)
{
	static const char *const names[SPACE_COUNTERS] = {
		"map_count", "total_vm", "data_vm", "exec_vm", "stack_vm", "locked_vm",
		"file pages", "anonymous pages", "swap entries", "shared pages", "mm_users",
	};

	for (unsigned int i = 0; i < SPACE_COUNTERS; i++)
		if (space->counters[i] != expected[i])
			return frames_fail("%s: %s: %ld, expected %ld", whose, names[i],
					   space->counters[i], expected[i]);
	return true;
}

static bool same_totals(const struct row *row, bool forked)
{
	return frames_same("pages promised", row->result.committed, row->committed[forked]) &&
	       frames_same("VMAs that files know", row->result.file_vmas,
			   row->file_vmas[forked]) &&
	       frames_same("references to files", row->result.file_refs,
			   row->file_vmas[forked]) &&
	       frames_same("the result", row->result.error, 0);
}

/* --- Entries and pages ------------------------------------------------------- */

/* Without the right to write; hardware's dirty bit is then kept in another place. */
static unsigned long protected(unsigned long pte)
{
	if (!(pte & PTE_WRITE))
		return pte;
	pte &= ~PTE_WRITE;
	return pte & PTE_DIRTY ? (pte & ~PTE_DIRTY) | PTE_SAVED_DIRTY : pte;
}

/* @was_shared: not the parent's alone for some time, which a page remembers. */
struct expected_page {
	unsigned long parent, child;
	bool was_shared, rewritten;
};

/* What of an anonymous page must be, @at the index of its entry. */
static struct expected_page expected_of(const struct row *row, const unsigned long *asked,
					unsigned long at, bool forked, bool faulted)
{
	unsigned long was = row->before.entries[at];
	bool is_copied = asked[ASKED_COPIED];
	struct expected_page page = { .parent = was };

	if (!is_copied)
		return page;
	page.parent = protected(was);
	page.child = forked ? page.parent & ~PTE_ACCESSED : 0;
	page.was_shared = true;
	page.rewritten = faulted && (was & PTE_WRITE);
	return page;
}

static bool check_frame_of(const struct row *row, unsigned long pte, int mappings, bool exclusive)
{
	const struct node_layout *at = &row->frames.layout;
	const unsigned char *is = descriptor_of(frame_in(pte) + NODE_PFN);
	bool is_exclusive = word_at(is, at->flags) & at->anon_exclusive;

	if (frame_in(pte) >= row->frames.nr)
		return frames_fail("an entry is %#lx, which is no frame of the node", pte);
	if (int_at(is, at->mapcount) + 1 != mappings || int_at(is, at->refcount) != mappings ||
	    is_exclusive != exclusive)
		return frames_fail("frame %#lx has %d mappings, %d references, is %sexclusive;"
				   " expected %d of both, and %sexclusive",
				   frame_in(pte) + NODE_PFN, int_at(is, at->mapcount) + 1,
				   int_at(is, at->refcount), is_exclusive ? "" : "not ", mappings,
				   exclusive ? "" : "not ");
	return true;
}

static bool own(struct row *row, unsigned long pte)
{
	return frames_own(&row->frames, frame_in(pte), 1, OWNER_PAGE);
}

/* A page that the parent wrote to is another than the child's, with the same contents. */
static bool check_rewritten(struct row *row, unsigned long at, const struct expected_page *page)
{
	unsigned long was = row->before.entries[at], is = row->parent_is.entries[at];

	if ((is ^ was) & ~(PTE_PFN | PTE_SAVED_DIRTY))
		return frames_fail("entry %lu of the parent, written to: %#lx, before %#lx",
				   at, is, was);
	if (page->child && frame_in(is) == frame_in(was))
		return frames_fail("page %lu was written to, and both have frame %#lx", at,
				   frame_in(is) + NODE_PFN);
	if (page->child && memcmp(contents_of(frame_in(is) + NODE_PFN),
				  contents_of(frame_in(was) + NODE_PFN), PAGE_BYTES))
		return frames_fail("page %lu of the parent is no copy of what it was", at);
	return check_frame_of(row, is, 1, true) && own(row, is);
}

static bool check_page(struct row *row, unsigned long at, const struct expected_page *page)
{
	unsigned long is = row->parent_is.entries[at];
	unsigned long child = row->child_is.nr_vmas ? row->child_is.entries[at] : 0;

	if (child != page->child)
		return frames_fail("entry %lu of the child: %#lx, expected %#lx", at, child,
				   page->child);
	if (page->rewritten)
		return check_rewritten(row, at, page) &&
		       (!child || (check_frame_of(row, child, 1, false) && own(row, child)));
	if (is != page->parent)
		return frames_fail("entry %lu of the parent: %#lx, expected %#lx", at, is,
				   page->parent);
	return check_frame_of(row, is, child ? 2 : 1, !page->was_shared) && own(row, is);
}

static bool check_pages(struct row *row, bool forked, bool faulted)
{
	const unsigned long *asked = row->asked.words;
	unsigned long at = 0, nr_child = 0;

	for (unsigned long i = 0; i < row->request.nr_vmas; i++, asked += ASKED_WORDS)
		for (unsigned long end = at + asked[ASKED_NR_ANON]; at < end; at++) {
			struct expected_page page = expected_of(row, asked, at, forked, faulted);

			nr_child += page.child != 0;
			if (!check_page(row, at, &page))
				return false;
		}
	return frames_same("entries of the parent", (long)row->parent_is.nr_entries,
			   (long)row->request.nr_anon) &&
	       (!forked || frames_same("entries of the child", (long)row->child_is.nr_entries,
				       (long)nr_child));
}

/*
 * A CPU may write by a translation that it has until that is flushed: the fork
 * flushes all of the parent's, a fault the one of its page.
 */
static bool check_flushes(const struct row *row, bool faulted)
{
	const unsigned long *asked = row->asked.words;
	unsigned long at = 0, nr_rewritten = 0, nr_protected = 0;

	for (unsigned long i = 0; i < row->request.nr_vmas; i++, asked += ASKED_WORDS)
		for (unsigned long end = at + asked[ASKED_NR_ANON]; at < end; at++) {
			struct expected_page page = expected_of(row, asked, at, true, faulted);

			nr_rewritten += page.rewritten;
			nr_protected += page.parent != row->before.entries[at];
		}
	if (faulted ? row->result.nr_flushes >= nr_rewritten :
	    row->result.nr_flushes || !nr_protected)
		return true;
	return frames_fail("%lu TLB flushes; %lu entries were protected, %lu written to",
			   row->result.nr_flushes, nr_protected, nr_rewritten);
}

/* --- The node ------------------------------------------------------------------ */

/* What is neither a page nor free has the kernel for itself; says how many. */
static bool check_frames(struct row *row, long *nr_kernel)
{
	struct frames *frames = &row->frames;

	*nr_kernel = 0;
	if (!frames_check_lists(frames))
		return false;
	for (unsigned long frame = 0; frame < frames->nr; frame++) {
		if (frames->owner[frame])
			continue;
		frames->owner[frame] = OWNER_KERNEL;
		++*nr_kernel;
	}
	*nr_kernel -= (long)row->result.nr_own_frames;
	return true;
}

static bool same_objects(const struct row *row)
{
	const struct calling_result *was = &row->result_before, *is = &row->result;

	if (is->nr_caches != was->nr_caches)
		return frames_fail("%lu kmem_caches, before the fork %lu", is->nr_caches,
				   was->nr_caches);
	for (unsigned long i = 0; i < is->nr_caches; i++)
		if (is->caches[i].nr != was->caches[i].nr)
			return frames_fail("%ld objects of %s are left, before the fork %ld",
					   is->caches[i].nr, is->caches[i].name, was->caches[i].nr);
	return true;
}

static void begin(struct row *row, unsigned int variant)
{
	frames_begin(row->name, variant);
	memset(row->frames.owner, 0, row->frames.nr);
	row->frames.state = row->result.node;
}

bool verify_before(struct row *row, unsigned int variant)
{
	const unsigned long *entries = row->before.entries;

	begin(row, variant);
	for (unsigned long at = 0; at < row->request.nr_anon; at++) {
		if (!(entries[at] & PTE_PRESENT))
			return frames_fail("page %lu is not mapped: its entry is %#lx", at,
					   entries[at]);
		if (!check_frame_of(row, entries[at], 1, true) || !own(row, entries[at]))
			return false;
	}
	return same_vmas("the parent", &row->before, &row->alone) &&
	       same_counters("the parent", &row->before, row->parent_counters) &&
	       same_totals(row, false) && check_frames(row, &row->nr_kernel);
}

bool verify_forked(struct row *row, unsigned int variant, bool faulted)
{
	long nr_kernel;

	begin(row, variant);
	return same_vmas("the child", &row->child_is, &row->child) &&
	       same_vmas("the parent", &row->parent_is, &row->parent) &&
	       same_counters("the child", &row->child_is, row->child_counters) &&
	       same_counters("the parent", &row->parent_is, row->parent_counters) &&
	       same_totals(row, true) && check_pages(row, true, faulted) &&
	       check_flushes(row, faulted) && check_frames(row, &nr_kernel);
}

bool verify_alone(struct row *row, unsigned int variant, bool faulted)
{
	long nr_kernel;

	begin(row, variant);
	return same_vmas("the parent", &row->parent_is, &row->alone) &&
	       same_counters("the parent", &row->parent_is, row->parent_counters) &&
	       same_totals(row, false) && check_pages(row, false, faulted) &&
	       check_frames(row, &nr_kernel) && same_objects(row) &&
	       frames_same("frames of the kernel", nr_kernel, row->nr_kernel);
}
