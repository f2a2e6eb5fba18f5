// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin for QEMU that counts what kernels execute: hosted kernels in QEMU's
 * user mode, and whole kernels in guests.
 *
 * It counts between two marks (native/host/marks.h), on all CPUs, in functions
 * that are given by their addresses. Code between two other marks is left out. At
 * the second mark the plugin writes its counts as a line of JSON, and starts
 * again.
 *
 * Instructions are counted by runs. A run is the part of a translated block that
 * belongs to one function, so that each execution of it is one callback. Every
 * CPU has counters of its own, because those of QEMU are not atomic. QEMU reports
 * accesses to memory one by one.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "calls.h"
#include "classify.h"
#include "functions.h"
#include "isa.h"
#include "qemu_plugin.h"
#include "lines.h"

#define PAGE_MASK 4095UL
#define WORD_BYTES 8
#define MOST_CPUS 1024
#define RUNS_PER_CHUNK 1024
#define MOST_CHUNKS 4096

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/**
 * struct run - instructions that are always executed one after the other
 * @function: Index of their function.
 * @start: Address of the first instruction.
 * @end: Address after the last instruction.
 * @is_conditional: Whether the last instruction is a conditional branch.
 * @way: How the last instruction leads to the next code.
 * @target: Target of its jump. 0 if the instruction does not contain it.
 * @counts: What one execution adds, without accesses to memory.
 */
struct run {
	unsigned int function;
	uint64_t start, end;
	bool is_conditional;
	enum way way;
	uint64_t target;
	unsigned int counts[NR_QUANTITIES];
};

/**
 * struct access - memory accesses of an instruction
 * @known: QEMU's description of the last access, and its decoded form; see decode().
 * @function: Index of the function of the instruction.
 */
struct access {
	uint64_t known;
	unsigned int function;
	bool is_locked, is_exclusive, is_repeated;
};

struct accesses {
	uint64_t loads, load_bytes, stores, store_bytes;
};

/**
 * struct cpu - what one CPU has counted since the first mark
 * @executed: Number of executions of each run, in chunks.
 * @taken: Likewise, how often the branch at the end of each run was taken.
 * @accesses: Accesses of each function.
 * @calls: Counts of functions together with what they called.
 * @last: The run that the CPU executed last; NULL if there is none yet.
 * @last_number: Number of that run.
 * @last_line: The line touched last, by kind of access: most accesses hit it again.
 */
struct cpu {
	uint64_t *executed[MOST_CHUNKS];
	uint64_t *taken[MOST_CHUNKS];
	struct accesses *accesses;
	struct calls *calls;
	const struct run *last;
	size_t last_number;
	uint64_t last_line[LINE_WRITTEN + 1];
};

static const struct isa *isa = &isa_x86_64;
static struct run *runs[MOST_CHUNKS];
static size_t nr_runs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* protects runs and cpus */
static struct cpu *cpus[MOST_CPUS];
static unsigned int nr_cpus;	/* CPUs from here on have counted nothing */
static unsigned int nr_windows;
static bool is_open;	/* between the two marks */
static bool is_counting;	/* is_open, and not paused */
static bool is_lost;	/* functions called each other too deep to follow */
static bool is_following = true;	/* track calls; interrupts and switches would mislead */
static uint64_t next_name;	/* of the next window, as far as its bits are known */
static bool is_listing;
static FILE *out;

/* Only the CPU's own thread comes here. */
__attribute__((noinline)) static struct cpu *add_cpu(unsigned int number)
{
	struct cpu *cpu;

	if (number >= MOST_CPUS)
		die("more than %d threads", MOST_CPUS);
	cpu = zeroed(1, sizeof(*cpu));
	cpu->accesses = zeroed(nr_functions, sizeof(*cpu->accesses));
	cpu->calls = calls_new(nr_functions);
	if (!cpu->calls)
		die("no memory");
	pthread_mutex_lock(&lock);
	cpus[number] = cpu;
	if (nr_cpus <= number)
		nr_cpus = number + 1;
	pthread_mutex_unlock(&lock);
	return cpu;
}

