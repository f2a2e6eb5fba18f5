// SPDX-License-Identifier: GPL-2.0-only
/*
 * What fork() and unmap change by plain loads and stores, for spin to try every
 * order of events. The code is series/pte-hw-done and series/fork, patches 1, 4, 5, 7
 * and 11 to 13. There are three models, and one is checked at a time:
 *
 *	-DENTRY		a page table entry, ptep_set_wrprotect()
 *	-DFLAGS		page->flags, clear_bit_own_byte()
 *	-DMAPCOUNT	page->_mapcount, of exclusive pages and of shared ones
 *
 *	spin -a -DENTRY fork-pte.pml
 *	gcc -O2 -DSAFETY -o pan pan.c && ./pan		finds no error
 *
 * Each of these, given to spin with its model, breaks the protocol in one
 * place, and pan finds an error:
 *
 *	ENTRY	-DTEST_ACCESSED	 entries that are accessed count as settled
 *		-DTEST_DIRTY	 entries that are dirty do: only Accessed is lost
 *		-DTEST_NOTHING	 all entries do
 *		-DNO_SAVED_DIRTY Dirty is cleared, SavedDirty not set
 *		-DKEEP_DIRTY	 Dirty stays where it is
 *		-DNO_FLUSH	 no TLB flush at the end of fork
 *	FLAGS	-DWHOLE_WORD	 the word is loaded and stored, not the byte
 *		-DSECOND_PAGE	 done to a page with PG_has_hwpoisoned
 *	MAPCOUNT -DDO_NOT_ASK	 a plain store whether exclusive or not
 *		-DSTAY_EXCLUSIVE PG_anon_exclusive survives the fork
 *		-DREUSE_SHARED	 it is set although others map the page, too
 *		-DPUT_FIRST	 the reference is put before the mapping goes
 *		-DNO_LOCK	 rmap unmaps without the page table lock
 *		-DLOOK_ONCE	 who drops both counts at once does not look again
 *		-DFIRST_PAGE_FIRST other pages of the folio are unmapped after that
 *		-DADD_LATE	 who adds to both has let go of the page table lock
 *
 * What is taken for granted:
 *   - A store of one byte, or of an aligned word, is one step. So is a locked
 *     operation: no store gets between its load and its store.
 *   - x86 shows the stores of a CPU in their order. While one waits in a store
 *     buffer, it has not happened yet, for the model neither. Where others look
 *     on without a lock, the model has a step before each store.
 *   - Who takes a lock sees what came before its release. MAPCOUNT needs no
 *     more, and holds on every architecture.
 */

#if defined(ENTRY)
/*
 * --- A page table entry ----------------------------------------------------
 *
 * Walkers are all that uses the page tables of the process that forks: another
 * thread, a kthread in kthread_use_mm(), which may begin at any moment, a
 * device. Each has room for one translation, which it may lose or load at any
 * time. Everybody else has to take the page table lock, which fork() holds.
 *
 * What is claimed:
 *   - If the page was written through this entry, that is Dirty or SavedDirty
 *     in the end. Nor is Dirty or Accessed lost that was there before.
 *   - At no time is the entry that of a shadow stack: Dirty, and not Write.
 *   - After the flush nobody can write the page, which is the child's now, too.
 */
#define PRESENT		1
#define WRITE		2
#define ACCESSED	4
#define DIRTY		8
#define SAVED_DIRTY	16

/* What ptep_set_wrprotect() takes for an entry that hardware leaves alone */
#if defined(TEST_ACCESSED)
#define SETTLED		ACCESSED
#elif defined(TEST_DIRTY)
#define SETTLED		DIRTY
#elif defined(TEST_NOTHING)
#define SETTLED		0
#else
#define SETTLED		(ACCESSED | DIRTY)
#endif

#if defined(KEEP_DIRTY)
#define wrprotect(entry)	((entry) & ~WRITE)
#elif defined(NO_SAVED_DIRTY)
#define wrprotect(entry)	((entry) & ~(WRITE | DIRTY))
#else
/* pte_wrprotect(). DIRTY << 1 is SAVED_DIRTY. */
#define wrprotect(entry)	(((entry) & ~(WRITE | DIRTY)) | \
				 (((entry) & DIRTY) << 1))
#endif

#define NR_WALKERS	2

byte pte;
bool begun = false;

typedef translation {
	bool valid;
	bool writable;
	bool dirty;
};
translation tlb[NR_WALKERS];

/* Not in the kernel: what must be found in the entry in the end. */
bool must_be_dirty = false;
bool must_be_accessed = false;
bool flushed = false;

