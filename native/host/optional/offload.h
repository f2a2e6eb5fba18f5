/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Choice of the copy provider of a hosted kernel with CONFIG_MIGRATION_COPY_OFFLOAD.
 * Both sides include this. An experiment needs ream/offload.o in its file `objects`.
 */
#ifndef REAM_OFFLOAD_H
#define REAM_OFFLOAD_H

struct page;

#define OFFLOAD_MOST_CHANNELS 16	/* as many as dcbm can use */

enum offload_engine {
	OFFLOAD_SERIAL,		/* the kernel itself, as without a provider */
	OFFLOAD_THREADS,	/* mtcopy, or dcbm if there is no mtcopy */
	OFFLOAD_DMA,		/* dcbm, with an engine of threads or a modelled one */
	OFFLOAD_NR_ENGINES
};

/* Faults of the engine of threads; kernel/modules/swdma describes them. */
enum offload_fault {
	OFFLOAD_FAIL_AT,
	OFFLOAD_SHORT_AT,
	OFFLOAD_STALL_AT,
	OFFLOAD_VANISH_AT,
	OFFLOAD_STALL_MS,
	OFFLOAD_REORDER,
	OFFLOAD_TIMEOUT_MS,	/* not a fault: dcbm's timeout; 0: the default */
	OFFLOAD_KEEPS_WRITING,
	OFFLOAD_MAX_SEG_BYTES,	/* not a fault: limit of a segment; 0: none */
	OFFLOAD_NO_RESULTS,	/* its callback does not report errors */
	OFFLOAD_NR_FAULTS
};

/**
 * struct offload_request - the requested copy provider
 * @engine: The engine, if this kernel has it.
 * @channels: Number of channels or threads.
 * @setup_ns: Setup time of a descriptor of the modelled engine.
 * @mb_per_s: Bandwidth of its channels in 10^6 bytes/s; 0: use the engine of threads.
 * @nr_copies: Number of copies that the model can defer. Beyond that it does them all.
 * @first_pfn: First frame that may be copied while copies are deferred.
 * @nr_frames: Number of such frames. 0 if nothing accesses any of them meanwhile.
 * @shares_cpus: There are more CPUs than real ones.
 * @streams: The engine of threads copies with non-temporal stores.
 * @faults: Faults, indexed by enum offload_fault. NULL for none.
 * @reads: Called with each page that an engine is about to read; may be NULL.
 */
struct offload_request {
	enum offload_engine engine;
	unsigned int channels, setup_ns, mb_per_s;
	unsigned long nr_copies, first_pfn, nr_frames;
	unsigned int shares_cpus, streams;
	const long *faults;
	void (*reads)(struct page *page);
};

/*
 * Use the provider in @request from now on. Each channel first copies a page as a
 * trial. This may allocate memory, so do not call it in timed code.
 */
void offload_choose(const struct offload_request *request);

/* The provider in use, and the number of folios that it has copied since. */
enum offload_engine offload_in_use(void);
unsigned long offload_nr_copied(void);

/*
 * Do the copies that the modelled engine has deferred. Call it outside of timed
 * code. An engine of threads that stalls finishes its copies, too.
 */
void offload_settle(void);

/* Number of sources and targets that are mapped for an engine, if reads() is set. */
long offload_nr_mapped(void);

/* The CPU is about to access frame @pfn: do a deferred copy from or to it now. */
void offload_touches(unsigned long pfn);

#endif
