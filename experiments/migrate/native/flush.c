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

#define NR_FLUSHES 10000U
#define PATIENCE_NS 5000000000UL
#define CALIBRATION_NS 20000000UL

/**
 * struct flush_job - flushes on one CPU while another may run
 * @page: Of which a right is taken away.
 * @turns: How often the other CPU has looked whether to stop; NULL: it runs nothing.
 * @ns: What flushes took.
 * @nr: How many of these.
 */
struct flush_job {
	unsigned char *page;
	unsigned int *turns;
	unsigned int stop;
	unsigned long ns[NR_FLUSHES];
	unsigned int nr;
};

/*
 * Remove a permission again and again; only that has to reach other CPUs. A
 * flush while the other CPU ran another program is not counted: it reached no
 * thread of ours.
 */
static void time_flushes(struct flush_job *job)
{
	uint64_t end_ns = now_ns() + PATIENCE_NS, start_ns;	/* after the last one counted */

	job->nr = 0;
	for (unsigned int i = 0; job->nr < NR_FLUSHES; i++) {
		unsigned int turns = job->turns ? __atomic_load_n(job->turns, __ATOMIC_ACQUIRE) : 0;

		job->page[0] = (unsigned char)i;
		start_ns = now_ns();
		if (mprotect(job->page, 4096, PROT_READ))
			die(RUNNER_NO_RESOURCE, "cannot change the protection of a page");
		job->ns[job->nr] = now_ns() - start_ns;
		if (!job->turns || __atomic_load_n(job->turns, __ATOMIC_ACQUIRE) != turns) {
			job->nr++;
			end_ns = start_ns + PATIENCE_NS;
		} else if (start_ns > end_ns) {
			die(RUNNER_NO_RESOURCE,
			    "two CPUs do not run at once here: no flush can be timed");
		}
		if (mprotect(job->page, 4096, PROT_READ | PROT_WRITE))
			die(RUNNER_NO_RESOURCE, "cannot change the protection of a page");
	}
}

/* The first CPU flushes; the second runs nothing but this program. */
static void flush_share(void *context, unsigned int index, unsigned int nr)
{
	struct flush_job *job = context;

	(void)nr;
	if (!index) {
		time_flushes(job);
		__atomic_store_n(&job->stop, 1, __ATOMIC_RELEASE);
		return;
	}
	while (!__atomic_load_n(&job->stop, __ATOMIC_ACQUIRE))
		__atomic_fetch_add(job->turns, 1, __ATOMIC_RELEASE);
}

static int by_size(const void *a, const void *b)
{
	unsigned long one = *(const unsigned long *)a, other = *(const unsigned long *)b;

	return one < other ? -1 : one > other;
}

/* The median: a flush that was interrupted took longer. */
static unsigned long middle_ns(struct flush_job *job)
{
	qsort(job->ns, job->nr, sizeof(job->ns[0]), by_size);
	return job->ns[job->nr / 2];
}

unsigned long flush_measure_ns(void)
{
	static struct flush_job job;
	unsigned long alone_ns, beside_ns;
	unsigned int turns = 0;

	/* Where nothing is timed CPUs may well take turns, and none runs beside another. */
	if (launch.nr_cpus < 2 || launch.counts || launch.reaches)
		return 0;
	job.page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (job.page == MAP_FAILED)
		die(RUNNER_NO_RESOURCE, "no memory for a page");
	job.turns = NULL;
	time_flushes(&job);
	alone_ns = middle_ns(&job);
	job.turns = &turns;
	job.stop = 0;
	pool_use(2);
	pool_run(2, flush_share, &job);
	pool_use(0);
	beside_ns = middle_ns(&job);
	munmap(job.page, 4096);
	return beside_ns > alone_ns ? beside_ns - alone_ns : 1;
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
