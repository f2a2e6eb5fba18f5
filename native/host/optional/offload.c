// SPDX-License-Identifier: GPL-2.0-only
/*
 * Choice of the copy provider, in kernels that have one, and what providers need
 * of the rest of the kernel. An experiment uses it if its file `objects` lists
 * ream/offload.o. Parameters are set as by a write to /sys/module.
 */
#include "dma_model.h"

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

/* The clock is that of the program. Reading it takes pending interrupts. */
ktime_t ktime_get(void)
{
	HOST_STUB("custom");
	host_take_interrupts();
	return host_now_ns();
}

/* Suppress all rate-limited messages, since what they report is counted, too. */
int ___ratelimit(struct ratelimit_state *state, const char *function)
{
	HOST_STUB("custom");
	return 0;
}

/* There is no vmalloc memory. */
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
/* No allocation here is so large that it would need vmalloc(). */
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
	/* If a parameter were refused, something else would be measured. */
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

static const char *const provider_params[OFFLOAD_NR_ENGINES][3] = {
	[OFFLOAD_THREADS] = {
		"mtcopy.nr_threads", "mtcopy.offloading", "mtcopy.folios_migrated",
	},
	[OFFLOAD_DMA] = {
		"dcbm.nr_dma_chan", "dcbm.offloading", "dcbm.folios_migrated",
	},
};

enum { PARAM_CHANNELS, PARAM_ON, PARAM_COUNT };

/* The active provider, and its number of channels. */
static enum offload_engine engine;
static unsigned int nr_channels;
static bool is_model;
static unsigned long nr_copied_before;
static const long no_faults[OFFLOAD_NR_FAULTS];
static long faults[OFFLOAD_NR_FAULTS];

/* Folios copied since the module was loaded. The counter cannot be reset. */
static unsigned long nr_copied(void)
{
	const struct kernel_param *count;

	if (engine == OFFLOAD_SERIAL)
		return 0;
	count = host_param(provider_params[engine][PARAM_COUNT]);
	return atomic_long_read(count->arg);
}

static void switch_off(void)
{
	if (engine != OFFLOAD_SERIAL)
		set(provider_params[engine][PARAM_ON], 0);
	engine = OFFLOAD_SERIAL;
}

/* An engine that does not report errors may be refused. The kernel itself copies then. */
static void switch_on(enum offload_engine wanted,
		      const struct offload_request *request, bool may_be_refused)
{
	const char *reasons = wanted == OFFLOAD_DMA ? "dcbm.reasons" : "mtcopy.reasons";

	set(provider_params[wanted][PARAM_CHANNELS], request->channels);
	WARN_ON(host_set_param(reasons, "all"));
	if (IS_ENABLED(CONFIG_DCBM_DMA))
		dma_model_defers(false);
	if (host_set_param(provider_params[wanted][PARAM_ON], "1")) {
		WARN_ON(!may_be_refused);
		return;
	}
	engine = wanted;
	nr_channels = request->channels;
}

/* Set the faults. Return: whether any changed, so that channels must be acquired anew. */
static bool set_faults(const long *wanted)
{
	static const char *const names[OFFLOAD_NR_FAULTS] = {
		[OFFLOAD_FAIL_AT] = "swdma.fail_at",
		[OFFLOAD_SHORT_AT] = "swdma.short_at",
		[OFFLOAD_STALL_AT] = "swdma.stall_at",
		[OFFLOAD_VANISH_AT] = "swdma.vanish_at",
		[OFFLOAD_STALL_MS] = "swdma.stall_ms",
		[OFFLOAD_REORDER] = "swdma.reorder",
		[OFFLOAD_TIMEOUT_MS] = "dcbm.timeout_ms",
		[OFFLOAD_KEEPS_WRITING] = "swdma.keeps_writing",
	};
	bool any = false;
	int i;

	for (i = 0; i < OFFLOAD_NR_FAULTS; i++) {
		if (!names[i] || (!wanted[i] && !faults[i]))
			continue;
		any = true;
		/* 0 would be no valid timeout, so it stands for the default. */
		set(names[i], wanted[i] ?: i == OFFLOAD_TIMEOUT_MS ? 10000 : 0);
		faults[i] = wanted[i];
	}
	return any;
}

