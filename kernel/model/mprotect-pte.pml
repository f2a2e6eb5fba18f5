// SPDX-License-Identifier: GPL-2.0-only
/*
 * What mprotect() and other users of ptep_modify_prot_start() change by plain loads
 * and stores, for spin to try every order of events. The code is series/pte-hw-done
 * and series/mprotect.
 *
 *	spin -a mprotect-pte.pml
 *	gcc -O2 -DSAFETY -o pan pan.c && ./pan		finds no error
 *
 * Each of these, given to spin, breaks the protocol in one place, and pan finds an
 * error:
 *
 *	-DTEST_ACCESSED	 entries that are accessed count as settled
 *	-DTEST_DIRTY	 entries that are dirty do: only Accessed is lost
 *	-DTEST_NOTHING	 all entries do
 *	-DNO_FLUSH	 no TLB flush before the lock is dropped
 *	-DNO_SAVED_DIRTY Dirty is cleared, SavedDirty not set
 *	-DKEEP_DIRTY	 Dirty stays where it is
 *	-DSTALE_READ	 what was exchanged is not looked at: what was read before is
 *			 changed and written
 *
 * What is taken for granted:
 *   - A store of an aligned word is one step. So is an exchange: no store gets
 *     between its load and its store.
 *   - Software that changes entries holds the page table lock, which the
 *     process here holds throughout. Walkers are all others: CPUs, and devices
 *     that use the same page tables.
 *
 * What is claimed:
 *   - If the page was written through this entry, that is Dirty or SavedDirty
 *     in the end. Neither Dirty nor Accessed is lost that was there before.
 *   - Software makes no entry of a shadow stack: Dirty, and not Write.
 *   - Nobody writes after the flush, until the entry is writable again.
 */
#define PRESENT		1
#define WRITE		2
#define ACCESSED	4
#define DIRTY		8
#define SAVED_DIRTY	16

#define NR_WALKERS	2

/* pte_hw_settled(), of an entry that is present */
#if defined(TEST_ACCESSED)
#define is_settled(entry)	((entry) & ACCESSED)
#elif defined(TEST_DIRTY)
#define is_settled(entry)	((entry) & (DIRTY | SAVED_DIRTY))
#elif defined(TEST_NOTHING)
#define is_settled(entry)	true
#else
#define is_settled(entry)	(!((entry) & PRESENT) || \
				 (((entry) & ACCESSED) && \
				  ((entry) & (DIRTY | SAVED_DIRTY))))
#endif

/* pte_modify(). DIRTY << 1 is SAVED_DIRTY. */
#if defined(KEEP_DIRTY)
#define protect(entry)	((entry) & ~to_clear)
#elif defined(NO_SAVED_DIRTY)
#define protect(entry)	((entry) & ~(to_clear | DIRTY))
#else
#define protect(entry)	(((entry) & ~(to_clear | DIRTY)) | \
			 (((entry) & DIRTY) << 1))
#endif
#define unprotect(entry) (((entry) & ~SAVED_DIRTY) | PRESENT | WRITE | \
			  (((entry) & SAVED_DIRTY) >> 1))

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
bool may_write = true;

/* By software */
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
	   pte = pte | ACCESSED;
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
	   assert(may_write);
	   must_be_dirty = true
	:: else ->
	   if
	   :: (pte & (PRESENT | WRITE)) == (PRESENT | WRITE) ->
	      assert(may_write);
	      pte = pte | ACCESSED | DIRTY;
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

/* One CPU after the other, each when it gets to it */
inline flush_tlb()
{
#ifdef NO_FLUSH
	skip
#else
	i = 0;
	do
	:: i < NR_WALKERS -> tlb[i].valid = false; i++
	:: else -> break
	od;
	i = 0
#endif
}

/* ptep_modify_prot_start(): hardware does not change the entry, or it is taken out. */
inline start()
{
	taken = pte;
	if
	:: is_settled(taken) -> skip
	:: else ->
#ifdef STALE_READ
	   pte = 0
#else
	   d_step { taken = pte; pte = 0 }	/* xchg() */
#endif
	fi
}

active proctype mprotect()
{
	byte taken = 0, to_clear = 0;
	byte i = 0;

	any_beginning();
	if
	:: to_clear = WRITE			/* PROT_READ */
	:: to_clear = WRITE | PRESENT		/* PROT_NONE */
	fi;
	start();
	d_step { set_pte(protect(taken)) };
	flush_tlb();
	may_write = false;
	/* The lock is dropped here, and taken again by the next call. */
	may_write = true;
	start();
	d_step { set_pte(unprotect(taken)) };

	d_step {
		assert(!must_be_dirty || (pte & (DIRTY | SAVED_DIRTY)));
		assert(!must_be_accessed || (pte & ACCESSED))
	}
}
