// SPDX-License-Identifier: GPL-2.0-only
/* Functions of several parts of the kernel that are deliberately not its own. */
#include <linux/mm.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/thread_info.h>
#include "hosted.h"

int proc_alloc_inum(unsigned int *number)
{
	HOST_STUB("custom");
	*number = 1;
	return 0;
}

char *__get_task_comm(char *to, size_t bytes, struct task_struct *task)
{
	HOST_STUB("duplicated");
	strscpy(to, task->comm, bytes);
	return to;
}

bool __virt_addr_valid(unsigned long address)
{
	HOST_STUB("custom");
	return is_ram(address >> PAGE_SHIFT);
}
