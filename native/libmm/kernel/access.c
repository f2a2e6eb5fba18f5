// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory accesses of a process. The CPU's part is here. The kernel's part is
 * arch/x86/mm/fault.c, which is included since do_user_addr_fault() is static.
 */
#include "../arch/x86/mm/fault.c"
#include "hosted.h"
#include "mmu.h"

#define MOST_TRIES 50	/* per access: a CPU would repeat a fault that does not help for ever */

static int signal_sent;

static void send(int number)
{
	signal_sent = number;
}

int force_sig_fault(int number, int code, void __user *address)
{
	HOST_STUB("custom");
	send(number);
	return 0;
}

int force_sig_mceerr(int code, void __user *address, short lsb)
{
	HOST_STUB("custom");
	send(SIGBUS);
	return 0;
}

int send_sig_mceerr(int code, void __user *address, short lsb, struct task_struct *task)
{
	HOST_STUB("custom");
	send(SIGBUS);
	return 0;
}

int force_sig_pkuerr(void __user *address, u32 key)
{
	HOST_STUB("custom");
	send(SIGSEGV);
	return 0;
}

void force_sig(int number)
{
	HOST_STUB("custom");
	send(number);
}

/* Return the signal that was sent since the last call, or 0. */
int take_signal(void)
{
	int number = signal_sent;

	signal_sent = 0;
	return number;
}

static void load_or_store(unsigned long entry, unsigned long address, bool writes,
			  unsigned long *word)
{
	unsigned long *at = __va((entry & PTE_PFN_MASK) | (address & ~PAGE_MASK));

	if (writes)
		*at = *word;
	else
		*word = *at;
}

static bool allows(unsigned long entry, bool writes)
{
	return entry & _PAGE_PRESENT && entry & _PAGE_USER && (!writes || entry & _PAGE_RW);
}

/* Walk the tables and set accessed and dirty as the CPU does. Return: whether it may access. */
static bool fill_tlb(struct tlb_entry *slot, unsigned long address, bool writes)
{
	struct translation found = translate(current->mm, address);

	if (!allows(found.entry, writes))
		return false;
	*found.at |= _PAGE_ACCESSED | (writes ? _PAGE_DIRTY : 0);
	slot->mm = current->mm;
	slot->page = address >> PAGE_SHIFT;
	slot->entry = translate(current->mm, address).entry;
	remember_on_device(slot);
	return true;
}

static unsigned long error_code(unsigned long address, bool writes)
{
	unsigned long entry = translate(current->mm, address).entry;

	return X86_PF_USER | (writes ? X86_PF_WRITE : 0) |
	       (entry & _PAGE_PRESENT ? X86_PF_PROT : 0);
}

int access_word(unsigned long address, bool writes, unsigned long *word)
{
	struct pt_regs regs = {
		.cs = __USER_CS, .ss = __USER_DS, .flags = X86_EFLAGS_IF, .sp = address,
	};
	int tries;

	for (tries = 0; tries < MOST_TRIES; tries++) {
		struct tlb_entry *slot = tlb_slot(current->mm, address >> PAGE_SHIFT,
						  smp_processor_id());
		unsigned long code;
		int number;

		/* A store needs a dirty translation. Otherwise the CPU walks the tables again. */
		if ((slot->mm == current->mm && slot->page == address >> PAGE_SHIFT &&
		     allows(slot->entry, writes) && (!writes || slot->entry & _PAGE_DIRTY)) ||
		    fill_tlb(slot, address, writes)) {
			load_or_store(slot->entry, address, writes, word);
			return 0;
		}
		/* A fault drops the translation that caused it. */
		if (slot->mm == current->mm && slot->page == address >> PAGE_SHIFT)
			slot->mm = NULL;
		signal_sent = 0;
		code = error_code(address, writes);
		enter_kernel();
		do_user_addr_fault(&regs, code, address);
		leave_kernel();
		number = take_signal();
		if (number)
			return number;
		if (fatal_signal_pending(current))
			return SIGKILL;
	}
	return -EAGAIN;
}
