// SPDX-License-Identifier: GPL-2.0-only
/* Runs the checks of glue.c for the one kernel linked; "name result" lines. */
#include <stdio.h>
#include "program.h"

struct helper_checks {
	int (*streaming)(void);
	int (*flushcache)(void);
	int (*section)(void);
};

int main(int argc, char **argv)
{
	const struct host_kernel *kernel = __start_ream_kernels[0];
	const struct helper_checks *checks;

	if (argc != 2)
		die(RUNNER_USAGE, "usage: %s FORBIDDEN", argv[0]);
	traps_install(argv[1]);
	kernel_boot_all(cpu_machine(1));
	checks = kernel->ops;
	printf("%s %lu\n", kernel->facts[0].name, kernel->facts[0].value);
	printf("streaming %d\n", checks->streaming());
	printf("flushcache %d\n", checks->flushcache());
	printf("section %d\n", checks->section());
	return RUNNER_OK;
}
