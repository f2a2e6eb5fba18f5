// SPDX-License-Identifier: GPL-2.0-only
/*
 * Anonymous memory in folios of one size, moved from node to node. Compiled
 * with folios.c and program.c, statically.
 *
 *   move_folios --folio-kib K [--bytes B] [--rounds N] [--from A] [--to B]
 *               [--path PATH] [--seed S] [--back] [--alone]
 *
 * Each round, 0 to N, maps B bytes afresh, fills them on node A and moves them
 * to node B; with --back they are mapped once, and odd rounds move them back.
 * Large folios that PTEs map do not outlive that with every kernel: unmapping
 * one PTE of several, Linux 6.12.117 notes that the folio is mapped in part,
 * hands that on to the new folio, and splits it when it is moved again.
 * All pages are written before a round, and the time is of the system call:
 *
 *   move_pages      one move_pages(2), with one address for each folio
 *   mbind           one mbind(2) with MPOL_MF_MOVE
 *   migrate_pages   one migrate_pages(2) of this whole process
 *   numa_balancing  none: we run on node B and touch the pages, until they
 *                   have come; round 0 only
 *   demotion        none: other memory is put into node A until they have left
 *                   it for B, a node of a lower tier; round 0 only
 *
 * Afterwards each folio must be on the node (some of them, of the last two),
 * as large and as mapped as before, and every byte of it what was written. The
 * kernel's counters say how it came there; --alone: nobody else migrates, and
 * so pages that were migrated must be exactly those of the buffer; and whatever
 * runs meanwhile, kernel threads too, is part of the CPU time.
 *
 * Round 0 is the first of its kind in a kernel's life, and costs more.
 *
 * A line of JSON for each round. Settings are read, never written: see
 * fork_folios.c; and kernel.numa_balancing, and numa/demotion_enabled.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include "counters.h"
#include "cpu_time.h"
#include "folios.h"
#include "nodes.h"

const char *const program_name = "move_folios";

#define PROTOCOL_VERSION 1
#define COME_DEADLINE_NS (30 * 1000000000ULL)
#define COME_PAUSE_NS 20000000
#define LOOK_BYTES (8UL << 20)
#define NR_BITS (8 * sizeof(unsigned long) + 1)	/* as these calls count */

struct options;

struct path {
	const char *name;
	bool whole_buffer;	/* all of it moves, and nothing is split */
	bool this_only;		/* nothing but the buffer moves */
	void (*require)(const struct options *options);
	struct timed (*move)(struct options *options, unsigned int to);
};

struct options {
	struct folios folios;
	unsigned long rounds;
	unsigned long from, to;
	const struct path *path;
	bool back;
	bool alone;
	void **addresses;	/* of folios */
	int *targets;
	int *status;
	unsigned int nr_incomplete;	/* rounds that left folios behind */
};

static size_t nr_folios(const struct options *options)
{
	return options->folios.nr_bytes / PAGE_BYTES /
	       options->folios.pages_each;
}

/* --- Ways to move --- */

static struct timed move_by_move_pages(struct options *options, unsigned int to)
{
	size_t count = nr_folios(options);
	struct timed timed;
	long left;

	for (size_t i = 0; i < count; i++) {
		options->targets[i] = to;
		options->status[i] = -1;
	}
	timed_begin(&timed);
	left = syscall(SYS_move_pages, 0, count, options->addresses,
		       options->targets, options->status, MPOL_MF_MOVE);
	timed_end(&timed);
	if (left < 0)
		die(EXIT_FAILED, "move_pages to node %u: %s", to,
		    strerror(errno));
	for (size_t i = 0; !left && i < count; i++)
		if (options->status[i] != (int)to)
			die(EXIT_NOT_VERIFIED,
			    "move_pages says that all went well, but status[%zu] is %d, not node %u",
			    i, options->status[i], to);
	return timed;
}

static struct timed move_by_mbind(struct options *options, unsigned int to)
{
	const struct folios *folios = &options->folios;
	unsigned long nodes = 1UL << to;
	struct timed timed;
	long error;

	timed_begin(&timed);
	error = syscall(SYS_mbind, folios->at, folios->nr_bytes, MPOL_BIND, &nodes, NR_BITS,
			MPOL_MF_MOVE);
	timed_end(&timed);
	if (error)
		die(EXIT_FAILED, "mbind to node %u: %s", to, strerror(errno));
	if (syscall(SYS_mbind, folios->at, folios->nr_bytes, MPOL_DEFAULT,
		    NULL, 0, 0))
		die(EXIT_FAILED, "mbind to no node: %s", strerror(errno));
	return timed;
}

