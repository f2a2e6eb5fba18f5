// SPDX-License-Identifier: GPL-2.0-only
/*
 * What may change while memory is moved: the provider, for which reasons, in how
 * many parts, and with what faults. Many changes are refused, for example a
 * module in use or a second provider. That is fine, unless something breaks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "program.h"
#include "soak.h"

#define PATH_ROOM 128
#define TEXT_ROOM 128
#define MOST_CHANNELS 16
#define MOST_THREADS 32
#define SHORT_STALL_MS "5"
#define TIMEOUT_MS "100"
#define TRIAL_MS "10000"
#define SETTLE_NS (10 * 1000000000ULL)

const struct fault faults[NR_FAULTS] = {
	{ "fail_at", true },
	{ "short_at", true },
	{ "stall_at", true },
	{ "vanish_at", true },
	{ "reorder", false },
};

static const struct provider {
	const char *name;
	const char *parts;
	unsigned int most;
} providers[] = {
	{ "dcbm", "nr_dma_chan", MOST_CHANNELS },
	{ "mtcopy", "nr_threads", MOST_THREADS },
};

#define NR_PROVIDERS (sizeof(providers) / sizeof(providers[0]))

/* By modules that are not loaded any more. */
static unsigned long nr_copied[NR_PROVIDERS];

static const char *const reasons[] = {
	"default", "all", "none", "compaction", "syscall_or_cpuset",
	"mempolicy_mbind", "compaction,syscall_or_cpuset", "0x18",
};

#define NR_REASONS (sizeof(reasons) / sizeof(reasons[0]))

/* --- Files --- */

static bool write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, strlen(text)) >= 0;
	int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
	return written;
}

static void parameter_path(char *path, const char *module, const char *name)
{
	snprintf(path, PATH_ROOM, "/sys/module/%s/parameters/%s", module, name);
}

static bool set(const char *module, const char *name, const char *text)
{
	char path[PATH_ROOM];

	parameter_path(path, module, name);
	return write_to(path, text);
}

static bool set_number(const char *module, const char *name,
		       unsigned long number)
{
	char text[TEXT_ROOM];

	snprintf(text, sizeof(text), "%lu", number);
	return set(module, name, text);
}

static void need(bool done, const char *what)
{
	if (!done)
		die(EXIT_FAILED, "%s: %s", what, strerror(errno));
}

unsigned long read_parameter(const char *module, const char *name)
{
	char path[PATH_ROOM];
	const char *line;

	parameter_path(path, module, name);
	line = first_line(path);
	if (!line)
		die(EXIT_FAILED, "read %s: %s", path, strerror(errno));
	return strtoul(line, NULL, 10);
}

/* --- Modules --- */

static bool is_there(const char *name)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "/modules/%s.ko", name);
	return !access(path, F_OK);
}

static bool is_loaded(const char *name)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "/sys/module/%s/parameters", name);
	return !access(path, F_OK);
}

