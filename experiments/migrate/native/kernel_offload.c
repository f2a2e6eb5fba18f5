// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the migrate experiment: who copies, in kernels that leave a choice, and
 * what providers need of the rest of the kernel. Their parameters are set as
 * by a write to /sys/module.
 */
#include "migrate.h"
#include "migrate_kernel.h"

#ifdef CONFIG_MIGRATION_COPY_OFFLOAD

#include <linux/atomic.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>
#include "interrupts.h"
#include "kernel.h"
#include "locks.h"
#include "params.h"

/* The clock of the program around us; whoever polls it takes interrupts. */
ktime_t ktime_get(void)
{
	HOST_STUB("custom");
	host_take_interrupts();
	return host_now_ns();
}

/* What is said over and over again is counted, too. */
int ___ratelimit(struct ratelimit_state *state, const char *function)
{
	HOST_STUB("custom");
	return 0;
}

/* There is no such memory. */
bool is_vmalloc_addr(const void *address)
{
	HOST_STUB("duplicated");
	return false;
}

/* As __kmalloc_noprof() of native/host/kernel/custom.c. */
void *__kmalloc_node_noprof(DECL_BUCKET_PARAMS(size, buckets), gfp_t flags,
			    int node)
{
	HOST_STUB("custom");
	return host_alloc(size);
}

void *__kmalloc_large_noprof(size_t size, gfp_t flags)
{
	HOST_STUB("custom");
	return host_alloc(size);
}

#ifdef HAVE_KVMALLOC_NODE_ALIGN
/* Nothing is so large here that it needs vmalloc(). */
void *__kvmalloc_node_noprof(DECL_KMALLOC_PARAMS(size, buckets, token),
			     unsigned long align, gfp_t flags, int node)
{
	HOST_STUB("custom");
	return host_alloc(size);
}

void kvfree(const void *object)
{
	HOST_STUB("custom");
	kfree(object);
}
#endif

static void set(const char *name, unsigned long value)
{
	char text[24], *digit = text + sizeof(text);

	*--digit = '\0';
	do {
		*--digit = '0' + value % 10;
		value /= 10;
	} while (value);
	/* A parameter that is refused would measure something else. */
	WARN_ON(host_set_param(name, digit));
}

static void load_modules(void)
{
	static bool are_loaded;

	if (are_loaded)
		return;
	are_loaded = true;
	if (IS_ENABLED(CONFIG_DCBM_DMA)) {
		WARN_ON(swdma_init());
		WARN_ON(dcbm_init());
	}
	if (IS_ENABLED(CONFIG_MTCOPY))
		WARN_ON(mtcopy_init());
}

static const char *const provider_params[MIGRATE_NR_ENGINES][3] = {
	[MIGRATE_THREADS] = {
		"mtcopy.nr_threads", "mtcopy.offloading", "mtcopy.folios_migrated",
	},
	[MIGRATE_DMA] = {
		"dcbm.nr_dma_chan", "dcbm.offloading", "dcbm.folios_migrated",
	},
};

enum { PARAM_CHANNELS, PARAM_ON, PARAM_COUNT };

/* What is switched on, and with how many channels. */
static enum migrate_engine engine;
static unsigned int nr_channels;
static bool is_model;
static const long no_faults[MIGRATE_NR_FAULTS];
static long faults[MIGRATE_NR_FAULTS];

static void switch_off(void)
{
	if (engine != MIGRATE_SERIAL)
		set(provider_params[engine][PARAM_ON], 0);
	engine = MIGRATE_SERIAL;
}

static void switch_on(enum migrate_engine wanted,
		      const struct migrate_request *request)
{
	const char *reasons = wanted == MIGRATE_DMA ? "dcbm.reasons" : "mtcopy.reasons";

	/* Each channel copies a page first, from one frame to the next. */
	migrate_reset(request);
	set(provider_params[wanted][PARAM_CHANNELS], request->channels);
	WARN_ON(host_set_param(reasons, "all"));
	set(provider_params[wanted][PARAM_ON], 1);
	engine = wanted;
	nr_channels = request->channels;
}

/* Which channel vanishes, and that it is there again, needs new channels. */
static bool set_faults(const long *wanted)
{
	static const char *const names[MIGRATE_NR_FAULTS] = {
		[MIGRATE_FAIL_AT] = "swdma.fail_at",
		[MIGRATE_SHORT_AT] = "swdma.short_at",
		[MIGRATE_SILENT_AT] = "swdma.silent_at",
		[MIGRATE_STALL_AT] = "swdma.stall_at",
		[MIGRATE_VANISH_AT] = "swdma.vanish_at",
		[MIGRATE_STALL_MS] = "swdma.stall_ms",
		[MIGRATE_REORDER] = "swdma.reorder",
		[MIGRATE_TIMEOUT_MS] = "dcbm.timeout_ms",
	};
	bool any = false;
	int i;

	for (i = 0; i < MIGRATE_NR_FAULTS; i++) {
		if (!wanted[i] && !faults[i])
			continue;
		any = true;
		/* No time-out at all is not among the values: then it is the usual one. */
		set(names[i], wanted[i] ?: i == MIGRATE_TIMEOUT_MS ? 10000 : 0);
		faults[i] = wanted[i];
	}
	return any;
}

void migrate_choose(const struct migrate_request *request)
{
	enum migrate_engine wanted = request->engine;

	host_shares_cpus = request->shares_cpus;
	load_modules();
	if (wanted == MIGRATE_THREADS && !IS_ENABLED(CONFIG_MTCOPY))
		wanted = MIGRATE_DMA;
	if (wanted == MIGRATE_DMA && !IS_ENABLED(CONFIG_DCBM_DMA))
		wanted = MIGRATE_SERIAL;
	if (wanted != engine || nr_channels != request->channels ||
	    is_model != !!request->mb_per_s)
		switch_off();
	is_model = request->mb_per_s;
	if (IS_ENABLED(CONFIG_DCBM_DMA))
		migrate_choose_device(request);
	if (IS_ENABLED(CONFIG_DCBM_DMA) && set_faults(no_faults))
		switch_off();
	/* Its copy past the caches does not ask kernel_custom.c what cannot be read. */
	if (IS_ENABLED(CONFIG_DCBM_DMA))
		set("swdma.streaming", !request->nr_poisoned);
	if (wanted != engine)
		switch_on(wanted, request);
	/* Not in what a channel copies for a trial. */
	if (IS_ENABLED(CONFIG_DCBM_DMA))
		set_faults(request->faults);
	if (engine != MIGRATE_SERIAL)
		set(provider_params[engine][PARAM_COUNT], 0);
}

void migrate_settle(void)
{
	if (IS_ENABLED(CONFIG_DCBM_DMA) && is_model)
		model_settle();
}

unsigned long migrate_nr_offloaded(void)
{
	const struct kernel_param *count;

	if (engine == MIGRATE_SERIAL)
		return 0;
	count = host_param(provider_params[engine][PARAM_COUNT]);
	return atomic_long_read(count->arg);
}

enum migrate_engine migrate_engine_in_use(void)
{
	return engine;
}

#else

void migrate_choose(const struct migrate_request *request)
{
}

void migrate_settle(void)
{
}

unsigned long migrate_nr_offloaded(void)
{
	return 0;
}

enum migrate_engine migrate_engine_in_use(void)
{
	return MIGRATE_SERIAL;
}

#endif /* CONFIG_MIGRATION_COPY_OFFLOAD */
