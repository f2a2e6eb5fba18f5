// SPDX-License-Identifier: GPL-2.0-only
/* Report differences in structures by the kernel's names of their fields. */
#include <stdio.h>
#include <string.h>
#include "launch.h"

#define MOST_NAME_BYTES 128
#define WORD_BYTES 8UL
#define PAGE_BYTES 64UL	/* sizeof(struct page) */
#define LINK_AT 8UL	/* offset of page->compound_head */

/**
 * struct field - the field at some byte of a structure
 * @type: Type of the structure.
 * @names: All its names, if a union has several. Empty if it is not known.
 * @begin: Offset of its first byte.
 * @end: Offset of the next field.
 */
struct field {
	const char *type;
	char names[MOST_NAME_BYTES];
	size_t begin;
	size_t end;
};

static struct field find_field(const struct host_fact *fact, const char *type, size_t at,
			       size_t bytes)
{
	struct field field = { .type = type, .end = bytes };
	size_t length = strlen(type);

	for (; fact->name; fact++) {
		size_t used = fact->value > field.begin ? 0 : strlen(field.names);

		if (strncmp(fact->name, type, length) || fact->name[length] != '.')
			continue;
		if (fact->value > at) {
			field.end = min_size(field.end, fact->value);
		} else if (fact->value >= field.begin) {
			field.begin = fact->value;
			snprintf(field.names + used, MOST_NAME_BYTES - used, "%s%s",
				 used ? "/" : "", fact->name + length + 1);
		}
	}
	if (at - field.begin >= WORD_BYTES)
		*field.names = '\0';
	return field;
}

/*
 * The first tail pages are parts of struct folio. Return: the distance of this
 * page from its head, which compound_head gives, or 0 if it is no such page.
 */
static size_t folio_offset(const struct host_area *area)
{
	uintptr_t link;
	size_t offset;

	if (strcmp(area->type, "page"))
		return 0;
	memcpy(&link, (const unsigned char *)area->expected + LINK_AT, sizeof(link));
	offset = (uintptr_t)area->is - (link & ~1UL);
	return link & 1 && offset < 4 * PAGE_BYTES ? offset : 0;
}

static struct field field_of(const struct host_area *area, size_t at)
{
	size_t offset = folio_offset(area);
	struct field field = find_field(area->fields, "folio", at + offset, area->bytes + offset);

	if (offset && *field.names && field.begin >= offset) {
		field.begin -= offset;
		field.end -= offset;
		return field;
	}
	field = find_field(area->fields, area->type, at, area->bytes);
	if (!*field.names) {
		field.begin = at & ~(WORD_BYTES - 1);
		field.end = area->bytes;
		snprintf(field.names, MOST_NAME_BYTES, "byte %zu", field.begin);
	}
	return field;
}

static unsigned long value_of(const struct field *field, const unsigned char *start)
{
	unsigned long value = 0;

	memcpy(&value, start + field->begin, min_size(field->end - field->begin, WORD_BYTES));
	return value;
}

bool area_is_as_expected(const char *who, const char *of, const struct host_area *area)
{
	const unsigned char *is = area->is, *expected = area->expected;
	struct field field;
	size_t at = 0;

	while (at < area->bytes && is[at] == expected[at])
		at++;
	if (at == area->bytes)
		return true;
	field = field_of(area, at);
	fprintf(stderr, "%s: %s->%s%s is %#lx, the oracle says %#lx\n", who, field.type,
		field.names, of, value_of(&field, is), value_of(&field, expected));
	return false;
}

bool areas_are_as_expected(const char *row, const char *subject, const char *of,
			   const struct host_area *areas)
{
	char who[256];

	snprintf(who, sizeof(who), "%s: %s", row, subject);
	while (areas->type && area_is_as_expected(who, of, areas))
		areas++;
	return !areas->type;
}
