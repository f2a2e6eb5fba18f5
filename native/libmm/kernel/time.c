// SPDX-License-Identifier: GPL-2.0-only
/* Time, which passes only when no task can run, and timers. */
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/timekeeping.h>
#include <linux/timer.h>
#include "hosted.h"

#define READING_NS 1000	/* each read of a clock advances it by this */

u64 jiffies_64 __cacheline_aligned_in_smp = INITIAL_JIFFIES;
asm(".globl jiffies\n.set jiffies, jiffies_64");

unsigned long loops_per_jiffy = 1;
int timekeeping_suspended;
static u64 read_ns;	/* sum over all reads of a clock */

ktime_t ktime_get(void)
{
	u64 ticks = jiffies_64;

	HOST_STUB("custom");
	ticks -= INITIAL_JIFFIES;
	read_ns += READING_NS;
	return ticks * TICK_NSEC + read_ns;
}

ktime_t ktime_get_with_offset(enum tk_offsets offset)
{
	HOST_STUB("custom");
	return ktime_get();
}

u64 ktime_get_mono_fast_ns(void)
{
	HOST_STUB("custom");
	return ktime_get();
}

void ktime_get_coarse_real_ts64(struct timespec64 *to)
{
	HOST_STUB("custom");
	*to = ns_to_timespec64(ktime_get());
}

NEWER_NAME(ktime_get_coarse_real_ts64_mg, ktime_get_coarse_real_ts64);

void ktime_get_real_ts64(struct timespec64 *to)
{
	HOST_STUB("custom");
	*to = ns_to_timespec64(ktime_get());
}

NEWER_NAME(ktime_get_real_ts64_mg, ktime_get_real_ts64);

time64_t ktime_get_real_seconds(void)
{
	HOST_STUB("custom");
	return div_u64(ktime_get(), NSEC_PER_SEC);
}

time64_t ktime_get_seconds(void)
{
	HOST_STUB("custom");
	return div_u64(ktime_get(), NSEC_PER_SEC);
}

unsigned long round_jiffies_relative(unsigned long ticks)
{
	HOST_STUB("stubbed");
	return ticks;
}

/* --- timers, sorted by expiry ------------------------------------------ */

static HLIST_HEAD(timers);

void init_timer_key(struct timer_list *timer, void (*function)(struct timer_list *),
		    unsigned int flags, const char *name, struct lock_class_key *key)
{
	HOST_STUB("duplicated");
	timer->entry.pprev = NULL;
	timer->function = function;
	timer->flags = flags;
}

NEWER_NAME(timer_init_key, init_timer_key);

void add_timer(struct timer_list *timer)
{
	struct hlist_node *last = NULL;
	struct timer_list *one;

	HOST_STUB("custom");
	hlist_for_each_entry(one, &timers, entry) {
		if (time_after(one->expires, timer->expires))
			break;
		last = &one->entry;
	}
	if (last)
		hlist_add_behind(&timer->entry, last);
	else
		hlist_add_head(&timer->entry, &timers);
}

int timer_delete(struct timer_list *timer)
{
	HOST_STUB("custom");
	if (!timer_pending(timer))
		return 0;
	hlist_del_init(&timer->entry);
	return 1;
}

/* There is one thread, so no timer function can be running at the same time. */
int timer_delete_sync(struct timer_list *timer)
{
	HOST_STUB("custom");
	return timer_delete(timer);
}

int mod_timer(struct timer_list *timer, unsigned long expires)
{
	int was_pending = timer_delete(timer);

	HOST_STUB("custom");
	timer->expires = expires;
	add_timer(timer);
	return was_pending;
}

u64 next_timer(void)
{
	struct timer_list *timer = hlist_entry_safe(timers.first, struct timer_list, entry);

	if (!timer)
		return U64_MAX;
	return time_after(timer->expires, jiffies) ? jiffies_64 + (timer->expires - jiffies) :
						     jiffies_64;
}

void run_timers(void)
{
	struct timer_list *timer;

	while ((timer = hlist_entry_safe(timers.first, struct timer_list, entry)) &&
	       time_after_eq(jiffies, timer->expires)) {
		hlist_del_init(&timer->entry);
		timer->function(timer);
	}
}

/* --- high-resolution timers, which expire at once ---------------------- */

#ifdef CONFIG_KVFREE_RCU_BATCHED	/* the only user of hrtimers here */
void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *),
		   clockid_t clock, enum hrtimer_mode mode)
{
	HOST_STUB("duplicated");
	ACCESS_PRIVATE(timer, function) = function;
}

void hrtimer_start_range_ns(struct hrtimer *timer, ktime_t at, u64 range_ns,
			    const enum hrtimer_mode mode)
{
	HOST_STUB("custom");
	ACCESS_PRIVATE(timer, function)(timer);
}
#endif
