// SPDX-License-Identifier: GPL-2.0-only
/*
 * One launch of any experiment. Results are lines of JSON. Each is written before
 * the next sample begins.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "launch.h"

struct launch launch = { .nr_trees = 1 };

#define CONTROL "control"	/* name of the positive control */
#define PARTS 1000000ULL
#define STACK_PAGE_BYTES 4096
#define CLOCK_STEPS 4

#define MOST_DONE 256		/* rows of one run; more are refused */

/* More numbers than any experiment reports of its variants and of the machine. */
#define MOST_TOLD (4 * MOST_VARIANTS)

static unsigned long nr_samples;
static struct host_fact told[MOST_TOLD];
static unsigned int nr_told;

/* Number of rounds of each row that an earlier start of this launch has finished. */
static struct done {
	char *row;
	unsigned int nr_rounds;
} done[MOST_DONE];
static unsigned int nr_done;

struct arena launch_map(uintptr_t address, size_t bytes, size_t guard_bytes)
{
	struct arena arena = arena_map(address, bytes + guard_bytes, launch.nr_cpus);

	launch.mapped_bytes += bytes;
	launch.huge_bytes += arena_huge_bytes(&arena);
	return arena;
}

/* The ratio is 1 for experiments that do not map memory by launch_map(). */
static double huge_ratio(void)
{
	return launch.mapped_bytes ? (double)launch.huge_bytes / (double)launch.mapped_bytes : 1;
}

