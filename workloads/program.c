// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "marks.h"
#include "program.h"

#define NS_PER_S 1000000000ULL
#define LINE_ROOM 256

void die(int code, const char *format, ...)
{
	va_list values;

	fflush(stdout);
	fprintf(stderr, "%s: ", program_name);
	va_start(values, format);
	vfprintf(stderr, format, values);
	va_end(values);
	fputc('\n', stderr);
	exit(code);
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* The clock goes on between any two, so no two have one name. */
void timed_begin(struct timed *timed)
{
	timed->window = now_ns();
	mark_name(timed->window);
	timed->began_ns = now_ns();
	mark_begin();
}

void timed_end(struct timed *timed)
{
	mark_end();
	timed->time_ns = now_ns() - timed->began_ns;
}

void timed_print(const struct timed *timed)
{
	printf("\"time_ns\":%llu,\"window\":%llu", (unsigned long long)timed->time_ns,
	       (unsigned long long)timed->window);
}

uint64_t mixed(uint64_t value)
{
	/* splitmix64 */
	value += 0x9e3779b97f4a7c15ULL;
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
	return value ^ (value >> 31);
}

unsigned long number_of(const char *option, const char *text)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno)
		die(EXIT_USAGE, "%s %s: not a number", option, text);
	return number;
}

bool one_of(const char *option, const char *value, const char *yes, const char *no)
{
	if (strcmp(value, yes) && strcmp(value, no))
		die(EXIT_USAGE, "%s %s: %s or %s", option, value, yes, no);
	return !strcmp(value, yes);
}

/* The option of that name, or the end of the table, which sets nothing. */
static const struct word *word_of(const struct word *words, const char *name)
{
	while (words->name && strcmp(name, words->name))
		words++;
	return words;
}

void read_words(char **argv, const struct word *words,
		bool (*option)(void *options, const char *name, char *value), void *options)
{
	for (argv++; *argv; argv++) {
		const struct word *word = word_of(words, *argv);

		if (word->flag) {
			*word->flag = true;
			continue;
		}
		if (!argv[1])
			die(EXIT_USAGE, "%s: unknown, or lacks its value", *argv);
		if (word->number)
			*word->number = number_of(argv[0], argv[1]);
		else if (word->text)
			*word->text = argv[1];
		else if (!option || !option(options, argv[0], argv[1]))
			die(EXIT_USAGE, "%s: not an option of ours", *argv);
		argv++;
	}
}

const char *first_line(const char *path)
{
	static char line[LINE_ROOM];
	FILE *file = fopen(path, "re");
	char *got;

	if (!file)
		return NULL;
	got = fgets(line, sizeof(line), file);
	fclose(file);
	if (!got)
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return line;
}

void run_on_cpu(unsigned long cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		die(EXIT_CANNOT_RUN, "run on CPU %lu: %s", cpu,
		    strerror(errno));
}

void set_oom_score(long score)
{
	FILE *file = fopen("/proc/self/oom_score_adj", "we");

	if (!file || fprintf(file, "%ld", score) < 0 || fclose(file))
		die(EXIT_CANNOT_RUN, "/proc/self/oom_score_adj, %ld: %s", score,
		    strerror(errno));
}
