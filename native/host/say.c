// SPDX-License-Identifier: GPL-2.0-only
/* What memory holds, and what it should: by the kernel's name for the field. */
#include <stdio.h>
#include <string.h>
#include "launch.h"

#define MOST_NAME_BYTES 128
#define WORD_BYTES 8UL

/*
 * Where the field begins that holds the byte, if a fact says so, with all its
 * names: unions have several. @end is where the next one begins.
 */
static size_t find_field(const struct host_area *area, size_t at, char *names, size_t *end)
{
	size_t begin = 0, length = strlen(area->type);

	*names = '\0';
	for (const struct host_fact *fact = area->fields; fact->name; fact++) {
		const char *member = fact->name + length;
		size_t used = strlen(names);

		if (strncmp(fact->name, area->type, length) || *member++ != '.')
			continue;
		if (fact->value > at) {
			*end = min_size(*end, fact->value);
			continue;
		}
		if (fact->value < begin)
			continue;
		if (fact->value > begin)
			used = 0;
		begin = fact->value;
		snprintf(names + used, MOST_NAME_BYTES - used, "%s%s", used ? "/" : "", member);
	}
	return begin;
}

static unsigned long value_at(const unsigned char *start, size_t bytes)
{
	unsigned long value = 0;

	memcpy(&value, start, min_size(bytes, WORD_BYTES));
	return value;
}

bool area_is_as_expected(const char *who, const char *of, const struct host_area *area)
{
	const unsigned char *is = area->is, *expected = area->expected;
	size_t at = 0, begin, end = area->bytes;
	char names[MOST_NAME_BYTES];

	while (at < area->bytes && is[at] == expected[at])
		at++;
	if (at == area->bytes)
		return true;
	begin = find_field(area, at, names, &end);
	if (!*names || at - begin >= WORD_BYTES) {
		begin = at & ~(WORD_BYTES - 1);
		end = area->bytes;
		snprintf(names, sizeof(names), "byte %zu", begin);
	}
	fprintf(stderr, "%s: %s->%s%s is %#lx, the oracle says %#lx\n", who, area->type, names, of,
		value_at(is + begin, end - begin), value_at(expected + begin, end - begin));
	return false;
}
