// SPDX-License-Identifier: GPL-2.0-only
/*
 * Apply functions of a kernel's headers to page table entries.
 *
 * usage: pte VECTORS [feature]
 *
 * VECTORS has one application a line, `name entry nr`, numbers in hexadecimal; its result
 * is printed, a line each. With `feature` the processor has what changes its entries.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "arch.h"

static void die(const char *what)
{
	fprintf(stderr, "error: %s: %s\n", what, strerror(errno));
	exit(1);
}

#if defined(__aarch64__)

/*
 * Headers with LPA2 read TCR_EL1, a kernel's register, to know whether it is on. Here
 * that instruction traps, and gives what the kernel would have put there.
 */
#define MRS_TCR_EL1 0xd5382040U
#define REGISTER 0x1fU
#define TCR_DS (1ULL << 59)

static unsigned long long tcr;

static void read_tcr(int signal, siginfo_t *info, void *context)
{
	mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
	uint32_t instruction = *(uint32_t *)machine->pc;

	(void)info;
	if ((instruction & ~REGISTER) != MRS_TCR_EL1)
		_exit(128 + signal);
	machine->regs[instruction & REGISTER] = tcr;
	machine->pc += 4;
}

static void boot(int feature)
{
	struct sigaction action = {
		.sa_sigaction = read_tcr,
		.sa_flags = SA_SIGINFO,
	};

	tcr = feature ? TCR_DS : 0;
	if (sigaction(SIGILL, &action, NULL))
		die("sigaction");
}

#elif defined(__sparc__)

static void boot(int feature)
{
	const struct sun4v_patch *patch = __sun4v_2insn_patch;
	uintptr_t page_mask = ~((uintptr_t)getpagesize() - 1);

	for (; feature && patch < __sun4v_2insn_patch_end; patch++) {
		uint32_t *code = (uint32_t *)(uintptr_t)patch->address;
		uintptr_t first = (uintptr_t)code & page_mask;
		size_t size = (uintptr_t)(code + 2) - first;

		if (mprotect((void *)first, size,
			     PROT_READ | PROT_WRITE | PROT_EXEC))
			die("mprotect");
		memcpy(code, patch->instructions, 8);
		__builtin___clear_cache((char *)code, (char *)(code + 2));
	}
}

#elif defined(__s390x__)

/* At absolute 0 a processor keeps what the kernel knows of it. */
#define LOWCORE_BYTES 8192

static void boot(int feature)
{
	void *lowcore = mmap(NULL, LOWCORE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	(void)feature;
	if (lowcore == MAP_FAILED)
		die("a lowcore at 0");
}

#else

static void boot(int feature)
{
	(void)feature;
}

#endif

static const struct ream_op *find(const char *name)
{
	for (unsigned int i = 0; i < ream_nr_ops; i++)
		if (!strcmp(ream_ops[i].name, name))
			return &ream_ops[i];
	fprintf(stderr, "error: no function %s\n", name);
	exit(1);
}

int main(int argc, char **argv)
{
	int feature = argc > 2 && !strcmp(argv[2], "feature");
	unsigned long long entry, nr;
	char name[32];
	FILE *vectors;
	int got;

	if (argc < 2 || (argc > 2 && !feature)) {
		fputs("usage: pte VECTORS [feature]\n", stderr);
		return 2;
	}
	vectors = fopen(argv[1], "r");
	if (!vectors)
		die(argv[1]);
	boot(feature);
	ream_boot(feature);
	while ((got = fscanf(vectors, "%31s %llx %llx", name, &entry, &nr)) == 3)
		printf("%llx\n", find(name)->apply(entry, nr));
	if (got != EOF) {
		fprintf(stderr, "error: %s: not `name entry nr`\n", argv[1]);
		return 1;
	}
	return fflush(stdout) ? 1 : 0;
}
