// SPDX-License-Identifier: GPL-2.0-only
/*
 * How copy_zone_device_memmap() shares a memory map among CPUs, for spin to try
 * every order of events. The code is series/zone-device-parallel, patches 3, 4
 * and 6; the comment above that function makes the argument checked here.
 *
 *	spin -a zone-device-parallel.pml
 *	gcc -O2 -DSAFETY -o pan pan.c && ./pan		finds no error, nor does
 *	gcc -O2 -DNP -o pan pan.c && ./pan -l
 *
 * Each of these, given to spin, breaks the protocol in one place, and pan finds
 * an error:
 *
 *	-DNO_DRAIN	a chunk ends without memcpy_streaming_drain()
 *	-DNO_CANCEL	the caller returns without a word to its helpers
 *	-DFLUSH_INSTEAD_OF_CANCEL
 *			flush_work() in place of cancel_work_sync()
 *	-DPLAIN_COUNTER	chunks are handed out by a counter that is not atomic
 *
 * What is claimed, when the caller has returned:
 *   - each descriptor was written once, by the CPU that took its chunk,
 *   - and is in memory: who sees what the caller publishes next, sees it too,
 *   - no helper runs or will run, and none touched a work item or the memmap
 *     after they were freed.
 * The caller does return, even if the workqueue never starts a work: nothing
 * blocks before (pan's "invalid end states"), and no state comes twice, so that
 * every run has an end (pan -l).
 *
 * What is taken for granted:
 *   - Chunks share no descriptor. Queueing a work shows @memmap to the helper.
 *   - What has left a CPU is seen by all. Who takes a lock sees what came before
 *     its release.
 *   - A task that moves to another CPU leaves no streamed store behind: a switch
 *     of tasks is a full barrier.
 *   - A helper that runs goes on running.
 *
 * The model is weaker than x86-64, where taking a chunk is a LOCK XADD and
 * drains by itself. Here it is relaxed, and orders nothing.
 */

/* The kernel wants two chunks for each CPU; these many show all that matters. */
#define NR_HELPERS	2
#define NR_CHUNKS	4
#define CHUNK_PAGES	2	/* descriptors of a chunk: two can change places */
#define NR_PAGES	8	/* NR_CHUNKS * CHUNK_PAGES */

/* The CPUs that take part. A helper has one of its own. */
#define CALLER		0
#define HELPER(i)	((i) + 1)
#define NR_CPUS		3

/* Where a descriptor is: with a CPU that wrote it, seen by no other, or: */
#define NOT_WRITTEN	NR_CPUS
#define IN_MEMORY	(NR_CPUS + 1)
byte page[NR_PAGES] = NOT_WRITTEN;

/* Not in the kernel: who is busy with a chunk. */
#define NOBODY		NR_CPUS
byte owner[NR_CHUNKS] = NOBODY;

/* struct zone_device_memmap, on the stack of memmap_init_zone_device() */
bool stream = false;
byte next_chunk = 0;
bool memmap_is_gone = false;

/* struct zone_device_helper[], from kmalloc_array() */
mtype = { IDLE, PENDING, RUNNING, DONE };
mtype work[NR_HELPERS] = IDLE;
bool helpers_are_freed = false;

/* --- Memory -------------------------------------------------------------- */

/*
 * A write-combining buffer lets go of a descriptor at any time, and of several
 * in any order. There is a process for each descriptor; spin counts from 0.
 *
 * Ordinary stores stay with their CPU until a release here. Nobody looks at
 * them earlier, so this is the worst that they can do.
 */
active [NR_PAGES] proctype write_combining_buffer()
{
end:	do
	:: d_step {
		stream && page[_pid] < NR_CPUS ->
		page[_pid] = IN_MEMORY
	   }
	od
}

inline all_stores_leave(cpu)
{
	d_step {
		n = 0;
		do
		:: n < NR_PAGES ->
		   if
		   :: page[n] == cpu -> page[n] = IN_MEMORY
		   :: else
		   fi;
		   n++
		:: else -> break
		od;
		n = 0
	}
}

/* SFENCE; where nothing can be streamed, nothing. */
inline memcpy_streaming_drain(cpu)
{
#ifdef NO_DRAIN
	skip
#else
	if
	:: stream -> all_stores_leave(cpu)
	:: else
	fi
#endif
}

