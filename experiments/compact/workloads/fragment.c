// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of a node in small pages with holes between them, so that no huge page
 * is free in it, and many can be made by moving pages. Compiled with counters.c,
 * holes.c, nodes.c and program.c, statically.
 *
 *   fragment --bytes N [--node N] [--seed N] [--hole-every N | --used-every N]
 *            [--scattered] [--oom-score N]
 *
 *   --bytes N        of the buffer, touched whole, a multiple of 2 MiB; 0:
 *                    nearly all that is free in the node
 *   --node N         where it lies; without it, anywhere
 *   --seed N         of the contents, and of where holes are: 1
 *   --hole-every N   every Nth page is given back: 2
 *   --used-every N   the other way round: all but every Nth page are
 *   --scattered      not the Nth, but any one of each N. Else all holes may come
 *                    to lie in frames of one parity, whichever it is, and a
 *                    scanner that looks at every 32nd frame sees all or none
 *   --oom-score N    -1000: is never killed for memory; 1000: the first: 1000
 *
 * It says {"ready":...} when every hole is made, and then obeys lines on its
 * standard input:
 *
 *   counters   {"counters":{...}}: by how much each has grown since the last
 *              time, or since it was ready; workloads/counters.c names them
 *   verify     {"verify":{"wrong_words":...}}: compares every word of every page
 *   poke       changes a word, so that a test sees that it is seen
 *   quit       or the end of input: frees all, and says {"end":...
 *
 * It exits with 5 if a word was ever wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "counters.h"
#include "holes.h"
#include "nodes.h"
#include "program.h"

const char *const program_name = "fragment";

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define MPOL_BIND 2
#define NR_BITS (8 * sizeof(unsigned long) + 1)	/* as mbind(2) counts */
#define NO_NODE MOST_NODES

/*
 * What --bytes 0 leaves free of a node, over what its zones reclaim at: lists
 * of free pages of the CPUs, and what a kernel may yet want there.
 */
#define LEFT_BYTES (8UL << 20)

#define LINE_ROOM 64
#define MOST_OOM_SCORE 1000

struct options {
	size_t nr_bytes;
	unsigned long node;
	uint64_t seed;
	unsigned long hole_every;
	unsigned long used_every;
	bool scattered;
	long oom_score;
};

/* --- The buffer --- */

static void check_room(const struct options *options)
{
	size_t nr_free = node_free_bytes(options->node);
	size_t nr_usable = nr_free - node_reserve_bytes(options->node);

	if (nr_usable > nr_free || nr_usable < options->nr_bytes)
		die(EXIT_CANNOT_RUN,
		    "--bytes %zu: of node %lu %zu bytes are free, of which the kernel reclaims the last %zu",
		    options->nr_bytes, options->node, nr_free,
		    node_reserve_bytes(options->node));
}

/* Nearly all that is free: to the last pages, and the kernel would reclaim. */
static size_t fitting_bytes(unsigned int node)
{
	size_t nr_free = node_free_bytes(node);
	size_t nr_left = node_reserve_bytes(node) + LEFT_BYTES;

	if (nr_free < nr_left + BLOCK_BYTES)
		die(EXIT_CANNOT_RUN,
		    "node %u: %zu bytes are free, and %zu are to be left", node,
		    nr_free, nr_left);
	return (nr_free - nr_left) / BLOCK_BYTES * BLOCK_BYTES;
}

static void bind_to(void *at, size_t nr_bytes, unsigned int node)
{
	unsigned long nodes = 1UL << node;

	if (syscall(SYS_mbind, at, nr_bytes, MPOL_BIND, &nodes, NR_BITS, 0))
		die(EXIT_CANNOT_RUN, "--node %u: %s", node, strerror(errno));
}

/* All of it is touched before the first hole is made: a hole would be filled. */
static void make(struct holes *holes, const struct options *options)
{
	size_t nr_bytes = options->nr_bytes;

	*holes = (struct holes){
		.at = holes_map(nr_bytes),
		.nr_pages = nr_bytes / PAGE_BYTES,
		.hole_every = options->used_every ? options->used_every :
						    options->hole_every,
		.few_used = options->used_every,
		.scattered = options->scattered,
		.seed = options->seed,
	};
	if (options->node != NO_NODE)
		bind_to(holes->at, nr_bytes, options->node);
	/* A kernel without huge pages refuses, and that is as well. */
	madvise(holes->at, nr_bytes, MADV_NOHUGEPAGE);
	if (madvise(holes->at, nr_bytes, MADV_POPULATE_WRITE))
		die(EXIT_CANNOT_RUN, "touch %zu bytes: %s", nr_bytes,
		    strerror(errno));
	holes_make(holes, 0, holes->nr_pages);
}

/* --- Words --- */

static long oom_score_of(const char *option, const char *text)
{
	bool is_negative = *text == '-';
	long score = number_of(option, text + is_negative);

	if (score > MOST_OOM_SCORE)
		die(EXIT_USAGE, "%s %s: -%d to %d", option, text,
		    MOST_OOM_SCORE, MOST_OOM_SCORE);
	return is_negative ? -score : score;
}

static bool parse_oom_score(void *context, const char *option, char *value)
{
	struct options *options = context;

	if (strcmp(option, "--oom-score"))
		return false;
	options->oom_score = oom_score_of(option, value);
	return true;
}

static void parse_options(struct options *options, char **argv)
{
	const struct word words[] = {
		{ "--bytes", .number = &options->nr_bytes },
		{ "--node", .number = &options->node },
		{ "--seed", .number = &options->seed },
		{ "--hole-every", .number = &options->hole_every },
		{ "--used-every", .number = &options->used_every },
		{ "--scattered", .flag = &options->scattered },
		{ }
	};

	read_words(argv, words, parse_oom_score, options);
	if (options->nr_bytes % BLOCK_BYTES)
		die(EXIT_USAGE, "--bytes %zu: not a multiple of 2 MiB",
		    options->nr_bytes);
	if (options->node > NO_NODE)
		die(EXIT_USAGE, "--node %lu: nodes are below %u here",
		    options->node, MOST_NODES);
	if (options->hole_every < 2)
		die(EXIT_USAGE, "--hole-every %lu: at least 2",
		    options->hole_every);
	if (options->used_every == 1)
		die(EXIT_USAGE, "--used-every 1: at least 2");
	if (options->nr_bytes)
		return;
	if (options->node == NO_NODE)
		die(EXIT_USAGE, "--bytes 0: of which node? give --node, too");
}

static void say_ready(const struct holes *holes)
{
	printf("{\"ready\":{\"resident_pages\":%zu,\"bytes\":%zu}}\n",
	       holes_nr_resident(holes), holes->nr_pages * PAGE_BYTES);
	fflush(stdout);
}

static void say_counters(struct counters *last)
{
	struct counters now;

	counters_read(&now);
	fputs("{\"counters\":", stdout);
	counters_print(last, &now);
	puts("}");
	/* Before the flush: the reader of the line may go on at once. */
	*last = now;
	fflush(stdout);
}

static bool say_verified(const struct holes *holes)
{
	struct holes_finding wrong = holes_verify(holes);

	printf("{\"verify\":{\"wrong_words\":%zu,\"pages\":%zu,\"first_wrong\":",
	       wrong.nr_words, holes_nr_resident(holes));
	if (wrong.nr_words)
		printf("{\"page\":%zu,\"word\":%zu}}}\n", wrong.page,
		       wrong.word);
	else
		puts("null}}");
	fflush(stdout);
	if (wrong.nr_words)
		fprintf(stderr,
			"fragment: %zu words are not as they were written, the first is word %zu of page %zu\n",
			wrong.nr_words, wrong.word, wrong.page);
	return !wrong.nr_words;
}

/* In the last page that stays. */
static void change_word(const struct holes *holes)
{
	size_t page = holes->nr_pages - 1;

	while (holes_is_hole(holes, page))
		page--;
	holes->at[page * PAGE_WORDS + PAGE_WORDS / 2]++;
	puts("{\"poke\":{\"words\":1}}");
	fflush(stdout);
}

/* Return: whether every word was right, whenever it was asked for. */
static bool obey(const struct holes *holes)
{
	struct counters last;
	char line[LINE_ROOM];
	bool ok = true;

	counters_read(&last);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strcmp(line, "quit"))
			break;
		if (!strcmp(line, "counters"))
			say_counters(&last);
		else if (!strcmp(line, "verify"))
			ok &= say_verified(holes);
		else if (!strcmp(line, "poke"))
			change_word(holes);
		else
			die(EXIT_USAGE,
			    "%s: not a word of ours; counters, verify, poke, quit are",
			    line);
	}
	return ok;
}

int main(int argc, char **argv)
{
	struct options options = {
		.node = NO_NODE,
		.seed = 1,
		.hole_every = 2,
		.oom_score = 1000,
	};
	struct holes holes;

	(void)argc;
	parse_options(&options, argv);
	set_oom_score(options.oom_score);
	if (!options.nr_bytes)
		options.nr_bytes = fitting_bytes(options.node);
	else if (options.node != NO_NODE)
		check_room(&options);
	make(&holes, &options);
	say_ready(&holes);
	if (!obey(&holes))
		return EXIT_NOT_VERIFIED;
	munmap(holes.at, holes.nr_pages * PAGE_BYTES);
	printf("{\"end\":{\"ok\":true,\"resident_pages\":%zu}}\n",
	       holes_nr_resident(&holes));
	return EXIT_SUCCESS;
}
