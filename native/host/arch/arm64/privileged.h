/* SPDX-License-Identifier: GPL-2.0-only */
/* arm64: the code of all kernels of a program, and what of it becomes other code. */
#ifndef REAM_PRIVILEGED_H
#define REAM_PRIVILEGED_H

#include <stdint.h>

/* The linker makes these names of the section's; see variant.lds. */
extern char __start_ream_text[], __stop_ream_text[];

/* All kernels' code and all veneers may be written between these, and not run. */
void privileged_open(void);
void privileged_close(void);

/* Code outside of the kernels' text that stands in for one instruction of it. */
#define VENEER_INSNS 5

uint32_t *veneer_new(void);

/* The branch that leads from one place to another, at most 128 MiB away. */
uint32_t veneer_branch(const uint32_t *from, const uint32_t *to);

/* Functions that note one, which veneers call: invalidations.c. */
extern const uint32_t note_page[], note_all[];

/* At @site is an instruction that invalidates translations; it is a hint now. */
void invalidations_are_at(uint32_t *site, uint32_t insn);

#endif