void *launch_map_small(uintptr_t address, size_t bytes)
{
	void *start = mmap((void *)address, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (start != (void *)address)
		die(RUNNER_NO_RESOURCE, "cannot map %zu bytes at %#lx", bytes, address);
	return start;
}

/* Report the sample whose memory was wrong, or whose kernel raised a WARN. */
static void print_wrong(void)
{
	const struct watched *watched = watch_now();

	printf("{\"wrong\": true, \"row\": \"%s\", \"subject\": \"%s\"}\n",
	       watched->row, watched->subject);
}

/* A round with a WARN must not be recorded as complete, since the warning would be lost. */
static void refuse_warnings(void)
{
	if (!traps_nr_warnings())
		return;
	print_wrong();
	fflush(NULL);
	_exit(RUNNER_WARNED);
}

void launch_print_sample(const struct sample *sample)
{
	refuse_warnings();
	watch_end();	/* writing may block on a slow reader */
	printf("{\"row\": \"%s\", \"launch\": %u, \"round\": %u, ",
	       sample->row, launch.number, sample->round);
	printf("\"role\": \"%s\", \"subject\": \"%s\", ",
	       sample->is_limit ? "limit" : "variant", sample->subject);
	printf("\"threads\": %u, \"time_ns\": %lu, \"cpu_ns\": %lu, ", sample->nr_threads,
	       (unsigned long)sample->span.time_ns, (unsigned long)sample->span.cpu_ns);
	counters_print();
	for (const struct host_fact *one = sample->beside; one && one->name; one++)
		printf("\"%s\": %lu, ", one->name, one->value);
	if (launch.counts)
		printf("\"marks\": %u, ", launch.nr_marked);
	printf("\"nr_bytes\": %zu, \"verified\": %s}\n", sample->nr_bytes,
	       sample->verified ? "true" : "false");
	nr_samples++;
}

struct span launch_stop_clock(unsigned int variant, struct span begin)
{
	uint64_t time_ns = now_ns() - begin.time_ns, slowed_ns = time_ns, cpu_ns;

	if (launch.control_ppm && !strcmp(launch.variant_names[variant], CONTROL))
		slowed_ns += time_ns / PARTS * launch.control_ppm +
			     time_ns % PARTS * launch.control_ppm / PARTS;
	while (time_ns < slowed_ns)
		time_ns = now_ns() - begin.time_ns;
	mark_end();
	if (launch.reaches)
		reach_end();
	cpu_ns = cpu_time_ns() - begin.cpu_ns;
	counters_end();
	return (struct span){ time_ns, cpu_ns };
}

void launch_tell(const char *name, unsigned long value)
{
	if (nr_told == MOST_TOLD)
		die(RUNNER_USAGE, "more than %u numbers of a launch", MOST_TOLD);
	told[nr_told++] = (struct host_fact){ name, value };
}

static void print_facts(void)
{
	const struct host_fact *address = experiment.addresses;

	printf("{\"addresses\": {");
	for (; address && address->name; address++)
		printf("%s\"%s\": %lu", address == experiment.addresses ? "" : ", ",
		       address->name, address->value);
	printf("}, \"variants\": {");
	for (unsigned int i = 0; i < launch.nr_variants; i++) {
		const struct host_fact *facts = __start_ream_kernels[i]->facts;

		printf("%s\"%s\": {", i ? ", " : "", launch.variant_names[i]);
		for (const struct host_fact *fact = facts; fact->name; fact++)
			printf("%s\"%s\": %lu", fact == facts ? "" : ", ",
			       fact->name, fact->value);
		putchar('}');
	}
	puts("}}");
}

static void print_stub(unsigned int variant, const struct host_stub *stub, bool first)
{
	printf("%s{\"variant\": \"%s\", \"name\": \"%s\", ", first ? "" : ", ",
	       launch.variant_names[variant], stub->name);
	printf("\"honesty\": \"%s\", \"calls\": %lu}", stub->honesty, kernel_nr_calls(stub));
}

/* Print the stubs that were reached so far. These are the last two members of a line. */
static void print_reached(void)
{
	bool first = true;

	printf("\"huge_ratio\": %.3f, \"stubs\": [", huge_ratio());
	for (unsigned int i = 0; i < launch.nr_variants; i++) {
		struct host_stub *const *stub = __start_ream_kernels[i]->stubs;

		for (; *stub; stub++) {
			if (!kernel_nr_calls(*stub))
				continue;
			print_stub(i, *stub, first);
			first = false;
		}
	}
	puts("]}");
}

/*
 * Resolution of the CPU-time clock. It is below a microsecond unless CPU time is limited
 * (RLIMIT_CPU) or has a timer. In these cases Linux updates it only at each tick.
 */
static uint64_t cpu_clock_step_ns(void)
{
	uint64_t step_ns = UINT64_MAX, last_ns = cpu_time_ns();

	for (unsigned int nr_steps = 0; nr_steps < CLOCK_STEPS;) {
		uint64_t now_is_ns = cpu_time_ns();

		if (now_is_ns == last_ns)
			continue;
		if (now_is_ns - last_ns < step_ns)
			step_ns = now_is_ns - last_ns;
		last_ns = now_is_ns;
		nr_steps++;
	}
	return step_ns;
}

static void print_end(void)
{
	printf("{\"end\": true, \"nr_samples\": %lu, \"nr_cpus\": %u, ",
	       nr_samples, launch.nr_cpus);
	printf("\"cpu_clock_step_ns\": %lu, \"told\": {", (unsigned long)cpu_clock_step_ns());
	for (unsigned int i = 0; i < nr_told; i++)
		printf("%s\"%s\": %lu", i ? ", " : "", told[i].name, told[i].value);
	printf("}, ");
	print_reached();
}

bool launch_has_done(const char *row, unsigned int round)
{
	for (unsigned int i = 0; i < nr_done; i++)
		if (!strcmp(row, done[i].row))
			return round < done[i].nr_rounds;
	return launch.reaches && round > 0;
}

void launch_end_round(const char *row, unsigned int round)
{
	watch_end();
	if (launch.reaches) {
		reach_print(row);
		return;
	}
	printf("{\"whole\": %u, \"row\": \"%s\", ", round, row);
	print_reached();
}

static void read_patience(const char *text)
{
	unsigned int first_s, least_s;
	char end;

	if (sscanf(text, "%u:%u%c", &first_s, &least_s, &end) != 2 || !first_s || !least_s)
		die(RUNNER_USAGE, "--patience %s: not SECONDS:SECONDS", text);
	watch_set_patience(first_s, least_s);
}

static void read_done(char *text)
{
	char *number = strrchr(text, ':'), *end;

	if (nr_done == MOST_DONE || !number)
		die(RUNNER_USAGE, "--done %s: not ROW:ROUNDS, or one too many", text);
	*number++ = '\0';
	done[nr_done].row = text;
	done[nr_done++].nr_rounds = (unsigned int)strtoul(number, &end, 10);
	if (!*number || *end)
		die(RUNNER_USAGE, "--done %s:%s: not a number of rounds", text, number);
}

static void name_variants(char *names)
{
	unsigned int nr_linked = (unsigned int)(__stop_ream_kernels - __start_ream_kernels);

	for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
		if (launch.nr_variants == MOST_VARIANTS)
			die(RUNNER_USAGE, "more than %u variants", MOST_VARIANTS);
		launch.variant_names[launch.nr_variants++] = name;
	}
	if (launch.nr_variants != nr_linked)
		die(RUNNER_USAGE, "%u variants are linked, %u are named",
		    nr_linked, launch.nr_variants);
}

