// SPDX-License-Identifier: GPL-2.0-only
/* Other memory that is written before an operation. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "caches.h"
#include "folios.h"

#define LINE_BYTES 64

static char *displacer;
static size_t displacer_bytes;

void caches_check_option(size_t nr_bytes)
{
	if (nr_bytes % PAGE_BYTES)
		die(EXIT_USAGE, "--displace-bytes %zu: not a multiple of 4096",
		    nr_bytes);
}

void caches_prepare(size_t nr_bytes)
{
	if (!nr_bytes)
		return;
	displacer = mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (displacer == MAP_FAILED)
		die(EXIT_CANNOT_RUN, "%zu bytes to displace caches: %s",
		    nr_bytes, strerror(errno));
	if (madvise(displacer, nr_bytes, MADV_DONTFORK))
		die(EXIT_FAILED, "MADV_DONTFORK: %s", strerror(errno));
	memset(displacer, 1, nr_bytes);
	displacer_bytes = nr_bytes;
}

void caches_displace(void)
{
	for (size_t at = 0; at < displacer_bytes; at += LINE_BYTES)
		__atomic_store_n(displacer + at, at, __ATOMIC_RELAXED);
}
