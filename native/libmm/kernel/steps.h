/* SPDX-License-Identifier: GPL-2.0-only */
/* The program that runs: its steps, its processes, its files, and what users see of them. */
#ifndef REAM_STEPS_H
#define REAM_STEPS_H

#include "hosted.h"

#define MOST_PROCESSES 16
#define MOST_FILES 64		/* those of the program, and behind them memory shared by fork */
#define MOST_USER_PAGES (1UL << 20)	/* of a process, from LIBMM_USER_ADDRESS on */
#define MOST_FILE_PAGES (1UL << 19)
#define MOST_ARGUMENTS 8

/* --- program.c --------------------------------------------------------- */

/**
 * struct step - one kind of step
 * @name: As in a program's lines.
 * @arguments: Their names, as steps.def has them.
 * @nr_arguments: How many.
 * @run: Does it, with these; a system call's result, or what it says itself.
 */
struct step {
	const char *name;
	const char *arguments;
	unsigned int nr_arguments;
	long (*run)(long a, long b, long c, long d, long e, long f, long g, long h);
};

/* The line of the step under way, as the text of the program counts them. */
unsigned int line_under_way(void);

/* An argument that is a word of the program's text, which ends at a space; NULL: it is none. */
const char *text_of_word(long argument);

/* Bad input: a line of the program, and why it cannot be run. */
void __noreturn refuse(const char *text, const char *why);

/* Read the first lines, which say what there is. Before the kernel boots. */
void read_declarations(const char *text);

/* Run all steps. */
void run_program(const struct libmm_task *task);

/* --- processes.c ------------------------------------------------------- */

/**
 * struct process - a process of the program
 * @number: As the program has it.
 * @context: Its task; NULL: there is none now.
 * @pages: What it sees of each page: see shadow.c.
 * @step: What it does now; NULL: it waits for a step.
 * @arguments: Of that.
 * @result: Of its last step.
 * @is_killed: A signal has ended it.
 * @uffd: Its userfaultfd; negative: none yet.
 * @has_events: Which is told of changes of the address space, and read by serve_event().
 * @protects_present: Which protects only pages that are there.
 * @device: That uses its memory.
 * @was_wiped: Some VMAs were its parent's, whose pages it did not get: VM_WIPEONFORK.
 */
struct process {
	int number;
	struct context *context;
	struct user_page *pages;
	const struct step *step;
	long arguments[MOST_ARGUMENTS];
	long result;
	bool is_killed;
	int uffd;
	bool has_events, protects_present;
	struct mmu_notifier device;
	bool was_wiped;
};

/* Process @number, which exists; NULL: it does not. */
struct process *process_of(long number);

/* That of which the current task is. */
struct process *current_process(void);

struct mm_struct *mm_of(const struct process *process);

/* Whether the numbers of zero pages that KSM made may be wrong: since a fork in part. */
bool may_ksm_zero_pages_vary(void);

/* Begin with process 0, and end all that are left. */
void start_processes(void);
/* Starts one more when all have ended; false if there is no memory for it. */
bool begin_again(void);
void end_processes(void);

/* One more process, which a program does not name; NULL: there is no memory for it. */
struct process *begin_helper(void);
void end_helper(void);

/* Have it do something; its result. */
long run_in_helper(const struct step *step, long a, long b);

/* Whether it was done; a process may wait for another one's step instead. */
bool run_in_process(struct process *process, const struct step *step, const long *arguments);

/* --- interrupt.c ------------------------------------------------------- */

/* Whether the step that begins now is to be interrupted. */
bool begin_interrupting(void);
void end_interrupting(void);	/* it is done, or interrupted */

/* A place where the kernel may let other tasks run. */
void may_interrupt(void);

/* That whose step is interrupted; NULL: none is. It goes on; whether there was one. */
struct process *interrupted_process(void);
bool end_interrupt(void);
void finish_interrupted(void);	/* and waits until its step is done */

/* --- files.c ----------------------------------------------------------- */

/**
 * struct user_file - a file, and what it holds
 * @file: The kernel's; NULL: none. Memory that forks share has none here.
 * @fd: Its number in the one table of all processes.
 * @values: By page, what is at its beginning and end.
 * @nr_pages: Its size.
 * @at_once: So many pages are read or written by one call.
 * @may_be_huge: Entries may map whole huge pages, and what they have behind its end.
 */
struct user_file {
	struct file *file;
	int fd;
	u64 *values;
	unsigned long nr_pages;
	long at_once;
	bool may_be_huge;
};

struct user_file *file_of(long number);	/* NULL: there is none */
bool is_zero_device(long number);	/* of a file that exists */
int new_shared_memory(unsigned long nr_pages);	/* its number; negative: too many */
void close_files(void);
bool is_in_swap_with_others(struct address_space *mapping, unsigned long index,
			    unsigned long first, unsigned long end);

/* --- shadow.c: what users see ------------------------------------------ */

enum page_kind { NO_MEMORY, ANONYMOUS, PRIVATE_FILE, SHARED_FILE };

/**
 * struct user_page - what a process may expect at a page
 * @value: Of its own copy.
 * @index: In its file.
 * @kind: What it is.
 * @file: Whose page it is, if it is a file's.
 * @protection: PROT_READ and so on.
 * @is_own: It was written, and is not the file's any more.
 * @may_be_gone: It may hold what it would if it had never been written.
 * @is_poisoned: An access is an error until it is discarded.
 * @is_droppable: The kernel may forget it at any time.
 * @is_followed: Whether it is written is noted by its entry, or by its VMA.
 * @is_written: It was, since clear_refs was, so it must be soft-dirty.
 * @is_uffd_wp: userfaultfd protects it, and must notice a write: see protected.c.
 */