static struct timed move_by_migrate_pages(struct options *options, unsigned int to)
{
	unsigned long source = 1UL << (to == options->to ? options->from :
							   options->to);
	unsigned long target = 1UL << to;
	struct timed timed;
	long left;

	timed_begin(&timed);
	left = syscall(SYS_migrate_pages, 0, NR_BITS, &source, &target);
	timed_end(&timed);
	if (left < 0)
		die(EXIT_FAILED, "migrate_pages to node %u: %s", to,
		    strerror(errno));
	return timed;
}

static size_t nr_on(const struct options *options, unsigned int node)
{
	size_t count = nr_folios(options), found = 0;

	if (syscall(SYS_move_pages, 0, count, options->addresses, NULL,
		    options->status, 0))
		die(EXIT_FAILED, "move_pages to ask for nodes: %s",
		    strerror(errno));
	for (size_t i = 0; i < count; i++)
		found += options->status[i] == (int)node;
	return found;
}

static void require_balancing(const struct options *options)
{
	const char *mode = first_line("/proc/sys/kernel/numa_balancing");

	if (!mode)
		die(EXIT_CANNOT_RUN,
		    "numa_balancing: this kernel has none (CONFIG_NUMA_BALANCING)");
	if (!(strtoul(mode, NULL, 10) & 1))
		die(EXIT_CANNOT_RUN,
		    "numa_balancing: kernel.numa_balancing is %s, it takes 1",
		    mode);
	if (node_cpu(options->to) < 0)
		die(EXIT_CANNOT_RUN,
		    "numa_balancing: node %lu has no CPU to touch pages from",
		    options->to);
	/* Or what is written from the other node comes before we look. */
	if (node_cpu(options->from) >= 0)
		run_on_cpu(node_cpu(options->from));
}

static struct timed move_by_touching(struct options *options, unsigned int to)
{
	const struct timespec interval = { .tv_nsec = COME_PAUSE_NS };
	const char *at = options->folios.at;
	struct timed timed;

	run_on_cpu(node_cpu(to));
	timed_begin(&timed);
	do {
		for (size_t i = 0; i < options->folios.nr_bytes; i += PAGE_BYTES)
			__atomic_load_n(at + i, __ATOMIC_RELAXED);
		if (nr_on(options, to) == nr_folios(options))
			break;
		nanosleep(&interval, NULL);
	} while (now_ns() - timed.began_ns < COME_DEADLINE_NS);
	timed_end(&timed);
	return timed;
}

static void require_demotion(const struct options *options)
{
	const char *enabled = first_line("/sys/kernel/mm/numa/demotion_enabled");

	if (!enabled)
		die(EXIT_CANNOT_RUN, "demotion: this kernel has none");
	if (strcmp(enabled, "true"))
		die(EXIT_CANNOT_RUN,
		    "demotion: numa/demotion_enabled is %s, it takes true",
		    enabled);
	if (!node_is_lower(options->to, options->from))
		die(EXIT_CANNOT_RUN,
		    "demotion: node %lu is in no tier below that of node %lu",
		    options->to, options->from);
}

/*
 * MADV_PAGEOUT does not demote: reclaim_folio_list() in mm/vmscan.c. What does
 * is memory that wants to be in the same node, and more than fits: of two
 * buffers the one that was touched first, and not since, goes first.
 */
static struct timed move_by_pressure(struct options *options, unsigned int to)
{
	size_t nr_free = node_free_bytes(options->from);
	size_t nr_most = node_free_bytes(to) / 2;
	size_t nr_bytes = nr_free + nr_most;
	unsigned long nodes = 1UL << options->from;
	struct timed timed;
	FILE *refs;
	char *hog;

	if (nr_most < options->folios.nr_bytes)
		die(EXIT_CANNOT_RUN,
		    "demotion: of node %u %zu bytes are free, half of which is less than a buffer",
		    to, 2 * nr_most);
	/* What was read since it was made would count as in use. */
	refs = fopen("/proc/self/clear_refs", "we");
	if (!refs || fputs("1", refs) < 0 || fclose(refs))
		die(EXIT_CANNOT_RUN, "/proc/self/clear_refs: %s",
		    strerror(errno));
	hog = mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (hog == MAP_FAILED ||
	    syscall(SYS_mbind, hog, nr_bytes, MPOL_BIND, &nodes, NR_BITS, 0))
		die(EXIT_CANNOT_RUN, "map %zu bytes in node %lu: %s", nr_bytes,
		    options->from, strerror(errno));
	timed_begin(&timed);
	/* How much a kernel has, and how soon it reclaims, no file says. */
	for (size_t i = 0; i < nr_bytes; i += PAGE_BYTES) {
		__atomic_store_n(hog + i, 1, __ATOMIC_RELAXED);
		if (i > nr_free && !(i % LOOK_BYTES) &&
		    nr_on(options, to) == nr_folios(options))
			break;
	}
	timed_end(&timed);
	munmap(hog, nr_bytes);
	return timed;
}