static void read_trees(const char *numbers)
{
	for (unsigned int i = 0; *numbers; i++) {
		char *end;
		unsigned long tree = strtoul(numbers, &end, 10);

		if (i == MOST_VARIANTS || end == numbers || tree >= MOST_VARIANTS ||
		    (*end && *end != ','))
			die(RUNNER_USAGE, "--trees: %s: not numbers of trees", numbers);
		launch.tree_of[i] = (unsigned int)tree;
		numbers = *end ? end + 1 : end;
	}
}

static const char usage[] =
	"usage: runner --variants A,B,... --forbidden FILE [--trees N,N,... --nr-trees N]\n"
	"              [--cpus N]\n"
	"              (--facts | --plan FILE --launch N --seed N [--done ROW:N]...\n"
	"               [--control N] [--counter NAME=SOURCE]... [--reach FILE]\n"
	"               [--count] [--patience FIRST:LEAST])\n"
	"One launch of the %s experiment; `ream run` builds and drives it.\n"
	"  --variants   names of the linked kernels, in link order\n"
	"  --trees      by kernel, the number of the tree that it was compiled from, or of\n"
	"               those with the same facts\n"
	"  --nr-trees   of the plan, which has every row once for each\n"
	"  --forbidden  addresses of the symbols that nobody defines\n"
	"  --cpus       CPUs of the machine that the kernels see; more than there are\n"
	"               share the real ones\n"
	"  --facts      print what the build says of its kernels, as JSON, and stop\n"
	"  --plan       the rows to run, one per line (see plan.c)\n"
	"  --launch     its number, for the record\n"
	"  --seed       of the order within each round\n"
	"  --done       rounds of a row that an earlier start has done: they are drawn\n"
	"               all the same, so that those left have the order they would have had\n"
	"  --control    millionths by which the variant of that name is slowed\n"
	"  --counter    what is counted beside the time, as NAME=SOURCE (see counters.h)\n"
	"  --reach      addresses of functions: say after one round of each row which of\n"
	"               them it entered; times mean nothing then\n"
	"  --count      a plugin of the emulator counts: run no limits, have as many CPUs\n"
	"               as --cpus says, and print which pair of marks each sample is\n"
	"  --patience   seconds that the first sample of a row may take, and the least\n"
	"               that every other one may\n";

struct options {
	const char *forbidden_path;
	const char *plan_path;
	const char *reach_path;
	unsigned int nr_cpus;
	bool facts;
};

