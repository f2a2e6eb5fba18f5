// SPDX-License-Identifier: GPL-2.0-only
/*
 * How the threads of a node share its deferred pages, and how these get to who
 * allocates them, for spin to try every order of events. The code is
 * deferred_init_memmap(), deferred_grow_zone() and padata_do_multithreaded()
 * with series/deferred-init; the comment above deferred_init_blocks() makes the
 * argument about streamed descriptors that is checked here.
 *
 *	spin -a deferred-init.pml
 *	gcc -O2 -DSAFETY -o pan pan.c && ./pan		finds no error
 *
 * Each of these, given to spin, breaks the protocol in one place, and pan finds
 * an error:
 *
 *	-DNO_DRAIN	a block is freed without memcpy_streaming_drain()
 *	-DDRAIN_LATE	the drain comes after the block has been freed
 *	-DNO_JOB_LOCK	pieces of the job are taken without its lock
 *	-DSTAY_OPEN	the zone can be grown while the threads run
 *	-DFIRST_ENDS	the first thread that finds nothing left ends the job
 *
 * What is claimed:
 *   - each section is initialised and freed once, by whom ever,
 *   - who allocates a block finds all of its descriptors as they are to be, and
 *     what he writes there stays,
 *   - the job is over when the last thread is through, and then all memory is
 *     free or allocated.
 *
 * What is taken for granted: sections share no descriptor and no buddy (a block
 * does not reach over the end of a section); who takes a lock sees all ordinary
 * stores that came before its release.
 *
 * The model is weaker than the code: a thread takes pieces of any size.
 */

#define NR_SECTIONS	3
#define NR_HELPERS	1	/* besides the caller */
#define NR_THREADS	2

/*
 * A section here is one block with two descriptors. The first is written by
 * ordinary stores, the buddy allocator reads it; the other is streamed.
 */
mtype = { OLD, FREE, TAKEN };
mtype head[NR_SECTIONS] = OLD;
mtype tail[NR_SECTIONS] = OLD;

/* The other one has left its CPU's registers, and is not in memory yet. */
#define NOBODY		255
byte streaming[NR_SECTIONS] = NOBODY;

bool on_list[NR_SECTIONS];
byte nr_freed[NR_SECTIONS];

bool resize_lock, zone_lock, job_lock;

#define CLOSED		NR_SECTIONS	/* ULONG_MAX */
byte first_deferred = 0;

/* struct padata_mt_job and its state */
byte job_start, job_size, nworks_fini;
bool completed;

inline lock(it)
{
	atomic { !it -> it = true }
}

inline unlock(it)
{
	it = false
}

/* A write-combining buffer lets go of what it holds at any time. */
active proctype write_combining_buffers()
{
end:	do
	:: d_step { streaming[0] != NOBODY -> tail[0] = FREE; streaming[0] = NOBODY }
	:: d_step { streaming[1] != NOBODY -> tail[1] = FREE; streaming[1] = NOBODY }
	:: d_step { streaming[2] != NOBODY -> tail[2] = FREE; streaming[2] = NOBODY }
	od
}

/* SFENCE: what this CPU has streamed is in memory. */
inline memcpy_streaming_drain(cpu)
{
	d_step {
		n = 0;
		do
		:: n < NR_SECTIONS ->
		   if
		   :: streaming[n] == cpu ->
		      tail[n] = FREE;
		      streaming[n] = NOBODY
		   :: else
		   fi;
		   n++
		:: else -> break
		od;
		n = 0
	}
}

/* __free_fresh_pages() */
inline free_block(s)
{
	lock(zone_lock);
	d_step {
		assert(!on_list[s]);
		nr_freed[s]++;
		assert(nr_freed[s] == 1);
		on_list[s] = true
	}
	unlock(zone_lock)
}

/* deferred_init_blocks() */
inline init_section(cpu, s)
{
	d_step {
		assert(head[s] == OLD);
		head[s] = FREE;
		assert(streaming[s] == NOBODY);
		streaming[s] = cpu
	}
#if !defined(NO_DRAIN) && !defined(DRAIN_LATE)
	memcpy_streaming_drain(cpu);
#endif
	free_block(s);
#ifdef DRAIN_LATE
	memcpy_streaming_drain(cpu)
#endif
}

/* padata_mt_next_size() says how much; here it may be anything. */
inline take_piece()
{
#ifndef NO_JOB_LOCK
	lock(job_lock);
#endif
	at = job_start;
	if
	:: job_size > 0 -> size = 1
	:: job_size > 1 -> size = job_size
	:: job_size == 0 -> size = 0
	fi;
	job_start = at + size;
	job_size = job_size - size;
#ifndef NO_JOB_LOCK
	unlock(job_lock)
#endif
}

/* padata_mt_helper() and deferred_init_memmap_chunk() */
inline help(cpu)
{
	do
	:: take_piece();
	   if
	   :: size == 0 -> break
	   :: else
	   fi;
	   do
	   :: size > 0 ->
	      init_section(cpu, at);
	      at++;
	      size--
	   :: else -> break
	   od
	od;
	lock(job_lock);
	nworks_fini++;
	if
#ifdef FIRST_ENDS
	:: nworks_fini == 1 -> completed = true
#else
	:: nworks_fini == NR_THREADS -> completed = true
#endif
	:: else
	fi;
	unlock(job_lock)
}

proctype helper()
{
	byte at, size, n;

	help(1)
}

/* Somebody who needs pages before the threads have run: deferred_grow_zone() */
active proctype grower()
{
	byte n;

	lock(resize_lock);
	if
	:: first_deferred != CLOSED ->
	   init_section(2, first_deferred);
	   first_deferred++
	:: else
	fi;
	unlock(resize_lock)
}

/* deferred_init_memmap() */
active proctype pgdatinit()
{
	byte at, size, n, i;

	lock(resize_lock);
	job_start = first_deferred;
	job_size = NR_SECTIONS - first_deferred;
#ifndef STAY_OPEN
	first_deferred = CLOSED;
#endif
	unlock(resize_lock);

	/* Nothing is left to do if the zone has been grown to its end. */
	run helper();
	help(0);
	completed;

	d_step {
		i = 0;
		do
		:: i < NR_SECTIONS ->
		   assert(nr_freed[i] == 1);
		   assert(streaming[i] == NOBODY);
		   i++
		:: else -> break
		od;
		i = 0
	}
}

/* Anybody who takes pages off the free list and uses them. */
active proctype allocator()
{
	byte got;

	lock(zone_lock);
	if
	:: on_list[0] -> got = 0
	:: on_list[1] -> got = 1
	:: on_list[2] -> got = 2
	:: else -> got = NOBODY
	fi;
	if
	:: got != NOBODY -> on_list[got] = false
	:: else
	fi;
	unlock(zone_lock);
	if
	:: got != NOBODY ->
	   assert(head[got] == FREE && tail[got] == FREE);
	   d_step { head[got] = TAKEN; tail[got] = TAKEN };
	   completed;
	   assert(head[got] == TAKEN && tail[got] == TAKEN)
	:: else
	fi
}