static const struct path paths[] = {
	{ "move_pages", true, true, NULL, move_by_move_pages },
	{ "mbind", true, true, NULL, move_by_mbind },
	{ "migrate_pages", true, false, NULL, move_by_migrate_pages },
	{ "numa_balancing", false, false, require_balancing,
	  move_by_touching },
	{ "demotion", false, false, require_demotion, move_by_pressure },
};

#define NR_PATHS (sizeof(paths) / sizeof(paths[0]))

/* --- Rounds --- */

struct sample {
	unsigned int from, to;
	struct timed timed;
	uint64_t cpu_ns;	/* 0: not known */
	size_t nr_arrived;
	struct counters before, after;
};

static void print_sample(const struct options *options, unsigned long round,
			 const struct sample *sample)
{
	const struct folios *folios = &options->folios;

	printf("{\"op\":\"%s\",\"folio_kib\":%lu,\"round\":%lu,",
	       options->path->name, folios->pages_each * PAGE_BYTES / 1024,
	       round);
	printf("\"source\":%u,\"target\":%u,\"nr_bytes\":%zu,", sample->from, sample->to,
	       folios->nr_bytes);
	timed_print(&sample->timed);
	putchar(',');
	printf("\"nr_folios\":%zu,\"nr_arrived\":%zu,\"counters\":",
	       nr_folios(options), sample->nr_arrived);
	counters_print(&sample->before, &sample->after);
	if (sample->cpu_ns)
		printf(",\"cpu_ns\":%llu", (unsigned long long)sample->cpu_ns);
	puts(",\"verified\":true}");
	fflush(stdout);
}

static void verify(const struct options *options, const struct sample *sample)
{
	const struct folios *folios = &options->folios;
	unsigned long kib = folios->pages_each * PAGE_BYTES / 1024;
	unsigned long nr_migrated = counters_migrated(&sample->before,
						      &sample->after);
	unsigned long nr_pages = sample->nr_arrived * folios->pages_each;

	if (!folios_hold(folios))
		die(EXIT_NOT_VERIFIED,
		    "folios of %lu KiB: %s changed what we had written", kib,
		    options->path->name);
	if (!sample->nr_arrived)
		die(EXIT_FAILED, "folios of %lu KiB: none came to node %u", kib,
		    sample->to);
	if (options->alone && options->path->whole_buffer &&
	    !folios_whole(folios))
		die(EXIT_NOT_VERIFIED,
		    "folios of %lu KiB: other folios, or otherwise mapped, after %s",
		    kib, options->path->name);
	if (nr_migrated < nr_pages && options->path->whole_buffer)
		die(EXIT_NOT_VERIFIED,
		    "%lu pages have come, pgmigrate_success counts %lu",
		    nr_pages, nr_migrated);
	if (options->alone && options->path->this_only &&
	    nr_migrated != nr_pages)
		die(EXIT_NOT_VERIFIED,
		    "%lu pages have come, pgmigrate_success counts %lu, and nobody else migrates",
		    nr_pages, nr_migrated);
}

/* False if folios stayed behind, because of a reference, or were split. */
static bool take_sample(struct options *options, struct sample *sample)
{
	uint64_t began_ns, ended_ns;

	counters_read(&sample->before);
	began_ns = cpu_time_ns(options->alone);
	sample->timed = options->path->move(options, sample->to);
	ended_ns = cpu_time_ns(options->alone);
	sample->cpu_ns = ended_ns > began_ns ? ended_ns - began_ns : 0;
	counters_read(&sample->after);
	sample->nr_arrived = nr_on(options, sample->to);
	if (options->path->whole_buffer &&
	    sample->nr_arrived != nr_folios(options))
		return false;
	verify(options, sample);
	/* A folio is split if its new node has not as much in one piece. */
	return !options->path->whole_buffer || folios_whole(&options->folios);
}

static void gather(struct options *options, unsigned int node)
{
	for (int attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
		if (nr_on(options, node) == nr_folios(options))
			return;
		move_by_move_pages(options, node);
	}
	die(EXIT_CANNOT_RUN,
	    "%zu of %zu folios stay away from node %u in each of %d attempts; is its memory full?",
	    nr_folios(options) - nr_on(options, node), nr_folios(options),
	    node, MOST_ATTEMPTS);
}

