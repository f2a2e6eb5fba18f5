// SPDX-License-Identifier: GPL-2.0-only
/* Pages as a program finds them: what the CPU lets it do. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include "folios.h"
#include "pages.h"

static sigjmp_buf refused;
static int trying;	/* the handler asks it */

static void on_refusal(int number)
{
	if (__atomic_load_n(&trying, __ATOMIC_RELAXED))
		siglongjmp(refused, 1);
	signal(number, SIG_DFL);	/* it comes again, and that is the end */
}

/* SA_NODEFER: siglongjmp() then has no mask to put back, a system call less. */
static void listen_once(void)
{
	const struct sigaction action = {
		.sa_handler = on_refusal,
		.sa_flags = SA_NODEFER,
	};
	static bool done;

	if (done)
		return;
	if (sigaction(SIGSEGV, &action, NULL))
		die(EXIT_FAILED, "sigaction: %s", strerror(errno));
	done = true;
}

static void set_trying(int value)
{
	__atomic_store_n(&trying, value, __ATOMIC_SEQ_CST);
}

/* Atomic accesses, which no compiler leaves out or moves. */
static bool may(uint64_t *word, bool write)
{
	if (sigsetjmp(refused, 0)) {
		set_trying(0);
		return false;
	}
	set_trying(1);
	if (write)
		__atomic_store_n(word, __atomic_load_n(word, __ATOMIC_SEQ_CST),
				 __ATOMIC_SEQ_CST);
	else
		__atomic_load_n(word, __ATOMIC_SEQ_CST);
	set_trying(0);
	return true;
}

static _Noreturn void refuse(size_t page, const char *does, const char *what)
{
	die(EXIT_NOT_VERIFIED, "page %zu %s after %s", page, does, what);
}

static void try_page(size_t page, uint64_t *word, enum access access,
		     const char *what)
{
	bool may_write = access == MAY_WRITE;

	if (access == MAY_NOTHING) {
		if (may(word, false))
			refuse(page, "can be read", what);
		return;
	}
	if (!may(word, false))
		refuse(page, "cannot be read", what);
	if (may(word, true) == may_write)
		return;
	refuse(page, may_write ? "cannot be written" : "can be written", what);
}

static long faults(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		die(EXIT_FAILED, "getrusage: %s", strerror(errno));
	return usage.ru_minflt;
}

long pages_may(const struct pages *pages, size_t first, size_t nr, char *at,
	       enum access access, const char *what)
{
	long before;

	listen_once();
	before = faults();
	for (size_t i = 0; i < nr; i++)
		if (access == MAY_NOTHING || page_was_there(pages, first + i))
			try_page(first + i, (uint64_t *)(at + i * PAGE_BYTES),
				 access, what);
	return faults() - before;
}
