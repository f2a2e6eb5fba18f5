// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters in addition to the clock. Each source is read by a system call of its
 * own, because threads cannot inherit a group of events. The reads are outside
 * of the timed span, like those of the CPU time. What a source counts of these
 * calls themselves is the same for every variant.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "counters.h"
#include "program.h"

#define MOST_SOURCES 128	/* servers have two counters per memory channel, of 16 channels */
#define MOST_COUNTERS 16
#define MOST_NAME_BYTES 32

/* What read(2) of an event returns, in the kernel's order. */
struct reading {
	uint64_t value;
	uint64_t enabled_ns;
	uint64_t running_ns;
};

static struct source {
	unsigned int counter;
	int file;
	bool is_event;
	uint64_t range;		/* value at which a file's number wraps; 0: never */
	struct reading begin;
} sources[MOST_SOURCES];
static unsigned int nr_sources;

static struct counter {
	char name[MOST_NAME_BYTES];
	const char *refused;	/* name of the error; NULL: it counts */
	uint64_t value;
	bool is_known;		/* @value is valid for the last span */
} counters[MOST_COUNTERS];
static unsigned int nr_counters;

static unsigned int counter_of(const char *name, size_t length)
{
	if (!length || length >= MOST_NAME_BYTES)
		die(RUNNER_USAGE, "--counter %s: no name, or too long a one", name);
	for (unsigned int i = 0; i < nr_counters; i++)
		if (strlen(counters[i].name) == length && !strncmp(name, counters[i].name, length))
			return i;
	if (nr_counters == MOST_COUNTERS)
		die(RUNNER_USAGE, "--counter %s: more than %d counters", name, MOST_COUNTERS);
	memcpy(counters[nr_counters].name, name, length);
	return nr_counters++;
}

/* Count our threads in user space or, with a CPU given, all that this CPU does. */
static int open_event(const char *text, const char *what)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	int type, cpu = -1, nr_read = 0;
	unsigned long long config;

	if (sscanf(what, "%d:%llx%n:%d%n", &type, &config, &nr_read, &cpu, &nr_read) < 2 ||
	    what[nr_read])
		die(RUNNER_USAGE, "--counter %s: not NAME=TYPE:CONFIG[:CPU]", text);
	attr.type = (unsigned int)type;
	attr.config = config;
	attr.inherit = cpu < 0;
	attr.exclude_kernel = cpu < 0;
	attr.exclude_hv = cpu < 0;
	return (int)syscall(SYS_perf_event_open, &attr, cpu < 0 ? 0 : -1, cpu, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

static int open_file(const char *what, uint64_t *range)
{
	const char *colon = strrchr(what, ':');
	char path[256];

	snprintf(path, sizeof(path), "%.*s",
		 (int)(colon ? colon - what : (ptrdiff_t)strlen(what)), what);
	*range = colon ? strtoull(colon + 1, NULL, 10) : 0;
	return open(path, O_RDONLY | O_CLOEXEC);
}

void counters_open(const char *text)
{
	const char *what = strchr(text, '=');
	struct source *source = &sources[nr_sources];

	if (!what)
		die(RUNNER_USAGE, "--counter %s: not NAME=SOURCE", text);
	if (nr_sources == MOST_SOURCES)
		die(RUNNER_USAGE, "--counter %s: more than %d sources", text, MOST_SOURCES);
	source->counter = counter_of(text, (size_t)(what++ - text));
	source->is_event = *what != '@';
	source->file = source->is_event ? open_event(text, what)
					: open_file(what + 1, &source->range);
	if (source->file < 0)
		counters[source->counter].refused = strerrorname_np(errno);
	else
		nr_sources++;
}

void counters_print_refused(void)
{
	bool first = true;

	for (unsigned int i = 0; i < nr_counters; i++) {
		if (!counters[i].refused)
			continue;
		printf("%s\"%s\": \"%s\"", first ? "{\"refused\": {" : ", ", counters[i].name,
		       counters[i].refused);
		first = false;
	}
	if (!first)
		puts("}}");
}

static bool read_source(const struct source *source, struct reading *reading)
{
	char text[32];
	ssize_t length;

	if (source->is_event)
		return read(source->file, reading, sizeof(*reading)) == sizeof(*reading);
	length = pread(source->file, text, sizeof(text) - 1, 0);
	if (length <= 0)
		return false;
	text[length] = '\0';
	*reading = (struct reading){ .value = strtoull(text, NULL, 10) };
	return true;
}

void counters_begin(void)
{
	for (unsigned int i = 0; i < nr_counters; i++) {
		counters[i].value = 0;
		counters[i].is_known = !counters[i].refused;
	}
	for (unsigned int i = 0; i < nr_sources; i++)
		if (!read_source(&sources[i], &sources[i].begin))
			counters[sources[i].counter].is_known = false;
}

/*
 * A multiplexed event did not count all the time. Scaling it up would be a guess,
 * so its value is unknown then.
 */
static bool went(const struct source *source, uint64_t *value)
{
	const struct reading *begin = &source->begin;
	struct reading end;

	if (!read_source(source, &end) ||
	    end.enabled_ns - begin->enabled_ns != end.running_ns - begin->running_ns)
		return false;
	*value = end.value - begin->value;
	if (end.value < begin->value)
		*value += source->range + 1;
	return end.value >= begin->value || source->range;
}

void counters_end(void)
{
	for (unsigned int i = 0; i < nr_sources; i++) {
		struct counter *counter = &counters[sources[i].counter];
		uint64_t value = 0;

		counter->is_known = went(&sources[i], &value) && counter->is_known;
		counter->value += value;
	}
}

void counters_print(void)
{
	for (unsigned int i = 0; i < nr_counters; i++)
		if (counters[i].is_known)
			printf("\"counter_%s\": %llu, ", counters[i].name,
			       (unsigned long long)counters[i].value);
}
