// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parameters of code that would be modules. An experiment can set them if its
 * file `objects` lists ream/params.o.
 */
#include <linux/moduleparam.h>
#include <linux/string.h>
#include "kernel.h"
#include "params.h"

/* Parameters of this variant. native/host/variant.lds */
extern const struct kernel_param host_params[], host_params_end[];

const struct kernel_param *host_param(const char *name)
{
	const struct kernel_param *param;

	for (param = host_params; param < host_params_end; param++)
		if (!strcmp(param->name, name))
			return param;
	return NULL;
}

int host_set_param(const char *name, const char *value)
{
	const struct kernel_param *param = host_param(name);

	return param ? param->ops->set(value, param) : -ENOENT;
}
