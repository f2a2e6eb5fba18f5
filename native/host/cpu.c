// SPDX-License-Identifier: GPL-2.0-only
/* The machine, as CPUID and the scheduler describe it. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include "program.h"

static unsigned int usable[HOST_MOST_CPUS];
static unsigned int nr_usable;
static unsigned int nr_real;
static bool pins;
static struct host_machine machine;

/*
 * Word numbers of x86_capability that are a CPUID register as it stands.
 * Source: arch/x86/include/asm/cpufeature.h, enum cpuid_leafs.
 */
static void read_capability(unsigned int *word)
{
	unsigned int a, b, c, d;

	if (__get_cpuid(1, &a, &b, &c, &d)) {
		word[0] = d;
		word[4] = c;
		machine.clflush_bytes = (b >> 8 & 0xff) * 8;
	}
	if (__get_cpuid(0x80000001, &a, &b, &c, &d)) {
		word[1] = d;
		word[6] = c;
	}
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
		unsigned int subleaves = a;

		word[9] = b;
		word[16] = c;
		word[18] = d;
		if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
			word[12] = a;
	}
}

unsigned int cpu_nr_real(void)
{
	return nr_real;
}

void cpu_pin(unsigned int cpu)
{
	cpu_set_t set;
	unsigned int real = usable[cpu % nr_usable];

	if (!pins)
		return;
	CPU_ZERO(&set);
	CPU_SET(real, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die(RUNNER_NO_RESOURCE, "cannot pin to CPU %u: %s", real, strerror(errno));
}

const struct host_machine *cpu_machine(unsigned int nr_cpus, bool all_real)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		die(RUNNER_NO_RESOURCE, "cannot read the CPU mask: %s", strerror(errno));
	if (nr_cpus > HOST_MOST_CPUS)
		die(RUNNER_USAGE, "%u CPUs: a kernel has %u at most", nr_cpus, HOST_MOST_CPUS);
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE && nr_usable < HOST_MOST_CPUS; cpu++)
		if (CPU_ISSET(cpu, &allowed) && (!nr_cpus || nr_usable < nr_cpus))
			usable[nr_usable++] = cpu;
	machine.nr_cpus = nr_cpus ? nr_cpus : nr_usable;
	pins = !all_real;
	nr_real = all_real ? machine.nr_cpus : nr_usable;
	read_capability(machine.capability);
	cpu_pin(0);
	return &machine;
}
