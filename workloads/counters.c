// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "counters.h"
#include "program.h"

#define NAME_ROOM 64
#define PGMIGRATE_SUCCESS 0
#define PARAMETER(module, name) \
	{ #module "_" #name, "/sys/module/" #module "/parameters/" #name }

static const struct {
	const char *name;
	const char *file;	/* NULL: a line of /proc/vmstat */
} sources[NR_COUNTERS] = {
	[PGMIGRATE_SUCCESS] = { "pgmigrate_success", NULL },
	{ "pgmigrate_fail", NULL },
	{ "thp_migration_success", NULL },
	{ "thp_migration_fail", NULL },
	{ "thp_migration_split", NULL },
	{ "numa_pages_migrated", NULL },
	{ "pgdemote_kswapd", NULL },
	{ "pgdemote_direct", NULL },
	{ "compact_stall", NULL },
	{ "compact_success", NULL },
	{ "compact_fail", NULL },
	{ "compact_migrate_scanned", NULL },
	{ "compact_free_scanned", NULL },
	{ "compact_isolated", NULL },
	{ "compact_daemon_wake", NULL },
	{ "compact_daemon_migrate_scanned", NULL },
	{ "compact_daemon_free_scanned", NULL },
	{ "thp_fault_alloc", NULL },
	{ "thp_fault_fallback", NULL },
	{ "thp_split_page", NULL },
	{ "pgfree", NULL },
	PARAMETER(dcbm, folios_migrated),
	PARAMETER(dcbm, folios_failures),
	PARAMETER(dcbm, batches_declined),
	PARAMETER(mtcopy, folios_migrated),
	PARAMETER(mtcopy, folios_failures),
	PARAMETER(swdma, descriptors),
	PARAMETER(swdma, bytes),
	PARAMETER(swdma, faults),
	PARAMETER(swdma, late),
};

static void read_vmstat(struct counters *counters)
{
	FILE *file = fopen("/proc/vmstat", "re");
	char name[NAME_ROOM];
	unsigned long value;

	while (file && fscanf(file, "%63s %lu", name, &value) == 2) {
		for (size_t i = 0; i < NR_COUNTERS; i++) {
			if (sources[i].file || strcmp(name, sources[i].name))
				continue;
			counters->value[i] = value;
			counters->known[i] = true;
		}
	}
	if (file)
		fclose(file);
}

void counters_read(struct counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	read_vmstat(counters);
	if (!counters->known[PGMIGRATE_SUCCESS])
		die(EXIT_CANNOT_RUN,
		    "/proc/vmstat: no pgmigrate_success; a kernel without CONFIG_MIGRATION and CONFIG_VM_EVENT_COUNTERS");
	for (size_t i = 0; i < NR_COUNTERS; i++) {
		const char *line = sources[i].file ?
				   first_line(sources[i].file) : NULL;

		if (!line)
			continue;
		counters->value[i] = strtoul(line, NULL, 10);
		counters->known[i] = true;
	}
}

void counters_print(const struct counters *before, const struct counters *after)
{
	const char *comma = "";

	putchar('{');
	for (size_t i = 0; i < NR_COUNTERS; i++) {
		if (!after->known[i])
			continue;
		printf("%s\"%s\":%ld", comma, sources[i].name,
		       (long)(after->value[i] - before->value[i]));
		comma = ",";
	}
	putchar('}');
}

unsigned long counters_migrated(const struct counters *before,
				const struct counters *after)
{
	return after->value[PGMIGRATE_SUCCESS] -
	       before->value[PGMIGRATE_SUCCESS];
}

unsigned long counters_grown(const char *name, const struct counters *before,
			     const struct counters *after)
{
	for (size_t i = 0; i < NR_COUNTERS; i++)
		if (after->known[i] && !strcmp(name, sources[i].name))
			return after->value[i] - before->value[i];
	return 0;
}
