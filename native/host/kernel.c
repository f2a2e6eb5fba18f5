// SPDX-License-Identifier: GPL-2.0-only
/* Boot the kernels that are linked into this program, and set up their CPUs. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "program.h"

void die(enum runner_exit code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	fflush(stdout);
	_exit(code);
}

/*
 * Initial contents of a per-CPU area, copied before CPU 0 wrote to its own; and
 * the offset of each CPU's area. Areas are never freed: they hold the counts.
 */
static char *pristine_area;
static unsigned long area_offset[HOST_MOST_CPUS];
static unsigned int nr_areas;

/*
 * Per-CPU symbols are linked at the area of CPU 0, so its offset is 0. The other
 * CPUs have copies, and their offsets lead from CPU 0's area to these.
 */
void kernel_enter_cpu(unsigned int cpu)
{
	size_t bytes = (size_t)(__stop_percpu - __start_percpu);
	unsigned long offset = 0;

	if (cpu) {
		char *area = host_alloc(bytes);

		memcpy(area, pristine_area, bytes);
		offset = (unsigned long)area - (unsigned long)__start_percpu;
	}
	area_offset[cpu] = offset;
	__atomic_fetch_add(&nr_areas, 1, __ATOMIC_RELAXED);
	arch_enter_cpu(offset);
	for (struct host_kernel *const *kernel = __start_ream_kernels;
	     kernel < __stop_ream_kernels; kernel++)
		(*kernel)->init_cpu(cpu, offset);
}

void kernel_boot_all(const struct host_machine *machine)
{
	size_t bytes = (size_t)(__stop_percpu - __start_percpu);
	const unsigned int *capability = NULL;

	arch_host_kernels();
	pristine_area = memcpy(host_alloc(bytes), __start_percpu, bytes);
	for (struct host_kernel *const *kernel = __start_ream_kernels;
	     kernel < __stop_ream_kernels; kernel++)
		capability = (*kernel)->boot(machine);	/* the same for all */
	alternatives_apply(capability);
	kernel_enter_cpu(0);
}

unsigned long kernel_nr_calls(const struct host_stub *stub)
{
	unsigned long nr = 0;

	/* CPU numbers are contiguous, because pool_start() waits for all CPUs. */
	for (unsigned int cpu = 0; cpu < nr_areas; cpu++)
		nr += *(unsigned long *)((char *)stub->nr_calls + area_offset[cpu]);
	return nr;
}

FROM_KERNEL void *host_alloc(unsigned long bytes)
{
	size_t rounded = (bytes + 63) & ~63UL;
	void *memory = aligned_alloc(64, rounded);

	if (!memory)
		die(RUNNER_NO_RESOURCE, "no memory for %lu bytes", bytes);
	return memset(memory, 0, rounded);
}

FROM_KERNEL void host_free(void *memory)
{
	free(memory);
}

FROM_KERNEL void host_say(const char *text)
{
	fprintf(stderr, "kernel: %s%s", text,
		text[0] && text[strlen(text) - 1] == '\n' ? "" : "\n");
}
