// SPDX-License-Identifier: GPL-2.0-only
/*
 * fork(), munmap() and MADV_DONTNEED over anonymous memory in folios of one
 * size, every folio mapped by PTEs. Compiled with folios.c and program.c,
 * statically.
 *
 *   fork_folios --folio-kib K [--bytes B] [--rounds N] [--ops OP,OP...]
 *               [--seed S] [--map-order contiguous|scattered]
 *               [--displace-bytes B] [--check-contents] [--digest]
 *
 * Each round maps B bytes afresh, fills them, and makes sure of what it got
 * before any clock starts. Three mappings, in random order, serve the OPs:
 *
 *   fork            fork() over the fresh mapping
 *   exit            that child's _exit(), until we have reaped it
 *   refork          the next fork(): PTEs are read-only, pages not exclusive
 *   munmap-shared   munmap() while the child of refork maps it, too
 *
 *   munmap          of a fresh mapping that nobody else maps
 *
 *   dontneed        MADV_DONTNEED of all of a fresh mapping
 *
 * A child waits until we have taken the time, so its exit is not in fork.
 * The caches hold what verification left there, of struct pages above all,
 * unless --displace-bytes has as much other memory written before each OP.
 *
 * A line of JSON for each sample, once all that belongs to it is verified:
 * after a fork two processes map each page, after the child's end one does;
 * with --check-contents, parent and child read what was written.
 *
 * Settings are read, never written: the caller chooses the size with
 * /sys/kernel/mm/transparent_hugepage/hugepages-<K>kB/enabled = madvise, and
 * never for all others: a fault takes the largest that it may. Only root sees
 * page frames; others can have 4 KiB only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include "caches.h"
#include "folios.h"

const char *const program_name = "fork_folios";

#define PROTOCOL_VERSION 1
#define NR_BARE_FORKS 5
#define THP "/sys/kernel/mm/transparent_hugepage"

enum op {
	OP_FORK,
	OP_EXIT,
	OP_REFORK,
	OP_MUNMAP_SHARED,
	OP_MUNMAP,
	OP_DONTNEED,
	NR_OPS,
};

static const char *const op_names[NR_OPS] = {
	[OP_FORK] = "fork",
	[OP_EXIT] = "exit",
	[OP_REFORK] = "refork",
	[OP_MUNMAP_SHARED] = "munmap-shared",
	[OP_MUNMAP] = "munmap",
	[OP_DONTNEED] = "dontneed",
};

struct options {
	struct folios folios;
	unsigned long rounds;
	size_t displace_bytes;
	bool wanted[NR_OPS];
	bool check_contents;
	bool digest;
};

struct samples {
	struct timed timed[NR_OPS];
	uint64_t digest;	/* after fork */
};

static struct timed *child_left;	/* shared with children */

struct child {
	pid_t pid;
	int release_fd;		/* a byte lets it go: whether to check first */
};

/* Time a fork() whose child then waits; if we end, it ends. */
static struct child fork_waiting(const struct options *options,
				 struct timed *timed)
{
	struct child child;
	char check = 0;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		die(EXIT_FAILED, "pipe: %s", strerror(errno));
	child.release_fd = ends[1];
	timed_begin(timed);
	child.pid = fork();
	if (!child.pid) {
		close(ends[1]);
		if (read(ends[0], &check, 1) == 1 && check &&
		    !folios_hold(&options->folios))
			_exit(EXIT_NOT_VERIFIED);
		timed_begin(child_left);
		_exit(EXIT_SUCCESS);
	}
	timed_end(timed);
	close(ends[0]);
	if (child.pid < 0)
		die(EXIT_CANNOT_RUN, "fork: %s", strerror(errno));
	return child;
}

/* Let a child go; returns the time from its _exit() until it is reaped. */
static struct timed reap(struct child waiting, bool check)
{
	char word = check;
	int status;

	if (write(waiting.release_fd, &word, 1) != 1 ||
	    waitpid(waiting.pid, &status, 0) != waiting.pid)
		die(EXIT_FAILED, "a child is lost: %s", strerror(errno));
	timed_end(child_left);
	close(waiting.release_fd);
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NOT_VERIFIED)
		die(EXIT_NOT_VERIFIED, "a child reads other than was written");
	if (status)
		die(EXIT_FAILED, "a child ended with wait status %d", status);
	return *child_left;
}

static void time_munmap(const struct options *options, struct timed *timed)
{
	const struct folios *folios = &options->folios;
	int error;

	caches_displace();
	timed_begin(timed);
	error = munmap(folios->at, folios->nr_bytes);
	timed_end(timed);
	if (error)
		die(EXIT_FAILED, "munmap: %s", strerror(errno));
	folios_verify_gone(folios, "munmap()");
}

