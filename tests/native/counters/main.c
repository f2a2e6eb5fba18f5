// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two spans with the counters that the command line names, for tests without
 * a kernel: the first touches no page, the second touches 64 of them, half in
 * a thread. Prints for each what the counters say.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "counters.h"
#include "program.h"

#define PAGE_BYTES 4096UL
#define NR_PAGES 64UL

void die(enum runner_exit code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	exit(code);
}

static void *touch_half(void *start)
{
	for (unsigned long i = 0; i < NR_PAGES / 2; i++)
		memset((char *)start + i * PAGE_BYTES, 1, 8);
	return start;	/* and so the stores are not left out */
}

static void print_span(const char *name)
{
	printf("{\"span\": \"%s\", ", name);
	counters_print();
	puts("\"end\": true}");
}

int main(int argc, char **argv)
{
	char *pages = mmap(NULL, NR_PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	madvise(pages, NR_PAGES * PAGE_BYTES, MADV_NOHUGEPAGE);
	for (int i = 1; i < argc; i++)
		counters_open(argv[i]);
	counters_print_refused();

	/* Once for what the calls themselves touch. */
	counters_begin();
	counters_end();
	counters_begin();
	counters_end();
	print_span("nothing");

	counters_begin();
	pthread_create(&thread, NULL, touch_half, pages + NR_PAGES / 2 * PAGE_BYTES);
	touch_half(pages);
	pthread_join(thread, NULL);
	counters_end();
	print_span("pages");
	return 0;
}
