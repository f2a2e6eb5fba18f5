/* SPDX-License-Identifier: GPL-2.0-only */
/* The program of a run: its steps, processes and files, and what user space must see. */
#ifndef REAM_STEPS_H
#define REAM_STEPS_H

#include "hosted.h"

#define MOST_PROCESSES 16
#define MOST_FILES 64		/* the program's files, then anonymous shared memory */
#define MOST_USER_PAGES (1UL << 20)	/* of a process, from LIBMM_USER_ADDRESS on */
#define MOST_FILE_PAGES (1UL << 19)
#define MOST_ARGUMENTS 8

/* --- program.c --------------------------------------------------------- */

/**
 * struct step - one kind of step
 * @name: Its name in the lines of a program.
 * @arguments: Names of its arguments, from steps.def.
 * @nr_arguments: Number of arguments.
 * @run: Performs the step. Returns the result of a system call, or one of its own.
 */
struct step {
	const char *name;
	const char *arguments;
	unsigned int nr_arguments;
	long (*run)(long a, long b, long c, long d, long e, long f, long g, long h);
};

/* Line number of the current step, in the text of the program. */
unsigned int line_under_way(void);

/* The word of the program's text that an argument points to, or NULL. It ends at a space. */
const char *text_of_word(long argument);

/* End the run because of bad input: a line of the program, and why it is refused. */
void __noreturn refuse(const char *text, const char *why);

/* Read the declarations of the machine. This happens before the kernel boots. */
void read_declarations(const char *text);

/* Run all steps. */
void run_program(const struct libmm_task *task);

/* --- processes.c ------------------------------------------------------- */

/**
 * struct process - a process of the program
 * @number: Its number in the program.
 * @context: Its task. NULL if it does not exist at present.
 * @pages: Expected state of each page; see shadow.c.
 * @step: Its current step. NULL if it waits for one.
 * @arguments: Arguments of @step.
 * @result: Result of its last step.
 * @is_killed: A signal has ended it.
 * @uffd: Its userfaultfd. Negative if it has none yet.
 * @has_events: The userfaultfd gets events of the address space; serve_event() reads them.
 * @protects_present: The userfaultfd protects only pages that are present.
 * @device: A device that uses its address space.
 * @was_wiped: It has VMAs whose pages fork did not copy because of VM_WIPEONFORK.
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

/* The process with this number, or NULL if it does not exist. */
struct process *process_of(long number);

/* The process of the current task, or NULL. */
struct process *current_process(void);

struct mm_struct *mm_of(const struct process *process);

/* Whether ksm_zero_pages may be wrong, because a fork did not copy all VMAs. */
bool may_ksm_zero_pages_vary(void);

/* Start process 0, and end all remaining processes. */
void start_processes(void);
/* Start process 0 again when all have ended. Return: false if memory is short. */
bool begin_again(void);
void end_processes(void);

/* Start a helper process, which programs cannot name. Return: NULL if memory is short. */
struct process *begin_helper(void);
void end_helper(void);

/* Run a step in a helper process. Return: the result of the step. */
long run_in_helper(const struct step *step, long a, long b);

/* Run a step in a process. Return: whether it is done, and does not wait for another step. */
bool run_in_process(struct process *process, const struct step *step, const long *arguments);

/* --- interrupt.c ------------------------------------------------------- */

/* Called before each step. Return: whether this step is to be interrupted. */
bool begin_interrupting(void);
void end_interrupting(void);	/* the step is done, or was interrupted */

/* Called where the kernel may let other tasks run. */
void may_interrupt(void);

/* The process whose step is interrupted, or NULL. end_interrupt() lets it continue. */
struct process *interrupted_process(void);
bool end_interrupt(void);	/* returns whether there was one */
void finish_interrupted(void);	/* also waits until its step is done */

/* --- files.c ----------------------------------------------------------- */

/**
 * struct user_file - a file and its expected contents
 * @file: The kernel's file. NULL for anonymous shared memory, which has none here.
 * @fd: Its descriptor. All processes share one table.
 * @values: For each page, the word expected at its beginning and its end.
 * @nr_pages: Its size in pages.
 * @at_once: Number of pages that one call reads or writes.
 * @may_be_huge: PMDs may map its huge pages, also beyond the end of the file.
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
bool is_zero_device(long number);	/* the file must exist */
int new_shared_memory(unsigned long nr_pages);	/* returns its number, or an error */
void close_files(void);
bool is_in_swap_with_others(struct address_space *mapping, unsigned long index,
			    unsigned long first, unsigned long end);

