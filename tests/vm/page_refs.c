// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bind a device with the page_ref_set tracepoint disabled, enabled, and
 * disabled again; print what memmap and memremap (kernel/modules) say of each:
 *
 *   phase=off|on|off-again nr_pages=N time_ns=N page_refs=N
 *
 * page_refs: events of the whole bind, or - where they were not counted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEBUGFS		"/sys/kernel/debug/"
#define BIND		DEBUGFS "ream-memremap/bind"
#define COUNT		DEBUGFS "ream/count_page_refs"
#define CALLS		DEBUGFS "ream/calls"

static void fail(const char *path)
{
	printf("Bail out! %s: %s\n", path, strerror(errno));
	exit(1);
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (!file || fputs(text, file) < 0 || fclose(file))
		fail(path);
}

static void get(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "r");

	if (!file || !fgets(line, size, file))
		fail(path);
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
}

static unsigned long value(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	if (!at) {
		errno = ENOMSG;
		fail(key);
	}
	return strtoul(at + strlen(key), NULL, 10);
}

static void bind(const char *phase, int counted)
{
	char call[1024], refs[32] = "-";

	put(COUNT, counted ? "1" : "0");
	put(BIND, "1");
	get(CALLS, call, sizeof(call));
	if (counted)
		get(COUNT, refs, sizeof(refs));
	put(COUNT, "0");
	put(BIND, "0");
	printf("phase=%s nr_pages=%lu time_ns=%lu page_refs=%s\n", phase,
	       value(call, " nr_pages="), value(call, " time_ns="), refs);
}

int main(void)
{
	bind("off", 0);
	bind("on", 1);
	bind("off-again", 0);
	return 0;
}