struct user_page {
	u64 value;
	u32 index;
	u8 kind;
	u8 file;
	u8 protection;
	u8 is_own : 1;
	u8 may_be_gone : 1;
	u8 is_poisoned : 1;
	u8 is_droppable : 1;
	u8 is_followed : 1;
	u8 is_written : 1;
	u8 is_uffd_wp : 1;
	u8 may_be_guarded : 1;
};

/* A page that was never written, of the same mapping. */
static inline void forget_page(struct user_page *page)
{
	page->value = 0;
	page->is_own = false;
	page->may_be_gone = false;
	page->is_poisoned = false;
	page->is_written = false;
	page->is_uffd_wp = false;
}

#ifdef HAVE_STICKY_SOFT_DIRTY
#define FOLLOWS_NEW_PAGES true
#else
#define FOLLOWS_NEW_PAGES false		/* a VMA may lose VM_SOFTDIRTY when it is merged */
#endif

/* Its VMA is soft-dirty as a whole, so writes need not be noted by its entry. */
static inline void see_soft_dirty_mapping(struct user_page *page)
{
	if (FOLLOWS_NEW_PAGES)
		return;
	page->is_followed = false;
	page->is_written = false;
}

/* Have each page of a process looked at that lies in a VMA. */
void look_at_pages(struct process *process,
		   void (*look)(struct process *process, struct vm_area_struct *vma,
				unsigned long page));

void see_mapping(struct process *process, unsigned long page, unsigned long nr,
		 struct user_page first);
void see_unmapping(struct process *process, unsigned long page, unsigned long nr);
void see_protection(struct process *process, unsigned long page, unsigned long nr, int protection);
void see_move(struct process *process, unsigned long from, unsigned long to, unsigned long nr,
	      bool leaves_mapping);
void see_discard(struct process *process, unsigned long page, unsigned long nr, bool is_sure);
void see_fork(struct process *parent, struct process *child);
void see_truncation(unsigned int file, unsigned long nr_pages);
void see_end(struct process *process);

/* A mapping is so large that others may have the same table of huge pages. */
extern bool tables_may_be_shared;

/* A mapping was refused, or a move failed in part: Committed_AS is what it is from then on. */
extern bool promises_may_be_lost;

/* From now on an access may get a signal, and a file another word than was written. */
void see_broken_page(void);
bool may_fault_for_ever(void);	/* since memory is short, or too much of it is dirty */

/* A page was given a value without a store. */
void see_value(struct process *process, unsigned long page, u64 value);

/* What the step under way writes into its @i-th page. */
static inline u64 value_of_step(long i)
{
	return (u64)line_under_way() << 32 | (i + 1);
}

/* A call failed half way: believe what is mapped, and how. */
void see_what_is_mapped(struct process *process, unsigned long page, unsigned long nr);

/* Load from or store into a page as the process does; whether it may go on. */
bool load_page(struct process *process, unsigned long page);
bool store_page(struct process *process, unsigned long page, u64 value);

/* What a process reads at an address if this is its page. */
void check_words(struct process *process, unsigned long address, const u64 *words);

/* By translations that CPUs still have when its step is done, while another one is not. */
void check_tlb_of(struct process *process);

/* Whatever is mapped now, without a fault, must hold what was written. */
void check_contents(void);

/* --- protected.c: what userfaultfd write-protects ---------------------- */

void see_uffd_wp(struct process *process, unsigned long page, unsigned long nr);
void end_uffd_wp(struct process *process, unsigned long page, unsigned long nr);
void end_uffd_wp_by_write(struct process *process, unsigned long page, unsigned long nr);
void end_uffd_wp_by_populating(struct process *process, unsigned long page, unsigned long nr);
void end_uffd_wp_by_removal(struct process *process, unsigned long page, unsigned long nr);
void end_uffd_wp_of_file(unsigned int file, unsigned long index, unsigned long nr);

/* A page that is still to be protected must be. */
void check_uffd_wp(struct process *process, unsigned long page);

static inline unsigned long address_of_page(unsigned long page)
{
	return LIBMM_USER_ADDRESS + (page << PAGE_SHIFT);
}

/* --- steps_place.c, steps_uffd.c: what else keeps pages ---------------- */

unsigned int nr_most_pins(void);
/* NULL: that pin is free. And how many references it has, and whether they are only these. */
struct page *pinned_page(unsigned int number, long *references, bool *is_get);

/* Let go of what `migrating` holds; whether it held anything. */
bool end_migrations(void);
void end_migrations_later(void);	/* once the next step waits for them */
void release_pins(void);
bool serve_event(struct process *process);	/* whether there was one */
void close_uffd(struct process *process);

/* From now on a folio may be what a larger one was split to: lists.c. */
void see_split_to_large(void);

/* --- calls ------------------------------------------------------------- */

typedef long (*system_call_t)(const struct pt_regs *regs);

static inline long call(system_call_t function, long a, long b, long c, long d, long e, long f)
{
	const struct pt_regs regs = { .di = a, .si = b, .dx = c, .r10 = d, .r8 = e, .r9 = f };

	return TIMED(function(&regs));
}

#define SYSTEM_CALL(name) extern long __x64_sys_##name(const struct pt_regs *regs)

#endif