/* --- shadow.c: what user space must see -------------------------------- */

enum page_kind { NO_MEMORY, ANONYMOUS, PRIVATE_FILE, SHARED_FILE };

/**
 * struct user_page - the expected state of a page of a process
 * @value: Word in the process's own copy.
 * @index: Page index in the file.
 * @kind: Kind of the mapping.
 * @file: Number of the mapped file, if any.
 * @protection: PROT_READ and so on.
 * @is_own: A private page that was written and no longer follows its file.
 * @may_be_gone: The page may also hold what it would hold had it never been written.
 * @is_poisoned: Accesses fail until the page is discarded.
 * @is_droppable: The kernel may drop the page at any time (MAP_DROPPABLE).
 * @is_followed: Writes set the soft-dirty bit of its entry, or its VMA is soft-dirty.
 * @is_written: It was written since clear_refs, so it must be soft-dirty.
 * @is_uffd_wp: userfaultfd write-protects it and must notice a write; see protected.c.
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

/* Reset a page to one of the same mapping that was never written. */
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

/* The VMA is soft-dirty as a whole, so a write need not set the bit of the entry. */
static inline void see_soft_dirty_mapping(struct user_page *page)
{
	if (FOLLOWS_NEW_PAGES)
		return;
	page->is_followed = false;
	page->is_written = false;
}

/* Call @look for each page of a process that lies in a VMA. */
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

/* Some mapping is large enough for hugetlb to share its PMD tables. */
extern bool tables_may_be_shared;

/* A call failed half way, so Committed_AS may be off. The next check takes it as it is. */
extern bool promises_may_be_lost;

/* A page becomes hwpoisoned: accesses may raise SIGBUS and files may lose data. */
void see_broken_page(void);
bool may_fault_for_ever(void);	/* because memory is short, or too much of it is dirty */

/* A page got a value by other means than a store. */
void see_value(struct process *process, unsigned long page, u64 value);

/* The value that the current step writes into its @i-th page. */
static inline u64 value_of_step(long i)
{
	return (u64)line_under_way() << 32 | (i + 1);
}

/* A call failed half way: take over the actual mappings and their protection. */
void see_what_is_mapped(struct process *process, unsigned long page, unsigned long nr);

/* Load from or store into a page as the process does. Return: whether it may go on. */
bool load_page(struct process *process, unsigned long page);
bool store_page(struct process *process, unsigned long page, u64 value);

/* Check the words that a process would read if this is its page. */
void check_words(struct process *process, unsigned long address, const u64 *words);

/* Check cached translations of a process whose step is done, while another is interrupted. */
void check_tlb_of(struct process *process);

/* Check that all pages that are mapped, without faulting, hold what was written. */
void check_contents(void);

/* --- protected.c: what userfaultfd write-protects ---------------------- */

void see_uffd_wp(struct process *process, unsigned long page, unsigned long nr);
void end_uffd_wp(struct process *process, unsigned long page, unsigned long nr);
void end_uffd_wp_by_write(struct process *process, unsigned long page, unsigned long nr);
void end_uffd_wp_by_populating(struct process *process, unsigned long page, unsigned long nr);
void end_uffd_wp_by_removal(struct process *process, unsigned long page, unsigned long nr);
void end_uffd_wp_of_file(unsigned int file, unsigned long index, unsigned long nr);

/* Check that a page which must still be write-protected is. */
void check_uffd_wp(struct process *process, unsigned long page);

static inline unsigned long address_of_page(unsigned long page)
{
	return LIBMM_USER_ADDRESS + (page << PAGE_SHIFT);
}

/* --- steps_place.c, steps_uffd.c: pins, migrations and userfaultfd ----- */

unsigned int nr_most_pins(void);
/* The page of a pin, or NULL. Also its references, and whether they come from FOLL_GET. */
struct page *pinned_page(unsigned int number, long *references, bool *is_get);

/* Finish the migrations that `migrating` began. Return: whether there were any. */
bool end_migrations(void);
void end_migrations_later(void);	/* after a second, if the next step waits for them */
void release_pins(void);
bool serve_event(struct process *process);	/* returns whether there was one */
void close_uffd(struct process *process);

/* From now on a large folio may come from a split of a larger one: lists.c. */
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
