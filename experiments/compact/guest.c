// SPDX-License-Identifier: GPL-2.0-only
/*
 * experiment=compact: huge pages out of a node whose memory is in use, with
 * holes. The program /workloads/fragment makes it so, and in the end looks at
 * every word of it; the module order9 asks for huge pages and has the clock.
 *
 *   mode=MODE       baseline       the kernel copies
 *                   dma            dcbm copies, on channels of swdma
 *                   busy-baseline, busy-dma   the same, and the CPU that
 *                                  allocates has other work to do, too
 *                   law            no huge page is asked for: the node is
 *                                  compacted as a whole, through sysfs
 *   huge=N          huge pages; none with mode=law
 *   size=BYTES      of the buffer; 0: nearly all that is free in the node
 *   seed=N          of its contents
 *   channels=N      with mode=*dma
 *   model=SETUP_NS/MB_PER_S   what each of them takes for a descriptor, at least
 *   node=N cpu=N    node of the memory, CPU that allocates; default 1 and 0
 *   ballast=0       free huge pages are not taken away before
 *   hole=N          one page of N is a hole; 2, if not given
 *   few_used=1      the other way round: all but every Nth are
 *   scattered=1     any of them, not the last; fragment.c tells the difference
 *   held=N          so many large folios are in the way, that can neither be
 *                   moved nor split
 *   adaptive=, reasons=   of dcbm, as in copier.c; reasons=compaction
 *   fault=NAME:K[,...]    parameters of swdma, for tests
 *   poke=1          a word of the buffer is changed, for tests
 *
 * With channels and more than one CPU, the last one is the engine's.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "guest.h"

#define FRAGMENT "/workloads/fragment"
#define HOLD "/workloads/hold_folios"
#define HOG "/workloads/hog"
#define HOG_COUNT "/tmp/hog"
#define MODULE "order9"
#define RESULT "/sys/module/order9/parameters/result"
#define PROACTIVENESS "/proc/sys/vm/compaction_proactiveness"
#define KEPT_BY_CPUS "/proc/sys/vm/percpu_pagelist_high_fraction"
#define ENGINE_THREADS "swdma/"
#define SHMEM_64K "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/shmem_enabled"

#define NUMBER_BYTES 32
#define POLL_US 1000

/* By when a kernel has chosen its clock, and idles without ticks. */
#define SETTLED_NS 3000000000ULL

/* Of how many parts of a zone a CPU may keep one free: so many are a few. */
#define MOST_PARTS "100000"

struct mode {
	const char *name;
	bool by_engine;
	bool busy;
	bool law;
};

static const struct mode modes[] = {
	{ "baseline", false, false, false },
	{ "dma", true, false, false },
	{ "busy-baseline", false, true, false },
	{ "busy-dma", true, true, false },
	{ "law", false, false, true },
};

struct sample {
	unsigned long asked;
	unsigned long allocated;
	unsigned long ballast;
	uint64_t time_ns;
	uint64_t page_copy_ns;
	uint64_t longest_ns;
	uint64_t user_ns, system_ns, idle_ns;
	struct {
		uint64_t user_ns, system_ns, idle_ns, steal_ns;
	} machine;		/* of all CPUs */
	uint64_t iterations;
	unsigned long resident_pages;
	unsigned long wrong_words;
	char *counters;		/* a JSON object */
};

static struct program fragment, hog, hold;
static const uint64_t *hog_count;

/* --- The buffer --- */

static void report_program(const char *name, int status)
{
	FILE *to = message_begin("workload");

	fprintf(to, "{\"step\": \"%s\", \"exit\": %d}", name, status);
	message_end();
}

static const char *heard_of(struct program *program, const char *line)
{
	int status;

	if (line)
		return line;
	/* It has said why, on the console. */
	status = program_end(program);
	report_program(program->name, status);
	give_up(0, "%s ended with %d; the console says more", program->name,
		status);
}

static unsigned long start_fragment(const char *const argv[])
{
	unsigned long resident;
	const char *line;

	/*
	 * CPUs keep up to an eighth of a zone in lists of their own, and there
	 * no scanner would see the holes.
	 */
	set_text(KEPT_BY_CPUS, MOST_PARTS);
	program_start(&fragment, argv);
	line = heard_of(&fragment, program_hear(&fragment));
	if (sscanf(line, "{\"ready\":{\"resident_pages\":%lu,", &resident) != 1)
		give_up(0, "%s said %s, not that it is ready", FRAGMENT, line);
	set_text(KEPT_BY_CPUS, "0");
	return resident;
}

static void start_hold(const char *nr_folios, const char *node)
{
	const char *const argv[] = {
		HOLD, "--folios", nr_folios, "--node", node, NULL
	};

	set_text(SHMEM_64K, "advise");
	program_start(&hold, argv);
	heard_of(&hold, program_hear(&hold));
}

/* {"counters":{...}}: what is inside, which the caller frees. */
static char *ask_counters(void)
{
	const char *line = heard_of(&fragment,
				    program_ask(&fragment, "counters"));
	const char *at = strchr(line, ':');
	size_t length = strlen(line);

	if (strncmp(line, "{\"counters\":{", 13) || line[length - 1] != '}')
		give_up(0, "%s said %s, not its counters", FRAGMENT, line);
	return strndup(at + 1, line + length - 1 - (at + 1));
}

