/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the lines of a plan are read into an experiment's struct row, made of its
 * row.def. A runner includes this once, behind the structure and the words that
 * a field may choose from.
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
