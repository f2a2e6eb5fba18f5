// SPDX-License-Identifier: GPL-2.0-only
/*
 * mprotect() over memory in folios of one size, every folio mapped by PTEs.
 * Compiled with pages.c, access.c, shared.c, folios.c and program.c, statically.
 *
 *   mprotect_folios --folio-kib K --to r|none [--memory private|shared]
 *                   [--call-bytes B] [--calls N] [--every N] [--rounds N]
 *                   [--seed S] [--run NAME] [--map-order contiguous|scattered]
 *                   [--displace-bytes B]
 *
 * Each round maps memory afresh, writes all of it and makes sure of what it
 * got. N ranges of B bytes lie side by side in it, each a VMA of its own. They
 * get another protection and get it back, both of which are timed:
 *
 *   --to r      rw-to-r, r-to-rw: PROT_READ, and PROT_READ | PROT_WRITE
 *   --to none   rw-to-none, none-to-rw: PROT_NONE, and PROT_READ | PROT_WRITE
 *
 * Before, the same was done once untimed, and every page was written again, as
 * in the published loops that measured this. --every N leaves one page in N, the
 * others are given back. Caches hold what that left there, unless
 * --displace-bytes has as much other memory written before each change.
 *
 * A line of JSON for each change, once all that belongs to it is verified: each
 * page is used, and that is refused or allowed as the protection says; frames,
 * pages that are not there, and what smaps says of VMAs, memory and what of it
 * was written, are as before; so are contents. With r-to-rw and none-to-rw come
 * `write_faults`, how many faults writing to each page took, and
 * `soft_dirtied`, how many pages the kernel takes for written after a change
 * there and back, though nobody wrote; null, if it tells nobody.
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
#include "pages.h"
#include "shared.h"

const char *const program_name = "mprotect_folios";

#define PROTOCOL_VERSION 1
#define READ_WRITE (PROT_READ | PROT_WRITE)

struct options {
	struct folios folios;
	const char *run;
	size_t call_bytes, nr_calls, every, displace_bytes;
	unsigned long rounds;
	bool shared, to_none;
};

/* Of one mapping. */
struct samples {
	struct timed protect, restore;
	long write_faults;
	bool notes_writes;
	size_t soft_dirtied;
};

static struct pages pages;	/* of the ranges, as they were */

static size_t ranges_bytes(const struct options *options)
{
	return options->call_bytes * options->nr_calls;
}

static void change(const struct options *options, int protection)
{
	char *at = options->folios.at;

	for (size_t i = 0; i < options->nr_calls; i++)
		if (mprotect(at + i * options->call_bytes, options->call_bytes,
			     protection))
			die(EXIT_FAILED, "mprotect: %s", strerror(errno));
}

static void change_timed(const struct options *options, int protection,
			 struct timed *timed)
{
	caches_displace();
	timed_begin(timed);
	change(options, protection);
	timed_end(timed);
}

static void advise(char *at, size_t nr_bytes, int advice)
{
	if (madvise(at, nr_bytes, advice))
		die(EXIT_FAILED, "madvise %d: %s", advice, strerror(errno));
}

/*
 * A VMA for each range: neighbours differ in what a fork() would do, and so does
 * the last of them from the rest of the mapping.
 */
static void split_vmas(const struct options *options)
{
	const struct folios *folios = &options->folios;

	for (size_t i = 1 - options->nr_calls % 2; i < options->nr_calls; i += 2)
		advise(folios->at + i * options->call_bytes,
		       options->call_bytes, MADV_DONTFORK);
}

static void make_holes(const struct options *options)
{
	for (size_t page = 0; page < pages.nr; page++)
		if (page % options->every)
			advise(options->folios.at + page * PAGE_BYTES,
			       PAGE_BYTES, MADV_DONTNEED);
}

static void map(struct options *options, unsigned long round)
{
	if (options->shared)
		shared_map(&options->folios);
	else
		folios_map(&options->folios, round);
	split_vmas(options);
	if (options->every > 1)
		make_holes(options);
	pages_look(&pages, options->folios.at);
	if (pages_there(&pages, 0, pages.nr) !=
	    (pages.nr + options->every - 1) / options->every)
		die(EXIT_FAILED, "other pages are there than were left");
}