inline set_pte(entry)
{
	pte = entry;
	assert((pte & (WRITE | DIRTY)) != DIRTY)
}

/* A translation is loaded, for a read or ahead of any use. */
inline load(i)
{
	if
	:: pte & PRESENT ->
	   set_pte(pte | ACCESSED);
	   must_be_accessed = true;
	   tlb[i].valid = true;
	   tlb[i].writable = (pte & WRITE) != 0;
	   tlb[i].dirty = (pte & DIRTY) != 0
	:: else
	fi
}

/* The entry is asked, unless a translation says that it is dirty already. */
inline write(i)
{
	if
	:: tlb[i].valid && tlb[i].writable && tlb[i].dirty ->
	   assert(!flushed);
	   must_be_dirty = true
	:: else ->
	   if
	   :: (pte & (PRESENT | WRITE)) == (PRESENT | WRITE) ->
	      assert(!flushed);
	      set_pte(pte | ACCESSED | DIRTY);
	      must_be_accessed = true;
	      must_be_dirty = true;
	      tlb[i].valid = true;
	      tlb[i].writable = true;
	      tlb[i].dirty = true
	   :: else -> tlb[i].valid = false	/* a page fault: it waits */
	   fi
	fi
}

active [NR_WALKERS] proctype walker()
{
	begun;
end:	do
	:: d_step { !tlb[_pid].valid -> load(_pid) }
	:: d_step { tlb[_pid].valid -> tlb[_pid].valid = false }
	:: d_step { write(_pid) }
	od
}

/*
 * The entry may be young or old, dirty or clean. A translation may be from a
 * time when the entry was young, as making it old takes no flush. It may say
 * clean of an entry that is dirty, but not dirty of one that is clean.
 */
inline any_beginning()
{
	pte = PRESENT | WRITE;
	if
	:: pte = pte | ACCESSED; must_be_accessed = true
	:: skip
	fi;
	if
	:: pte = pte | DIRTY; must_be_dirty = true
	:: skip
	fi;
	i = 0;
	do
	:: i < NR_WALKERS ->
	   if
	   :: tlb[i].valid = true;
	      tlb[i].writable = true;
	      if
	      :: pte & DIRTY -> tlb[i].dirty = true
	      :: tlb[i].dirty = false
	      fi
	   :: skip
	   fi;
	   i++
	:: else -> break
	od;
	begun = true
}

inline ptep_set_wrprotect()
{
	old_pte = pte;
	if
	:: (old_pte & SETTLED) == SETTLED ->
	   d_step { set_pte(wrprotect(old_pte)) }
	:: else ->
	   do			/* try_cmpxchg() */
	   :: atomic {
		pte == old_pte ->
		set_pte(wrprotect(old_pte));
		break
	      }
	   :: d_step { pte != old_pte -> old_pte = pte }
	   od
	fi
}

/* One CPU after the other, each when it gets to it */
inline flush_tlb_mm()
{
	i = 0;
	do
	:: i < NR_WALKERS -> tlb[i].valid = false; i++
	:: else -> break
	od;
	i = 0
}

active proctype fork()
{
	byte old_pte, i;

	atomic { any_beginning() };

	/* The lock is held here. */
	ptep_set_wrprotect();
#ifdef NO_FLUSH
	skip;
#else
	flush_tlb_mm();
#endif
	d_step {
		flushed = true;
		assert(!(pte & WRITE));
		assert(!must_be_dirty || pte & (DIRTY | SAVED_DIRTY));
		assert(!must_be_accessed || pte & ACCESSED);
		do
		:: i < NR_WALKERS ->
		   assert(!tlb[i].valid || !tlb[i].writable);
		   i++
		:: else -> break
		od;
		i = 0
	}
}

#elif defined(FLAGS)
/*
 * --- The flags of a page ---------------------------------------------------
 *
 * A tail page of a large folio, from the third on. PG_hwpoison may be set, and
 * the upper half of the word be exchanged, while fork() clears the bit.
 *
 * What is claimed: nothing is lost.
 */
#define PG_anon_exclusive	1
#define PG_same_byte		2	/* another flag of that byte */
#define OWN_BYTE		(PG_anon_exclusive | PG_same_byte)
#define PG_hwpoison		4
#define OLD_CPUPID		8
#define NEW_CPUPID		16
#define CPUPID			(OLD_CPUPID | NEW_CPUPID)

#ifdef SECOND_PAGE
byte flags = PG_anon_exclusive | OLD_CPUPID;
#else
byte flags = PG_anon_exclusive | PG_same_byte | OLD_CPUPID;
#endif
byte nr_done = 0;