static inline struct cpu *cpu_of(unsigned int number)
{
	if (number < MOST_CPUS && cpus[number])
		return cpus[number];
	return add_cpu(number);
}

static inline uint64_t *counter(uint64_t **chunks, size_t number)
{
	uint64_t **chunk = &chunks[number / RUNS_PER_CHUNK];

	if (!*chunk)
		*chunk = zeroed(RUNS_PER_CHUNK, sizeof(**chunk));
	return &(*chunk)[number % RUNS_PER_CHUNK];
}

static const struct run *run_of(size_t number)
{
	return &runs[number / RUNS_PER_CHUNK][number % RUNS_PER_CHUNK];
}

/* The calls and returns between the run before it and this one. */
static void follow(struct cpu *cpu, const struct run *run)
{
	const struct function *function = &functions[run->function];
	const struct run *last = cpu->last;
	enum way way = last ? last->way : WAY_ON;

	/* It jumped to code that is not counted, which returned for it. */
	if (last && last->target && run->start != last->target && run->start != last->end)
		way = WAY_RETURN;
	if (!calls_follow(cpu->calls, way, last ? last->end : 0, run->start, function->whole))
		is_lost = true;
	for (int i = 0; function->is_kernels && i < NR_QUANTITIES; i++)
		calls_add(cpu->calls, i, run->counts[i]);
}

static void on_run(unsigned int vcpu, void *context)
{
	size_t number = (uintptr_t)context;
	const struct run *run = run_of(number);
	struct cpu *cpu;

	if (!is_counting)
		return;
	cpu = cpu_of(vcpu);
	if (cpu->last && cpu->last->is_conditional && run->start != cpu->last->end) {
		++*counter(cpu->taken, cpu->last_number);
		if (functions[cpu->last->function].is_kernels)
			calls_add(cpu->calls, TAKEN, 1);
	}
	++*counter(cpu->executed, number);
	if (is_following)
		follow(cpu, run);
	cpu->last = run;
	cpu->last_number = number;
}

static void touch(struct cpu *cpu, uint64_t address, unsigned int bytes, enum line_touch how)
{
	uint64_t line = address / LINE_BYTES;

	if (line == cpu->last_line[how] && line == (address + bytes - 1) / LINE_BYTES)
		return;
	cpu->last_line[how] = line;
	lines_touch(address, bytes, how);
}

/*
 * Whether it is a store, and behind that its bytes. Two calls of QEMU's, unless
 * it has said the same the last time; read and written as one by all threads.
 */
static unsigned int decode(struct access *access, qemu_plugin_meminfo_t info)
{
	uint64_t known = __atomic_load_n(&access->known, __ATOMIC_RELAXED);

	if (!known || known >> 32 != info) {
		known = (uint64_t)info << 32 | 2U << qemu_plugin_mem_size_shift(info) |
			qemu_plugin_mem_is_store(info);
		__atomic_store_n(&access->known, known, __ATOMIC_RELAXED);
	}
	return (unsigned int)known;
}

static void on_access(unsigned int vcpu, qemu_plugin_meminfo_t info,
		      uint64_t address, void *context)
{
	struct access *access = context;
	struct accesses *to;
	struct cpu *cpu;
	unsigned int bytes, what;
	bool is_store, is_kernels;

	if (!is_counting)
		return;
	cpu = cpu_of(vcpu);
	to = &cpu->accesses[access->function];
	what = decode(access, info);
	bytes = what >> 1;
	is_store = what & 1;
	is_kernels = functions[access->function].is_kernels;
	if (is_kernels) {
		if (!is_store || access->is_locked)
			touch(cpu, address, bytes, LINE_READ);
		if (is_store)
			touch(cpu, address, bytes, LINE_WRITTEN);
	}
	if (access->is_repeated)
		return;
	/*
	 * Of a locked operation QEMU tells one access that is a store, or two
	 * where no other thread could come between; of the store of a loop on
	 * arm64, too, which loads nothing.
	 */
	if (is_store) {
		to->stores++;
		to->store_bytes += bytes;
		if (is_kernels) {
			calls_add(cpu->calls, STORES, 1);
			calls_add(cpu->calls, STORE_BYTES, bytes);
		}
	}
	if (access->is_locked ? is_store : !is_store && !access->is_exclusive) {
		to->loads++;
		to->load_bytes += bytes;
		if (is_kernels) {
			calls_add(cpu->calls, LOADS, 1);
			calls_add(cpu->calls, LOAD_BYTES, bytes);
		}
	}
}

