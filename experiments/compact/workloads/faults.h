/* SPDX-License-Identifier: GPL-2.0-only */
/* Page faults that may give a huge page, and what they had to wait for. */
#ifndef REAM_FAULTS_H
#define REAM_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault {
	uint64_t time_ns;
	bool is_huge;
	bool stalled;		/* some task stalled in compaction meanwhile */
	bool compacted;		/* and compaction gave it a page */
};

/* As holes_map(), advised to be huge pages. */
char *map_huge(size_t nr_bytes);

/* Touch a block that nothing has touched, and find out what it got. */
struct fault fault_block(char *block);

/* Bytes in free blocks of 2 MiB and more, where ordinary memory may be had. */
size_t free_in_blocks(void);

#endif
