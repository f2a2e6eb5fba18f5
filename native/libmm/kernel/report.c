// SPDX-License-Identifier: GPL-2.0-only
/* What a run says: lines of JSON, and what the kernel itself says beside them. */
#include <linux/kernel.h>
#include <linux/printk.h>
#include <linux/stdarg.h>
#include "hosted.h"
#include "steps.h"

#define MOST_ALARMS 25	/* reported; what follows the first ones follows from them */

unsigned long nr_alarms;

static char text[1024], line[1280];

/* As a string of JSON. */
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

void wrong(const char *format, ...)
{
	va_list arguments;

	if (nr_alarms++ >= MOST_ALARMS)
		return;
	va_start(arguments, format);
	format_text(format, arguments);
	va_end(arguments);
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

/* News are not told, nor what goes on with a line. */
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
	if (!strncmp(words, "BUG:", 4) && !nr_alarms++)
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
