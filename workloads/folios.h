/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Anonymous memory in folios of one size, each mapped by PTEs or by a PMD:
 * made, and looked at through /proc until nothing about it is believed only.
 */
#ifndef REAM_FOLIOS_H
#define REAM_FOLIOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "program.h"

#define PAGE_BYTES 4096UL
#define BLOCK_BYTES (2UL << 20)		/* what a PMD maps */
#define BLOCK_PAGES (BLOCK_BYTES / PAGE_BYTES)

#define MOST_ATTEMPTS 8		/* at a mapping, at operations on it */

/**
 * struct folios - what the mapping is to be
 * @at: Its place, at a multiple of BLOCK_BYTES; from folios_reserve().
 * @nr_bytes: Its size, a multiple of BLOCK_BYTES.
 * @pages_each: Pages of a folio: a power of two, at most BLOCK_PAGES.
 * @scattered: Touch the folios in an order by @seed, not from first to last:
 * neighbours by address are then not neighbours in memory.
 * @by_pmd: A PMD maps each folio, which then has BLOCK_PAGES.
 * @nodes: A bit for each node that its memory may lie in; 0: any.
 * @all_bytes: Fill and compare every byte, not only the first word of a page.
 * @seed: Also of the contents.
 * @nr_redone: Mappings that were not as wanted, and made again.
 */
struct folios {
	char *at;
	size_t nr_bytes;
	size_t pages_each;
	bool scattered;
	bool by_pmd;
	unsigned long nodes;
	bool all_bytes;
	uint64_t seed;
	unsigned long nr_redone;
};

/**
 * folios_open() - open what the kernel shows of pages
 *
 * Return: whether it shows us page frames; to others than root it does not,
 * and then only single pages can be verified. Exits without /proc.
 */
bool folios_open(void);

/* Exit with EXIT_USAGE unless --folio-kib and --bytes have said what to map. */
void folios_check_options(const struct folios *folios);

/* Find an address for the mapping, with unused address space around it. */
void folios_reserve(struct folios *folios);

/**
 * folios_map() - map and fill the memory until it is as wanted
 * @folios: Whatever was mapped there is gone.
 * @round: Another order if scattered.
 *
 * Every folio is there whole, aligned and contiguous, it is mapped once, and
 * as wanted, and all of them lie in one VMA: else it is done again. Exits with
 * EXIT_CANNOT_RUN when that did not help either. Nodes bind only while the
 * memory is touched: afterwards it has no policy.
 */
void folios_map(struct folios *folios, unsigned long round);

/**
 * folios_mapped_by() - verify that @nr_maps processes map each page
 *
 * The kernel may be moving a page just now, so this looks again before it
 * judges. Exits with EXIT_NOT_VERIFIED for a wrong number.
 *
 * Return: false if a folio is not as folios_map() left it.
 */
bool folios_mapped_by(const struct folios *folios, unsigned int nr_maps);

/* Exit with EXIT_NOT_VERIFIED if a page is still mapped after @what. */
void folios_verify_gone(const struct folios *folios, const char *what);

/* Whether every folio is whole, in one VMA and mapped as folios_map() left it. */
bool folios_whole(const struct folios *folios);

/**
 * folios_refill() - write other contents, those of @seed, where folios are
 *
 * A page that came back to a frame it once was in may find there what it held
 * then: only new contents tell that it was copied.
 */
void folios_refill(struct folios *folios, uint64_t seed);

/* Whether every page holds what was written last. */
bool folios_hold(const struct folios *folios);

/**
 * folios_digest() - a number for the state and contents of all pages
 *
 * By address: kpageflags (those that do not depend on when one looks),
 * kpagecount, the place in its folio, and the first word. Equal states have
 * equal digests, whatever frames they lie in.
 */
uint64_t folios_digest(const struct folios *folios);

/* Give the memory back, but not the place. */
void folios_release(const struct folios *folios);

/* Pages of a folio of @kib KiB, or an exit if there are none such. */
size_t folio_pages(unsigned long kib);

/* Before anything is mapped: exit if such folios cannot be had here. */
void folios_require(const struct folios *folios, bool sees_frames);

/* What sysfs says of this size, "always [madvise] never"; "" if nothing. */
void folios_setting(const struct folios *folios, char *text, size_t text_bytes);

#endif
