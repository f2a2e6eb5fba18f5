// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory with tags moves to another node and back, copied by the migrating task
 * and by mtcopy. A page's tags belong to it like its bytes: with each copier,
 * every granule must have both afterwards. An engine does not copy tags, so dcbm
 * must not be available.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PROT_MTE
#define PROT_MTE 0x20
#endif
#ifndef PR_MTE_TCF_SYNC
#define PR_MTE_TCF_SYNC (1UL << 1)
#define PR_MTE_TAG_SHIFT 3
#endif
#define ALL_TAGS (0xffffUL << PR_MTE_TAG_SHIFT)

#define PAGE 4096UL
#define GRANULE 16UL
#define TAG_SHIFT 56
#define BYTES (16UL << 20)
#define MOVE_ALL 4	/* MPOL_MF_MOVE_ALL */

static const unsigned int sizes_kib[] = { 64, 2048 };

static void fail(const char *what)
{
	fprintf(stderr, "mte_moves: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail(path);
	close(fd);
}

static void set_parameter(const char *module, const char *name,
			  const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module,
		 name);
	write_file(path, value);
}

static unsigned long read_parameter(const char *module, const char *name)
{
	char path[128];
	unsigned long value;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module,
		 name);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%lu", &value) != 1)
		fail(path);
	fclose(file);
	return value;
}

static void load(const char *module)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/modules/%s.ko", module);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		fail(path);
	close(fd);
}

/*
 * Neither the same for neighbours, nor for the same place of another page; but
 * the same for every second one of a page: QEMU before 8.0 keeps two tags for
 * each page, as if all granules were the first two.
 */
static uint64_t tag_of(unsigned long granule)
{
	return (granule % 2 * 7 + granule / (PAGE / GRANULE) * 3) & 0xf;
}

static void set_tag(char *at, uint64_t tag)
{
	asm volatile("stg %0, [%0]"
		     : : "r"((uintptr_t)at | tag << TAG_SHIFT) : "memory");
}

static uint64_t tag_at(char *at)
{
	uintptr_t tagged = (uintptr_t)at;

	asm volatile("ldg %0, [%1]" : "+r"(tagged) : "r"(at) : "memory");
	return tagged >> TAG_SHIFT & 0xf;
}

static char *tagged(char *at, unsigned long granule)
{
	return (char *)((uintptr_t)at | tag_of(granule) << TAG_SHIFT);
}

static void enable(unsigned int kib, const char *when)
{
	char path[128];

	snprintf(path, sizeof(path),
		 "/sys/kernel/mm/transparent_hugepage/hugepages-%ukB/enabled",
		 kib);
	write_file(path, when);
}

static char *map(unsigned int kib)
{
	char *memory, *folios;

	enable(2048, "never");	/* or every fault makes these */
	enable(kib, "madvise");
	memory = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE | PROT_MTE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail("mmap with PROT_MTE");
	folios = (char *)(((uintptr_t)memory + BYTES - 1) & ~(BYTES - 1));
	if (madvise(folios, BYTES, MADV_HUGEPAGE))
		fail("madvise");
	for (unsigned long i = 0; i < BYTES / GRANULE; i++) {
		char *at = folios + i * GRANULE;

		set_tag(at, tag_of(i));
		__atomic_store_n((uint64_t *)tagged(at, i), i,
				 __ATOMIC_RELAXED);
	}
	enable(kib, "never");
	return folios;
}

/* By the first page of each folio: a second one finds it on its way already. */
static void move(char *memory, unsigned long folio_bytes, int node)
{
	unsigned long nr = BYTES / folio_bytes;
	void **pages = calloc(nr, sizeof(*pages));
	int *nodes = calloc(nr, sizeof(*nodes));
	int *status = calloc(nr, sizeof(*status));

	if (!pages || !nodes || !status)
		fail("calloc");
	for (unsigned long i = 0; i < nr; i++) {
		pages[i] = memory + i * folio_bytes;
		nodes[i] = node;
	}
	if (syscall(SYS_move_pages, 0, nr, pages, nodes, status, MOVE_ALL))
		fail("move_pages");
	for (unsigned long i = 0; i < nr; i++) {
		if (status[i] != node) {
			errno = status[i] < 0 ? -status[i] : 0;
			fail("a page stayed where it was");
		}
	}
	free(pages);
	free(nodes);
	free(status);
}

static unsigned long nr_wrong(char *memory)
{
	unsigned long wrong = 0;

	for (unsigned long i = 0; i < BYTES / GRANULE; i++) {
		char *at = memory + i * GRANULE;

		/* By the tag that is there, so that a lost one is no fault. */
		char *now = (char *)((uintptr_t)at | tag_at(at) << TAG_SHIFT);

		wrong += tag_at(at) != tag_of(i) ||
			 __atomic_load_n((uint64_t *)now, __ATOMIC_RELAXED) != i;
	}
	return wrong;
}

static bool moves(const char *copier)
{
	unsigned long wrong = 0, copied = 0;

	if (copier)
		set_parameter(copier, "offloading", "1");
	for (size_t i = 0; i < sizeof(sizes_kib) / sizeof(sizes_kib[0]); i++) {
		char *memory = map(sizes_kib[i]);

		for (int node = 1; node >= 0; node--) {
			move(memory, (unsigned long)sizes_kib[i] << 10, node);
			wrong += nr_wrong(memory);
		}
	}
	if (copier) {
		copied = read_parameter(copier, "folios_migrated");
		set_parameter(copier, "offloading", "0");
	}
	printf("# mte: %s: %lu wrong granules, %lu folios copied by it\n",
	       copier ? copier : "cpu", wrong, copied);
	return !wrong;
}

static bool is_refused(const char *copier)
{
	char path[128];
	bool refused;
	int fd;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/offloading",
		 copier);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	refused = write(fd, "1", 1) < 0 && errno == EOPNOTSUPP;
	close(fd);
	printf("# mte: %s: %s\n", copier, refused ? "refused" : "let in");
	return refused;
}

int main(void)
{
	bool ok;

	if (prctl(PR_SET_TAGGED_ADDR_CTRL,
		  PR_TAGGED_ADDR_ENABLE | PR_MTE_TCF_SYNC | ALL_TAGS, 0, 0, 0))
		fail("prctl");
	load("swdma");
	load("dcbm");
	load("mtcopy");
	ok = moves(NULL);
	ok &= moves("mtcopy");
	ok &= is_refused("dcbm");
	return ok ? 0 : 1;
}
