// SPDX-License-Identifier: GPL-2.0-only
/* At EL1: what of a C library the runners and kernels use, and what a host of kernels offers. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "home.h"

#define TEXT_BYTES 512

FILE *stderr;

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((char *)to)[i] = ((const char *)from)[i];
	return to;
}

void *memset(void *to, int value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((char *)to)[i] = (char)value;
	return to;
}

int memcmp(const void *a, const void *b, size_t bytes)
{
	const unsigned char *one = a, *other = b;

	for (; bytes; one++, other++, bytes--)
		if (*one != *other)
			return *one - *other;
	return 0;
}

size_t strlen(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

size_t strcspn(const char *text, const char *ends)
{
	size_t length = 0;

	while (text[length] && text[length] != *ends)
		length++;
	return length;
}

unsigned long strtoul(const char *restrict text, char **restrict end, int base)
{
	unsigned long value = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		value = value * (unsigned long)base + (unsigned long)(*text - '0');
	if (end)
		*end = (char *)text;
	return value;
}

long strtol(const char *restrict text, char **restrict end, int base)
{
	bool minus = *text == '-';
	long value = (long)strtoul(text + minus, end, base);

	return minus ? -value : value;
}

static size_t put_number(char *to, unsigned long value, unsigned int base)
{
	char digits[24];
	size_t nr = 0;

	do
		digits[nr++] = "0123456789abcdef"[value % base];
	while (value /= base);
	for (size_t i = 0; i < nr; i++)
		to[i] = digits[nr - 1 - i];
	return nr;
}

/* Text, and numbers that are taken for long ones and not negative: enough to look at. */
int vsnprintf(char *to, size_t bytes, const char *format, va_list arguments)
{
	size_t at = 0;

	for (; *format && at + 24 < bytes; format++) {
		if (*format != '%') {
			to[at++] = *format;
			continue;
		}
		do
			format++;
		while (strchr("#lz0123456789", *format));
		if (*format == 's') {
			const char *text = va_arg(arguments, const char *);

			while (*text && at + 24 < bytes)
				to[at++] = *text++;
		} else {
			at += put_number(to + at, va_arg(arguments, unsigned long),
					 *format == 'x' ? 16 : 10);
		}
	}
	to[at] = '\0';
	return (int)at;
}

char *strchr(const char *text, int wanted)
{
	for (; *text; text++)
		if (*text == wanted)
			return (char *)text;
	return NULL;
}

int snprintf(char *restrict to, size_t bytes, const char *restrict format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(to, bytes, format, arguments);
	va_end(arguments);
	return length;
}

int fprintf(FILE *restrict stream, const char *restrict format, ...)
{
	char text[TEXT_BYTES];
	va_list arguments;
	int length;

	(void)stream;
	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	say(text);
	return length;
}

void die(enum runner_exit code, const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	say(text);
	say("\n");
	leave(code);
}

int *__errno_location(void)
{
	static int number;

	return &number;
}

char *strerror(int number)
{
	(void)number;
	return "error";
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	*now = (struct timespec){ 0 };
	return 0;
}

void __clear_cache(void *start, void *end)
{
	(void)start;
	(void)end;
	asm volatile("dsb ish\n\tic ialluis\n\tdsb ish\n\tisb" : : : "memory");
}

void host_say(const char *text)
{
	say(text);
}

/* One CPU has nobody to wait for, and no row here asks for another. */
static _Noreturn void not_here(const char *name)
{
	die(RUNNER_USAGE, "%s: not at EL1", name);
}

void host_submit(void (*run)(void *job), void *job)
{
	(void)run;
	(void)job;
	not_here(__func__);
}

void host_drain(void)
{
	not_here(__func__);
}

void host_yield(void)
{
	not_here(__func__);
}

void host_sleep(unsigned int *word, unsigned int value)
{
	(void)word;
	(void)value;
	not_here(__func__);
}

void host_sleep_for(unsigned int *word, unsigned int value, unsigned long ns)
{
	(void)word;
	(void)value;
	(void)ns;
	not_here(__func__);
}

void host_wake(unsigned int *word)
{
	(void)word;
	not_here(__func__);
}

int host_cancel(void *job)
{
	(void)job;
	return 0;
}

int host_withdraw(void *job)
{
	(void)job;
	return 0;
}

unsigned long host_now_ns(void)
{
	return 0;
}
