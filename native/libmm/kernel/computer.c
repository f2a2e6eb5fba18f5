// SPDX-License-Identifier: GPL-2.0-only
/*
 * Boot the computer. Nodes of memory and CPUs are declared here. The rest is the
 * kernel's own code, called in the order of start_kernel().
 */
#include <linux/bug.h>
#include <linux/cma.h>
#include <linux/cpu.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/init.h>
#include <linux/ioport.h>
#include <linux/jump_label.h>
#include <linux/maple_tree.h>
#include <linux/memblock.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/node.h>
#include <linux/padata.h>
#include <linux/pagemap.h>
#include <linux/percpu.h>
#include <linux/radix-tree.h>
#include <linux/rmap.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/start_kernel.h>
#include <linux/sysctl.h>
#include <linux/user_namespace.h>
#include <linux/vmalloc.h>
#include <linux/vmstat.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>
#include <asm/mmu_context.h>
#include "internal.h"
#include "slab.h"
#if __has_include("mm_init.h")	/* since 7.3 */
#include "mm_init.h"
#endif
#include "hosted.h"
#include "devices.h"
#include "groups.h"
#include "patched.h"
#include "steps.h"
#include "traps.h"

#define DYNAMIC_BYTES (2UL << 20)	/* part of each per-CPU area for alloc_percpu() */
#define MOST_USERS_OBJECTS 100000	/* limit of each ucount of a user */

struct computer computer = {
	.nr_cpus = 2,
	.nr_nodes = 2,
	.node_frames = { 512UL << (20 - PAGE_SHIFT), 256UL << (20 - PAGE_SHIFT) },
};

/* At the page-aligned beginning of CPU 0's area: see libmm.lds. */
static const char first_per_cpu[0] __used __aligned(PAGE_SIZE) __section(".data..percpu..first");

static struct pglist_data nodes[MOST_NODES];

enum system_states system_state;
unsigned long physmem_end;
NEWER_NAME(direct_map_physmem_end, physmem_end);
unsigned long max_pfn_mapped;

/* --- declarations: they are read before boot, and do nothing when the program runs --- */

#define MOST_NODE_FRAMES (LIBMM_MOST_RAM_BYTES >> PAGE_SHIFT)
#define LEAST_NODE_FRAMES ((32UL << 20) >> PAGE_SHIFT)

long step_memory(long node0, long node1, long node2, long node3)
{
	const long frames[MOST_NODES] = { node0, node1, node2, node3 };
	unsigned int node;

	if (system_state == SYSTEM_RUNNING)
		return 0;
	computer.nr_nodes = 0;
	for (node = 0; node < MOST_NODES && frames[node]; node++) {
		if (frames[node] < 0 || frames[node] > MOST_NODE_FRAMES / MOST_NODES ||
		    frames[node] % LEAST_NODE_FRAMES)
			refuse("memory", "a node has whole 32 MiB, and at most 16 GiB");
		computer.node_frames[computer.nr_nodes++] = frames[node];
	}
	if (!computer.nr_nodes)
		refuse("memory", "no node has any");
	return 0;
}

long step_cpus(long nr)
{
	if (system_state == SYSTEM_RUNNING)
		return 0;
	if (nr < 1 || nr > MOST_CPUS)
		refuse("cpus", "there are 1 to 4 of them");
	computer.nr_cpus = nr;
	return 0;
}

/* ZONE_DMA32, which is for devices with 32-bit addresses, has the first frames. */
long step_dma32(long nr)
{
	if (system_state == SYSTEM_RUNNING)
		return 0;
	if (nr < 0 || nr % PAGES_PER_SECTION)
		refuse("dma32", "it has whole 128 MiB");
	computer.nr_dma32 = nr;
	return 0;
}

#define MOST_PARAMETERS 8
#define MOST_PARAMETER_BYTES 64

/* Boot parameters, as a boot loader would pass them. */
static char parameters[MOST_PARAMETERS][MOST_PARAMETER_BYTES] __initdata = {
#ifdef CONFIG_SLUB_DEBUG	/* only in builds with the kernel's own assertions */
	"slab_debug=FZP", "page_poison=1",
#endif
};

