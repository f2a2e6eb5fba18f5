// SPDX-License-Identifier: GPL-2.0-only
/*
 * What copying ahead of a migration's move phase rests on, for spin to try
 * every order of events. The code is series/migrate-offload and, where begin()
 * and end() come in, series/migrate-beyond. There are two models, and one is
 * checked at a time:
 *
 *	-DREGISTRATION	who copies comes and goes: mm/migrate_copy_offload.c
 *	-DREFERENCES	when a copy is good: migrate_folios_pick(), and the mark
 *
 *	spin -a -DREGISTRATION migrate-offload.pml
 *	gcc -O2 -DSAFETY -o pan pan.c && ./pan		finds no error
 *
 * Each of these, given to spin with its model, breaks the protocol in one
 * place, and pan finds an error:
 *
 *	REGISTRATION
 *		-DNO_MUTEX	 registration does not take the mutex
 *		-DNO_REF	 ... nor a reference to the module
 *		-DDO_NOT_ASK	 ... or takes one of a module that is going
 *		-DNO_SYNC	 no synchronize_srcu()
 *		-DPUT_FIRST	 the module is put before it
 *		-DCALL_LATE	 the static call is turned back after it
 *		-DACTIVE_LATE	 the active one is forgotten after it
 *		-DLATE_SECTION	 who calls looks whom before his SRCU section
 *		-DSHORT_SECTION	 the section ends with begin(), not with end()
 *	REFERENCES
 *		-DNO_MB		 no smp_mb() before the look at the references
 *		-DNO_GUP_MB	 nor one between GUP-fast's reference and its
 *				 second look at the entry
 *		-DNO_SECOND_LOOK GUP-fast does not look for a second time
 *		-DNO_RMB	 the copy reads what was before that look
 *		-DNO_CHECK	 nobody looks at the references ahead
 *		-DCHECK_EARLY	 or does so before the entry is cleared
 *		-DFLUSH_LATE	 the copy comes before the flush of TLBs
 *		-DKEEP_MARK	 a mark that has been read stays
 *		-DCHECK_FIRST	 it goes only if the references are right
 *		-DNO_FREEZE	 references are looked at, not frozen
 *
 * REGISTRATION with -DNO_KEY, where nobody asks the static branch, is right as
 * well: the branch spares time, and nothing rests on it.
 *
 * What is taken for granted:
 *   - synchronize_srcu() waits for every section that has begun before, and for
 *     no other. Who is in a section after it sees what was stored before it.
 *   - An atomic operation is one step. Where nothing orders it, a later load may
 *     come before it, and in the models then does.
 *   - Who drops a reference has stored before what he stores.
 */

#if defined(REGISTRATION)
/*
 * --- Who copies comes and goes ---------------------------------------------
 *
 * Two modules want to copy. Each has settings, which register and unregister
 * it, and somebody who wants to unload it. A task migrates: by a copy that is
 * over when it returns, or by two that are begun one after the other, and ended
 * in that order, or in the other one if migrations nest. It may do so at any
 * time: a second time, or a second task, would be another such time.
 *
 * What is claimed:
 *   - Nobody is in a module that has been unloaded, nor in one that has been
 *     told that it is no longer registered; who copies for him is the CPU then.
 *   - Who registers is the one until he unregisters.
 */
#define NR_MODULES	2
#define NR_TURNS	2		/* how often settings do so */
#define NOBODY		NR_MODULES	/* folios_mc_copy(), NULL */

#define first_section	1
#define second_section	2

bool key = false;			/* migrate_offload_key */
byte call = NOBODY;			/* migrate_offload_call */
byte active_migrator = NOBODY;
bool mutex = false;

byte refs[NR_MODULES];
bool going[NR_MODULES];			/* MODULE_STATE_GOING */
bool loaded[NR_MODULES] = true;

/* SRCU: sections, a bit for each, and those that somebody waits for. */
byte sections = 0;
byte awaited[NR_MODULES];

/* Not in the kernel: has been told that nobody will call. */
bool unregistered[NR_MODULES] = true;

inline srcu_read_lock(section)
{
	sections = sections | section
}

inline srcu_read_unlock(section)
{
	d_step {
		sections = sections & ~section;
		awaited[0] = awaited[0] & ~section;
		awaited[1] = awaited[1] & ~section
	}
}

inline synchronize_srcu(m)
{
#ifndef NO_SYNC
	awaited[m] = sections;
	awaited[m] == 0
#else
	skip
#endif
}

inline lock_mutex()
{
#ifdef NO_MUTEX
	skip
#else
	atomic { !mutex -> mutex = true }
#endif
}