static bool load(const char *name, const char *parameters)
{
	char path[PATH_ROOM];
	bool loaded;
	int fd;

	if (is_loaded(name))
		return true;
	snprintf(path, sizeof(path), "/modules/%s.ko", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	loaded = !syscall(SYS_finit_module, fd, parameters, 0);
	close(fd);
	return loaded;
}

static bool unload(const char *name)
{
	return !syscall(SYS_delete_module, name, O_NONBLOCK);
}

/* Its count goes with it. One that still copies cannot be unloaded. */
static bool unload_provider(const struct provider *provider)
{
	unsigned long count;

	if (!is_loaded(provider->name))
		return false;
	count = read_parameter(provider->name, "folios_migrated");
	if (!unload(provider->name))
		return false;
	nr_copied[provider - providers] += count;
	return true;
}

unsigned long nr_folios_copied(const char *name)
{
	for (size_t i = 0; i < NR_PROVIDERS; i++)
		if (!strcmp(providers[i].name, name))
			return nr_copied[i];
	return 0;
}

/* From 4 KiB to 4 MiB; every other time whole pages, a power of two of them. */
static unsigned long some_segment(uint64_t *chance)
{
	unsigned long bytes = 1UL << (12 + below(chance, 10));

	if (below(chance, 2))
		bytes += below(chance, bytes);
	return bytes;
}

static void load_engine(uint64_t *chance)
{
	char text[TEXT_ROOM];

	/* Alignments and segments that some have; and some cannot be stopped. */
	snprintf(text, sizeof(text),
		 "nr_channels=%lu nr_descriptors=%u copy_align=%lu max_seg_bytes=%lu can_terminate=%lu",
		 1 + below(chance, MOST_CHANNELS),
		 below(chance, 2) ? 16U : 1024U, below(chance, 7),
		 some_segment(chance), below(chance, 2));
	load("swdma", text);
}

/* --- Phase: faults --- */

bool has_engine(void)
{
	return is_there("swdma") && is_there("dcbm");
}

/*
 * Have dcbm copy. Whether a channel copies at all it finds out by a trial,
 * which is no fault to be found: on a slow machine it may take its time.
 */
static bool switch_on(void)
{
	bool on;
	int error;

	set("dcbm", "timeout_ms", TRIAL_MS);
	on = set("dcbm", "offloading", "1");
	error = errno;
	set("dcbm", "timeout_ms", TIMEOUT_MS);
	errno = error;
	return on;
}

void use_engine(uint64_t *chance)
{
	if (is_loaded("mtcopy"))
		set("mtcopy", "offloading", "0");
	need(load("swdma", "nr_channels=16 results=0"), "load swdma");
	need(load("dcbm", ""), "load dcbm");
	/* One that weighs costs would leave it all to the CPU. */
	set("dcbm", "adaptive", "0");
	set("dcbm", "offloading", "0");
	need(set_number("dcbm", "nr_dma_chan",
			1 + below(chance, MOST_CHANNELS)), "nr_dma_chan");
	/* One whose driver does not report errors is of no use. */
	if (switch_on() || errno != ENODEV)
		die(EXIT_FAILED, "dcbm uses an engine that gives no results");
	need(unload("swdma"), "unload swdma");
	need(load("swdma", "nr_channels=16"), "load swdma");
	need(switch_on(), "dcbm's offloading");
}

void begin_fault(size_t kind, unsigned int k)
{
	/* Every third stalls until the fault ends, and some do not stop then. */
	need(set("swdma", "stall_ms", k % 3 ? SHORT_STALL_MS : "0"),
	     "stall_ms");
	need(set_number("swdma", "keeps_writing", k % 2), "keeps_writing");
	need(set_number("swdma", faults[kind].name,
			faults[kind].counted ? k : 1), faults[kind].name);
}

void end_fault(size_t kind)
{
	/*
	 * A channel may hang until the fault ends, and turning the provider off
	 * does not wait for it. A provider that has given a channel up gets others
	 * only when it asks again.
	 */
	need(set("dcbm", "offloading", "0"), "dcbm's offloading");
	need(set_number("dcbm", "nr_dma_chan",
			read_parameter("dcbm", "nr_dma_chan")), "nr_dma_chan");
	need(set("swdma", faults[kind].name, "0"), faults[kind].name);
	need(switch_on(), "dcbm's offloading");
}

/* --- Phase: random --- */

static const struct provider *some_provider(uint64_t *chance)
{
	return &providers[below(chance, NR_PROVIDERS)];
}

static void change_offloading(uint64_t *chance)
{
	set_number(some_provider(chance)->name, "offloading",
		   below(chance, 2));
}

static void change_parts(uint64_t *chance)
{
	const struct provider *provider = some_provider(chance);

	set_number(provider->name, provider->parts,
		   1 + below(chance, provider->most));
}

static void change_reasons(uint64_t *chance)
{
	set_number("dcbm", "adaptive", below(chance, 2));
	set(some_provider(chance)->name, "reasons",
	    reasons[below(chance, NR_REASONS)]);
}

static void change_fault(uint64_t *chance)
{
	size_t kind = below(chance, NR_FAULTS);
	unsigned long k = below(chance, 4) ? below(chance, 65) : 0;

	set("swdma", "stall_ms", below(chance, 4) ? SHORT_STALL_MS : "0");
	set_number("swdma", "keeps_writing", below(chance, 2));
	set_number("swdma", faults[kind].name,
		   faults[kind].counted ? k : k % 2);
}

/* As an operator does: off, unload, and all the way up again. */
static void change_module(uint64_t *chance)
{
	const struct provider *provider = some_provider(chance);

	if (!is_there(provider->name))
		return;
	if (below(chance, 2))
		set(provider->name, "offloading", "0");
	unload_provider(provider);
	if (below(chance, 2))
		unload("swdma");
	if (is_there("swdma"))
		load_engine(chance);
	load(provider->name, "");
	set("dcbm", "timeout_ms", TIMEOUT_MS);
	set(provider->name, "offloading", "1");
}

/* Rarely: it takes as long as ten moves. */
static void compact(uint64_t *chance)
{
	if (!below(chance, 8))
		write_to("/proc/sys/vm/compact_memory", "1");
}

void change_something(uint64_t *chance)
{
	static void (*const changes[])(uint64_t *chance) = {
		change_offloading, change_offloading, change_offloading,
		change_parts, change_parts, change_reasons, change_fault,
		change_fault, change_module, change_module, compact,
	};

	changes[below(chance, sizeof(changes) / sizeof(changes[0]))](chance);
}

/* What a channel that was late has kept is given back soon after it stalls no more. */
static bool leave(const struct provider *provider)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	uint64_t end_ns = now_ns() + SETTLE_NS;

	for (;;) {
		need(set(provider->name, "offloading", "0"), "offloading");
		if (unload_provider(provider))
			return true;
		if (errno != EWOULDBLOCK)
			return false;
		if (now_ns() > end_ns)
			return false;
		nanosleep(&pause, NULL);
	}
}

void leave_off(void)
{
	for (size_t i = 0; i < NR_FAULTS && is_loaded("swdma"); i++)
		set("swdma", faults[i].name, "0");
	for (size_t i = 0; i < NR_PROVIDERS; i++) {
		if (!is_loaded(providers[i].name))
			continue;
		need(leave(&providers[i]), providers[i].name);
	}
	if (is_loaded("swdma"))
		need(unload("swdma"), "unload swdma");
}
