// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the deferred-init experiment: functions that do nothing, and where that
 * is right.
 */
#include <linux/cpuhotplug.h>
#include <linux/jiffies.h>
#include <linux/mmzone.h>
#include "kernel.h"

/* CPUs neither come nor go; any state but an error is as good as another. */
int __cpuhp_setup_state(enum cpuhp_state state, const char *name, bool invoke,
			int (*startup)(unsigned int cpu),
			int (*teardown)(unsigned int cpu), bool multi_instance)
{
	HOST_STUB("stubbed");
	return 0;
}

#ifdef HAVE_JIFFIES_TO_MSECS_OUTSIDE
/* Time stands still in jiffies; the clock is the program's. */
unsigned int jiffies_to_msecs(const unsigned long j)
{
	HOST_STUB("stubbed");
	return 0;
}
#endif

#ifdef CONFIG_LRU_GEN
/* Nothing is reclaimed, and no page gets an age. */
void lru_gen_init_pgdat(struct pglist_data *pgdat)
{
	HOST_STUB("stubbed");
}

void lru_gen_init_lruvec(struct lruvec *lruvec)
{
	HOST_STUB("stubbed");
}
#endif