inline unlock_mutex()
{
	mutex = false
}

inline try_module_get(m)
{
#if defined(NO_REF)
	got = true
#elif defined(DO_NOT_ASK)
	refs[m]++;
	got = true
#else
	d_step { got = !going[m]; refs[m] = refs[m] + got }
#endif
}

inline module_put(m)
{
#ifdef NO_REF
	skip
#else
	refs[m]--
#endif
}

inline migrate_offload_register(m)
{
	registered = false;
	lock_mutex();
	if
	:: active_migrator != NOBODY	/* -EBUSY */
	:: else ->
	   try_module_get(m);
	   if
	   :: got ->
	      unregistered[m] = false;
	      active_migrator = m;
	      call = m;
	      key = true;
	      registered = true
	   :: else			/* -ENODEV */
	   fi
	fi;
	unlock_mutex()
}

inline migrate_offload_unregister(m)
{
	lock_mutex();
	assert(active_migrator == m);
	key = false;
#ifndef CALL_LATE
	call = NOBODY;
#endif
#ifndef ACTIVE_LATE
	active_migrator = NOBODY;
#endif
	unlock_mutex();
#ifdef PUT_FIRST
	module_put(m);
#endif
	synchronize_srcu(m);
#ifdef CALL_LATE
	call = NOBODY;
#endif
#ifdef ACTIVE_LATE
	active_migrator = NOBODY;
#endif
	unregistered[m] = true;
#ifndef PUT_FIRST
	module_put(m)
#endif
}

/*
 * Whoever unregisters need not be of the module; that sysfs keeps the module
 * whose parameter is written to is of no help here.
 */
proctype settings(byte m)
{
	bool got, registered;
	byte turn;

	do
	:: turn < NR_TURNS && loaded[m] ->
	   turn++;
	   migrate_offload_register(m);
	   if
	   :: registered -> migrate_offload_unregister(m)
	   :: else
	   fi
	:: else -> break
	od
}

/* delete_module(2); nobody need come, or anybody succeed. */
proctype rmmod(byte m)
{
	if
	:: atomic { refs[m] == 0 -> going[m] = true };
	   loaded[m] = false
	:: skip
	fi
}

/* Code of a module runs. */
inline enter(m)
{
	assert(m == NOBODY || (loaded[m] && !unregistered[m]))
}

inline migrate_offload_copy()
{
#ifdef LATE_SECTION
	who = call;
	srcu_read_lock(first_section);
#else
	srcu_read_lock(first_section);
	who = call;
#endif
	enter(who);
	enter(who);		/* a while later it still does */
	srcu_read_unlock(first_section);
	who = NOBODY
}

inline migrate_offload_begin(section, copy)
{
#ifdef LATE_SECTION
	copy = active_migrator;
	srcu_read_lock(section);
#else
	srcu_read_lock(section);
	copy = active_migrator;
#endif
	enter(copy);
#ifdef SHORT_SECTION
	srcu_read_unlock(section)
#endif
}

inline migrate_offload_end(section, copy)
{
	enter(copy);
#ifndef SHORT_SECTION
	srcu_read_unlock(section);
#endif
	copy = NOBODY
}

proctype task()
{
	byte who = NOBODY, first = NOBODY, second = NOBODY;

#ifndef NO_KEY
	if
	:: key
	:: !key -> goto done		/* as if nobody ever copied */
	fi;
#endif
	if
	:: migrate_offload_copy()
	:: migrate_offload_begin(first_section, first);
	   migrate_offload_begin(second_section, second);
	   if
	   :: migrate_offload_end(first_section, first);
	      migrate_offload_end(second_section, second)
	   :: migrate_offload_end(second_section, second);
	      migrate_offload_end(first_section, first)
	   fi
	fi;
done:	skip
}

init
{
	atomic {
		run settings(0);
		run settings(1);
		run rmmod(0);
		run rmmod(1);
		run task()
	}
}

#elif defined(REFERENCES)
/*
 * --- When a copy is good ---------------------------------------------------
 *
 * One folio, mapped by one entry, is migrated; user space writes through a TLB,
 * others get at it by GUP-fast, write, and let go. The folio is locked, so there
 * are no others who write.
 *
 * What is claimed: when the references are frozen,
 *   - the destination has what was written last, and nobody can write any more;
 *   - the copy is younger than any reference too many that has been found. Who
 *     holds one may write, however he has come by it.
 */
#define NR_GUPS		2
#define NR_WRITES	2	/* what user space writes, at most */
#define NR_PASSES	3	/* what the move phase tries */

