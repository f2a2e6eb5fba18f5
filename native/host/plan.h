/* SPDX-License-Identifier: GPL-2.0-only */
/* The plan of a launch: a file with one line per row, of words "key=value". */
#ifndef REAM_PLAN_H
#define REAM_PLAN_H

#include <stddef.h>

enum plan_kind {
	PLAN_TEXT,	/* char[] */
	PLAN_UINT,	/* unsigned int */
	PLAN_ULONG,	/* unsigned long or size_t */
	PLAN_CHOICE,	/* unsigned int: the index of a word in a list */
	PLAN_LONGS,	/* long[]: exactly as many numbers, separated by commas */
	PLAN_IMAGE,	/* struct image: the path of a file */
	PLAN_IMAGE_OR_NONE,	/* the same, but "-" or no word means no file */
	PLAN_IMAGES,	/* struct image[]: paths separated by commas; each may be "-" */
};

/**
 * struct plan_field - one key that a line may have
 * @key: Name before the "=".
 * @kind: Kind of the value.
 * @offset: Offset of the member in the experiment's row.
 * @bytes: Size of the member.
 * @choices: The words of PLAN_CHOICE, ended by NULL.
 */
struct plan_field {
	const char *key;
	enum plan_kind kind;
	size_t offset;
	size_t bytes;
	const char *const *choices;
};

/**
 * plan_read() - read the rows of a launch
 * @path: Path of the plan.
 * @fields: The known keys, ended by a NULL key.
 * @row_bytes: Size of the experiment's row.
 * @nr_rows: Set to the number of rows.
 *
 * Members that a line does not name are zero. An error ends the program with
 * the number of the line and the word at fault.
 *
 * Return: the rows, one after the other.
 */
void *plan_read(const char *path, const struct plan_field *fields, size_t row_bytes,
		size_t *nr_rows);

/* Map all images of a row. If one cannot be mapped, end the program with its name. */
void plan_map_images(const struct plan_field *fields, void *row);
void plan_unmap_images(const struct plan_field *fields, void *row);

#endif