static unsigned long ask_wrong_words(void)
{
	const char *line = heard_of(&fragment,
				    program_ask(&fragment, "verify"));
	unsigned long wrong;

	if (sscanf(line, "{\"verify\":{\"wrong_words\":%lu,", &wrong) != 1)
		give_up(0, "%s said %s, not what is wrong", FRAGMENT, line);
	return wrong;
}

/* --- Another load of the CPU, and the engine's own --- */

static uint64_t nr_iterations(void)
{
	return __atomic_load_n(hog_count, __ATOMIC_RELAXED);
}

static void start_hog(const char *cpu)
{
	const char *const argv[] = {
		HOG, "--cpu", cpu, "--count", HOG_COUNT, NULL
	};
	int fd = open(HOG_COUNT, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, sizeof(*hog_count)))
		give_up(errno, "%s", HOG_COUNT);
	hog_count = mmap(NULL, sizeof(*hog_count), PROT_READ, MAP_SHARED, fd,
			 0);
	if (hog_count == MAP_FAILED)
		give_up(errno, "map %s", HOG_COUNT);
	close(fd);
	program_start(&hog, argv);
	while (!nr_iterations())
		usleep(POLL_US);
}

static void stop_hog(void)
{
	int status;

	kill(hog.pid, SIGTERM);
	status = program_end(&hog);
	if (status)
		give_up(0, "%s ended with %d", HOG, status);
}

/*
 * The engine stands for hardware, which takes no CPU from anybody: its threads
 * keep off the CPU that allocates. They exist as soon as dcbm has channels.
 */
static void pin_engine(void)
{
	unsigned int nr_pinned = 0;
	struct dirent *entry;
	cpu_set_t last;
	DIR *proc;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return;
	CPU_ZERO(&last);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &last);
	proc = opendir("/proc");
	while (proc && (entry = readdir(proc))) {
		char path[PATH_BYTES], name[NUMBER_BYTES];

		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (!atoi(entry->d_name) ||
		    read_text(path, name, sizeof(name)) < 0 ||
		    strncmp(name, ENGINE_THREADS, strlen(ENGINE_THREADS)))
			continue;
		if (sched_setaffinity(atoi(entry->d_name), sizeof(last), &last))
			give_up(errno, "run %s on the last CPU", name);
		nr_pinned++;
	}
	if (proc)
		closedir(proc);
	if (!nr_pinned)
		give_up(0, "%s*: no such threads, whoever the engine is",
			ENGINE_THREADS);
}

/* NAME:K of swdma, as many as there are. */
static void inject(const char *faults)
{
	char fault[PATH_BYTES];

	while (next_name(&faults, fault, sizeof(fault))) {
		char *value = strchr(fault, ':');

		if (!value)
			give_up(0, "fault=%s: not NAME:K", fault);
		*value = '\0';
		set_parameter("swdma", fault, value + 1);
	}
}

/* --- Huge pages --- */

static uint64_t value_of(const char *text, const char *name)
{
	size_t length = strlen(name);

	while (text) {
		if (!strncmp(text, name, length) && text[length] == '=')
			return strtoull(text + length + 1, NULL, 10);
		text = strchr(text, ' ');
		text = text ? text + 1 : NULL;
	}
	give_up(0, "%s: says no %s", RESULT, name);
}

static void read_result(struct sample *sample)
{
	char text[TEXT_BYTES];

	if (read_text(RESULT, text, sizeof(text)) < 0)
		give_up(errno, "read %s", RESULT);
	sample->allocated = value_of(text, "allocated");
	sample->ballast = value_of(text, "ballast");
	sample->time_ns = value_of(text, "elapsed_ns");
	sample->page_copy_ns = value_of(text, "page_copy_ns");
	sample->longest_ns = value_of(text, "longest_ns");
	sample->user_ns = value_of(text, "user_ns");
	sample->system_ns = value_of(text, "system_ns");
	sample->idle_ns = value_of(text, "idle_ns");
	sample->machine.user_ns = value_of(text, "machine_user_ns");
	sample->machine.system_ns = value_of(text, "machine_system_ns");
	sample->machine.idle_ns = value_of(text, "machine_idle_ns");
	sample->machine.steal_ns = value_of(text, "machine_steal_ns");
}

static void allocate(struct sample *sample, const struct mode *mode)
{
	uint64_t before;

	free(ask_counters());
	before = mode->busy ? nr_iterations() : 0;
	set_parameter(MODULE, "run", "1");
	sample->iterations = mode->busy ? nr_iterations() - before : 0;
	sample->counters = ask_counters();
	read_result(sample);
}

