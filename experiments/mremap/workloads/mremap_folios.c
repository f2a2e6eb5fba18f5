// SPDX-License-Identifier: GPL-2.0-only
/*
 * mremap() of anonymous memory in folios of one size, every folio mapped by
 * PTEs. Compiled with pages.c and access.c of mprotect, folios.c and program.c,
 * statically.
 *
 *   mremap_folios --folio-kib K [--layout one-table|two-tables]
 *                 [--call-bytes B] [--calls N] [--every N] [--rounds N]
 *                 [--seed S] [--run NAME] [--map-order contiguous|scattered]
 *                 [--displace-bytes B]
 *
 * Each round maps memory afresh, writes all of it, makes sure of what it got,
 * and leaves N ranges of B bytes of it, each a VMA of its own. Each moves to a
 * place where nothing is mapped, which is timed for all together:
 *
 *   one-table    to the B bytes behind it, within what a page table maps
 *   two-tables   from the last quarter of what a page table maps to the second
 *                quarter of what another does, so that no whole table can move
 *
 * --every N leaves one page in N, the others are given back. Caches hold what
 * verification left there, unless --displace-bytes has as much other memory
 * written before.
 *
 * A line of JSON for each round, once all that belongs to it is verified: at the
 * old place nothing is mapped, and use is refused; at the new one are as many
 * VMAs, whose pages have the frames, holes and contents that they had, and can
 * be read and written; `write_faults` says how many faults that took. A kernel
 * that notes writes takes what was moved for written, which is verified, too;
 * then all moves back, and is verified again.
 *
 * Settings are read, never written, as in fork_folios.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "caches.h"
#include "folios.h"
#include "../../mprotect/workloads/pages.h"

const char *const program_name = "mremap_folios";

#define PROTOCOL_VERSION 1
#define FROM_WITHIN (BLOCK_BYTES / 4 * 3)	/* in its page table */
#define TO_WITHIN (BLOCK_BYTES / 4)

struct options {
	struct folios folios;
	const char *run;
	size_t call_bytes, nr_calls, every, displace_bytes;
	unsigned long rounds;
	bool one_table;
};

static char *elsewhere;
static struct pages pages;	/* of the whole mapping, as they were */

/* From one range to the next, at either place. */
static size_t stride(const struct options *options)
{
	if (options->one_table)
		return 2 * options->call_bytes;
	return (options->call_bytes + FROM_WITHIN + BLOCK_BYTES - 1) /
	       BLOCK_BYTES * BLOCK_BYTES;
}

static size_t offset(const struct options *options, size_t number)
{
	return number * stride(options) +
	       (options->one_table ? 0 : FROM_WITHIN);
}

static char *old_place(const struct options *options, size_t number)
{
	return options->folios.at + offset(options, number);
}

static char *new_place(const struct options *options, size_t number)
{
	if (options->one_table)
		return old_place(options, number) + options->call_bytes;
	return elsewhere + number * stride(options) + TO_WITHIN;
}

static size_t first_page(const struct options *options, size_t number)
{
	return offset(options, number) / PAGE_BYTES;
}

static void unmap(char *from, const char *to)
{
	if (to > from && munmap(from, to - from))
		die(EXIT_FAILED, "munmap: %s", strerror(errno));
}

static void make_holes(const struct options *options)
{
	for (size_t page = 0; page < pages.nr; page++)
		if (page % options->every &&
		    madvise(options->folios.at + page * PAGE_BYTES, PAGE_BYTES,
			    MADV_DONTNEED))
			die(EXIT_FAILED, "MADV_DONTNEED: %s", strerror(errno));
}

/* Unmap what is in no range, new places among it. */
static void leave_ranges(const struct options *options)
{
	char *at = options->folios.at;

	for (size_t i = 0; i < options->nr_calls; i++) {
		unmap(at, old_place(options, i));
		at = old_place(options, i) + options->call_bytes;
	}
	unmap(at, options->folios.at + options->folios.nr_bytes);
	if (!options->one_table)
		unmap(elsewhere, elsewhere + options->nr_calls * stride(options));
}