/* dcbm reads this limit only when it acquires channels, so switch it off first. */
static void limit_segments(unsigned long bytes)
{
	static unsigned long limit;

	if (bytes == limit)
		return;
	switch_off();
	limit = bytes;
	set("swdma.max_seg_bytes", bytes ?: UINT_MAX);
	dma_engine_limit(bytes ?: UINT_MAX);
}

/* dcbm reads this property only when it acquires channels, too. */
static void report_errors(bool reports)
{
	static bool silent;

	if (silent == !reports)
		return;
	switch_off();
	silent = !reports;
	set("swdma.results", reports);
	dma_engine_report(reports);
}

void offload_choose(const struct offload_request *request)
{
	const long *its_faults = request->faults ?: no_faults;
	enum offload_engine wanted = request->engine;

	host_shares_cpus = request->shares_cpus;
	load_modules();
	if (wanted == OFFLOAD_THREADS && !IS_ENABLED(CONFIG_MTCOPY))
		wanted = OFFLOAD_DMA;
	if (wanted == OFFLOAD_DMA && !IS_ENABLED(CONFIG_DCBM_DMA))
		wanted = OFFLOAD_SERIAL;
	if (wanted != engine || nr_channels != request->channels ||
	    is_model != !!request->mb_per_s)
		switch_off();
	is_model = request->mb_per_s;
	if (IS_ENABLED(CONFIG_DCBM_DMA))
		dma_engine_choose(request);
	if (IS_ENABLED(CONFIG_DCBM_DMA) && set_faults(no_faults))
		switch_off();
	if (IS_ENABLED(CONFIG_DCBM_DMA)) {
		limit_segments(its_faults[OFFLOAD_MAX_SEG_BYTES]);
		report_errors(!its_faults[OFFLOAD_NO_RESULTS]);
		set("swdma.streaming", request->streams);
	}
	if (wanted != engine)
		switch_on(wanted, request, its_faults[OFFLOAD_NO_RESULTS]);
	/* Set faults only now, so that the trial copies of channels succeed. */
	if (IS_ENABLED(CONFIG_DCBM_DMA))
		set_faults(its_faults);
	if (IS_ENABLED(CONFIG_DCBM_DMA))
		dma_model_defers(true);
	nr_copied_before = nr_copied();
}

void offload_settle(void)
{
	if (!IS_ENABLED(CONFIG_DCBM_DMA))
		return;
	if (is_model)
		dma_model_settle();
	if (faults[OFFLOAD_STALL_AT]) {
		set("swdma.stall_at", 0);
		host_drain();
	}
}

long offload_nr_mapped(void)
{
	return IS_ENABLED(CONFIG_DCBM_DMA) ? dma_engine_nr_mapped() : 0;
}

void offload_touches(unsigned long pfn)
{
	if (IS_ENABLED(CONFIG_DCBM_DMA) && is_model && dma_model_has(pfn))
		dma_model_settle();
}

unsigned long offload_nr_copied(void)
{
	return nr_copied() - nr_copied_before;
}

enum offload_engine offload_in_use(void)
{
	return engine;
}

#else

void offload_choose(const struct offload_request *request)
{
}

void offload_settle(void)
{
}

long offload_nr_mapped(void)
{
	return 0;
}

void offload_touches(unsigned long pfn)
{
}

unsigned long offload_nr_copied(void)
{
	return 0;
}

enum offload_engine offload_in_use(void)
{
	return OFFLOAD_SERIAL;
}

#endif /* CONFIG_MIGRATION_COPY_OFFLOAD */