#define EXPECTED	1	/* with the entry gone, who isolated it */

bool pte = true;
bool tlb;			/* user space has a translation */
byte refs = EXPECTED + 1;	/* 0: frozen */
byte data = 0;			/* how often it has been written */

/* Not in the kernel */
bool begun = false;
bool moved = false;

/*
 * Where nothing of the entry can be in a TLB there is nothing to flush, and a
 * flush is no barrier then.
 */
bool can_be_cached;

inline write()
{
	assert(!moved);
	data++
}

active proctype user()
{
	byte nr_writes;

	begun;
end:	do
	:: d_step { can_be_cached && !tlb && pte -> tlb = true }
	:: d_step { tlb -> tlb = false }
	:: d_step { tlb && nr_writes < NR_WRITES -> write(); nr_writes++ }
	od
}

/* try_get_folio(), for NR_GUPS times by two CPUs */
active [2] proctype gup_fast()
{
	byte turn;
	bool again, got;

	begun;
	do
	:: turn < NR_GUPS ->
	   turn++;
	   if
	   :: pte
	   :: !pte -> break		/* the slow path, which waits */
	   fi;
#ifdef NO_GUP_MB
	   again = pte;
#endif
	   d_step {
		got = refs != 0;
		if
		:: got -> refs++
		:: else
		fi
	   };
	   if
	   :: !got -> break
	   :: got
	   fi;
#if defined(NO_SECOND_LOOK)
	   again = true;
#elif !defined(NO_GUP_MB)
	   again = pte;
#endif
	   if
	   :: again -> d_step { write() }	/* pinned */
	   :: !again
	   fi;
	   d_step { assert(refs > 0); refs-- }
	:: else -> break
	od
}

inline look_ahead()
{
	ahead = refs == EXPECTED + pte	/* its entry holds one, too */
}

inline copy()
{
	d_step { copied_data = data; found = false }
}

inline flush_tlb()
{
	if
	:: can_be_cached -> tlb = false
	:: else
	fi
}

/* try_to_migrate(): the reference goes with the entry, a step later */
inline unmap()
{
	pte = false;
	refs--
}

inline copy_ahead()
{
#if defined(NO_CHECK)
	ahead = true;
#elif !defined(NO_MB) && !defined(CHECK_EARLY)
	look_ahead();
#endif
	if
	:: ahead ->
#ifndef NO_RMB
	   copy();
#endif
	   mark = true
	:: !ahead
	fi
}

/* __migrate_folio(), once for each pass */
inline move()
{
	copied = mark;
#if !defined(KEEP_MARK) && !defined(CHECK_FIRST)
	mark = false;
#endif
	if
	:: refs != EXPECTED -> found = true; goto again
	:: else
	fi;
#ifdef CHECK_FIRST
	mark = false;
#endif
	if
	:: !copied -> copy()
	:: copied
	fi;
	/* folio_ref_freeze() */
#ifdef NO_FREEZE
	if
	:: refs == EXPECTED
	:: refs != EXPECTED -> found = true; goto again
	fi;
	refs = 0;
#else
	d_step {
		frozen = refs == EXPECTED;
		if
		:: frozen -> refs = 0
		:: else
		fi
	};
	if
	:: !frozen -> found = true; goto again
	:: frozen
	fi;
#endif
	d_step {
		moved = true;
		assert(copied_data == data);
		assert(!found)
	}
}

active proctype migrate()
{
	byte pass, copied_data;
	bool ahead, mark, copied, frozen, found;

	atomic {
		if
		:: can_be_cached = true
		:: can_be_cached = false
		fi;
		begun = true
	};
#ifdef CHECK_EARLY
	look_ahead();
#endif
#ifdef NO_MB
	/* A flush orders where there is one; here, one that is to come. */
	if
	:: !can_be_cached ->
	   ahead = refs == EXPECTED + 1;
	   unmap()
	:: can_be_cached ->
	   unmap();
	   flush_tlb();
	   look_ahead()
	fi;
#else
	unmap();
#ifdef FLUSH_LATE
	copy_ahead();
	flush_tlb();
	goto flushed;
#endif
	flush_tlb();
#endif
#ifdef NO_RMB
	copy();
#endif
	copy_ahead();
#ifdef FLUSH_LATE
flushed:
#endif
	do
	:: pass < NR_PASSES ->
	   pass++;
	   move();
	   break;
again:	   skip
	:: else -> break		/* it stays where it is */
	od
}

#else
#error "one of -DREGISTRATION, -DREFERENCES"
#endif