static unsigned int nr_parameters __initdata = IS_ENABLED(CONFIG_SLUB_DEBUG) ? 2 : 0;

/* The value of a parameter, or NULL if it is another parameter than @known. */
static char __init *value_of_parameter(char *parameter, const struct obs_kernel_param *known)
{
	size_t bytes = strlen(known->str);

	if (strncmp(parameter, known->str, bytes))
		return NULL;
	/* early_param() functions get the text after "=", __setup() ones all after the name. */
	if (!known->early)
		return parameter + bytes;
	return parameter[bytes] == '=' ? parameter + bytes + 1 : NULL;
}

/* Set a parameter of core_param(), which has the level -1. */
static bool __init set_core_parameter(const char *parameter, bool is_early)
{
	const struct kernel_param *known;

	for (known = __start___param; known < __stop___param; known++) {
		size_t bytes = strlen(known->name);

		if (known->level != -1 || strncmp(parameter, known->name, bytes) ||
		    parameter[bytes] != '=')
			continue;
		return is_early || !known->ops->set(parameter + bytes + 1, known);
	}
	return false;
}

static bool __init set_parameter(char *parameter, bool is_early)
{
	const struct obs_kernel_param *known;
	bool is_known = set_core_parameter(parameter, is_early);
	char *value;

	for (known = __setup_start; known < __setup_end; known++) {
		value = value_of_parameter(parameter, known);
		if (!value)
			continue;
		is_known = true;
		if (known->early == is_early)
			known->setup_func(value);
	}
	return is_known;
}

static void __init set_parameters(bool is_early)
{
	unsigned int i;

	for (i = 0; i < nr_parameters; i++)
		if (!set_parameter(parameters[i], is_early))
			refuse(parameters[i], "the kernel has no such parameter");
}

long step_boot(long name, long value)
{
	if (system_state == SYSTEM_RUNNING)
		return 0;
	if (nr_parameters == MOST_PARAMETERS)
		refuse("boot", "there are at most 6 parameters");
	if (!text_of_word(name) || !text_of_word(value))
		refuse("boot", "a name and a value are words");
	snprintf(parameters[nr_parameters++], MOST_PARAMETER_BYTES, "%.*s=%.*s",
		 (int)strcspn(text_of_word(name), "\n "), text_of_word(name),
		 (int)strcspn(text_of_word(value), "\n "), text_of_word(value));
	return 0;
}

/* --- CPUs -------------------------------------------------------------- */

static void declare_cpus(void)
{
	unsigned int cpu;

	nr_cpu_ids = computer.nr_cpus;
	for (cpu = 0; cpu < computer.nr_cpus; cpu++) {
		cpumask_set_cpu(cpu, &__cpu_possible_mask);
		cpumask_set_cpu(cpu, &__cpu_present_mask);
		cpumask_set_cpu(cpu, &__cpu_online_mask);
		cpumask_set_cpu(cpu, &__cpu_active_mask);
		cpumask_set_cpu(cpu, node_to_cpumask_map[0]);
	}
	atomic_set(&__num_online_cpus, computer.nr_cpus);
#ifdef HAVE_NUM_POSSIBLE_CPUS
	__num_possible_cpus = computer.nr_cpus;
#endif
}

/* The per-CPU areas are contiguous. The first one is the linker's section. */
static void __init place_per_cpu_areas(void)
{
	size_t held = __per_cpu_end - __per_cpu_start;
	size_t unit = PAGE_ALIGN(held + DYNAMIC_BYTES);
	struct pcpu_alloc_info *info = pcpu_alloc_alloc_info(1, computer.nr_cpus);
	unsigned int cpu;

	info->static_size = held;
	info->reserved_size = 0;
	info->dyn_size = unit - held;
	info->unit_size = unit;
	info->atom_size = PAGE_SIZE;
	info->alloc_size = unit * computer.nr_cpus;
	info->groups[0].nr_units = computer.nr_cpus;
	info->groups[0].base_offset = 0;
	for (cpu = 0; cpu < computer.nr_cpus; cpu++) {
		info->groups[0].cpu_map[cpu] = cpu;
		__per_cpu_offset[cpu] = cpu * unit;
	}
	/* CPU 0 has changed its area by now. Copy it, since its values suit all CPUs. */
	for (cpu = 1; cpu < computer.nr_cpus; cpu++) {
		memcpy(__per_cpu_start + cpu * unit, __per_cpu_start, held);
		host_set_per_cpu(cpu * unit);
		host_enter_cpu(cpu, cpu * unit, &init_task);
	}
	host_set_per_cpu(0);
	pcpu_setup_first_chunk(info, __per_cpu_start);
}

