// SPDX-License-Identifier: GPL-2.0-only
/*
 * The plan of a launch: a line per row, words "key=value" separated by spaces.
 *
 *   name=small rounds=2 threads=0 pre_state=evicted start_pfn=67108864
 *   nr_pages=65536 skip_pages=0 order=0 type=3 early=0 nid=0 map_bytes=4194304
 *   fill_offset=0 block_bytes=4194304 stride_bytes=4194304 nr_blocks=1
 *   image=PATH usage=PATH
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plan.h"

#define LINE_BYTES 2048

static const char *const pre_states[] = {
	[PRE_EVICTED] = "evicted",
	[PRE_DIRTY] = "dirty",
	[PRE_UNTOUCHED] = "untouched",
};

static bool set_text(struct row *row, const char *key, const char *value)
{
	struct {
		const char *key;
		char *to;
		size_t bytes;
	} const texts[] = {
		{ "name", row->name, sizeof(row->name) },
		{ "image", row->image_path, sizeof(row->image_path) },
		{ "usage", row->usage_path, sizeof(row->usage_path) },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!strcmp(key, texts[i].key) && strlen(value) < texts[i].bytes)
			return memcpy(texts[i].to, value, strlen(value) + 1);
	return false;
}

static bool set_pre_state_named(struct row *row, const char *key, const char *value)
{
	if (strcmp(key, "pre_state"))
		return false;
	for (size_t i = 0; i < sizeof(pre_states) / sizeof(pre_states[0]); i++) {
		if (!strcmp(value, pre_states[i])) {
			row->pre_state = (enum pre_state)i;
			return true;
		}
	}
	return false;
}

static bool set_number(struct row *row, const char *key, const char *value)
{
	char *end;
	unsigned long number = strtoul(value, &end, 10);
	struct {
		const char *key;
		unsigned int *small;
		unsigned long *large;
	} const numbers[] = {
		{ "rounds", &row->rounds, NULL },
		{ "threads", &row->threads, NULL },
		{ "start_pfn", NULL, &row->request.start_pfn },
		{ "nr_pages", NULL, &row->request.nr_pages },
		{ "skip_pages", NULL, &row->request.skip_pages },
		{ "order", &row->request.order, NULL },
		{ "type", &row->request.type, NULL },
		{ "early", &row->request.early, NULL },
		{ "nid", &row->request.nid, NULL },
		{ "map_bytes", NULL, &row->map_bytes },
		{ "fill_offset", NULL, &row->fill_offset },
		{ "block_bytes", NULL, &row->fill.block_bytes },
		{ "stride_bytes", NULL, &row->fill.stride_bytes },
		{ "nr_blocks", NULL, &row->fill.nr_blocks },
	};

	if (!*value || *end)
		return false;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(key, numbers[i].key))
			continue;
		if (numbers[i].large)
			*numbers[i].large = number;
		else
			*numbers[i].small = (unsigned int)number;
		return true;
	}
	return false;
}

static void read_row(struct row *row, char *line, const char *path, size_t number)
{
	line[strcspn(line, "\n")] = '\0';
	for (char *key = strtok(line, " "); key; key = strtok(NULL, " ")) {
		char *value = strchr(key, '=');

		if (value)
			*value++ = '\0';
		if (!value || !(set_text(row, key, value) || set_pre_state_named(row, key, value) ||
				set_number(row, key, value)))
			die(RUNNER_USAGE, "%s:%zu: %s=%s: not understood", path, number, key,
			    value ? value : "");
	}
}

struct plan plan_read(const char *path)
{
	struct plan plan = { 0 };
	char line[LINE_BYTES];
	FILE *file = fopen(path, "r");

	if (!file)
		die(RUNNER_USAGE, "%s: cannot read the plan", path);
	while (fgets(line, sizeof(line), file)) {
		plan.rows = realloc(plan.rows, (plan.nr_rows + 1) * sizeof(*plan.rows));
		if (!plan.rows)
			die(RUNNER_NO_RESOURCE, "no memory for the plan");
		memset(&plan.rows[plan.nr_rows], 0, sizeof(*plan.rows));
		read_row(&plan.rows[plan.nr_rows], line, path, plan.nr_rows + 1);
		plan.nr_rows++;
	}
	fclose(file);
	return plan;
}

void plan_open_images(struct row *row)
{
	row->image = image_map(row->image_path);
	row->usage_image = image_map(row->usage_path);
}
