/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel that has ream/params.o. */
#ifndef REAM_PARAMS_H
#define REAM_PARAMS_H

struct kernel_param;

/* Find the parameter MODULE.PARAMETER. Return: NULL if there is none. */
const struct kernel_param *host_param(const char *name);

/* Set a parameter as by its file in /sys/module. Return: 0, or a negative error. */
int host_set_param(const char *name, const char *value);

#endif