static void run_round(struct options *options, unsigned long round)
{
	bool back = options->back && round % 2;
	struct sample sample = {
		.from = back ? options->to : options->from,
		.to = back ? options->from : options->to,
	};

	for (int attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
		if (!options->back || !(round || attempt))
			folios_map(&options->folios, round);
		gather(options, sample.from);
		folios_refill(&options->folios,
			      mixed(options->folios.seed + round));
		if (take_sample(options, &sample)) {
			print_sample(options, round, &sample);
			return;
		}
		options->nr_incomplete++;
		if (options->back && !folios_whole(&options->folios))
			folios_map(&options->folios, round);
	}
	die(EXIT_CANNOT_RUN,
	    "round %lu: folios stayed behind or were split in each of %d attempts; is node %u full or fragmented, or something compacting memory?",
	    round, MOST_ATTEMPTS, sample.to);
}

/* --- Words --- */

static const struct path *path_of(const char *name)
{
	for (size_t i = 0; i < NR_PATHS; i++)
		if (!strcmp(name, paths[i].name))
			return &paths[i];
	die(EXIT_USAGE,
	    "--path %s: there is move_pages, mbind, migrate_pages, numa_balancing, demotion", name);
}

static bool parse_option(void *context, const char *option, char *value)
{
	struct options *options = context;

	if (!strcmp(option, "--folio-kib"))
		options->folios.pages_each = folio_pages(number_of(option, value));
	else if (!strcmp(option, "--path"))
		options->path = path_of(value);
	else
		return false;
	return true;
}

static void parse_options(struct options *options, char **argv)
{
	const struct word words[] = {
		{ "--bytes", .number = &options->folios.nr_bytes },
		{ "--rounds", .number = &options->rounds },
		{ "--from", .number = &options->from },
		{ "--to", .number = &options->to },
		{ "--seed", .number = &options->folios.seed },
		{ "--back", .flag = &options->back },
		{ "--alone", .flag = &options->alone },
		{ }
	};

	read_words(argv, words, parse_option, options);
	folios_check_options(&options->folios);
	if (options->from == options->to)
		die(EXIT_USAGE, "--to %lu: the same node as --from",
		    options->to);
	if (options->from >= MOST_NODES || options->to >= MOST_NODES)
		die(EXIT_USAGE, "--from %lu --to %lu: nodes are below %u here",
		    options->from, options->to, MOST_NODES);
	if (!options->path->whole_buffer && options->rounds)
		die(EXIT_USAGE, "--path %s: has no rounds but 0",
		    options->path->name);
}

static void *array(size_t count, size_t each)
{
	void *at = calloc(count, each);

	if (!at)
		die(EXIT_CANNOT_RUN, "memory for %zu addresses: %s", count,
		    strerror(errno));
	return at;
}

static void make_arrays(struct options *options)
{
	size_t count = nr_folios(options);
	size_t each = options->folios.pages_each * PAGE_BYTES;

	options->addresses = array(count, sizeof(*options->addresses));
	options->targets = array(count, sizeof(*options->targets));
	options->status = array(count, sizeof(*options->status));
	for (size_t i = 0; i < count; i++)
		options->addresses[i] = options->folios.at + i * each;
}

static void say_hello(const struct options *options)
{
	struct utsname kernel;

	uname(&kernel);
	printf("{\"hello\":{\"version\":%d,\"release\":\"%s\",\"path\":\"%s\",",
	       PROTOCOL_VERSION, kernel.release, options->path->name);
	printf("\"folio_kib\":%lu,\"bytes\":%zu,\"from\":%lu,\"to\":%lu}}\n",
	       options->folios.pages_each * PAGE_BYTES / 1024,
	       options->folios.nr_bytes, options->from, options->to);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct options options = {
		.folios = { .nr_bytes = 256UL << 20, .seed = 1,
			    .all_bytes = true },
		.rounds = 0,
		.to = 1,
		.path = &paths[0],
	};

	(void)argc;
	parse_options(&options, argv);
	folios_require(&options.folios, folios_open());
	nodes_require(options.from, options.to);
	if (options.path->require)
		options.path->require(&options);
	options.folios.by_pmd = options.folios.pages_each == BLOCK_PAGES;
	options.folios.nodes = 1UL << options.from;
	folios_reserve(&options.folios);
	make_arrays(&options);
	say_hello(&options);
	for (unsigned long round = 0; round <= options.rounds; round++)
		run_round(&options, round);
	printf("{\"end\":{\"ok\":true,\"redone\":%lu,\"incomplete\":%u}}\n",
	       options.folios.nr_redone, options.nr_incomplete);
	return EXIT_SUCCESS;
}
