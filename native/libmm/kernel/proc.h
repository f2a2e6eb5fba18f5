/* SPDX-License-Identifier: GPL-2.0-only */
/* The files of the current process in /proc. */
#ifndef REAM_PROC_H
#define REAM_PROC_H

#include <linux/fs.h>

/* Each opens a file, uses it and closes it. Return: bytes read or written, or an error. */
long read_proc_file(const struct file_operations *operations, void *to, size_t bytes, loff_t at);
long write_proc_file(const struct file_operations *operations, const char *from, size_t bytes);
long control_proc_file(const struct file_operations *operations, unsigned int command,
		       void *argument);

#endif