static bool verify(const struct options *options, int protection,
		   const char *what)
{
	const struct folios *folios = &options->folios;
	enum access access = protection == PROT_NONE ? MAY_NOTHING :
			     protection == PROT_READ ? MAY_READ : MAY_WRITE;
	char perms[] = "---p";
	const struct mapped wanted = {
		.nr_vmas = options->nr_calls,
		.nr_bytes = ranges_bytes(options),
		.perms = perms,
		.kib = pages_there(&pages, 0, pages.nr) * PAGE_BYTES / 1024,
	};

	perms[0] = protection & PROT_READ ? 'r' : '-';
	perms[1] = protection & PROT_WRITE ? 'w' : '-';
	perms[3] = options->shared ? 's' : 'p';
	pages_may(&pages, 0, pages.nr, folios->at, access, what);
	pages_mapped_as(folios->at, ranges_bytes(options), &wanted, what);
	if (protection != PROT_NONE)
		pages_hold(&pages, 0, pages.nr, folios->at, what);
	return pages_are_at(&pages, 0, pages.nr, folios->at, what);
}

/* Nobody writes here, and a page that is alone in its folio is in no batch. */
static void look_for_soft_dirt(const struct options *options,
			       struct samples *samples, int protection)
{
	samples->notes_writes = pages_forget_writes();
	if (!samples->notes_writes)
		return;
	change(options, protection);
	change(options, READ_WRITE);
	samples->soft_dirtied = pages_written(options->folios.at, pages.nr);
	if (samples->soft_dirtied && options->folios.pages_each == 1)
		die(EXIT_NOT_VERIFIED,
		    "%zu single pages are soft-dirty, and nobody wrote",
		    samples->soft_dirtied);
}

/* Returns false if the kernel moved pages meanwhile. */
static bool do_changes(const struct options *options, struct samples *samples)
{
	int protection = options->to_none ? PROT_NONE : PROT_READ;
	char *at = options->folios.at;
	bool good;

	change(options, protection);
	change(options, READ_WRITE);
	pages_may(&pages, 0, pages.nr, at, MAY_WRITE, "a first change");

	change_timed(options, protection, &samples->protect);
	good = verify(options, protection,
		      options->to_none ? "PROT_NONE" : "PROT_READ");

	change_timed(options, READ_WRITE, &samples->restore);
	samples->write_faults = pages_may(&pages, 0, pages.nr, at, MAY_WRITE,
					  "PROT_WRITE");
	good = verify(options, READ_WRITE, "PROT_WRITE") && good;
	if (good)
		look_for_soft_dirt(options, samples, protection);
	return good;
}

static void print_sample(const struct options *options, unsigned long round,
			 const char *op, const struct timed *timed)
{
	printf("{\"run\":\"%s\",\"folio_kib\":%lu,\"round\":%lu,\"op\":\"%s\",",
	       options->run, options->folios.pages_each * PAGE_BYTES / 1024,
	       round, op);
	timed_print(timed);
	printf(",\"nr_ptes\":%zu,\"verified\":true", pages.nr);
}

static void print_samples(const struct options *options, unsigned long round,
			  const struct samples *samples)
{
	print_sample(options, round, options->to_none ? "rw-to-none" : "rw-to-r",
		     &samples->protect);
	puts("}");
	print_sample(options, round, options->to_none ? "none-to-rw" : "r-to-rw",
		     &samples->restore);
	printf(",\"write_faults\":%ld,\"soft_dirtied\":",
	       samples->write_faults);
	printf(samples->notes_writes ? "%zu}\n" : "null}\n",
	       samples->soft_dirtied);
	fflush(stdout);
}

static void run_round(struct options *options, unsigned long round)
{
	for (int attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
		struct samples samples = { 0 };
		bool good;

		map(options, round);
		good = do_changes(options, &samples);
		folios_release(&options->folios);
		if (good) {
			print_samples(options, round, &samples);
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
	else if (!strcmp(option, "--to"))
		options->to_none = one_of(option, value, "none", "r");
	else if (!strcmp(option, "--memory"))
		options->shared = one_of(option, value, "shared", "private");
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
	if (!options->nr_calls || !options->every)
		die(EXIT_USAGE, "--calls and --every: at least 1");
	caches_check_option(options->displace_bytes);
	if (options->shared && folios->scattered)
		die(EXIT_USAGE, "--map-order scattered: of private memory");
	folios->nr_bytes = ranges_bytes(options) + BLOCK_BYTES - 1;
	folios->nr_bytes -= folios->nr_bytes % BLOCK_BYTES;
	folios_check_options(folios);
}

static void prepare(struct options *options)
{
	bool sees_frames = folios_open();

	folios_require(&options->folios, sees_frames);
	if (options->shared)
		shared_require(&options->folios);
	caches_prepare(options->displace_bytes);
	pages_prepare(&pages, ranges_bytes(options) / PAGE_BYTES);
	folios_reserve(&options->folios);
	printf("{\"hello\":{\"version\":%d,\"folio_kib\":%lu,\"memory\":\"%s\",",
	       PROTOCOL_VERSION, options->folios.pages_each * PAGE_BYTES / 1024,
	       options->shared ? "shared" : "private");
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
		.call_bytes = 4 << 20,
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
