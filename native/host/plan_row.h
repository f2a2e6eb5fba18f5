/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fields of an experiment's struct row, generated from its row.def, by which
 * lines of a plan are read. A runner includes this once, after the structure and
 * the words of PLAN_CHOICE fields.
 */
static const struct plan_field row_fields[] = {
#define ROW PLAN_ROW
#define REQUEST PLAN_REQUEST
#include "row.def"
	{ .key = NULL },
};

#undef ROW
#undef REQUEST

const struct row_layout row_layout = { row_fields, sizeof(struct row) };