static void begin(unsigned int vcpu, void *context)
{
	(void)vcpu;
	(void)context;
	for (unsigned int i = 0; i < nr_cpus; i++) {
		struct cpu *cpu = cpus[i];

		if (!cpu)
			continue;
		for (size_t j = 0; j <= nr_runs / RUNS_PER_CHUNK && j < MOST_CHUNKS; j++) {
			if (cpu->executed[j])
				memset(cpu->executed[j], 0, RUNS_PER_CHUNK * sizeof(uint64_t));
			if (cpu->taken[j])
				memset(cpu->taken[j], 0, RUNS_PER_CHUNK * sizeof(uint64_t));
		}
		calls_begin(cpu->calls);
		memset(cpu->accesses, 0, nr_functions * sizeof(*cpu->accesses));
		cpu->last = NULL;
		memset(cpu->last_line, 0, sizeof(cpu->last_line));
	}
	lines_forget();
	is_lost = false;
	is_open = true;
	is_counting = true;
}

/* Whatever was under way has returned to code that is not counted. */
static void pause(unsigned int vcpu, void *context)
{
	(void)vcpu;
	(void)context;
	is_counting = false;
	for (unsigned int i = 0; i < nr_cpus; i++) {
		if (!cpus[i])
			continue;
		calls_end(cpus[i]->calls);
		cpus[i]->last = NULL;
	}
}

static void go_on(unsigned int vcpu, void *context)
{
	(void)vcpu;
	(void)context;
	is_counting = is_open;
}

/* How often all CPUs executed a run, or took the branch at its end. */
static uint64_t executions(size_t number, bool taken)
{
	uint64_t nr = 0;

	for (unsigned int i = 0; i < nr_cpus; i++) {
		uint64_t *const *chunks;
		const uint64_t *chunk;

		if (!cpus[i])
			continue;
		chunks = taken ? cpus[i]->taken : cpus[i]->executed;
		chunk = chunks[number / RUNS_PER_CHUNK];
		if (chunk)
			nr += chunk[number % RUNS_PER_CHUNK];
	}
	return nr;
}

static void add_accesses(uint64_t (*counts)[NR_QUANTITIES])
{
	for (unsigned int i = 0; i < nr_cpus; i++) {
		for (unsigned int j = 0; cpus[i] && j < nr_functions; j++) {
			const struct accesses *from = &cpus[i]->accesses[j];

			counts[j][LOADS] += from->loads;
			counts[j][LOAD_BYTES] += from->load_bytes;
			counts[j][STORES] += from->stores;
			counts[j][STORE_BYTES] += from->store_bytes;
		}
	}
}

/* What every function did together with what it called, on all CPUs. */
static void add_calls(uint64_t (*counts)[NR_QUANTITIES])
{
	for (unsigned int i = 0; i < nr_cpus; i++) {
		if (!cpus[i])
			continue;
		calls_end(cpus[i]->calls);
		for (unsigned int j = 0; j < nr_functions; j++)
			for (int k = 0; k < NR_QUANTITIES; k++)
				counts[j][k] += calls_counts(cpus[i]->calls, j)[k];
	}
}

static void write_counts(const char *name, uint64_t (*counts)[NR_QUANTITIES])
{
	bool first = true;

	fprintf(out, "\"%s\": [", name);
	for (unsigned int i = 0; i < nr_functions; i++) {
		bool any = false;

		for (int j = 0; j < NR_QUANTITIES; j++)
			any |= counts[i][j];
		if (!any)
			continue;
		fprintf(out, "%s[%u", first ? "" : ", ", i);
		for (int j = 0; j < NR_QUANTITIES; j++)
			fprintf(out, ", %lu", (unsigned long)counts[i][j]);
		fputc(']', out);
		first = false;
	}
	fputc(']', out);
}

