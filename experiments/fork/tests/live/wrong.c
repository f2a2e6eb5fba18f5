// SPDX-License-Identifier: GPL-2.0-only
/*
 * System calls that do other than they should, one for each --wrap that the
 * linker is given: the workload has to notice.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "wrong.h"

static pid_t workload;

__attribute__((constructor))
static void remember(void)
{
	workload = getpid();
}

/* Maps every page once more than it should. */
pid_t __wrap_fork(void)
{
	if (!__real_fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	return __real_fork();
}

/* Leaves the last 2 MiB. */
int __wrap_munmap(void *at, size_t nr_bytes)
{
	return __real_munmap(at, nr_bytes - BLOCK_BYTES);
}

/* Drops no page, and splits no mapping of a huge one. */
int __wrap_madvise(void *at, size_t nr_bytes, int advice)
{
	if (advice == MADV_DONTNEED || advice == MADV_DONTFORK)
		return 0;
	return __real_madvise(at, nr_bytes, advice);
}

/* A child finds other contents in its first page. */
bool __wrap_folios_hold(const struct folios *folios)
{
	if (getpid() != workload)
		++*folios->at;
	return __real_folios_hold(folios);
}