static bool after_fork(const struct options *options)
{
	bool good = folios_mapped_by(&options->folios, 2);

	if (options->check_contents && !folios_hold(&options->folios))
		die(EXIT_NOT_VERIFIED, "fork() changed what we had written");
	return good;
}

/* This and the next two return false if the kernel moved pages meanwhile. */
static bool do_forks(const struct options *options, struct samples *samples)
{
	const bool *wanted = options->wanted;
	struct timed *timed = samples->timed;
	struct child child;
	bool good;

	caches_displace();
	child = fork_waiting(options, &timed[OP_FORK]);
	good = after_fork(options);
	if (options->digest)
		samples->digest = folios_digest(&options->folios);
	caches_displace();
	timed[OP_EXIT] = reap(child, options->check_contents);
	good = good && folios_mapped_by(&options->folios, 1);
	if (!good || !(wanted[OP_REFORK] || wanted[OP_MUNMAP_SHARED]))
		return good;

	caches_displace();
	child = fork_waiting(options, &timed[OP_REFORK]);
	good = after_fork(options);
	if (good && wanted[OP_MUNMAP_SHARED])
		time_munmap(options, &timed[OP_MUNMAP_SHARED]);
	reap(child, options->check_contents);
	return good;
}

static bool do_munmap(const struct options *options, struct samples *samples)
{
	time_munmap(options, &samples->timed[OP_MUNMAP]);
	return true;
}

static bool do_dontneed(const struct options *options, struct samples *samples)
{
	const struct folios *folios = &options->folios;
	struct timed *timed = &samples->timed[OP_DONTNEED];
	int error;

	caches_displace();
	timed_begin(timed);
	error = madvise(folios->at, folios->nr_bytes, MADV_DONTNEED);
	timed_end(timed);
	if (error)
		die(EXIT_FAILED, "MADV_DONTNEED: %s", strerror(errno));
	folios_verify_gone(folios, "MADV_DONTNEED");
	return true;
}

struct mapping {
	enum op first, last;	/* what it serves */
	bool (*run)(const struct options *options, struct samples *samples);
};

static const struct mapping mappings[] = {
	{ OP_FORK, OP_MUNMAP_SHARED, do_forks },
	{ OP_MUNMAP, OP_MUNMAP, do_munmap },
	{ OP_DONTNEED, OP_DONTNEED, do_dontneed },
};

#define NR_MAPPINGS (sizeof(mappings) / sizeof(mappings[0]))

static void print_samples(const struct options *options,
			  const struct mapping *mapping, unsigned long round,
			  const struct samples *samples)
{
	const struct folios *folios = &options->folios;

	for (enum op op = mapping->first; op <= mapping->last; op++) {
		if (!options->wanted[op])
			continue;
		printf("{\"folio_kib\":%lu,\"round\":%lu,\"op\":\"%s\",",
		       folios->pages_each * PAGE_BYTES / 1024, round,
		       op_names[op]);
		timed_print(&samples->timed[op]);
		printf(",\"nr_ptes\":%lu,\"verified\":true", folios->nr_bytes / PAGE_BYTES);
		if (options->digest && op == OP_FORK)
			printf(",\"digest\":\"%016llx\"",
			       (unsigned long long)samples->digest);
		puts("}");
	}
	fflush(stdout);
}

static void run_mapping(struct options *options, const struct mapping *mapping,
			unsigned long round)
{
	bool wanted = false;

	for (enum op op = mapping->first; op <= mapping->last; op++)
		wanted |= options->wanted[op];
	for (int attempt = 1; wanted; attempt++) {
		struct samples samples = { 0 };
		bool good;

		folios_map(&options->folios, round);
		good = mapping->run(options, &samples);
		folios_release(&options->folios);
		if (good) {
			print_samples(options, mapping, round, &samples);
			return;
		}
		if (attempt == MOST_ATTEMPTS)
			die(EXIT_CANNOT_RUN,
			    "round %lu: the kernel moved pages in each of %d attempts; is something compacting memory?",
			    round, attempt);
		options->folios.nr_redone++;
	}
}

static void run_rounds(struct options *options)
{
	for (unsigned long round = 0; round < options->rounds; round++) {
		uint64_t seed = mixed(options->folios.seed) + round;
		size_t order[NR_MAPPINGS];

		for (size_t i = 0; i < NR_MAPPINGS; i++) {
			size_t at = mixed(seed + i) % (i + 1);

			order[i] = order[at];
			order[at] = i;
		}
		for (size_t i = 0; i < NR_MAPPINGS; i++)
			run_mapping(options, &mappings[order[i]], round);
	}
}