/* Dropping a lock, for example. It does not order streamed stores. */
inline release(cpu)
{
	if
	:: !stream -> all_stores_leave(cpu)
	:: else
	fi
}

/* --- What the caller does, and the helpers ------------------------------- */

/* chunk = atomic_long_fetch_inc_relaxed(&memmap->next_chunk) */
inline take_chunk()
{
	assert(!memmap_is_gone);
#ifdef PLAIN_COUNTER
	chunk = next_chunk;
	next_chunk = chunk + 1
#else
	d_step { chunk = next_chunk; next_chunk++ }
#endif
}

/* copy_zone_device_pages(), one turn: memcpy_streaming() or memcpy() */
inline copy_page(cpu, nr)
{
	d_step {
		assert(!memmap_is_gone);	/* memmap->stream */
		assert(owner[chunk] == cpu);
		assert(page[nr] == NOT_WRITTEN);
		page[nr] = cpu
	}
}

inline copy_zone_device_chunk(cpu)
{
	owner[chunk] = cpu;
	copy_page(cpu, chunk * CHUNK_PAGES);
	copy_page(cpu, chunk * CHUNK_PAGES + 1);
	memcpy_streaming_drain(cpu);
	owner[chunk] = NOBODY
}

/* while ((chunk = ...) < memmap->nr_chunks) */
inline copy_zone_device_chunks(cpu)
{
	do
	:: take_chunk();
	   if
	   :: chunk < NR_CHUNKS -> copy_zone_device_chunk(cpu)
	   :: else -> break
	   fi
	od
}

/* --- The workqueue ------------------------------------------------------- */

/* A worker of the pool, which may find the time for work[i], or may not. */
proctype worker(byte i)
{
	byte chunk, n;

end:	if
	:: atomic {
		/* process_one_work(), under pool->lock until PENDING is clear */
		work[i] == PENDING ->
		assert(!helpers_are_freed);
		work[i] = RUNNING
	   }
	:: goto never_comes
	fi;

	/* worker->current_func(work), which is zone_device_help() */
	assert(!helpers_are_freed);		/* helper->memmap */
	copy_zone_device_chunks(HELPER(i));

	/*
	 * pool->lock is taken, worker->current_work cleared, pool->lock dropped;
	 * or complete() in the barrier work that cancel_work_sync() waits for.
	 */
	atomic { release(HELPER(i)); work[i] = DONE };

never_comes:
	skip
}

inline queue_work_node(i)
{
	atomic { work[i] = PENDING; run worker(i) }
}

inline cancel_work_sync(i)
{
#ifndef FLUSH_INSTEAD_OF_CANCEL
	/* work_grab_pending(): under pool->lock too */
	if
	:: atomic { work[i] == PENDING -> work[i] = IDLE }
	:: else
	fi;
#endif
	/* __flush_work(): wait_for_completion(&barr.done), if there is need to */
	work[i] == IDLE || work[i] == DONE
}

/* --- The caller ---------------------------------------------------------- */

active proctype caller()
{
	byte chunk, n, i, not_in_memory, not_at_rest;
	byte nr_helpers = NR_HELPERS;

	/* plan_zone_device_chunks(): memcpy_streaming_worthwhile() may say both */
	if
	:: stream = true
	:: stream = false
	fi;

	/* copy_zone_device_memmap() begins: kmalloc_array() may fail, and again */
	do
	:: nr_helpers > 0 -> nr_helpers = nr_helpers / 2
	:: break
	od;

	do
	:: i < nr_helpers -> queue_work_node(i); i++
	:: else -> break
	od;

	copy_zone_device_chunks(CALLER);

#ifndef NO_CANCEL
	i = 0;
	do
	:: i < nr_helpers -> cancel_work_sync(i); i++
	:: else -> break
	od;
#endif

	helpers_are_freed = true;		/* kfree(helpers) */

	/* memmap_init_zone_device() has returned, and something is published. */
	memmap_is_gone = true;
	release(CALLER);

	d_step {
		n = 0;
		do
		:: n < NR_PAGES ->
		   not_in_memory = not_in_memory + (page[n] != IN_MEMORY);
		   n++
		:: else -> break
		od;
		n = 0;
		do
		:: n < NR_HELPERS ->
		   not_at_rest = not_at_rest +
				 (work[n] == PENDING || work[n] == RUNNING);
		   n++
		:: else -> break
		od;
		assert(not_in_memory == 0);
		assert(not_at_rest == 0)
	}
}
