// SPDX-License-Identifier: GPL-2.0-only
/* Reads a launch's plan, as stage/native.py's experiments write it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plan.h"
#include "program.h"

#define LINE_BYTES 4096

static bool set_choice(unsigned int *to, const char *const *choices, const char *value)
{
	for (unsigned int i = 0; choices[i]; i++) {
		if (!strcmp(value, choices[i])) {
			*to = i;
			return true;
		}
	}
	return false;
}

static bool set_longs(long *to, size_t nr, const char *value)
{
	for (size_t i = 0; i < nr; i++) {
		char *end;

		to[i] = strtol(value, &end, 10);
		if (end == value || *end != (i + 1 < nr ? ',' : '\0'))
			return false;
		value = end + 1;
	}
	return true;
}

static bool set_member(const struct plan_field *field, void *row, const char *value)
{
	void *to = (char *)row + field->offset;
	unsigned long number;
	char *end;

	switch (field->kind) {
	case PLAN_TEXT:
		return strlen(value) < field->bytes && memcpy(to, value, strlen(value) + 1);
	case PLAN_CHOICE:
		return set_choice(to, field->choices, value);
	case PLAN_LONGS:
		return set_longs(to, field->bytes / sizeof(long), value);
	case PLAN_UINT:
	case PLAN_ULONG:
		break;
	}
	number = strtoul(value, &end, 10);
	if (!*value || *end)
		return false;
	if (field->kind == PLAN_ULONG)
		*(unsigned long *)to = number;
	else
		*(unsigned int *)to = (unsigned int)number;
	return true;
}

static const struct plan_field *field_of(const struct plan_field *fields, const char *key)
{
	for (; fields->key; fields++)
		if (!strcmp(key, fields->key))
			return fields;
	return NULL;
}

void *plan_read(const char *path, const struct plan_field *fields, size_t row_bytes,
		size_t *nr_rows)
{
	FILE *file = fopen(path, "r");
	char line[LINE_BYTES];
	char *rows = NULL;

	if (!file)
		die(RUNNER_USAGE, "%s: cannot read the plan", path);
	*nr_rows = 0;
	while (fgets(line, sizeof(line), file)) {
		char *row;

		rows = realloc(rows, (*nr_rows + 1) * row_bytes);
		if (!rows)
			die(RUNNER_NO_RESOURCE, "no memory for the plan");
		row = rows + *nr_rows * row_bytes;
		memset(row, 0, row_bytes);
		++*nr_rows;
		line[strcspn(line, "\n")] = '\0';
		for (char *key = strtok(line, " "); key; key = strtok(NULL, " ")) {
			const struct plan_field *field;
			char *value = strchr(key, '=');

			if (value)
				*value++ = '\0';
			field = field_of(fields, key);
			if (!value || !field || !set_member(field, row, value))
				die(RUNNER_USAGE, "%s:%zu: %s=%s: not understood", path,
				    *nr_rows, key, value ? value : "");
		}
	}
	fclose(file);
	return rows;
}