/* --- memory ------------------------------------------------------------ */

#define CMA_BYTES (16UL << 20)

static void __init declare_memory(void)
{
	static struct resource resources[MOST_NODES];
	unsigned long pfn = LIBMM_FIRST_PFN;
	struct cma *area;
	unsigned int node;

	for (node = 0; node < computer.nr_nodes; node++) {
		computer.nr_frames += computer.node_frames[node];
		memblock_add_node(PFN_PHYS(pfn), PFN_PHYS(computer.node_frames[node]), node, 0);
		node_set(node, node_possible_map);
		node_set_online(node);
		node_data[node] = &nodes[node];
		resources[node] = (struct resource){
			.name = "System RAM", .start = PFN_PHYS(pfn),
			.end = PFN_PHYS(pfn + computer.node_frames[node]) - 1,
			.flags = IORESOURCE_SYSTEM_RAM | IORESOURCE_BUSY,
		};
		insert_resource(&iomem_resource, &resources[node]);
		pfn += computer.node_frames[node];
	}
	node_set_state(0, N_CPU);
	host_set_ram(computer.nr_frames);
	if (wants_huge_map())
		host_make_map_huge();
	max_pfn = pfn;
	max_low_pfn = pfn;
	max_pfn_mapped = pfn;
	physmem_end = PFN_PHYS(ALIGN(pfn, PAGES_PER_SECTION) + PAGES_PER_SECTION) - 1;
	high_memory = __va(PFN_PHYS(pfn) - 1) + 1;
	memblock_set_current_limit(PFN_PHYS(pfn));
	if (cma_declare_contiguous(0, CMA_BYTES, 0, 0, 0, false, "cma", &area))
		give_up("there is no place for the memory of CMA");
}

static unsigned long __init end_of_dma32(void)
{
	return computer.nr_dma32 ? min(LIBMM_FIRST_PFN + computer.nr_dma32, max_pfn) : 0;
}

#ifdef HAVE_MM_CORE_INIT_EARLY
void __init arch_zone_limits_init(unsigned long *most)
{
	HOST_STUB("duplicated");
	most[ZONE_DMA32] = end_of_dma32();
	most[ZONE_NORMAL] = max_pfn;
}

static void __init describe_memory(void)
{
	mm_core_init_early();
}
#else
void __init mem_init(void)
{
	HOST_STUB("duplicated");
	memblock_free_all();
}

static void __init describe_memory(void)
{
	unsigned long most[MAX_NR_ZONES] = {
		[ZONE_DMA32] = end_of_dma32(), [ZONE_NORMAL] = max_pfn,
	};

	sparse_init();
	free_area_init(most);
}
#endif

/* host_set_ram() has mapped the memmap. Allocate a page all the same, as the kernel would. */
int __meminit vmemmap_populate(unsigned long start, unsigned long end, int node,
			       struct vmem_altmap *altmap)
{
	HOST_STUB("custom");
	if (slab_is_available()) {
		struct page *page = alloc_pages_node_noprof(node, GFP_KERNEL, 0);

		if (!page)
			return -ENOMEM;
		__free_page(page);
	}
	memset((void *)start, 0, end - start);
	return 0;
}

unsigned long memory_block_size_bytes(void)
{
	HOST_STUB("custom");
	return 1UL << SECTION_SIZE_BITS;
}

static void __init init_zero_page(void)
{
	struct page *zero = virt_to_page(empty_zero_page);

	init_page_count(zero);
	atomic_set(&zero->_mapcount, -1);
	__SetPageReserved(zero);
}

/* --- boot -------------------------------------------------------------- */

extern bool ksm_use_zero_pages;	/* mm/ksm.c; a setting in sysfs */

