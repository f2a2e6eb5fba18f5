/* SPDX-License-Identifier: GPL-2.0-only */
/* arm64: replacement of instructions in the code of all kernels of a program. */
#ifndef REAM_PRIVILEGED_H
#define REAM_PRIVILEGED_H

#include <stdint.h>

/* The linker derives these symbols from the section's name; see variant.lds. */
extern char __start_ream_text[], __stop_ream_text[];

/* Between these calls the kernels' code and all veneers may be written, but not run. */
void privileged_open(void);
void privileged_close(void);

/* A veneer is code outside of the kernels' text that replaces one instruction of it. */
#define VENEER_INSNS 5

uint32_t *veneer_new(void);

/* Encode a branch from one address to another, at most 128 MiB away. */
uint32_t veneer_branch(const uint32_t *from, const uint32_t *to);

/* invalidations.c: functions that veneers call to record an invalidation. */
extern const uint32_t note_page[], note_all[];

/* Record that the instruction at @site was the TLB invalidation @insn. */
void invalidations_are_at(uint32_t *site, uint32_t insn);

#endif