static void write_runs(void)
{
	bool first = true;

	fputs(", \"runs\": [", out);
	for (size_t i = 0; i < nr_runs; i++) {
		uint64_t nr = executions(i, false);

		if (!nr)
			continue;
		fprintf(out, "%s[%lu, %lu, %lu]", first ? "" : ", ",
			(unsigned long)run_of(i)->start, (unsigned long)run_of(i)->end,
			(unsigned long)nr);
		first = false;
	}
	fputc(']', out);
}

static void end(unsigned int vcpu, void *context)
{
	uint64_t (*counts)[NR_QUANTITIES];
	struct lines lines;

	(void)vcpu;
	(void)context;
	if (!is_open)	/* a warm-up has no beginning */
		return;
	is_open = false;
	is_counting = false;
	counts = zeroed(nr_functions, sizeof(*counts));
	lines = lines_count();
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < nr_runs; i++) {
		const struct run *run = run_of(i);
		uint64_t nr = executions(i, false);

		for (int j = 0; nr && j < NR_QUANTITIES; j++)
			counts[run->function][j] += nr * run->counts[j];
		counts[run->function][TAKEN] += executions(i, true);
	}
	add_accesses(counts);
	fprintf(out, "{\"window\": %u, \"name\": %lu, ", ++nr_windows,
		(unsigned long)next_name);
	fprintf(out, "\"lines_read\": %zu, \"lines_written\": %zu, ", lines.nr_read,
		lines.nr_written);
	fprintf(out, "\"lines_only_written\": %zu, \"pages\": %zu, ",
		lines.nr_only_written, lines.nr_pages);
	write_counts("functions", counts);
	memset(counts, 0, nr_functions * sizeof(*counts));
	if (is_following && !is_lost)
		add_calls(counts);
	fputs(", ", out);
	write_counts("inclusive", counts);
	if (is_listing)
		write_runs();
	fputs("}\n", out);
	fflush(out);
	pthread_mutex_unlock(&lock);
	free(counts);
}

static void add_bit(unsigned int vcpu, void *bit)
{
	(void)vcpu;
	next_name = next_name << 1 | (uintptr_t)bit;
}

static void watch_mark(struct qemu_plugin_insn *insn)
{
	static const qemu_plugin_vcpu_udata_cb_t callbacks[] = {
		[MARK_IS_BEGIN] = begin, [MARK_IS_END] = end,
		[MARK_IS_0] = add_bit, [MARK_IS_1] = add_bit,
		[MARK_IS_PAUSE] = pause, [MARK_IS_GO_ON] = go_on,
	};
	enum mark mark = isa->mark(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));

	if (mark != MARK_NONE)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, callbacks[mark],
						       QEMU_PLUGIN_CB_NO_REGS,
						       (void *)(uintptr_t)(mark == MARK_IS_1));
}

/*
 * What the instruction is. On arm64 one that a program may not execute has
 * become a jump to what does the same outside of all functions (privileged.c),
 * and comes back: it counts as the instruction that it was.
 */
static unsigned int class_of(struct qemu_plugin_insn *insn, size_t bytes, uint64_t *target)
{
	const unsigned char *code = qemu_plugin_insn_data(insn);
	unsigned int is = isa->classify(code, bytes);

	*target = isa->jump_target(code, bytes, qemu_plugin_insn_vaddr(insn) + bytes);
	if (isa == &isa_arm64 && *target && function_at(*target) == nr_functions) {
		*target = 0;
		is = 0;
	}
	return is;
}

