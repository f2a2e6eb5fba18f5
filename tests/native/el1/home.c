// SPDX-License-Identifier: GPL-2.0-only
/*
 * A second home for a hosted kernel of arm64: not a process, but EL1 of a
 * machine of its own, where its headers need no change and every instruction
 * may be executed. An experiment's own runner runs one row of a plan here, on
 * one kernel: first to warm up, then between two marks. memory.c and rounds.c
 * stand in for what native/host has for a process.
 */
#include <stdlib.h>
#include <string.h>
#include "home.h"

#define SEMIHOST_WRITE0 0x04
#define SEMIHOST_EXIT_EXTENDED 0x20
#define STOPPED_APPLICATION_EXIT 0x20026

#define HWCAP_ATOMICS (1 << 8)	/* as AT_HWCAP has it */

struct launch launch = {
	.nr_cpus = 1,
	.nr_hosted_cpus = 1,
	.nr_variants = 1,
	.variant_names = { "the kernel" },
	.nr_trees = 1,
};

void say(const char *text)
{
	semihost(SEMIHOST_WRITE0, text);
}

_Noreturn void leave(enum runner_exit code)
{
	const long reason[] = { STOPPED_APPLICATION_EXIT, code };

	semihost(SEMIHOST_EXIT_EXTENDED, reason);
	for (;;)
		;
}

void home_fault(unsigned long esr, unsigned long elr, unsigned long far)
{
	fprintf(stderr, "exception: esr %lx elr %lx far %lx\n", esr, elr, far);
	leave(RUNNER_CRASHED);
}

static bool has_atomics(void)
{
	unsigned long features;

	asm("mrs %0, id_aa64isar0_el1" : "=r" (features));
	return (features >> 20 & 0xf) == 2;
}

static const struct plan_file *file_of(const char *name, size_t length)
{
	const struct plan_file *file = plan_files;

	for (; file->name; file++)
		if (strlen(file->name) == length && !memcmp(file->name, name, length))
			return file;
	die(RUNNER_USAGE, "no file %s", name);
}

static unsigned int choice_of(const char *const *choices, const char *value, size_t length)
{
	for (unsigned int i = 0; choices[i]; i++)
		if (strlen(choices[i]) == length && !memcmp(choices[i], value, length))
			return i;
	die(RUNNER_USAGE, "no choice: %s", value);
}

static void set_image(struct image *to, const char *value, size_t length)
{
	const struct plan_file *file;

	if (length == 1 && *value == '-')
		return;
	file = file_of(value, length);
	to->start = file->start;
	to->bytes = (size_t)(file->end - file->start);
}

static void set_member(const struct plan_field *field, char *row, const char *value, size_t length)
{
	void *to = row + field->offset;

	switch (field->kind) {
	case PLAN_TEXT:
		memcpy(to, value, length);	/* the row was zeroed */
		break;
	case PLAN_UINT:
		*(unsigned int *)to = (unsigned int)strtoul(value, NULL, 10);
		break;
	case PLAN_ULONG:
		*(unsigned long *)to = strtoul(value, NULL, 10);
		break;
	case PLAN_CHOICE:
		*(unsigned int *)to = choice_of(field->choices, value, length);
		break;
	case PLAN_LONGS:
		for (size_t i = 0; i < field->bytes / sizeof(long); i++) {
			char *end;

			((long *)to)[i] = strtol(value, &end, 10);
			value = end + 1;
		}
		break;
	case PLAN_IMAGE:
	case PLAN_IMAGE_OR_NONE:
		set_image(to, value, length);
		break;
	case PLAN_IMAGES:
		die(RUNNER_USAGE, "%s: lists of images are not read here", field->key);
	}
}

static const struct plan_field *field_of(const char *word, size_t length)
{
	const struct plan_field *field = row_layout.fields;

	for (; field->key; field++)
		if (strlen(field->key) == length && !memcmp(field->key, word, length))
			return field;
	die(RUNNER_USAGE, "no field: %s", word);
}

/* The plan's only line: words "key=value", as native/host/plan.c reads them. */
static void *read_row(void)
{
	char *row = host_alloc(row_layout.bytes);
	const char *word = plan_text;

	while (*word) {
		const char *value = word + strcspn(word, "=") + 1;
		size_t length = strcspn(value, " ");

		set_member(field_of(word, (size_t)(value - word - 1)), row, value, length);
		word = value + length;
		word += *word == ' ';
	}
	return row;
}

_Noreturn void home_main(void)
{
	const struct host_kernel *kernel = __start_ream_kernels[0];
	const struct host_machine machine = {
		.nr_cpus = 1,
		.capability = { has_atomics() ? HWCAP_ATOMICS : 0 },
	};
	void *row = read_row();

	if (experiment.prepare)
		experiment.prepare();
	experiment.map(row, 1);
	alternatives_apply(kernel->boot(&machine));
	kernel->init_cpu(0, 0);
	if (experiment.open_row)
		experiment.open_row(row);
	if (!experiment.run_row(row))
		leave(RUNNER_NOT_VERIFIED);
	say("verified\n");
	leave(RUNNER_OK);
}
