// SPDX-License-Identifier: GPL-2.0-only
/* Steps that use userfaultfd, through the ioctl() of its file. */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/userfaultfd.h>
#include "hosted.h"
#include "steps.h"

SYSTEM_CALL(userfaultfd);
SYSTEM_CALL(close);
SYSTEM_CALL(read);

#define FEATURES (UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED |		\
		  UFFD_FEATURE_WP_HUGETLBFS_SHMEM | UFFD_FEATURE_PAGEFAULT_FLAG_WP |	\
		  UFFD_FEATURE_MOVE | UFFD_FEATURE_SIGBUS |				\
		  UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_MINOR_HUGETLBFS |		\
		  UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MISSING_HUGETLBFS |		\
		  UFFD_FEATURE_POISON)

#define EVENTS (UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP |		\
		UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP)

#define MOST_COPIED 512L	/* pages per UFFDIO_COPY */

static long control_fd(int fd, unsigned int command, void *argument)
{
	struct file *file = fget(fd);
	long result;

	if (!file)
		return -EBADF;
	result = TIMED(file->f_op->unlocked_ioctl(file, command, (unsigned long)argument));
	fput(file);
	return result;
}

static long open_uffd(struct process *process, u64 features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };

	process->uffd = call(__x64_sys_userfaultfd, O_NONBLOCK, 0, 0, 0, 0, 0);
	return control_fd(process->uffd, UFFDIO_API, &api);
}

/* Call an ioctl() of the process's own userfaultfd, which is opened on first use. */
static long control(struct process *process, unsigned int command, void *argument)
{
	long error = process->uffd < 0 ? open_uffd(process, FEATURES) : 0;

	return error ?: control_fd(process->uffd, command, argument);
}

#define UNSET 0x5a5a5a5a5a5aLL

/* Call an ioctl() that reports its progress. Source: ioctl_userfaultfd(2), EAGAIN. */
static long control_some(struct process *process, unsigned int command, void *argument, s64 *done)
{
	long error;

	*done = UNSET;
	error = control(process, command, argument);
	if (error == -EAGAIN && *done == UNSET)
		wrong("ioctl %#x of userfaultfd returns EAGAIN, and does not say how far it came",
		      command);
	if (*done == UNSET)
		*done = 0;
	return error;
}

/* --- events, which the monitor of an address space reads --------------- */

/* Open a userfaultfd that protects only present pages. Writes to them raise a signal. */
long call_uffd_present(long start, long bytes, long unused, long unused2)
{
	struct process *process = current_process();

	if (process->uffd >= 0)
		return -EBUSY;
	process->protects_present = true;
	return open_uffd(process, FEATURES & ~(UFFD_FEATURE_WP_ASYNC |
					       UFFD_FEATURE_WP_UNPOPULATED));
}

/* Open a userfaultfd with events: changes of mappings wait until an event was read. */
long call_uffd_events(long start, long bytes, long unused, long unused2)
{
	struct process *process = current_process();
	long error;

	if (process->uffd >= 0)
		return -EBUSY;
	error = open_uffd(process, FEATURES | EVENTS);
	process->has_events = !error;
	return error;
}

/* Try each ioctl() with an empty range, which changes nothing where it is allowed. */
static void try_while_changing(struct process *process)
{
	struct uffdio_copy copy = { };
	struct uffdio_zeropage zero = { };
	struct uffdio_continue more = { };
	struct uffdio_poison poison = { };
	struct uffdio_move move = { };

	control_some(process, UFFDIO_COPY, &copy, &copy.copy);
	control_some(process, UFFDIO_ZEROPAGE, &zero, &zero.zeropage);
	control_some(process, UFFDIO_CONTINUE, &more, &more.mapped);
	control_some(process, UFFDIO_POISON, &poison, &poison.updated);
	control_some(process, UFFDIO_MOVE, &move, &move.move);
}

bool serve_event(struct process *process)
{
	struct uffd_msg message = { };

	try_while_changing(process);
	if (call(__x64_sys_read, process->uffd, (long)&message, sizeof(message), 0, 0, 0) !=
	    sizeof(message))
		return false;
	if (message.event == UFFD_EVENT_FORK) {
		struct process *child = process_of(process->arguments[1]);

		child->uffd = message.arg.fork.ufd;
		child->has_events = true;
	}
	return true;
}

/* --- steps ------------------------------------------------------------- */

static struct uffdio_range range_of(long page, long nr)
{
	return (struct uffdio_range){ address_of_page(page), nr << PAGE_SHIFT };
}