/* LOCK BTS */
active proctype memory_failure()
{
	d_step { flags = flags | PG_hwpoison };
#ifdef SECOND_PAGE
	d_step { flags = flags | PG_same_byte };
#endif
	nr_done++
}

/* A loop of LOCK CMPXCHG, as in folio_xchg_last_cpupid() */
active proctype xchg_last_cpupid()
{
	byte old_flags;

	old_flags = flags;
	do
	:: atomic {
		flags == old_flags ->
		flags = (old_flags & ~CPUPID) | NEW_CPUPID;
		break
	   }
	:: d_step { flags != old_flags -> old_flags = flags }
	od;
	nr_done++
}

inline clear_bit_own_byte()
{
#ifdef WHOLE_WORD
	value = flags;
	flags = value & ~PG_anon_exclusive
#else
	value = flags & OWN_BYTE;
	value = value & ~PG_anon_exclusive;
	d_step { flags = (flags & ~OWN_BYTE) | value }
#endif
}

active proctype fork()
{
	byte value;

	clear_bit_own_byte();
	nr_done++;

	nr_done == 3;
	assert(flags == (PG_same_byte | PG_hwpoison | NEW_CPUPID))
}

#elif defined(MAPCOUNT)
/*
 * --- The mapcount of a page ------------------------------------------------
 *
 * Processes fork, unmap the page, or find that they have it to themselves
 * again; meanwhile rmap takes it away from any of them, and puts it back. All
 * do so under the page table lock of the entry, but each entry has another.
 *
 * What is claimed: the mapcount is right in the end, and is what was expected
 * whenever somebody stores a new one without looking. When references go with
 * the mappings of all of a folio, no page has more mappings than it has
 * references: the page whose mapcount is here is a folio's first, and there is
 * another, whose mapcount nobody stores without looking.
 */
#define NR_MMS		3	/* one to begin with; the others by fork() */
#define NR_TURNS	2	/* what each of them does */
#define NR_UNMAPS	2	/* what rmap does */

/* A migration entry remembers whether the page was exclusive. */
mtype = { NONE, MAPPED, MIGRATION, EXCLUSIVE_MIGRATION };
mtype entry[NR_MMS] = NONE;
bool locked[NR_MMS] = false;

short mapcount = 0;		/* page->_mapcount: mappings, less one */
byte tails = 1;			/* mappings of another page, by the same entries */
bool exclusive = true;		/* PG_anon_exclusive */
byte nr_refs = 1;		/* one for each entry of either kind */

byte nr_mms = 1;
byte nr_done = 0;

inline lock(i)
{
	atomic { !locked[i] -> locked[i] = true }
}

inline unlock(i)
{
	locked[i] = false
}

#ifdef DO_NOT_ASK
#define ask_exclusive()		true
inline store_mapcount(old, new)
{
	count = mapcount;
	mapcount = count + new - (old)
}
#else
#define ask_exclusive()		exclusive
inline store_mapcount(old, new)
{
	assert(mapcount == old);	/* VM_WARN_ON_ONCE_PAGE() */
	mapcount = new
}
#endif

/* __page_dup_anon_rmap_pte() */
inline dup_rmap()
{
	if
	:: ask_exclusive() ->
#ifndef STAY_EXCLUSIVE
	   exclusive = false;
#endif
	   store_mapcount(0, 1)
	:: else -> mapcount++
	fi;
	tails++
}

/*
 * dup_small_folio(). A mapcount of -1 would carry into the reference count,
 * which lies behind it in the word.
 */
inline dup_at_once(i)
{
#ifndef STAY_EXCLUSIVE
	exclusive = false;
#endif
#ifdef ADD_LATE
	unlock(i);
#endif
	atomic {
		assert(mapcount >= 0);
		mapcount++;
		tails++;
		nr_refs++
	}
}

/*
 * __pages_remove_rmap_exclusive(), zap_small_anon_folio(). They leave the flag
 * of a page that is not mapped.
 */
inline remove_first()
{
	if
	:: ask_exclusive() -> store_mapcount(0, -1)
	:: else -> mapcount--
	fi
}

inline remove_rmap()
{
	tails--;
	remove_first()
}

/* The lock of the child's entry is nobody else's yet. */
inline fork(i)
{
	if
	:: entry[i] == MAPPED ->
	   dup_at_once(i);
	   entry[child] = MAPPED
	:: entry[i] == MAPPED ->
	   nr_refs++;
	   dup_rmap();
	   entry[child] = MAPPED
	:: entry[i] == MIGRATION || entry[i] == EXCLUSIVE_MIGRATION ->
	   nr_refs++;
	   d_step { entry[i] = MIGRATION; entry[child] = MIGRATION }
	:: entry[i] == NONE
	fi
}