/* What a fork() of this program takes without the mapping: the median. */
static uint64_t bare_fork_ns(const struct options *options)
{
	uint64_t time_ns[NR_BARE_FORKS];

	for (int i = 0; i < NR_BARE_FORKS; i++) {
		struct timed timed;
		int at = i;

		reap(fork_waiting(options, &timed), false);
		for (; at && time_ns[at - 1] > timed.time_ns; at--)
			time_ns[at] = time_ns[at - 1];
		time_ns[at] = timed.time_ns;
	}
	return time_ns[NR_BARE_FORKS / 2];
}

static unsigned long pmd_kib(void)
{
	FILE *file = fopen(THP "/hpage_pmd_size", "re");
	unsigned long nr_bytes = 0;

	if (file) {
		if (fscanf(file, "%lu", &nr_bytes) != 1)
			nr_bytes = 0;
		fclose(file);
	}
	return nr_bytes / 1024;
}

static void say_hello(const struct options *options, bool sees_frames)
{
	const struct folios *folios = &options->folios;
	unsigned long thp_kib = pmd_kib();
	struct utsname kernel;

	uname(&kernel);
	printf("{\"hello\":{\"version\":%d,\"release\":\"%s\",\"uid\":%u,",
	       PROTOCOL_VERSION, kernel.release, getuid());
	printf(thp_kib ? "\"thp_kib\":%lu," : "\"thp_kib\":null,", thp_kib);
	printf("\"page_bytes\":%lu,\"folio_kib\":%lu,\"bytes\":%zu,",
	       PAGE_BYTES, folios->pages_each * PAGE_BYTES / 1024,
	       folios->nr_bytes);
	printf("\"displace_bytes\":%zu,\"map_order\":\"%s\",\"frames\":%s,",
	       options->displace_bytes,
	       folios->scattered ? "scattered" : "contiguous",
	       sees_frames ? "true" : "false");
	printf("\"bare_fork_ns\":%llu}}\n",
	       (unsigned long long)bare_fork_ns(options));
	fflush(stdout);
}

static void parse_ops(bool *wanted, char *list)
{
	memset(wanted, 0, NR_OPS * sizeof(*wanted));
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		int op = 0;

		while (op < NR_OPS && strcmp(name, op_names[op]))
			op++;
		if (op == NR_OPS)
			die(EXIT_USAGE,
			    "--ops %s: there is fork, exit, refork, munmap-shared, munmap, dontneed",
			    name);
		wanted[op] = true;
	}
}

static bool parse_map_order(const char *order)
{
	if (strcmp(order, "contiguous") && strcmp(order, "scattered"))
		die(EXIT_USAGE, "--map-order %s: contiguous or scattered",
		    order);
	return *order == 's';
}

static bool parse_option(void *context, const char *option, char *value)
{
	struct options *options = context;

	if (!strcmp(option, "--folio-kib"))
		options->folios.pages_each = folio_pages(number_of(option, value));
	else if (!strcmp(option, "--ops"))
		parse_ops(options->wanted, value);
	else if (!strcmp(option, "--map-order"))
		options->folios.scattered = parse_map_order(value);
	else
		return false;
	return true;
}

static void parse_options(struct options *options, char **argv)
{
	const struct word words[] = {
		{ "--bytes", .number = &options->folios.nr_bytes },
		{ "--rounds", .number = &options->rounds },
		{ "--seed", .number = &options->folios.seed },
		{ "--displace-bytes", .number = &options->displace_bytes },
		{ "--check-contents", .flag = &options->check_contents },
		{ "--digest", .flag = &options->digest },
		{ }
	};

	read_words(argv, words, parse_option, options);
	folios_check_options(&options->folios);
	caches_check_option(options->displace_bytes);
}

static char *map_own(size_t nr_bytes, int kind)
{
	char *at = mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE,
			kind | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die(EXIT_CANNOT_RUN, "map %zu bytes: %s", nr_bytes,
		    strerror(errno));
	return at;
}

int main(int argc, char **argv)
{
	struct options options = {
		.folios = { .nr_bytes = 1UL << 30, .seed = 1 },
		.rounds = 1,
		.wanted = { [OP_FORK] = true, [OP_REFORK] = true,
			    [OP_MUNMAP] = true },
	};
	bool sees_frames;

	(void)argc;
	parse_options(&options, argv);
	sees_frames = folios_open();
	folios_require(&options.folios, sees_frames);
	child_left = (struct timed *)map_own(PAGE_BYTES, MAP_SHARED);
	caches_prepare(options.displace_bytes);
	folios_reserve(&options.folios);
	say_hello(&options, sees_frames);
	run_rounds(&options);
	printf("{\"end\":{\"ok\":true,\"redone\":%lu}}\n",
	       options.folios.nr_redone);
	return EXIT_SUCCESS;
}