static void __init run_initcalls(void)
{
	initcall_entry_t *entry;

	for (entry = __initcall_start; entry < __initcall_end; entry++) {
		initcall_t call = initcall_from_entry(entry);
		int error = call();

		if (error < 0)
			report("{\"kernel\": \"initcall %pS: %d\", \"line\": 0}", call, error);
	}
}

static void __init let_users_have_all(void)
{
	int i;

	for (i = 0; i < UCOUNT_COUNTS; i++)
		init_user_ns.ucount_max[i] = MOST_USERS_OBJECTS;
	for (i = 0; i < UCOUNT_RLIMIT_COUNTS; i++)
		init_user_ns.rlimit_max[i] = LONG_MAX;
}

/* SLUB uses get_cycles() to choose randomly whether to try other nodes. Always try them. */
static void __init forget_cycles(void)
{
	struct kmem_cache *cache;

	list_for_each_entry(cache, &slab_caches, list)
		cache->remote_node_defrag_ratio = 1024;
}

/* The parts of start_kernel() in init/main.c that concern memory. */
void __init boot_computer(void)
{
	runtime_const_fixup(__runtime_fixup_ptr, TASK_SIZE_MAX, __start_runtime_ptr_USER_PTR_MAX,
			    __stop_runtime_ptr_USER_PTR_MAX);
	/* Physical addresses equal virtual ones, and the memmap begins with frame 0. */
	host_place_contents(0, NULL);
	host_place_map(0, (void *)LIBMM_MAP_ADDRESS);
	jump_label_init();
	set_cpu_cap(&boot_cpu_data, X86_FEATURE_GBPAGES);	/* for a pool of such pages */
	set_parameters(true);
	declare_memory();
	describe_memory();
	place_per_cpu_areas();
	set_parameters(false);
	vfs_caches_init_early();
	mm_core_init();
	wait_bit_init();
	radix_tree_init();
	maple_tree_init();
	kmem_cache_init_late();
	start_workers();
#ifdef CONFIG_KVFREE_RCU_BATCHED
	kvfree_rcu_init();
#endif
	setup_per_cpu_pageset();
	numa_policy_init();
	anon_vma_init();
	proc_caches_init();
	cred_init();
	let_users_have_all();
	vfs_caches_init();
#ifdef HAVE_INIT_USERSPACE_FS
	init_userspace_fs();
#endif
#ifdef HAVE_MEM_CGROUP_INIT
	mem_cgroup_init();
#endif
	start_groups();
	pagecache_init();
	system_state = SYSTEM_SCHEDULING;
	/* As in kernel_init_freeable(), allocations may sleep from here on. */
	gfp_allowed_mask = __GFP_BITS_MASK;
	padata_init();
	init_mm_internals();
	page_alloc_init_late();
	system_state = SYSTEM_RUNNING;
	init_zero_page();
	start_nodes();
	seq_file_init();
	sysctl_init_bases();
	say_distances();
	run_initcalls();
	start_disk();
	ksm_use_zero_pages = true;
	forget_cycles();
	/* Otherwise the first task that exits would free the policy of all tasks. */
	numa_default_policy();
	settle();
}

/* --- entry points for the program around the kernel -------------------- */

static void run(const struct libmm_task *task)
{
	u64 began_ns = host_now_ns();

	read_declarations(task->program);
	start_scheduler();
	declare_cpus();
	boot_computer();
	report("{\"booted\": true, \"boot_ns\": %llu, \"frames\": %lu}",
	       host_now_ns() - began_ns, computer.nr_frames);
	run_program(task);
	host_exit(nr_alarms ? LIBMM_ALARM : LIBMM_OK);
}

static const struct libmm_kernel entries = {
	.run = run,
	.resolve_fault = resolve_fault,
	.find_fixup = find_fixup,
};

static const unsigned int *describe(const struct host_machine *machine)
{
	host_enter_cpu(0, 0, &init_task);
	return patch_kernel(host_boot_machine(machine));
}

static struct host_kernel kernel = {
	.boot = describe,
	.ops = &entries,
	.stubs = host_stubs,
	.bugs = HOST_BUGS,
	HOST_KERNEL_OF_MACHINE
};

static struct host_kernel *const entry __used __section("ream_kernels") = &kernel;