/* Parse the command line. End the program if there is nothing to run. */
static struct options read_options(int argc, char **argv)
{
	static const struct option known[] = {
		{ "variants", required_argument, NULL, 'v' },
		{ "trees", required_argument, NULL, 't' },
		{ "nr-trees", required_argument, NULL, 'T' },
		{ "forbidden", required_argument, NULL, 'f' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "facts", no_argument, NULL, 'F' },
		{ "plan", required_argument, NULL, 'p' },
		{ "launch", required_argument, NULL, 'l' },
		{ "seed", required_argument, NULL, 's' },
		{ "done", required_argument, NULL, 'd' },
		{ "control", required_argument, NULL, 'C' },
		{ "counter", required_argument, NULL, 'n' },
		{ "patience", required_argument, NULL, 'P' },
		{ "reach", required_argument, NULL, 'r' },
		{ "count", no_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' },
		{ .name = NULL },
	};
	struct options options = { 0 };
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'v':
			name_variants(optarg);
			break;
		case 't':
			read_trees(optarg);
			break;
		case 'T':
			launch.nr_trees = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'f':
			options.forbidden_path = optarg;
			break;
		case 'c':
			options.nr_cpus = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'F':
			options.facts = true;
			break;
		case 'p':
			options.plan_path = optarg;
			break;
		case 'l':
			launch.number = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 's':
			launch.seed = strtoull(optarg, NULL, 10);
			break;
		case 'd':
			read_done(optarg);
			break;
		case 'C':
			launch.control_ppm = strtoull(optarg, NULL, 10);
			break;
		case 'n':
			counters_open(optarg);
			break;
		case 'P':
			read_patience(optarg);
			break;
		case 'r':
			options.reach_path = optarg;
			break;
		case 'm':
			launch.counts = true;
			break;
		case 'h':
			printf(usage, experiment.name);
			exit(RUNNER_OK);
		default:
			fprintf(stderr, usage, experiment.name);
			exit(RUNNER_USAGE);
		}
	}
	for (unsigned int i = 0; i < launch.nr_variants; i++)
		if (launch.tree_of[i] >= launch.nr_trees)
			die(RUNNER_USAGE, "--trees: %u of %u", launch.tree_of[i], launch.nr_trees);
	if (!options.forbidden_path || !launch.nr_variants ||
	    (!options.facts && !options.plan_path)) {
		fprintf(stderr, usage, experiment.name);
		exit(RUNNER_USAGE);
	}
	return options;
}

/* Run a row for all trees. The images of all of them are mapped at the same time. */
static bool run_row(char *first)
{
	char *end = first + launch.nr_trees * row_layout.bytes;
	bool verified;

	for (char *row = first; row < end; row += row_layout.bytes) {
		plan_map_images(row_layout.fields, row);
		if (experiment.open_row)
			experiment.open_row(row);
	}
	verified = experiment.run_row(first);
	for (char *row = first; row < end; row += row_layout.bytes) {
		if (experiment.close_row)
			experiment.close_row(row);
		plan_unmap_images(row_layout.fields, row);
	}
	return verified;
}

static bool run_plan(const char *path)
{
	size_t nr_rows, row_bytes = row_layout.bytes;
	char *rows = plan_read(path, row_layout.fields, row_bytes, &nr_rows);
	bool verified = true;

	if (nr_rows % launch.nr_trees)
		die(RUNNER_USAGE, "%s: %zu rows of %u trees", path, nr_rows, launch.nr_trees);
	experiment.map(rows, nr_rows);
	for (char *row = rows; verified && row < rows + nr_rows * row_bytes;
	     row += launch.nr_trees * row_bytes)
		verified = run_row(row);
	if (verified && experiment.end)
		experiment.end();
	return verified;
}

static int run_launch(const struct options *options)
{
	const struct host_machine *machine = cpu_machine(options->nr_cpus, launch.counts);

	launch.nr_cpus = cpu_nr_real();
	counters_print_refused();
	launch.nr_hosted_cpus = machine->nr_cpus;
	traps_install(options->forbidden_path);
	if (experiment.prepare)
		experiment.prepare();
	kernel_boot_all(machine);
	if (launch.counts)
		turns_begin();
	pool_start(machine->nr_cpus);
	if (options->reach_path) {
		reach_read(options->reach_path);
		launch.reaches = true;
	}
	if (!run_plan(options->plan_path)) {
		print_wrong();
		return RUNNER_NOT_VERIFIED;
	}
	refuse_warnings();
	print_end();
	return RUNNER_OK;
}

/*
 * The environment and the command line lie above the stack, so their length
 * determines the offset of the stack in its page. Some copy functions of kernels
 * branch on the low bits of an address. Counts must not depend on them.
 */
__attribute__((noinline)) static int run_from_page(const struct options *options)
{
	uintptr_t beyond = (uintptr_t)__builtin_frame_address(0) % STACK_PAGE_BYTES;
	char *skipped = __builtin_alloca(beyond + 1);

	asm volatile("" : : "r"(skipped) : "memory");
	return run_launch(options);
}

int main(int argc, char **argv)
{
	struct options options;

	/* A kernel may end the program at any time, so write each line at once. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	options = read_options(argc, argv);
	if (options.facts) {
		print_facts();
		return RUNNER_OK;
	}
	return launch.counts ? run_from_page(&options) : run_launch(&options);
}