static void move(const struct options *options, bool back)
{
	size_t nr_bytes = options->call_bytes;

	for (size_t i = 0; i < options->nr_calls; i++) {
		char *from = old_place(options, i), *to = new_place(options, i);

		if (mremap(back ? to : from, nr_bytes, nr_bytes,
			   MREMAP_MAYMOVE | MREMAP_FIXED,
			   back ? from : to) == MAP_FAILED)
			die(EXIT_FAILED, "mremap: %s", strerror(errno));
	}
}

/* Whether a range is at @at, as it was; false if the kernel moved pages. */
static bool is_there(const struct options *options, size_t number, char *at,
		     const char *what, long *write_faults)
{
	size_t nr = options->call_bytes / PAGE_BYTES;
	size_t first = first_page(options, number);

	*write_faults += pages_may(&pages, first, nr, at, MAY_WRITE, what);
	pages_hold(&pages, first, nr, at, what);
	return pages_are_at(&pages, first, nr, at, what);
}

static bool verify(const struct options *options, bool back, const char *what,
		   long *write_faults)
{
	bool at_home = back || options->one_table;
	size_t nr = options->call_bytes / PAGE_BYTES;
	struct mapped wanted = {
		.nr_vmas = options->nr_calls,
		.nr_bytes = options->nr_calls * options->call_bytes,
		.perms = "rw-p",
	};
	bool good = true;

	for (size_t i = 0; i < options->nr_calls; i++) {
		char *from = old_place(options, i), *to = new_place(options, i);

		pages_may(&pages, first_page(options, i), nr, back ? to : from,
			  MAY_NOTHING, what);
		pages_verify_gone(back ? to : from, nr, what);
		good &= is_there(options, i, back ? from : to, what,
				 write_faults);
		wanted.kib += pages_there(&pages, first_page(options, i), nr) *
			      PAGE_BYTES / 1024;
	}
	pages_mapped_as(at_home ? options->folios.at : elsewhere,
			at_home ? options->folios.nr_bytes :
				  options->nr_calls * stride(options),
			&wanted, what);
	return good;
}

/* An incremental checkpoint has to save what has another address. */
static void verify_noted(const struct options *options)
{
	size_t nr = options->call_bytes / PAGE_BYTES;

	for (size_t i = 0; i < options->nr_calls; i++) {
		size_t there = pages_there(&pages, first_page(options, i), nr);
		size_t noted = pages_written(old_place(options, i), nr);

		if (noted != there)
			die(EXIT_NOT_VERIFIED,
			    "%zu of %zu pages that were moved are soft-dirty",
			    noted, there);
	}
}

/* Returns false if the kernel moved pages of itself meanwhile. */
static bool do_moves(const struct options *options, struct timed *timed,
		     long *write_faults)
{
	long more = 0;
	bool notes;

	caches_displace();
	timed_begin(timed);
	move(options, false);
	timed_end(timed);
	*write_faults = 0;
	if (!verify(options, false, "mremap()", write_faults))
		return false;
	notes = pages_forget_writes();
	move(options, true);
	if (notes)
		verify_noted(options);
	return verify(options, true, "mremap() back", &more);
}