static void compact_whole(struct sample *sample, const char *node)
{
	char path[PATH_BYTES];
	uint64_t start_ns;

	/* What is free in one piece is no hole, and would be filled first. */
	set_parameter(MODULE, "count", "0");
	set_parameter(MODULE, "run", "1");
	read_result(sample);
	snprintf(path, sizeof(path),
		 "/sys/devices/system/node/node%s/compact", node);
	free(ask_counters());
	start_ns = now_ns();
	set_text(path, "1");
	sample->time_ns = now_ns() - start_ns;
	sample->counters = ask_counters();
}

/* --- All of it --- */

static const struct mode *mode_named(const char *name)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(name, modes[i].name))
			return &modes[i];
	give_up(0, "mode=%s: not baseline, dma, busy-baseline, busy-dma or law",
		name);
}

static void report(const struct mode *mode, const struct sample *sample)
{
	FILE *to = message_begin("compact");

	fprintf(to, "{\"mode\": \"%s\", \"asked\": %lu, \"allocated\": %lu, ",
		mode->name, sample->asked, sample->allocated);
	fprintf(to, "\"ballast\": %lu, \"time_ns\": %llu, ", sample->ballast,
		(unsigned long long)sample->time_ns);
	fprintf(to, "\"page_copy_ns\": %llu, \"longest_ns\": %llu, ",
		(unsigned long long)sample->page_copy_ns,
		(unsigned long long)sample->longest_ns);
	fprintf(to, "\"user_ns\": %llu, \"system_ns\": %llu, \"idle_ns\": %llu, ",
		(unsigned long long)sample->user_ns,
		(unsigned long long)sample->system_ns,
		(unsigned long long)sample->idle_ns);
	fprintf(to, "\"machine\": {\"user_ns\": %llu, \"system_ns\": %llu, ",
		(unsigned long long)sample->machine.user_ns,
		(unsigned long long)sample->machine.system_ns);
	fprintf(to, "\"idle_ns\": %llu, \"steal_ns\": %llu}, ",
		(unsigned long long)sample->machine.idle_ns,
		(unsigned long long)sample->machine.steal_ns);
	fprintf(to, "\"resident_pages\": %lu, \"wrong_words\": %lu, ",
		sample->resident_pages, sample->wrong_words);
	if (mode->busy)
		fprintf(to, "\"hog_iterations\": %llu, ",
			(unsigned long long)sample->iterations);
	else
		fputs("\"hog_iterations\": null, ", to);
	fprintf(to, "\"counters\": %s, \"verified\": %s}", sample->counters,
		sample->wrong_words ? "false" : "true");
	message_end();
}

static bool run_compact(void)
{
	const char *ballast = word("ballast"), *hole = word("hole");
	const char *channels = word("channels"), *faults = word("fault");
	const char *held = word("held"), *model = word("model");
	bool poke = word("poke");
	const char *node = word("node"), *cpu = word("cpu");
	bool few_used = word("few_used"), scattered = word("scattered");
	const struct mode *mode = mode_named(needed_word("mode"));
	struct sample sample = { .asked = mode->law ? 0 : number_word("huge") };
	char bytes[NUMBER_BYTES], seed[NUMBER_BYTES], text[TEXT_BYTES];
	const char *const argv[] = {
		FRAGMENT, "--bytes", bytes, "--seed", seed, "--node",
		node = node ? node : "1",
		few_used ? "--used-every" : "--hole-every", hole ? hole : "2",
		"--oom-score", "-1000",
		scattered ? "--scattered" : NULL, NULL
	};
	int status;

	cpu = cpu ? cpu : "0";
	snprintf(bytes, sizeof(bytes), "%lu", number_word("size"));
	snprintf(seed, sizeof(seed), "%lu", number_word("seed"));
	if (mode->by_engine && !channels)
		give_up(0, "mode=%s: needs channels=", mode->name);
	copy_words("compaction");
	refuse_unread_words();
	/* kcompactd compacts of its own accord, and nobody else is to. */
	set_text(PROACTIVENESS, "0");
	printf("KTAP version 1\n1..1\n");
	while (now_ns() < SETTLED_NS)
		usleep(POLL_US);
	snprintf(text, sizeof(text), "node=%s cpu=%s count=%lu ballast=%s",
		 node, cpu, sample.asked, ballast ? ballast : "1");
	load_module(MODULE, text);
	if (held)
		start_hold(held, node);
	sample.resident_pages = start_fragment(argv);
	if (mode->by_engine) {
		copy_by("dcbm", channels);
		model_engine(model);
		pin_engine();
		inject(faults);
	}
	if (mode->busy)
		start_hog(cpu);
	if (mode->law)
		compact_whole(&sample, node);
	else
		allocate(&sample, mode);
	if (mode->busy)
		stop_hog();
	if (poke)
		heard_of(&fragment, program_ask(&fragment, "poke"));
	/* While huge pages are held: what is in them is written by now. */
	sample.wrong_words = ask_wrong_words();
	report(mode, &sample);
	set_parameter(MODULE, "run", "0");
	status = program_end(&fragment);
	report_program("fragment", status);
	if (held && program_end(&hold))
		give_up(0, "%s failed; the console says more", HOLD);
	printf("%s 1 %s\n", status ? "not ok" : "ok", mode->name);
	return !status;
}

GUEST_EXPERIMENT("compact", run_compact)
