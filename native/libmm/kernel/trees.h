/* SPDX-License-Identifier: GPL-2.0-only */
/* Provide the names of the newest tree where older trees use different ones. */
#ifndef REAM_TREES_H
#define REAM_TREES_H

#include <linux/fs.h>
#include <linux/memcontrol.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <asm/pgalloc.h>
#include "internal.h"

#ifdef HAVE_PAGE_ALLOC_HEADER
#include "page_alloc.h"
#endif

#ifdef HAVE_MEMDESC_FLAGS
#define page_flags(page) ((page)->flags.f)
#else
#define page_flags(page) ((page)->flags)
#endif

#ifndef HAVE_ANON_PAGE_INDEX
#define linear_anon_page_index(vma, address) linear_page_index(vma, address)
#endif

#ifndef anon_rmap_tree_foreach
#define anon_rmap_tree_foreach(link, anon_vma, first, last) \
	anon_vma_interval_tree_foreach(link, &(anon_vma)->rb_root, first, last)
#define mapping_rmap_tree_foreach(vma, mapping, first, last) \
	vma_interval_tree_foreach(vma, &(mapping)->i_mmap, first, last)
#endif

#ifndef HAVE_SET_ANON_VMA_NAME
static inline int set_anon_vma_name(unsigned long start, unsigned long bytes, const char *text)
{
	struct anon_vma_name *name = text ? anon_vma_name_alloc(text) : NULL;
	int error = -ENOMEM;

	if (text && !name)
		return error;
	mmap_write_lock(current->mm);
	error = madvise_set_anon_name(current->mm, start, bytes, name);
	mmap_write_unlock(current->mm);
	anon_vma_name_put(name);
	return error;
}
#endif

/* Whether a shmem file has accounted memory for its whole size. */
#ifdef SHMEM_F_NORESERVE
#define is_shmem_reserved(inode) (!(SHMEM_I(inode)->flags & SHMEM_F_NORESERVE))
#else
#define is_shmem_reserved(inode) (!(SHMEM_I(inode)->flags & VM_NORESERVE))
#endif

#ifndef HAVE_KILL_LITTER_SUPER
#define kill_litter_super kill_anon_super
#endif

#ifndef HAVE_PTE_UFFD
#define pte_uffd(pte) pte_uffd_wp(pte)
#define pmd_uffd(pmd) pmd_uffd_wp(pmd)
#define pte_swp_uffd(pte) pte_swp_uffd_wp(pte)
#define VM_UFFD_RWP 0
#endif

#ifdef HAVE_LEAFOPS
#include <linux/leafops.h>
#else
#define softleaf_t swp_entry_t
#define softleaf_from_pte(pte) pte_to_swp_entry(pte)
#define softleaf_is_marker(entry) is_pte_marker_entry(entry)
#define softleaf_is_hwpoison(entry) is_hwpoison_entry(entry)
#define softleaf_is_device_private(entry) is_device_private_entry(entry)
#define softleaf_is_device_private_write(entry) is_writable_device_private_entry(entry)
#define softleaf_is_swap(entry) (!non_swap_entry(entry))
#define softleaf_is_migration(entry) is_migration_entry(entry)
#define softleaf_to_pfn(entry) swp_offset_pfn(entry)
#define pte_is_uffd_wp_marker(pte) pte_marker_uffd_wp(pte)

static inline bool softleaf_is_guard_marker(swp_entry_t entry)
{
	return false;
}
#endif

/* LRU list that counts a folio. With a generation it is not on the list itself. */
static inline enum lru_list list_of(struct folio *folio)
{
#ifdef CONFIG_LRU_GEN
	const int generation = folio_lru_gen(folio);

	if (generation >= 0)
		return folio_is_file_lru(folio) * LRU_INACTIVE_FILE +
		       lru_gen_is_active(folio_lruvec(folio), generation) * LRU_ACTIVE;
#endif
	return folio_lru_list(folio);
}

#ifdef PGD_ALLOCATION_ORDER
#define pgd_allocation_order() PGD_ALLOCATION_ORDER
#endif

#ifdef HAVE_WRITE_BEGIN_OF_KIOCB
#define writer_t const struct kiocb *
#else
#define writer_t struct file *
#endif

#ifndef HAVE_MAKE_DEVICE_EXCLUSIVE
static inline struct page *make_device_exclusive(struct mm_struct *mm, unsigned long address,
						 void *owner, struct folio **folio)
{
	struct page *page = NULL;

	make_device_exclusive_range(mm, address, address + PAGE_SIZE, &page, owner);
	if (!page)
		return ERR_PTR(-EBUSY);
	*folio = page_folio(page);
	return page;
}
#endif

#ifdef HAVE_CONST_CTL_TABLE
#define sysctl_t const struct ctl_table
#else
#define sysctl_t struct ctl_table
#endif

#ifdef HAVE_ATTRIBUTES_OF_NAMESPACES
#define namespace_t struct ns_common
#else
#define namespace_t void
#endif

#ifdef HAVE_PFN_T_HEADER
#include <linux/pfn_t.h>
#else
#define pfn_t unsigned long
#define page_to_pfn_t(page) page_to_pfn(page)
#endif

#ifdef HAVE_PAGE_FRAG_CACHE_HEADER
#include <linux/page_frag_cache.h>
#endif

#ifdef alloc_pages_bulk_array_mempolicy
#define alloc_pages_bulk_mempolicy_noprof alloc_pages_bulk_array_mempolicy_noprof
#endif

#ifdef HAVE_BOOL_WAITS
#define waits_t bool
#else
#define waits_t int
#endif

#endif
