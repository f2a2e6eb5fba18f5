/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who copies for a hosted kernel that leaves a choice (CONFIG_MIGRATION_COPY_OFFLOAD).
 * Of both sides; an experiment has it if its file `objects` says ream/offload.o.
 */
#ifndef REAM_OFFLOAD_H
#define REAM_OFFLOAD_H

struct page;

#define OFFLOAD_MOST_CHANNELS 16	/* as many as dcbm can use */

enum offload_engine {
	OFFLOAD_SERIAL,		/* the kernel itself, as if nobody had registered */
	OFFLOAD_THREADS,	/* mtcopy; dcbm where there is none */
	OFFLOAD_DMA,		/* dcbm, on an engine of threads or on one that is a model */
	OFFLOAD_NR_ENGINES
};

/* What the engine of threads does wrong; kernel/modules/swdma says what it is. */
enum offload_fault {
	OFFLOAD_FAIL_AT,
	OFFLOAD_SHORT_AT,
	OFFLOAD_STALL_AT,
	OFFLOAD_VANISH_AT,
	OFFLOAD_STALL_MS,
	OFFLOAD_REORDER,
	OFFLOAD_TIMEOUT_MS,	/* dcbm's, not a fault; 0: the usual one */
	OFFLOAD_KEEPS_WRITING,
	OFFLOAD_MAX_SEG_BYTES,	/* not a fault; 0: as much as it is given */
	OFFLOAD_NO_RESULTS,	/* it calls back after an error as after a copy */
	OFFLOAD_NR_FAULTS
};

/**
 * struct offload_request - who is to copy
 * @engine: As far as this kernel can.
 * @channels: How many of them copy.
 * @setup_ns: Of a descriptor, by an engine that is a model.
 * @mb_per_s: Of its channel, 10^6 bytes a second; 0: threads, as fast as they can.
 * @nr_copies: Room for what the model puts off; if it is more, all is moved at once.
 * @first_pfn: Of the frames that may be copied while copies are put off.
 * @nr_frames: How many; 0: nobody touches any of them meanwhile.
 * @shares_cpus: There are more CPUs than real ones.
 * @streams: The engine of threads copies past the caches.
 * @faults: By enum offload_fault; NULL: none.
 * @reads: Called with each page that an engine is about to read; NULL: nothing is.
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
 * Have pages copied by whom @request says from now on. Each channel copies a
 * page for a trial first: memory can be allocated, and nothing is timed.
 */
void offload_choose(const struct offload_request *request);

/* Who that is, and how many folios he has copied since. */
enum offload_engine offload_in_use(void);
unsigned long offload_nr_copied(void);

/*
 * Do what an engine that is a model has put off until nothing is timed. What
 * the engine of threads has not done yet because it stalls, it does now.
 */
void offload_settle(void);

/* What is mapped for an engine, sources and targets, if reads() is called. */
long offload_nr_mapped(void);

/* The CPU is about to copy frame @pfn, or to it: if that is put off, do it now. */
void offload_touches(unsigned long pfn);

#endif
