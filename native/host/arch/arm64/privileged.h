/* SPDX-License-Identifier: GPL-2.0-only */
/* arm64: the code of all kernels of a program. */
#ifndef REAM_PRIVILEGED_H
#define REAM_PRIVILEGED_H

/* The linker makes these names of the section's; see variant.lds. */
extern char __start_ream_text[], __stop_ream_text[];

#endif
