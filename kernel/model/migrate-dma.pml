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
 *	-DSETTLE_EARLY	who loses a channel does not count himself
 *	-DLOST_FLAG	that a channel is lost is told beside the count
 *	-DFREE_EARLY	a channel is freed when nothing of it is waited for
 *	-DOWED_FOR_EVER	a turn that is lost is waited for when the channel is freed
 *
 * A channel copies two folios, one in each turn, in two pieces. The engine works
 * on both pieces at once. It may take as long as it likes, for ever, too, and it
 * may fail.
 *
 * What is claimed:
 *   - A folio is marked only if all of it is there.
 *   - Nobody writes to a folio once it is handed back and has no reference of
 *     ours, marked or not: the CPU may copy it then, and it may be mapped or
 *     freed.
 *   - What a channel that is lost keeps is given back at most once, and only when
 *     the engine has nothing of it.
 *   - No callback touches a channel that has been freed, and each channel of which
 *     the engine has nothing is freed at last.
 *
 * What is taken for granted: an atomic operation orders what comes before and
 * after it. Nothing is: that an engine can be stopped.
 */

#define NR_FOLIOS	2
#define NR_PIECES	2
#define LOST		8	/* DCBM_LOST; more than there are pieces */

mtype = { IDLE, QUEUED, RUNNING };
mtype descriptor[NR_PIECES] = IDLE;

mtype = { WAITING, COPIED, FAILED };
mtype state[NR_PIECES] = WAITING;	/* struct dcbm_piece */

byte nr_waiting = 0;
bool done = false;		/* the completion */
byte folio = 0;
byte lost_folio = 0;
bool is_lost = false;

/* Not in the kernel: what is in memory, and whose it is. */
typedef contents {
	bool there[NR_PIECES];
};
contents dst[NR_FOLIOS];
bool handed_back[NR_FOLIOS];
bool kept[NR_FOLIOS];		/* by a reference of ours */
bool settled = false;
byte nr_owed = 0;		/* turns that a callback is to end */
byte nr_called = 0;		/* those of which the callback is through */
bool freed = false;
byte about[NR_PIECES];		/* the folio that a descriptor is about */

/* dcbm_settle(): the folio of the last turn that has begun is the lost one */
inline settle()
{
	d_step {
		assert(!settled && kept[lost_folio]);
		assert(descriptor[0] == IDLE && descriptor[1] == IDLE);
		settled = true;
		kept[lost_folio] = false
	}
}

inline count_off()
{
	d_step { nr_waiting--; now = nr_waiting };
	if
#ifdef LOST_FLAG
	:: now == 0 ->
	   if
	   :: is_lost -> settle()
	   :: else -> done = true
	   fi
#else
	:: now == 0 ->
	   d_step { assert(!freed); done = true };
	   d_step { assert(!freed); nr_called++ }
	:: now == LOST -> settle()
#endif
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

/* What works on one descriptor; at any time it may take as long as it likes. */
proctype engine(byte p)
{
	mtype result;
	byte now;

end:	do
	:: atomic { descriptor[p] == QUEUED -> descriptor[p] = RUNNING };
	   if
	   :: d_step {
		assert(!handed_back[about[p]] || kept[about[p]]);
		dst[about[p]].there[p] = true
	      };
	      result = COPIED
	   :: result = FAILED
	   fi;
	   descriptor[p] = IDLE;
	   piece_done()
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
	d_step {
		nr_waiting--;
		nr_owed = nr_owed + (nr_waiting != 0)
	}
}

/* dcbm_lose(); came_back if there was nothing to lose any more */
inline lose()
{
#ifdef FALL_BACK
	is_lost = true
#elif defined(LOST_FLAG)
	d_step {
		came_back = nr_waiting == 0;
		nr_waiting = nr_waiting + !came_back
	};
	if
	:: !came_back ->
	   lost_folio = folio;
	   kept[folio] = true;
	   is_lost = true;
	   count_off()
	:: else
	fi
#else
	d_step {
		came_back = nr_waiting == 0;
		if
		:: came_back
# ifdef SETTLE_EARLY
		:: else -> nr_waiting = nr_waiting + LOST
# else
		:: else -> nr_waiting = nr_waiting + LOST + 1
# endif
		fi
	};
	if
	:: !came_back ->
# ifndef OWED_FOR_EVER
	   nr_owed--;
# endif
	   lost_folio = folio;
	   kept[folio] = true;
	   is_lost = true;
# ifndef SETTLE_EARLY
	   d_step { nr_waiting--; now = nr_waiting };
	   if
	   :: now == LOST -> settle()
	   :: else
	   fi
# endif
	:: else
	fi
#endif
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
	:: !is_lost -> lose()
	:: is_lost -> break
	od
}

/* dcbm_end_turn(), and the caller then does with the folio what he likes */
inline end_turn()
{
	d_step {
#ifdef ANY_RESULT
		marked = !is_lost && state[0] != WAITING && state[1] != WAITING;
#else
		marked = !is_lost && state[0] == COPIED && state[1] == COPIED;
#endif
		assert(!marked ||
		       (dst[folio].there[0] && dst[folio].there[1]));
		handed_back[folio] = true
	}
}

/* dcbm_release(), which drivers do not let wait for callbacks; not of what is lost */
inline release()
{
	(descriptor[0] == IDLE && descriptor[1] == IDLE && (!is_lost || settled));
#ifndef FREE_EARLY
	(nr_called == nr_owed);
#endif
	freed = true
}

active proctype copier()
{
	bool marked, came_back;
	byte p, now;

	atomic {
		run engine(0);
		run engine(1)
	};
	do
	:: folio < NR_FOLIOS && !is_lost ->
	   start_turn();
	   wait();
	   end_turn();
	   folio++
	:: else -> break
	od;
#if !defined(FALL_BACK) && !defined(LOST_FLAG)	/* which go wrong before */
	release()
#endif
}
