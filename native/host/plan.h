/* SPDX-License-Identifier: GPL-2.0-only */
/* What a launch is to do: a file with a line per row, words "key=value". */
#ifndef REAM_PLAN_H
#define REAM_PLAN_H

#include <stddef.h>

enum plan_kind {
	PLAN_TEXT,	/* char[] */
	PLAN_UINT,	/* unsigned int */
	PLAN_ULONG,	/* unsigned long, and size_t */
	PLAN_CHOICE,	/* unsigned int: which of some words */
	PLAN_LONGS,	/* long[]: numbers separated by commas, exactly as many */
	PLAN_IMAGE,	/* struct image: the path of a file */
	PLAN_IMAGE_OR_NONE,	/* the same; "-" or no word: no file */
	PLAN_IMAGES,	/* struct image[]: paths separated by commas, each may be "-" */
};

/**
 * struct plan_field - one key that a line may have
 * @key: Before the "=".
 * @kind: Of the value.
 * @offset: Of the member in the experiment's row.
 * @bytes: Its size.
 * @choices: For PLAN_CHOICE: the words, ended by NULL.
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
 * @path: The plan.
 * @fields: The keys there are, ended by a NULL key.
 * @row_bytes: Size of the experiment's row.
 * @nr_rows: Set to how many there are.
 *
 * Members that a line does not name are zero. Ends the program with the line
 * and the word at fault.
 *
 * Return: the rows, one after the other.
 */
void *plan_read(const char *path, const struct plan_field *fields, size_t row_bytes,
		size_t *nr_rows);

/* Map all images of a row; ends the program with the name of one it cannot. */
void plan_map_images(const struct plan_field *fields, void *row);
void plan_unmap_images(const struct plan_field *fields, void *row);

#endif
