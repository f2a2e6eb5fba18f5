// SPDX-License-Identifier: GPL-2.0-only
/* Run the lines of a program one after another, and check memory after each. */
#include <linux/args.h>
#include <linux/kernel.h>
#include <linux/resume_user_mode.h>
#include <linux/string.h>
#include "checks.h"
#include "hosted.h"
#include "private.h"
#include "steps.h"

/* A step takes the arguments of its line. It is called with eight, and ignores the rest. */
#define STEP(name_, ...) long step_##name_(void);
#include "steps.def"
#undef STEP

#define STEP(name_, ...)							\
	{ #name_, #__VA_ARGS__, COUNT_ARGS(__VA_ARGS__), (void *)step_##name_ },
static const struct step steps[] = {
#include "steps.def"
};

/**
 * struct line - one line of a program
 * @number: Line number in the source text of the program.
 * @step: The step.
 * @arguments: The arguments of the step.
 */
struct line {
	unsigned int number;
	const struct step *step;
	long arguments[MOST_ARGUMENTS];
};

static struct line now = { .step = steps };
static bool measures_next;

/* The measured step: time spent in the kernel, and number of entries into it. */
static struct timed {
	bool is_on;
	unsigned long nr;
	u64 began_ns, ns;
	u64 began_cpu_ns, cpu_ns;
} timed;

static bool is_ending;	/* all steps are done, and the processes exit */

unsigned int line_under_way(void)
{
	return now.number + is_ending;
}

void refuse(const char *text, const char *why)
{
	report("{\"refused\": \"%.*s\", \"why\": \"%s\"}", (int)strcspn(text, "\n\"\\"), text, why);
	host_exit(LIBMM_USAGE);
}

static const struct step *find_step(const char *name, size_t bytes)
{
	const struct step *step;

	for (step = steps; step < steps + ARRAY_SIZE(steps); step++)
		if (strlen(step->name) == bytes && !memcmp(step->name, name, bytes))
			return step;
	return NULL;
}

static const char *program;

const char *text_of_word(long argument)
{
	const char *word = (const char *)argument;

	return program && word > program && word < program + strlen(program) ? word : NULL;
}

/* Read a number, or the address of a word, which has an equals sign before it. */
static const char *read_argument(const char *at, long *to)
{
	char digits[24];
	size_t bytes;

	at += strspn(at, " ");
	bytes = strcspn(at, "\n ");
	if (*at == '=') {
		*to = (long)(at + 1);
		return at + bytes;
	}
	if (!bytes || bytes >= sizeof(digits))
		return NULL;
	strscpy(digits, at, bytes + 1);
	return kstrtol(digits, 0, to) ? NULL : at + bytes;
}

/* Read a line. Return: the text after it, or NULL at the end of the text. */
static const char *read_line(const char *text, struct line *line)
{
	const char *at = text;
	unsigned int i;
	size_t bytes;
	long number;

	if (!*text)
		return NULL;
	at = read_argument(at, &number);
	if (!at)
		refuse(text, "it does not begin with the number of a line");
	line->number = number;
	at += strspn(at, " ");
	bytes = strcspn(at, "\n ");
	line->step = find_step(at, bytes);
	if (!line->step)
		refuse(text, "there is no such step");
	at += bytes;
	for (i = 0; i < line->step->nr_arguments; i++) {
		at = read_argument(at, &line->arguments[i]);
		if (!at)
			refuse(text, "an argument is missing, or is no number");
	}
	at += strspn(at, " ");
	if (*at && *at != '\n')
		refuse(text, "it has more arguments than the step");
	return *at ? at + 1 : at;
}

static long run_step(const struct step *step, const long *arg)
{
	return step->run(arg[0], arg[1], arg[2], arg[3], arg[4], arg[5], arg[6], arg[7]);
}

void read_declarations(const char *text)
{
	struct line line = { };

	program = text;
	while ((text = read_line(text, &line)))
		if ((void *)line.step->run == (void *)step_memory ||
		    (void *)line.step->run == (void *)step_cpus ||
		    (void *)line.step->run == (void *)step_boot ||
		    (void *)line.step->run == (void *)step_dma32 ||
		    (void *)line.step->run == (void *)step_slow ||
		    (void *)line.step->run == (void *)step_measure)
			run_step(line.step, line.arguments);
}

void enter_kernel(void)
{
	may_fail(true);
	if (!timed.is_on)
		return;
	timed.began_cpu_ns = host_cpu_ns();
	timed.began_ns = host_now_ns();
	host_mark(LIBMM_ENTER);
}

void leave_kernel(void)
{
	may_fail(false);
	if (!timed.is_on)
		return;
	host_mark(LIBMM_LEAVE);
	timed.ns += host_now_ns() - timed.began_ns;
	timed.cpu_ns += host_cpu_ns() - timed.began_cpu_ns;
	timed.nr++;
}

#define NR_EMPTY 100

/* Start timing. Return: the least time of an empty call, which reading the clocks takes. */
static struct timed begin_timed(bool is_on)
{
	struct timed least = { .ns = U64_MAX, .cpu_ns = U64_MAX };
	int i;

	for (i = 0; is_on && i < NR_EMPTY; i++) {
		timed = (struct timed){ .is_on = true };
		enter_kernel();
		leave_kernel();
		least.ns = min(least.ns, timed.ns);
		least.cpu_ns = min(least.cpu_ns, timed.cpu_ns);
	}
	timed = (struct timed){ .is_on = is_on };
	if (is_on)
		host_mark(LIBMM_BEGIN);
	return least;
}

static void report_timed(const struct timed *least)
{
	host_mark(LIBMM_END);
	report("{\"line\": %u, \"timed_ns\": %llu, \"cpu_ns\": %llu, \"nr_timed\": %lu}",
	       now.number, timed.ns - min(timed.ns, timed.nr * least->ns),
	       timed.cpu_ns - min(timed.cpu_ns, timed.nr * least->cpu_ns), timed.nr);
}

static bool is_of_process(const struct step *step)
{
	return !strncmp(step->arguments, "process", strlen("process"));
}

/* Steps of the first task that can be interrupted if the helper process runs them. */
static bool may_be_of_helper(const struct step *step)
{
	static const char *const names[] = {
		"reclaim", "compact", "vmalloc", "truncate", "fallocate", "pwrite", "pread",
		"fadvise", "fsync",
	};

	return match_string(names, ARRAY_SIZE(names), step->name) >= 0;
}

/* The process that runs the step. NULL means the first task. */
static struct process *process_of_line(const struct line *line, bool is_interrupted)
{
	if (is_of_process(line->step))
		return process_of(line->arguments[0]);
	return is_interrupted && may_be_of_helper(line->step) ? begin_helper() : NULL;
}

#define STEP_BEGINS "{\"line\": %u, \"step\": \"%s\""

static void report_done(const struct line *line, long result, u64 ns)
{
	report(STEP_BEGINS ", \"returned\": %ld, \"ns\": %llu, \"state\": \"%016llx\"}",
	       line->number, line->step->name, result, ns, digest());
}

static void report_waiting(const struct line *line)
{
	report(STEP_BEGINS ", \"waits\": true}", line->number, line->step->name);
}

/* The line whose step is interrupted, and the process that runs it, or NULL. */
static struct {
	struct line line;
	struct process *process;
} interrupted;

/* Finish the interrupted line, after the step that interrupted it. It may be done already. */
static void end_interrupted_line(void)
{
	struct process *process = interrupted.process;

	if (!process)
		return;
	interrupted.process = NULL;
	/* In the middle of its step a process may have changed entries and not yet flushed. */
	if (interrupted_process() && is_of_process(now.step) &&
	    process_of(now.arguments[0]) && process_of(now.arguments[0]) != process)
		check_tlb_of(process_of(now.arguments[0]));
	finish_interrupted();
	settle();
	if (process->step)
		report_waiting(&interrupted.line);
	else
		report(STEP_BEGINS ", \"returned\": %ld, \"interrupted_by\": %u}",
		       interrupted.line.number, interrupted.line.step->name, process->result,
		       now.number);
	end_helper();
}

static void run_line(bool is_checked)
{
	const bool is_measured = measures_next;
	const bool is_to_stop = begin_interrupting();
	u64 began_ns = host_now_ns();
	struct process *process;
	bool is_done = true;
	struct timed least;
	long result;

	host_now_at(now.number, now.step->name);
	measures_next = false;
	begin_failing();
	least = begin_timed(is_measured);
	process = process_of_line(&now, is_to_stop);
	if (!process && is_of_process(now.step)) {
		report("{\"line\": %u, \"skipped\": \"there is no such process\"}", now.number);
		return;
	}
	if (process) {
		is_done = run_in_process(process, now.step, now.arguments);
		result = process->result;
	} else {
		end_migrations_later();
		result = run_step(now.step, now.arguments);
		resume_user_mode_work(NULL);
	}
	timed.is_on = false;
	end_interrupting();
	if (process && process == interrupted_process()) {
		interrupted.line = now;
		interrupted.process = process;
		return;
	}
	if (process && !is_of_process(now.step))
		end_helper();
	end_interrupted_line();
	if (now.step->run == (void *)step_migrating)
		is_checked = false;
	else
		end_migrations();
	settle();
	if (is_done)
		report_done(&now, result, host_now_ns() - began_ns);
	else
		report_waiting(&now);
	if (is_measured && is_done)
		report_timed(&least);
	if (is_checked)
		check_everything();
}

static bool is_over(void)
{
	return nr_alarms && !goes_on_after_alarms;
}

#define SOME_STEPS 8

/* mm/internal.h, and mm_init.h since 7.3. */
DECLARE_STATIC_KEY_MAYBE(CONFIG_DEBUG_VM, check_pages_enabled);

void run_program(const struct libmm_task *task)
{
	const char *text = task->program;
	unsigned int nr_steps = 0;
	u64 last;

	program = text;
	start_processes();
	/* Only declarations were read so far, and whether a step is measured. */
	if (measures_next)
		host_expect_timing();
	else if (task->checks)	/* as with check_pages: the kernel checks pages, too */
		static_branch_enable(&check_pages_enabled);
	measures_next = false;
	if (task->checks == LIBMM_EACH)
		check_everything();
	goes_on_after_alarms = task->goes_on;
	for (; (text = read_line(text, &now)) && !is_over(); nr_steps++) {
		run_line(task->checks == LIBMM_EACH ||
			 (task->checks == LIBMM_SOME && nr_steps % SOME_STEPS == 0));
		/* Check the TLBs each time, since a later step may hide a missing flush. */
		if (task->checks == LIBMM_SOME && !interrupted_process())
			check_tlb();
	}
	end_interrupted_line();
	end_migrations();
	if (task->checks >= LIBMM_LAST && !is_over())
		check_everything();
	is_ending = true;
	host_now_at(line_under_way(), "exit");
	end_processes();
	settle();
	if (task->checks && !is_over())
		check_everything();
	last = digest();
	if (task->checks && !is_over()) {
		close_private();
		settle();
		check_what_is_left();
		close_files();
		settle();
		check_open_files();
		check_everything();
	}
	report("{\"end\": null, \"alarms\": %lu, \"digest\": \"%016llx\"}", nr_alarms, last);
}

long step_measure(void)
{
	measures_next = true;
	return 0;
}
