// SPDX-License-Identifier: GPL-2.0-only
/*
 * Alternatives: instructions that a booting kernel replaces by the best ones for
 * its CPU. Without them, memcpy() would be that for the oldest CPU. And patches
 * that a kernel makes to its own code later.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "launch.h"
#include "program.h"

/* The kernel's layout. Source: arch/x86/include/asm/alternative.h */
struct alt_instr {
	int32_t instr_offset;
	int32_t repl_offset;
	uint16_t feature;
	uint16_t flags;
	uint8_t instr_bytes;
	uint8_t repl_bytes;
} __attribute__((packed));

#define ALT_FLAG_NOT 1
#define ALT_FLAG_DIRECT_CALL 2
#define CALL_REL32 0xe8
#define JMP_REL32 0xe9
#define CALL_BYTES 5
#define CALL_MEMORY 0xff
#define CALL_MEMORY_RELATIVE 0x15	/* to the instruction pointer */
#define CALL_MEMORY_BYTES 6
#define MOST_BYTES 64

/* Recommended no-operations of 1 to 8 bytes; Intel SDM volume 2, NOP. */
static const unsigned char nops[9][8] = {
	{}, { 0x90 }, { 0x66, 0x90 }, { 0x0f, 0x1f, 0x00 },
	{ 0x0f, 0x1f, 0x40, 0x00 }, { 0x0f, 0x1f, 0x44, 0x00, 0x00 },
	{ 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 },
	{ 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00 },
	{ 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 },
};

/* The kernel's empty function. If it is set, indirect calls become direct ones. */
static const void *nothing;

FROM_KERNEL void host_make_calls_direct(const void *does_nothing)
{
	nothing = does_nothing;
}

static unsigned char *site_of(struct alt_instr *entry)
{
	return (unsigned char *)&entry->instr_offset + entry->instr_offset;
}

static bool wanted(const struct alt_instr *entry, const unsigned int *capability)
{
	bool has = capability[entry->feature / 32] >> (entry->feature % 32) & 1;

	if (entry->flags & ALT_FLAG_DIRECT_CALL && !nothing)
		return false;
	return entry->flags & ALT_FLAG_NOT ? !has : has;
}

static void protect(unsigned char *from, unsigned char *to, int protection)
{
	uintptr_t start = (uintptr_t)from & ~4095UL;

	if (mprotect((void *)start, (uintptr_t)to - start, protection))
		die(RUNNER_NO_RESOURCE, "cannot change kernel text: %s", strerror(errno));
}

/*
 * Turn an indirect call through memory into a direct one, or into nothing if it
 * calls the empty function. The pointer is set already. Returns the code size.
 */
static unsigned int direct_call(const struct alt_instr *entry, unsigned char *site,
				unsigned char *code)
{
	unsigned char *end = site + entry->instr_bytes;
	int32_t displacement;
	char *function;

	if (entry->instr_bytes != CALL_MEMORY_BYTES || site[0] != CALL_MEMORY ||
	    site[1] != CALL_MEMORY_RELATIVE)
		die(RUNNER_CRASHED, "alternative at %p: no indirect call", (void *)site);
	memcpy(&displacement, site + 2, sizeof(displacement));
	memcpy(&function, end + displacement, sizeof(function));
	if (function == nothing)
		return 0;
	displacement = (int32_t)(function - (char *)(site + CALL_BYTES));
	code[0] = CALL_REL32;
	memcpy(code + 1, &displacement, sizeof(displacement));
	return CALL_BYTES;
}

static void replace(struct alt_instr *entry)
{
	unsigned char *site = site_of(entry);
	const unsigned char *repl = (unsigned char *)&entry->repl_offset + entry->repl_offset;
	unsigned char code[MOST_BYTES];
	unsigned int used = entry->repl_bytes;

	if (entry->instr_bytes > MOST_BYTES || used > entry->instr_bytes)
		die(RUNNER_CRASHED, "alternative at %p: %u for %u bytes: not handled",
		    (void *)site, used, entry->instr_bytes);
	memcpy(code, repl, used);
	if (entry->flags & ALT_FLAG_DIRECT_CALL) {
		used = direct_call(entry, site, code);
	} else if (used == CALL_BYTES && (code[0] == CALL_REL32 || code[0] == JMP_REL32)) {
		int32_t displacement;

		/* The code moves, so adjust the displacement to keep the target. */
		memcpy(&displacement, code + 1, sizeof(displacement));
		displacement += (int32_t)(repl - site);
		memcpy(code + 1, &displacement, sizeof(displacement));
	}
	while (used < entry->instr_bytes) {
		unsigned int pad = entry->instr_bytes - used;

		pad = pad > 8 ? 8 : pad;
		memcpy(code + used, nops[pad], pad);
		used += pad;
	}
	memcpy(site, code, used);
}

FROM_KERNEL void host_patch(void *at, const void *code, unsigned long bytes)
{
	unsigned char *site = at;

	protect(site, site + bytes, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(site, code, bytes);
	/* Keep code writable for reach.c, whose handler restores instructions. */
	if (!launch.reaches)
		protect(site, site + bytes, PROT_READ | PROT_EXEC);
}

/*
 * This handles all cases that occur: replacements without RIP-relative operands,
 * single 5-byte calls and jumps, and indirect calls that become direct ones.
 * lab/ream/stage/link.py refuses to link others.
 */
unsigned int alternatives_apply(const unsigned int *capability)
{
	struct alt_instr *start = (struct alt_instr *)__start_altinstructions;
	struct alt_instr *stop = (struct alt_instr *)__stop_altinstructions;
	unsigned char *first = NULL, *end = NULL;
	unsigned int nr_replaced = 0;

	for (struct alt_instr *entry = start; entry < stop; entry++) {
		unsigned char *site = site_of(entry);

		if (!first || site < first)
			first = site;
		if (!end || site + entry->instr_bytes > end)
			end = site + entry->instr_bytes;
	}
	if (!first)
		return 0;
	protect(first, end, PROT_READ | PROT_WRITE | PROT_EXEC);
	/* Apply them in order: if two entries patch the same site, the later one wins. */
	for (struct alt_instr *entry = start; entry < stop; entry++) {
		if (wanted(entry, capability)) {
			replace(entry);
			nr_replaced++;
		}
	}
	protect(first, end, PROT_READ | PROT_EXEC);
	return nr_replaced;
}