/* folio_drop_shared(), at exit: the cmpxchg fails if either count has changed. */
inline unmap_at_once(i)
{
	entry[i] = NONE;
#ifndef FIRST_PAGE_FIRST
	tails--;
#endif
	if
#ifdef LOOK_ONCE
	:: mapcount >= 1 ->
	   count = mapcount - 1;
	   mapcount = count;
	   nr_refs--
#else
	:: atomic {
		mapcount >= 1 -> mapcount--;
		nr_refs--;
#ifndef PUT_FIRST	/* it shows in the mapcount as well, later */
		assert(nr_refs >= tails)
#endif
	   }
#endif
	:: else ->
	   remove_first();
	   nr_refs--
	fi;
#ifdef FIRST_PAGE_FIRST
	tails--
#endif
}

inline unmap(i)
{
	if
	:: entry[i] == MAPPED -> unmap_at_once(i)
	:: entry[i] == MAPPED ->
#ifdef PUT_FIRST
	   nr_refs--;
	   entry[i] = NONE;
	   remove_rmap()
#else
	   entry[i] = NONE;
	   remove_rmap();
	   nr_refs--
#endif
	:: entry[i] == MIGRATION || entry[i] == EXCLUSIVE_MIGRATION ->
	   entry[i] = NONE;
	   nr_refs--
	:: entry[i] == NONE
	fi
}

/* do_wp_page() */
inline reuse(i)
{
	if
#ifdef REUSE_SHARED
	:: entry[i] == MAPPED -> exclusive = true
#else
	:: entry[i] == MAPPED && nr_refs == 1 -> exclusive = true
#endif
	:: else
	fi
}

proctype mm(byte i)
{
	byte turn, child;
	short count;

	do
	:: turn < NR_TURNS ->
	   turn++;
	   lock(i);
	   if
	   :: atomic { nr_mms < NR_MMS -> child = nr_mms; nr_mms++ }
	      fork(i);
	      run mm(child)
	   :: unmap(i)
	   :: reuse(i)
	   fi;
	   unlock(i)
	:: else -> break
	od;
	nr_done++
}

inline rmap_lock(i)
{
#ifdef NO_LOCK
	skip
#else
	lock(i)
#endif
}

inline rmap_unlock(i)
{
#ifdef NO_LOCK
	skip
#else
	unlock(i)
#endif
}

/*
 * try_to_migrate_one(), where folio_try_share_anon_rmap_pte() clears the flag;
 * or try_to_unmap_one() of a page that is poisoned or was given up by
 * MADV_FREE, which leaves it.
 */
inline try_to_unmap(i)
{
	if
	:: entry[i] == MAPPED ->
	   if
	   :: exclusive -> exclusive = false; entry[i] = EXCLUSIVE_MIGRATION
	   :: !exclusive -> entry[i] = MIGRATION
	   :: entry[i] = NONE
	   fi;
	   remove_rmap();
	   if
	   :: entry[i] == NONE -> nr_refs--
	   :: else
	   fi
	:: else
	fi
}

/* remove_migration_pte(), of a migration that failed: the page is the same */
inline remove_migration_pte(i)
{
	if
	:: entry[i] == EXCLUSIVE_MIGRATION ->
	   mapcount++;
	   tails++;
	   exclusive = true;
	   entry[i] = MAPPED
	:: entry[i] == MIGRATION ->
	   mapcount++;
	   tails++;
	   entry[i] = MAPPED
	:: else
	fi
}

inline any_mm()
{
	i = 0;
	do
	:: i < NR_MMS - 1 -> i++
	:: break
	od
}

active proctype rmap()
{
	byte turn, i;
	short count;

	do
	:: turn < NR_UNMAPS ->
	   turn++;
	   any_mm();
	   rmap_lock(i);
	   try_to_unmap(i);
	   rmap_unlock(i);
	   rmap_lock(i);
	   remove_migration_pte(i);
	   rmap_unlock(i);
	   i = 0
	:: else -> break
	od;
	nr_done++
}

init
{
	byte n, nr_mapped;

	entry[0] = MAPPED;
	run mm(0);

	nr_done == nr_mms + 1;		/* rmap, too */
	d_step {
		do
		:: n < NR_MMS ->
		   nr_mapped = nr_mapped + (entry[n] == MAPPED);
		   n++
		:: else -> break
		od;
		assert(mapcount == nr_mapped - 1);
		assert(tails == nr_mapped);
		assert(!exclusive || nr_mapped <= 1)
	}
}
#else
#error "one of -DENTRY, -DFLAGS, -DMAPCOUNT"
#endif
