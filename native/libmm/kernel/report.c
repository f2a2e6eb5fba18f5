// SPDX-License-Identifier: GPL-2.0-only
/* The report of a run: lines of JSON, which include messages of the kernel. */
#include <linux/kernel.h>
#include <linux/printk.h>
#include <linux/stdarg.h>
#include "hosted.h"
#include "steps.h"

#define MOST_ALARMS 25	/* report no more: later ones are consequences of the first */

unsigned long nr_alarms;
bool goes_on_after_alarms;	/* each rule then raises at most one alarm */

static char text[1024], line[1280];

/* Replace the characters that a JSON string cannot contain. */
static void clean(char *at)
{
	for (; *at; at++)
		if (*at < ' ' || *at == '"' || *at == '\\')
			*at = ' ';
}

static void format_text(const char *format, va_list arguments)
{
	vscnprintf(text, sizeof(text), format, arguments);
	clean(text);
}

void report(const char *format, ...)
{
	va_list arguments;
	size_t bytes;

	va_start(arguments, format);
	bytes = vscnprintf(line, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	line[bytes] = '\n';
	line[bytes + 1] = '\0';
	host_report(line);
}

/* The format string identifies a rule, together with its first argument if that is a name. */
static bool is_new_rule(const char *format, const char *name)
{
	static struct {
		const char *format, *name;
	} raised[MOST_ALARMS];
	unsigned long i;

	for (i = 0; i < MOST_ALARMS && raised[i].format; i++)
		if (raised[i].format == format && raised[i].name == name)
			return false;
	if (i == MOST_ALARMS)
		return false;
	raised[i].format = format;
	raised[i].name = name;
	return true;
}

void wrong(const char *format, ...)
{
	va_list arguments;
	bool is_told;

	va_start(arguments, format);
	format_text(format, arguments);
	va_end(arguments);
	nr_alarms++;
	if (goes_on_after_alarms) {
		va_start(arguments, format);
		is_told = is_new_rule(format, strncmp(format, "%s", 2) ? NULL :
				      va_arg(arguments, const char *));
		va_end(arguments);
	} else {
		is_told = nr_alarms <= MOST_ALARMS;
	}
	if (is_told)
		report("{\"alarm\": \"%s\", \"line\": %u}", text, line_under_way());
}

void give_up(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	format_text(format, arguments);
	va_end(arguments);
	report("{\"end\": \"%s\", \"line\": %u}", text, line_under_way());
	host_exit(LIBMM_CRASHED);
}

/* Whether a message of the kernel reports a bug. SLUB's begin with "BUG " and a cache name. */
static bool is_of_alarm(const char *words)
{
	static const char *const begins[] = { "BUG:", "BUG ", "UBSAN:", "pagealloc:" };
	unsigned int i;

	/* badpages[1] of union swap_header really extends to the end of the page. */
	if (strstr(words, "array-index-out-of-bounds") && strstr(words, "swapfile.c"))
		return false;
	for (i = 0; i < ARRAY_SIZE(begins); i++)
		if (strstarts(words, begins[i]))
			return true;
	return false;
}

/* Messages of level KERN_NOTICE and below are dropped, and so are continuations. */
int _printk(const char *format, ...)
{
	va_list arguments;
	const char *words;
	int level;

	HOST_STUB("custom");
	va_start(arguments, format);
	vscnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	level = printk_get_level(text);
	words = printk_skip_level(text);
	if (level >= KERN_NOTICE[1] || level == KERN_CONT[1] || !*words)
		return 0;
	clean(text);
	report("{\"kernel\": \"%s\", \"line\": %u}", words, line_under_way());
	if (is_of_alarm(words) && !nr_alarms++)
		report("{\"alarm\": \"the kernel says: %s\", \"line\": %u}", words,
		       line_under_way());
	return 0;
}

void __warn_printk(const char *format, ...)
{
	va_list arguments;

	HOST_STUB("custom");
	va_start(arguments, format);
	format_text(format, arguments);
	va_end(arguments);
	report("{\"kernel\": \"%s\", \"line\": %u}", text, line_under_way());
}

void panic(const char *format, ...)
{
	va_list arguments;

	HOST_STUB("custom");
	va_start(arguments, format);
	format_text(format, arguments);
	va_end(arguments);
	report("{\"end\": \"the kernel panics: %s\", \"line\": %u}", text, line_under_way());
	host_exit(LIBMM_CRASHED);
}
