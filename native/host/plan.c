// SPDX-License-Identifier: GPL-2.0-only
/* Read the plan of a launch, which lab/ream/stage/runner_plan.py writes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
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

static bool set_images(struct image *to, size_t nr, const char *value)
{
	for (size_t i = 0; i < nr; i++) {
		size_t length = strcspn(value, ",");

		if (!length || (value[length] == ',') != (i + 1 < nr))
			return false;
		to[i].path = length == 1 && *value == '-' ? NULL : strndup(value, length);
		value += length + 1;
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
	case PLAN_IMAGE:
	case PLAN_IMAGE_OR_NONE:
	case PLAN_IMAGES:
		return set_images(to, field->bytes / sizeof(struct image), value);
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

static void map_image(const char *key, struct image *image)
{
	int fd = open(image->path, O_RDONLY | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) || status.st_size <= 0)
		die(RUNNER_USAGE, "%s=%s: not an image: %s", key, image->path, strerror(errno));
	image->bytes = (size_t)status.st_size;
	image->start = mmap(NULL, image->bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (image->start == MAP_FAILED)
		die(RUNNER_NO_RESOURCE, "%s=%s: %s", key, image->path, strerror(errno));
	close(fd);
}

/* The images of a field. @nr is set to their number, which is 0 for other kinds. */
static struct image *images_of(const struct plan_field *field, void *row, size_t *nr)
{
	bool is_image = field->kind == PLAN_IMAGE || field->kind == PLAN_IMAGE_OR_NONE ||
			field->kind == PLAN_IMAGES;

	*nr = is_image ? field->bytes / sizeof(struct image) : 0;
	return (struct image *)((char *)row + field->offset);
}

void plan_map_images(const struct plan_field *fields, void *row)
{
	for (; fields->key; fields++) {
		size_t nr;
		struct image *image = images_of(fields, row, &nr);

		for (; nr--; image++)
			if (image->path)
				map_image(fields->key, image);
			else if (fields->kind == PLAN_IMAGE)
				die(RUNNER_USAGE, "%s: the plan names no file", fields->key);
	}
}

void plan_unmap_images(const struct plan_field *fields, void *row)
{
	for (; fields->key; fields++) {
		size_t nr;
		struct image *image = images_of(fields, row, &nr);

		for (; nr--; image++) {
			if (image->start)
				munmap((void *)image->start, image->bytes);
			free(image->path);
			*image = (struct image){ 0 };
		}
	}
}
