// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a DMA engine is done with a folio, for spin to try every order of events.
 * The code is drivers/migrate_offload/dcbm of series/migrate-offload.
 *
 *	spin -a migrate-dma.pml
 *	gcc -O2 -DSAFETY -o pan pan.c && ./pan		finds no error
 *
 * Each of these, given to spin, breaks the protocol in one place, and pan finds
 * an error:
 *
 *	-DLAST_ONLY	only the last descriptor has a callback
 *	-DANY_RESULT	a descriptor that failed is as good as copied
 *	-DCOUNT_FIRST	a piece is counted off before it has its state
 *	-DTRUST_WAKEUP	who is woken up takes it that everything is done
 *	-DFALL_BACK	the CPU copies as soon as the time is over
 *	-DNO_SYNCHRONIZE the engine is told to stop, and not waited for
 *
 * A channel copies two folios, one in each turn, in two pieces. The engine works
 * on both pieces at once. It may take as long as it likes, for ever, too, and it
 * may fail.
 *
 * What is claimed:
 *   - A folio is marked only if all of it is there.
 *   - Nobody writes to a folio once it is handed back, marked or not: from then
 *     on the CPU may copy it, and it may be mapped or freed.
 *
 * What is taken for granted: dmaengine_terminate_sync() does what dmaengine
 * promises. When it has returned, no descriptor runs, and no callback either. A
 * driver that cannot do it is waited for, for ever if need be: that is a valid
 * end here. An atomic operation orders what comes before and after it.
 */

#define NR_FOLIOS	2
#define NR_PIECES	2

mtype = { IDLE, QUEUED, RUNNING };
mtype descriptor[NR_PIECES] = IDLE;
bool in_callback[NR_PIECES];
bool terminated = false;
bool can_stop;			/* device_terminate_all, device_synchronize */

mtype = { WAITING, COPIED, FAILED };
mtype state[NR_PIECES] = WAITING;	/* struct dcbm_piece */

byte nr_waiting = 0;
bool done = false;		/* the completion */
byte folio = 0;

/* Not in the kernel: what is in memory, and whose it is. */
typedef contents {
	bool there[NR_PIECES];
};
contents dst[NR_FOLIOS];
bool handed_back[NR_FOLIOS];
byte about[NR_PIECES];		/* the folio that a descriptor is about */

inline count_off()
{
	d_step { nr_waiting--; last = nr_waiting == 0 };
	if
	:: last -> done = true
	:: else
	fi
}

/* dcbm_piece_done() */
inline piece_done()
{
#if defined(LAST_ONLY)
	if
	:: p == NR_PIECES - 1 ->
	   d_step { state[0] = result; state[1] = result };
	   count_off()
	:: else
	fi
#elif defined(COUNT_FIRST)
	count_off();
	state[p] = result
#else
	state[p] = result;
	count_off()
#endif
}

/*
 * What works on one descriptor. It looks whether it is to stop when it begins
 * and when it has ended; in between it may take any time, or for ever.
 */
proctype engine(byte p)
{
	mtype result;
	bool last;

end:	do
	:: atomic { descriptor[p] == QUEUED -> descriptor[p] = RUNNING };
	   if
	   :: d_step {
		assert(!handed_back[about[p]]);
		dst[about[p]].there[p] = true
	      };
	      result = COPIED
	   :: result = FAILED
	   :: terminated		/* it would not have ended by itself */
	   fi;
	   d_step {
		descriptor[p] = IDLE;
		in_callback[p] = !terminated
	   };
	   if
	   :: in_callback[p] ->
	      piece_done();
	      in_callback[p] = false
	   :: else
	   fi
	od
}

/* dcbm_start_turn(), which counts itself while there is more to come */
inline start_turn()
{
	done = false;
	nr_waiting = 1;
	p = 0;
	do
	:: p < NR_PIECES ->
	   state[p] = WAITING;
	   about[p] = folio;
#ifdef LAST_ONLY
	   nr_waiting = nr_waiting + (p == NR_PIECES - 1);
#else
	   nr_waiting++;
#endif
	   descriptor[p] = QUEUED;
	   p++
	:: else -> break
	od;
	p = 0;
	nr_waiting--
}

/* dmaengine_terminate_sync() */
inline terminate_sync()
{
	d_step {
		terminated = true;
		do
		:: p < NR_PIECES ->
		   if
		   :: descriptor[p] == QUEUED -> descriptor[p] = IDLE
		   :: else
		   fi;
		   p++
		:: else -> break
		od;
		p = 0
	};
#ifndef NO_SYNCHRONIZE
	descriptor[0] == IDLE && !in_callback[0];
	descriptor[1] == IDLE && !in_callback[1]
#endif
}

/* dcbm_stop() */
inline stop()
{
#ifndef FALL_BACK
	if
	:: can_stop ->
	   terminate_sync();
	   nr_waiting = 0
	:: !can_stop ->
end_wait:  nr_waiting == 0
	fi;
#endif
	out_of_use = true
}

/* dcbm_wait(): the time may be over at any time */
inline wait()
{
	do
	:: nr_waiting == 0 -> break
	:: done ->
	   done = false
#ifdef TRUST_WAKEUP
	   ; break
#endif
	:: stop() -> break
	od
}

/* dcbm_end_turn(): the caller may do with the folio what he likes */
inline end_turn()
{
	d_step {
#ifdef ANY_RESULT
		marked = state[0] != WAITING && state[1] != WAITING;
#else
		marked = state[0] == COPIED && state[1] == COPIED;
#endif
		assert(!marked ||
		       (dst[folio].there[0] && dst[folio].there[1]));
		handed_back[folio] = true
	}
}

active proctype copier()
{
	bool marked, out_of_use;
	byte p;

	atomic {
		if
		:: can_stop = true
		:: can_stop = false
		fi;
		run engine(0);
		run engine(1)
	};
	do
	:: folio < NR_FOLIOS && !out_of_use ->
	   start_turn();
	   wait();
	   end_turn();
	   folio++
	:: else -> break
	od
}