static void add_instruction(struct run *run, struct qemu_plugin_insn *insn)
{
	size_t bytes = qemu_plugin_insn_size(insn);
	unsigned int is = class_of(insn, bytes, &run->target);
	struct access *access;

	run->end = qemu_plugin_insn_vaddr(insn) + bytes;
	run->counts[is & INSN_REPEATED ? REPEATED : INSTRUCTIONS]++;
	run->counts[LOCKED] += !!(is & (INSN_LOCKED | INSN_EXCLUSIVE));
	run->counts[STREAMING] += !!(is & INSN_STREAMING);
	run->counts[FENCES] += !!(is & INSN_FENCE);
	run->counts[PREFETCHES] += !!(is & INSN_PREFETCH);
	run->counts[TAKEN] += !!(is & INSN_JUMP);
	run->is_conditional = is & INSN_CONDITIONAL;
	run->way = is & INSN_CALL ? WAY_CALL : is & INSN_RETURN ? WAY_RETURN : WAY_ON;
	/*
	 * QEMU does not always forget whom to tell when a branch leaves its
	 * block, and then tells of accesses that others make. What a branch
	 * accesses is known without it: the stack, and where to go.
	 */
	if (is & (INSN_JUMP | INSN_CONDITIONAL)) {
		unsigned int nr_loads = (isa->calls_push && is & INSN_RETURN) +
					!!(is & INSN_INDIRECT);
		unsigned int nr_stores = isa->calls_push && is & INSN_CALL;

		run->counts[LOADS] += nr_loads;
		run->counts[LOAD_BYTES] += nr_loads * WORD_BYTES;
		run->counts[STORES] += nr_stores;
		run->counts[STORE_BYTES] += nr_stores * WORD_BYTES;
		return;
	}
	access = zeroed(1, sizeof(*access));
	*access = (struct access){
		.function = run->function,
		.is_locked = is & INSN_LOCKED,
		.is_exclusive = is & INSN_EXCLUSIVE,
		.is_repeated = is & INSN_REPEATED,
	};
	/* Blocks are translated once: what they need is kept. */
	qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
					 QEMU_PLUGIN_MEM_RW, access);
}

/* The lock is held. */
static struct run *new_run(unsigned int function, struct qemu_plugin_insn *first)
{
	struct run **chunk = &runs[nr_runs / RUNS_PER_CHUNK];
	struct run *run;

	if (nr_runs == (size_t)RUNS_PER_CHUNK * MOST_CHUNKS)
		die("too much code");
	if (!*chunk)
		*chunk = zeroed(RUNS_PER_CHUNK, sizeof(**chunk));
	run = &(*chunk)[nr_runs % RUNS_PER_CHUNK];
	run->function = function;
	run->start = qemu_plugin_insn_vaddr(first);
	qemu_plugin_register_vcpu_insn_exec_cb(first, on_run, QEMU_PLUGIN_CB_NO_REGS,
					       (void *)(uintptr_t)nr_runs);
	nr_runs++;
	return run;
}

/*
 * An instruction that begins in one page and ends in the next one ends its
 * block, and is translated again as the first of another. QEMU tells of it all
 * the same, with those of its bytes that it had read by then, but never runs
 * its callbacks. So the last instruction of a block that ends near the end of a
 * page is a run of its own.
 */
static bool may_be_cut(struct qemu_plugin_insn *insn)
{
	uint64_t end = qemu_plugin_insn_vaddr(insn) + isa->most_bytes;

	return (qemu_plugin_insn_vaddr(insn) ^ end) & ~PAGE_MASK;
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb);
	struct run *run = NULL;

	(void)id;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		unsigned int function = function_at(qemu_plugin_insn_vaddr(insn));

		if (function == nr_functions) {
			run = NULL;
			watch_mark(insn);
			continue;
		}
		if (!run || run->function != function || (i + 1 == nr && may_be_cut(insn)))
			run = new_run(function, insn);
		add_instruction(run, insn);
	}
	pthread_mutex_unlock(&lock);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
					   int argc, char **argv)
{
	if (!strcmp(info->target_name, isa_arm64.target))
		isa = &isa_arm64;
	for (int i = 0; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (value)
			*value++ = '\0';
		if (value && !strcmp(argv[i], "functions"))
			functions_read(value);
		else if (value && !strcmp(argv[i], "out"))
			out = fopen(value, "w");
		else if (value && !strcmp(argv[i], "runs"))
			is_listing = !strcmp(value, "on");
		else if (value && !strcmp(argv[i], "memory"))
			lines_begin_at(strtoul(value, NULL, 0));
		else if (value && !strcmp(argv[i], "inclusive"))
			is_following = !strcmp(value, "on");
		else
			die("%s: not understood", argv[i]);
	}
	if (!functions || !out)
		die("needs functions=FILE and out=FILE");
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
