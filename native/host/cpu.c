// SPDX-License-Identifier: GPL-2.0-only
/* The machine, as CPUID and the CPU affinity mask describe it. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <string.h>
#include "program.h"

static unsigned int usable[HOST_MOST_CPUS];
static unsigned int nr_usable;
static unsigned int nr_real;
static bool pins;
static struct host_machine machine;

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
	arch_describe_cpu(&machine);
	cpu_pin(0);
	return &machine;
}
