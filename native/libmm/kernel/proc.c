// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files of /proc that show and change a process's memory. fs/proc/task_mmu.c,
 * which implements them, is linked. There is no procfs, so each call opens the
 * file, uses it and closes it.
 */
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include "../fs/proc/internal.h"
#include "hosted.h"
#include "proc.h"

/* fs/proc/base.c */
struct mm_struct *proc_mem_open(struct inode *inode, unsigned int mode)
{
	struct task_struct *task = get_proc_task(inode);
	struct mm_struct *mm;

	HOST_STUB("duplicated");
	if (!task)
		return ERR_PTR(-ESRCH);
	mm = mm_access(task, mode | PTRACE_MODE_FSCREDS);
	put_task_struct(task);
	if (IS_ERR(mm))
		return mm == ERR_PTR(-ESRCH) ? NULL : mm;
	mmgrab(mm);
	mmput(mm);
	return mm;
}

/* kernel/signal.c: an architecture may override it. */
const char * __weak arch_vma_name(struct vm_area_struct *vma)
{
	HOST_STUB("duplicated");
	return NULL;
}

/**
 * struct proc_file - an open file of the current process
 * @node: Its inode.
 * @pid: The struct pid by which the inode refers to the process. It is in no IDR.
 * @file: The open file.
 * @at: File position of the next access.
 */
struct proc_file {
	struct proc_inode node;
	struct pid pid;
	struct file file;
	loff_t at;
};

static long open_file(struct proc_file *its, const struct file_operations *operations, loff_t at)
{
	its->node.pid = &its->pid;
	its->file.f_inode = &its->node.vfs_inode;
	its->file.f_op = operations;
	its->file.f_cred = current_cred();
	its->file.f_mode = FMODE_READ | FMODE_WRITE | FMODE_LSEEK;
	its->at = at;
	hlist_add_head(&current->pid_links[PIDTYPE_PID], &its->pid.tasks[PIDTYPE_PID]);
	return operations->open ? operations->open(&its->node.vfs_inode, &its->file) : 0;
}

static void close_file(struct proc_file *its, bool is_open)
{
	if (is_open && its->file.f_op->release)
		its->file.f_op->release(&its->node.vfs_inode, &its->file);
	hlist_del_init(&current->pid_links[PIDTYPE_PID]);
}

long read_proc_file(const struct file_operations *operations, void *to, size_t bytes, loff_t at)
{
	struct proc_file its = { };
	long error, done = 0, some = 0;

	enter_kernel();
	error = open_file(&its, operations, at);
	while (!error && done < bytes) {
		some = operations->read(&its.file, (char __user *)to + done, bytes - done,
					&its.at);
		if (some <= 0)
			break;
		done += some;
	}
	close_file(&its, !error);
	leave_kernel();
	return error ?: some < 0 ? some : done;
}

long write_proc_file(const struct file_operations *operations, const char *from, size_t bytes)
{
	struct proc_file its = { };
	long error, done = 0;

	enter_kernel();
	error = open_file(&its, operations, 0);
	if (!error)
		done = operations->write(&its.file, (const char __user *)from, bytes, &its.at);
	close_file(&its, !error);
	leave_kernel();
	return error ?: done;
}

long control_proc_file(const struct file_operations *operations, unsigned int command,
		       void *argument)
{
	struct proc_file its = { };
	long error, done = 0;

	enter_kernel();
	error = open_file(&its, operations, 0);
	if (!error)
		done = operations->unlocked_ioctl(&its.file, command, (unsigned long)argument);
	close_file(&its, !error);
	leave_kernel();
	return error ?: done;
}