static void reserve_elsewhere(const struct options *options)
{
	size_t room = options->nr_calls * stride(options) + 2 * BLOCK_BYTES;
	char *at = elsewhere;
	int fixed = at ? MAP_FIXED : 0;

	at = mmap(at, room, PROT_NONE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
	if (at == MAP_FAILED)
		die(EXIT_CANNOT_RUN, "reserve %zu bytes: %s", room,
		    strerror(errno));
	if (!fixed)
		at += BLOCK_BYTES - (uintptr_t)at % BLOCK_BYTES;
	elsewhere = at;
}

static void print_sample(const struct options *options, unsigned long round,
			 const struct timed *timed, long write_faults)
{
	printf("{\"run\":\"%s\",\"folio_kib\":%lu,\"round\":%lu,\"op\":\"move\",",
	       options->run, options->folios.pages_each * PAGE_BYTES / 1024,
	       round);
	timed_print(timed);
	printf(",\"nr_ptes\":%zu,\"verified\":true,\"write_faults\":%ld}\n",
	       options->nr_calls * options->call_bytes / PAGE_BYTES,
	       write_faults);
	fflush(stdout);
}

static void run_round(struct options *options, unsigned long round)
{
	for (int attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
		struct timed timed;
		long write_faults;
		bool good;

		folios_map(&options->folios, round);
		if (options->every > 1)
			make_holes(options);
		pages_look(&pages, options->folios.at);
		leave_ranges(options);
		good = do_moves(options, &timed, &write_faults);
		folios_release(&options->folios);
		if (!options->one_table)
			reserve_elsewhere(options);
		if (good) {
			print_sample(options, round, &timed, write_faults);
			return;
		}
		options->folios.nr_redone++;
	}
	die(EXIT_CANNOT_RUN,
	    "round %lu: the kernel moved pages in each of %d attempts; is something compacting memory?",
	    round, MOST_ATTEMPTS);
}

static bool parse_option(void *context, const char *option, char *value)
{
	struct options *options = context;

	if (!strcmp(option, "--folio-kib"))
		options->folios.pages_each = folio_pages(number_of(option, value));
	else if (!strcmp(option, "--layout"))
		options->one_table = one_of(option, value, "one-table",
					    "two-tables");
	else if (!strcmp(option, "--map-order"))
		options->folios.scattered = one_of(option, value, "scattered",
						   "contiguous");
	else
		return false;
	return true;
}

static void parse_options(struct options *options, char **argv)
{
	const struct word words[] = {
		{ "--call-bytes", .number = &options->call_bytes },
		{ "--calls", .number = &options->nr_calls },
		{ "--every", .number = &options->every },
		{ "--rounds", .number = &options->rounds },
		{ "--seed", .number = &options->folios.seed },
		{ "--run", .text = &options->run },
		{ "--displace-bytes", .number = &options->displace_bytes },
		{ }
	};
	struct folios *folios = &options->folios;

	read_words(argv, words, parse_option, options);
	if (!options->call_bytes || options->call_bytes % PAGE_BYTES)
		die(EXIT_USAGE, "--call-bytes %zu: not a multiple of 4096",
		    options->call_bytes);
	if (options->one_table && BLOCK_BYTES % (2 * options->call_bytes))
		die(EXIT_USAGE, "--call-bytes %zu: no power of two up to 1 MiB",
		    options->call_bytes);
	if (!options->nr_calls || !options->every)
		die(EXIT_USAGE, "--calls and --every: at least 1");
	caches_check_option(options->displace_bytes);
	folios->nr_bytes = options->nr_calls * stride(options) + BLOCK_BYTES - 1;
	folios->nr_bytes -= folios->nr_bytes % BLOCK_BYTES;
	folios_check_options(folios);
}

static void prepare(struct options *options)
{
	bool sees_frames = folios_open();

	folios_require(&options->folios, sees_frames);
	caches_prepare(options->displace_bytes);
	pages_prepare(&pages, options->folios.nr_bytes / PAGE_BYTES);
	folios_reserve(&options->folios);
	if (!options->one_table)
		reserve_elsewhere(options);
	printf("{\"hello\":{\"version\":%d,\"folio_kib\":%lu,\"layout\":\"%s\",",
	       PROTOCOL_VERSION, options->folios.pages_each * PAGE_BYTES / 1024,
	       options->one_table ? "one-table" : "two-tables");
	printf("\"call_bytes\":%zu,\"calls\":%zu,\"every\":%zu,\"frames\":%s}}\n",
	       options->call_bytes, options->nr_calls, options->every,
	       sees_frames ? "true" : "false");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct options options = {
		.folios = { .seed = 1 },
		.run = "",
		.call_bytes = 1 << 20,
		.nr_calls = 1,
		.every = 1,
		.rounds = 1,
	};

	(void)argc;
	parse_options(&options, argv);
	prepare(&options);
	for (unsigned long round = 0; round < options.rounds; round++)
		run_round(&options, round);
	printf("{\"end\":{\"ok\":true,\"redone\":%lu}}\n",
	       options.folios.nr_redone);
	return EXIT_SUCCESS;
}
