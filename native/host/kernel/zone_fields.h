/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fields of a zone and its node, whose names appear in reports of wrong values.
 * An experiment includes this inside a table of struct host_fact. It may continue
 * the table with the same macros, and must undefine them.
 */
#define FIELD(type, member) { #type "." #member, offsetof(struct type, member) }

	FIELD(zone, zone_pgdat),
	FIELD(zone, per_cpu_pageset),
	FIELD(zone, per_cpu_zonestats),
	FIELD(zone, zone_start_pfn),
	FIELD(zone, managed_pages),
	FIELD(zone, spanned_pages),
	FIELD(zone, present_pages),
	FIELD(zone, present_early_pages),
	FIELD(zone, name),
	FIELD(zone, span_seqlock),
	FIELD(zone, initialized),
	FIELD(zone, flags),
	FIELD(zone, lock),
	FIELD(zone, contiguous),
	FIELD(zone, vm_stat),
	FIELD(pglist_data, nr_zones),
	FIELD(pglist_data, node_size_lock),
	FIELD(pglist_data, node_start_pfn),
	FIELD(pglist_data, node_present_pages),
	FIELD(pglist_data, node_spanned_pages),
	FIELD(pglist_data, node_id),
	FIELD(pglist_data, flags),
	FIELD(pglist_data, vm_stat),
