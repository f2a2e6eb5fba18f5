// SPDX-License-Identifier: GPL-2.0-only
/* Runs the checks of glue.c for the one kernel linked; "name result" lines. */
#include <stdio.h>
#include "launch.h"

struct helper_checks {
	int (*streaming)(void);
	int (*flushcache)(void);
	int (*section)(void);
};

struct row {
	char name[64];
};

static const struct plan_field fields[] = {
	PLAN_FIELD(struct row, name, TEXT, name, 64)
	{ .key = NULL },
};

const struct row_layout row_layout = { fields, sizeof(struct row) };

static const struct host_fact addresses[] = {
	{ }
};

static void map(const void *rows, size_t nr_rows)
{
	(void)rows;
	(void)nr_rows;
}

static bool run_row(void *row)
{
	const struct helper_checks *checks = launch_ops(0);
	const struct host_fact *fact = __start_ream_kernels[0]->facts;

	(void)row;
	printf("%s %lu\n", fact->name, fact->value);
	printf("streaming %d\n", checks->streaming());
	printf("flushcache %d\n", checks->flushcache());
	printf("section %d\n", checks->section());
	return true;
}

const struct experiment experiment = {
	.name = "helpers",
	.addresses = addresses,
	.map = map,
	.run_row = run_row,
};
