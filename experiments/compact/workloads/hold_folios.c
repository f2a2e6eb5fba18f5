// SPDX-License-Identifier: GPL-2.0-only
/*
 * Large folios that are in the way: each has a page in a pipe, so that it can
 * neither be migrated nor split. Compiled with nodes.c and program.c.
 *
 *   hold_folios --folios N [--node N]
 *
 * Of every 2 MiB of shared memory, in folios of 64 KiB, one folio is kept. It
 * says {"ready":...} then, and holds them until the end of its input.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "nodes.h"
#include "program.h"

const char *const program_name = "hold_folios";

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define MPOL_BIND 2
#define NR_BITS (8 * sizeof(unsigned long) + 1)	/* as mbind(2) counts */

#define PAGE_BYTES 4096UL
#define FOLIO_BYTES (64UL << 10)
#define BLOCK_BYTES (2UL << 20)
#define SLOTS 16UL	/* of a pipe; each takes one page */

#define STATS "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats"

static unsigned long nr_made(void)
{
	const char *text = first_line(STATS "/shmem_alloc");

	if (!text)
		die(EXIT_CANNOT_RUN, "shared memory in folios of 64 KiB: %s",
		    strerror(errno));
	return number_of("shmem_alloc", text);
}

static char *make(unsigned long nr_folios, unsigned int node)
{
	size_t nr_bytes = nr_folios * BLOCK_BYTES;
	unsigned long nodes = 1UL << node, made = nr_made();
	char *at = mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED ||
	    syscall(SYS_mbind, at, nr_bytes, MPOL_BIND, &nodes, NR_BITS, 0) ||
	    madvise(at, nr_bytes, MADV_HUGEPAGE) ||
	    madvise(at, nr_bytes, MADV_POPULATE_WRITE))
		die(EXIT_CANNOT_RUN, "%zu bytes of node %u: %s", nr_bytes,
		    node, strerror(errno));
	made = nr_made() - made;
	if (made < nr_bytes / FOLIO_BYTES)
		die(EXIT_CANNOT_RUN, "%lu of %lu folios are of 64 KiB", made,
		    nr_bytes / FOLIO_BYTES);
	return at;
}

/* The pipe has a reference to the page for as long as nobody reads it. */
static void hold(char *page)
{
	static unsigned long nr_held;
	static int ends[2];
	struct iovec one = { page, PAGE_BYTES };

	if (!(nr_held++ % SLOTS) && pipe2(ends, O_CLOEXEC))
		die(EXIT_FAILED, "a pipe: %s", strerror(errno));
	if (vmsplice(ends[1], &one, 1, 0) != (ssize_t)PAGE_BYTES)
		die(EXIT_FAILED, "give a page to a pipe: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	unsigned long nr_folios = 0, node = 0;
	const struct word words[] = {
		{ "--folios", .number = &nr_folios },
		{ "--node", .number = &node },
		{ }
	};
	char *at;

	(void)argc;
	read_words(argv, words, NULL, NULL);
	if (!nr_folios || node >= MOST_NODES)
		die(EXIT_USAGE, "--folios %lu --node %lu: at least one folio, of a node below %u",
		    nr_folios, node, MOST_NODES);
	at = make(nr_folios, node);
	for (unsigned long i = 0; i < nr_folios; i++) {
		char *block = at + i * BLOCK_BYTES;

		hold(block);
		if (madvise(block + FOLIO_BYTES, BLOCK_BYTES - FOLIO_BYTES,
			    MADV_REMOVE))
			die(EXIT_FAILED, "give memory back: %s",
			    strerror(errno));
	}
	printf("{\"ready\":{\"folios\":%lu}}\n", nr_folios);
	fflush(stdout);
	while (getchar() != EOF)
		;
	puts("{\"end\":{\"ok\":true}}");
	return 0;
}
