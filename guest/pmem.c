// SPDX-License-Identifier: GPL-2.0-only
/* Persistent memory that the kernel emulates: region0, of memmap=SIZE!AT. */
#include <errno.h>
#include <unistd.h>
#include "guest.h"

#define WAIT_PROBE "/sys/bus/nd/devices/ndbus0/wait_probe"
#define FORCE_RAW "/sys/bus/nd/devices/namespace0.0/force_raw"

/* The kernel may still be binding the region on its own. */
static void wait_for_probes(void)
{
	char text[TEXT_BYTES];

	if (read_text(WAIT_PROBE, text, sizeof(text)) < 0)
		give_up(errno, "wait for the kernel's own bind: read %s",
			WAIT_PROBE);
}

/*
 * Left alone, the driver maps all of the region as it is, with a memory map in
 * RAM, only for ndctl to undo that: half the time of a boot. As a module, it
 * can be told not to.
 */
static void load_pmem_driver(void)
{
	if (access("/modules/nd_pmem.ko", F_OK))
		return;	/* it is in the kernel, and has done so */
	if (write_text(FORCE_RAW, "1"))
		give_up(errno, "write 1 to %s", FORCE_RAW);
	load_module("nd_pmem", "");
	wait_for_probes();
}

void prepare_pmem(void)
{
	wait_for_probes();
	load_pmem_driver();
}
