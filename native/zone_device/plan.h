/* SPDX-License-Identifier: GPL-2.0-only */
/* What a launch is to do, as stage/native.py wrote it down. */
#ifndef REAM_ZONE_DEVICE_PLAN_H
#define REAM_ZONE_DEVICE_PLAN_H

#include "program.h"
#include "zone_device.h"

/**
 * struct row - one point of the experiment's parameters
 * @name: As the record spells it.
 * @rounds: How often everything is measured.
 * @threads: Most CPUs to use; 0 = all.
 * @pre_state: Set before every sample.
 * @request: What the kernel is asked; the addresses are filled in later.
 * @map_bytes: Bytes of the map to check, the last compound's overhang included.
 * @fill: What the kernel writes of them, for the limit; without an address.
 * @fill_offset: Where that begins in the map.
 * @image: The oracle's map.
 * @usage_image: The oracle's pageblock bits.
 */
struct row {
	char name[64];
	unsigned int rounds;
	unsigned int threads;
	enum pre_state pre_state;
	struct zone_device_request request;
	size_t map_bytes;
	struct fill_range fill;
	size_t fill_offset;
	char image_path[256];
	char usage_path[256];
	struct image image;
	struct image usage_image;
};

struct plan {
	struct row *rows;
	size_t nr_rows;
};

/* Ends the program with the line and the word at fault. */
struct plan plan_read(const char *path);
void plan_open_images(struct row *row);

#endif
