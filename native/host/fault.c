// SPDX-License-Identifier: GPL-2.0-only
/*
 * Report where a kernel crashed or hangs, as one line of JSON on standard
 * output. All calls are async-signal-safe. lab/ream/stage/fault.py looks up the
 * functions of the addresses afterwards.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <limits.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>
#include "program.h"

#define PAGE_BYTES 4096UL
#define STACK_WORDS 256		/* words of the stack that are scanned */
#define MOST_CALLS 12

/* Writes of up to PIPE_BUF bytes are atomic, so lines of threads do not mix. */
struct line {
	char text[PIPE_BUF];
	size_t bytes;
};

static struct {
	unsigned long start;
	unsigned long stop;
} text;

static void add(struct line *line, const char *words)
{
	while (*words && line->bytes < sizeof(line->text))
		line->text[line->bytes++] = *words++;
}

static void add_number(struct line *line, const char *before, unsigned long number)
{
	char digits[24], *digit = digits + sizeof(digits);

	*--digit = '\0';
	do {
		*--digit = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	add(line, before);
	add(line, digit);
}

static void add_text(struct line *line, const char *before, const char *words)
{
	add(line, before);
	add(line, words ? "\"" : "null");
	add(line, words ? words : "");
	add(line, words ? "\"" : "");
}

static void add_registers(struct line *line, const void *context)
{
	struct arch_register registers[ARCH_MOST_REGISTERS];
	size_t nr = arch_registers(context, registers);

	add(line, ", \"registers\": {");
	for (size_t i = 0; i < nr; i++) {
		add_text(line, i ? ", " : "", registers[i].name);
		add_number(line, ": ", registers[i].value);
	}
	add(line, "}");
}

static bool is_text(unsigned long address)
{
	return address >= text.start && address < text.stop;
}

/* Whether a word of the stack is a return address, which may be stale. */
static bool is_return_address(unsigned long word)
{
	return is_text(word) && is_text(word - ARCH_CALL_BYTES) && arch_is_behind_call(word);
}

/*
 * The kernel has no frame pointers, so scan the stack. The stack pointer may be
 * invalid: process_vm_readv() reads only what is mapped, and does not fault.
 */
static void add_calls(struct line *line, unsigned long stack)
{
	unsigned long words[STACK_WORDS];
	size_t in_page = PAGE_BYTES - stack % PAGE_BYTES;
	size_t first = in_page < sizeof(words) ? in_page : sizeof(words);
	const struct iovec local = { words, sizeof(words) };
	const struct iovec remote[] = {
		{ (void *)stack, first },
		{ (void *)(stack + first), sizeof(words) - first },
	};
	ssize_t bytes = process_vm_readv(getpid(), &local, 1, remote, 2, 0);
	unsigned int nr = 0;

	add(line, ", \"calls\": [");
	for (ssize_t i = 0; i < bytes / (ssize_t)sizeof(words[0]) && nr < MOST_CALLS; i++)
		if (is_return_address(words[i]))
			add_number(line, nr++ ? ", " : "", words[i]);
	add(line, "]");
}

void fault_report(const siginfo_t *info, const void *context, const struct fault_cause *cause)
{
	const struct watched *watched = watch_now();
	struct line line = { .bytes = 0 };

	add_number(&line, "{\"fault\": ", (unsigned long)info->si_signo);
	add(&line, arch_is_no_pointer(info->si_code) ? ", \"canonical\": false" :
						", \"canonical\": true");
	add_number(&line, ", \"address\": ", (unsigned long)info->si_addr);
	add_text(&line, ", \"row\": ", watched->row);
	add_text(&line, ", \"subject\": ", watched->subject);
	add_number(&line, ", \"allowed_ns\": ", watched->allowed_ns);
	add_number(&line, ", \"slowest_ns\": ", watched->slowest_ns);
	add_text(&line, ", \"symbol\": ", cause ? cause->symbol : NULL);
	add_text(&line, ", \"file\": ", cause ? cause->file : NULL);
	add_number(&line, ", \"line\": ", cause ? cause->line : 0);
	add_registers(&line, context);
	add_calls(&line, arch_stack(context));
	add(&line, "}\n");
	/* A failure of write() cannot be reported any more. */
	if (write(STDOUT_FILENO, line.text, line.bytes) < 0)
		return;
}

void fault_prepare(void)
{
	const Elf64_Phdr *header = (const Elf64_Phdr *)getauxval(AT_PHDR);

	for (unsigned long nr = getauxval(AT_PHNUM); nr; nr--, header++) {
		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		text.start = header->p_vaddr;
		text.stop = header->p_vaddr + header->p_memsz;
	}
}
