// SPDX-License-Identifier: GPL-2.0-only
/*
 * The price of a TLB flush of another CPU, which the hosted kernel does not
 * pay: it has no other CPU. Measured on the machine's own kernel.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <x86intrin.h>
#include "flush.h"
#include "launch.h"
#include "program.h"

#define NR_FLUSHES 2000U
#define NR_MEASUREMENTS 7U
#define CALIBRATION_NS 20000000UL

/* Takes a right away again and again; only that has to reach other CPUs. */
static unsigned long time_flushes(unsigned char *page)
{
	uint64_t time_ns = 0;

	for (unsigned int i = 0; i < NR_FLUSHES; i++) {
		uint64_t start_ns;

		page[0] = (unsigned char)i;
		start_ns = now_ns();
		if (mprotect(page, 4096, PROT_READ))
			die(RUNNER_NO_RESOURCE, "cannot change the protection of a page");
		time_ns += now_ns() - start_ns;
		if (mprotect(page, 4096, PROT_READ | PROT_WRITE))
			die(RUNNER_NO_RESOURCE, "cannot change the protection of a page");
	}
	return time_ns / NR_FLUSHES;
}

struct flush_job {
	unsigned char *page;
	unsigned int stop;
	unsigned int runs;
	unsigned long ns;
};

/* The first CPU flushes; the second runs nothing but this program. */
static void flush_share(void *context, unsigned int index, unsigned int nr)
{
	struct flush_job *job = context;

	(void)nr;
	if (!index) {
		while (!__atomic_load_n(&job->runs, __ATOMIC_ACQUIRE))
			_mm_pause();
		job->ns = time_flushes(job->page);
		__atomic_store_n(&job->stop, 1, __ATOMIC_RELEASE);
		return;
	}
	__atomic_store_n(&job->runs, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&job->stop, __ATOMIC_ACQUIRE))
		_mm_pause();
}

static int by_size(const void *a, const void *b)
{
	long difference = *(const long *)a - *(const long *)b;

	return difference > 0 ? 1 : difference < 0 ? -1 : 0;
}

unsigned long flush_measure_ns(void)
{
	long differences[NR_MEASUREMENTS];
	unsigned char *page;

	/* Where CPUs take turns none can run beside another, and no time is measured. */
	if (launch.nr_cpus < 2 || launch.counts)
		return 0;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		die(RUNNER_NO_RESOURCE, "no memory for a page");
	pool_use(2);
	for (unsigned int i = 0; i < NR_MEASUREMENTS; i++) {
		struct flush_job job = { .page = page };
		long alone = (long)time_flushes(page);

		pool_run(2, flush_share, &job);
		differences[i] = (long)job.ns - alone;
	}
	pool_use(0);
	munmap(page, 4096);
	qsort(differences, NR_MEASUREMENTS, sizeof(differences[0]), by_size);
	return differences[NR_MEASUREMENTS / 2] > 0 ?
	       (unsigned long)differences[NR_MEASUREMENTS / 2] : 0;
}

unsigned long flush_ticks(unsigned long ns)
{
	static double ticks_per_ns;

	if (ticks_per_ns == 0) {
		uint64_t start_ns = now_ns(), start = __rdtsc();

		while (now_ns() - start_ns < CALIBRATION_NS)
			_mm_pause();
		ticks_per_ns = (double)(__rdtsc() - start) / (double)(now_ns() - start_ns);
	}
	return (unsigned long)((double)ns * ticks_per_ns);
}
