// SPDX-License-Identifier: GPL-2.0-only
/* Steps of userfaultfd: by the file's own ioctl(). */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/userfaultfd.h>
#include "hosted.h"
#include "steps.h"

SYSTEM_CALL(userfaultfd);
SYSTEM_CALL(close);

#define FEATURES (UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED |		\
		  UFFD_FEATURE_WP_HUGETLBFS_SHMEM | UFFD_FEATURE_PAGEFAULT_FLAG_WP |	\
		  UFFD_FEATURE_MOVE | UFFD_FEATURE_SIGBUS)

static long control(struct process *process, unsigned int command, void *argument)
{
	struct file *file = fget(process->uffd);
	long result;

	if (!file)
		return -EBADF;
	result = file->f_op->unlocked_ioctl(file, command, (unsigned long)argument);
	fput(file);
	return result;
}

static long open_uffd(struct process *process)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURES };
	long fd;

	if (process->uffd >= 0)
		return 0;
	fd = call(__x64_sys_userfaultfd, O_NONBLOCK, 0, 0, 0, 0, 0);
	if (fd < 0)
		return fd;
	process->uffd = fd;
	return control(process, UFFDIO_API, &api);
}

static struct uffdio_range range_of(long page, long nr)
{
	return (struct uffdio_range){ address_of_page(page), nr << PAGE_SHIFT };
}

long step_uffd_register(long number, long page, long nr, long mode)
{
	struct uffdio_register its = { .range = range_of(page, nr), .mode = mode };

	return open_uffd(current_process()) ?:
	       control(current_process(), UFFDIO_REGISTER, &its);
}

long step_uffd_unregister(long number, long page, long nr)
{
	struct uffdio_range range = range_of(page, nr);

	return control(current_process(), UFFDIO_UNREGISTER, &range);
}

long step_uffd_wp(long number, long page, long nr, long protects)
{
	struct uffdio_writeprotect its = {
		.range = range_of(page, nr), .mode = protects ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return control(current_process(), UFFDIO_WRITEPROTECT, &its);
}

long step_uffd_copy(long number, long page, long nr, long flags)
{
	return -EOPNOTSUPP;
}

long step_uffd_zero(long number, long page, long nr)
{
	return -EOPNOTSUPP;
}

long step_uffd_move(long number, long page, long nr, long from_page)
{
	return -EOPNOTSUPP;
}

void close_uffd(struct process *process)
{
	if (process->uffd >= 0)
		call(__x64_sys_close, process->uffd, 0, 0, 0, 0, 0);
	process->uffd = -1;
}