long step_uffd_register(long number, long page, long nr, long mode)
{
	struct uffdio_register its = { .range = range_of(page, nr), .mode = mode };

	/* Before 7.3, registering a range again replaces its modes. */
	if (!(mode & UFFDIO_REGISTER_MODE_WP))
		end_uffd_wp(current_process(), page, nr);
	return control(current_process(), UFFDIO_REGISTER, &its);
}

long step_uffd_unregister(long number, long page, long nr)
{
	struct uffdio_range range = range_of(page, nr);

	end_uffd_wp(current_process(), page, nr);
	return control(current_process(), UFFDIO_UNREGISTER, &range);
}

long step_uffd_wp(long number, long page, long nr, long protects)
{
	struct uffdio_writeprotect its = {
		.range = range_of(page, nr), .mode = protects ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};
	long error;

	if (!protects)
		end_uffd_wp(current_process(), page, nr);
	error = control(current_process(), UFFDIO_WRITEPROTECT, &its);
	if (protects && !error)
		see_uffd_wp(current_process(), page, nr);
	return error;
}

/* Record the values of pages that an ioctl() has filled. */
static void see_pages(struct process *process, long page, long bytes, bool is_zero)
{
	long i;

	for (i = 0; i < bytes >> PAGE_SHIFT; i++)
		see_value(process, page + i, is_zero ? 0 : value_of_step(i));
}

long step_uffd_copy(long number, long page, long nr, long flags)
{
	static u64 pages[MOST_COPIED][PAGE_SIZE / sizeof(u64)] __aligned(PAGE_SIZE);
	struct uffdio_copy its = {
		.dst = address_of_page(page), .src = (unsigned long)pages,
		.len = min(nr, MOST_COPIED) << PAGE_SHIFT,
		.mode = flags ? UFFDIO_COPY_MODE_WP : 0,
	};
	long i, error;

	if (nr <= 0)
		return -EINVAL;
	for (i = 0; i < MOST_COPIED; i++) {
		pages[i][0] = value_of_step(i);
		pages[i][ARRAY_SIZE(pages[i]) - 1] = value_of_step(i);
	}
	end_uffd_wp(current_process(), page, nr);
	error = control_some(current_process(), UFFDIO_COPY, &its, &its.copy);
	see_pages(current_process(), page, its.copy, false);
	if (flags && its.copy > 0)
		see_uffd_wp(current_process(), page, its.copy >> PAGE_SHIFT);
	return error;
}

long step_uffd_zero(long number, long page, long nr)
{
	struct uffdio_zeropage its = { .range = range_of(page, nr) };
	long error = control_some(current_process(), UFFDIO_ZEROPAGE, &its, &its.zeropage);

	end_uffd_wp(current_process(), page, nr);
	see_pages(current_process(), page, its.zeropage, true);
	return error;
}

long step_uffd_move(long number, long page, long nr, long from_page)
{
	struct process *process = current_process();
	struct uffdio_move its = {
		.dst = address_of_page(page), .src = address_of_page(from_page),
		.len = nr << PAGE_SHIFT,
	};
	long error = control_some(process, UFFDIO_MOVE, &its, &its.move), i;

	end_uffd_wp(process, page, nr);
	end_uffd_wp(process, from_page, nr);
	for (i = 0; i < its.move >> PAGE_SHIFT; i++) {
		struct user_page *from = &process->pages[from_page + i];
		struct user_page *to = &process->pages[page + i];
		/* If the entry may map the zero page, no page of its own moves. */
		bool may_be_gone = from->may_be_gone, has_moved = from->value && !may_be_gone;

		see_value(process, page + i, from->value);
		to->may_be_gone = may_be_gone;
		see_value(process, from_page + i, 0);
		to->is_written = has_moved;	/* so that user space notices the move */
	}
	return error;
}

long step_uffd_poison(long number, long page, long nr)
{
	struct uffdio_poison its = { .range = range_of(page, nr) };
	long error = control_some(current_process(), UFFDIO_POISON, &its, &its.updated), i;

	end_uffd_wp(current_process(), page, nr);
	for (i = 0; i < its.updated >> PAGE_SHIFT; i++)
		current_process()->pages[page + i].is_poisoned = true;
	return error;
}

/* UFFDIO_CONTINUE maps pages that are already in the page cache. */
long step_uffd_continue(long number, long page, long nr)
{
	struct uffdio_continue its = { .range = range_of(page, nr) };

	end_uffd_wp(current_process(), page, nr);
	return control_some(current_process(), UFFDIO_CONTINUE, &its, &its.mapped);
}

void close_uffd(struct process *process)
{
	if (process->uffd >= 0)
		call(__x64_sys_close, process->uffd, 0, 0, 0, 0, 0);
	process->uffd = -1;
}
