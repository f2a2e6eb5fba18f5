// SPDX-License-Identifier: GPL-2.0-only
/*
 * memremap: what memremap_pages() and memunmap_pages() cost.
 *
 *   insmod memremap.ko type=PRIVATE size=64G order=0 rounds=5
 *
 * finds a free range of physical addresses, maps and unmaps it that often and
 * prints each round's times to the kernel log. With chunk=256M it is as many
 * ranges as that takes, each with a call of its own; with list=1 all pages are
 * linked after each call, within the clock, as the test_hmm module does it, and
 * the list is taken apart again after the last. With rounds=0 nothing happens
 * at load, and debugfs drives it, folder ream-memremap:
 *
 *   bind        write 1 to map, 0 to unmap; read what holds now
 *   request_ns  request_free_mem_region(), at the last map
 *   map_ns      memremap_pages(), at the last map
 *   unmap_ns    memunmap_pages(), at the last unmap
 *
 * There is no memory behind the range, and nothing here touches it: only its
 * memory map is real.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/align.h>
#include <linux/debugfs.h>
#include <linux/ioport.h>
#include <linux/ktime.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/numa.h>
#include <linux/topology.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>

/* A memory map has no larger compound pages than page tables have leaves. */
#define MOST_ORDER (PUD_SHIFT - PAGE_SHIFT)

static char *type = "PRIVATE";
module_param(type, charp, 0444);
MODULE_PARM_DESC(type, "PRIVATE, COHERENT, FS_DAX, GENERIC or PCI_P2PDMA");

static int set_size(const char *text, const struct kernel_param *param)
{
	char *end;
	unsigned long value = memparse(text, &end);

	if (end == text || (*end && *end != '\n'))
		return -EINVAL;
	*(unsigned long *)param->arg = value;
	return 0;
}

static const struct kernel_param_ops size_ops = {
	.set = set_size,
	.get = param_get_ulong,
};

static unsigned long size = SZ_1G;
module_param_cb(size, &size_ops, &size, 0444);
MODULE_PARM_DESC(size, "bytes to map; K, M, G and T are understood");

static unsigned int order;
module_param(order, uint, 0444);
MODULE_PARM_DESC(order, "pages of a compound page, as a power of two");

static unsigned int rounds = 1;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "times to map and unmap at load; 0: only by debugfs");

static unsigned long chunk;
module_param_cb(chunk, &size_ops, &chunk, 0444);
MODULE_PARM_DESC(chunk, "bytes of each call; 0: all in one");

static bool own_node = true;
module_param(own_node, bool, 0444);
MODULE_PARM_DESC(own_node, "give memremap_pages() the caller's node, not NUMA_NO_NODE");

static bool list;
module_param(list, bool, 0444);
MODULE_PARM_DESC(list, "link all pages after each call");

static const char * const types[] = {
	[MEMORY_DEVICE_PRIVATE] = "PRIVATE",
	[MEMORY_DEVICE_COHERENT] = "COHERENT",
	[MEMORY_DEVICE_FS_DAX] = "FS_DAX",
	[MEMORY_DEVICE_GENERIC] = "GENERIC",
	[MEMORY_DEVICE_PCI_P2PDMA] = "PCI_P2PDMA",
};

/* One mapping at a time; the lock holds all of it together. */
static DEFINE_MUTEX(device_lock);
static struct {
	enum memory_type type;
	struct mapping {
		struct resource *region;
		struct dev_pagemap pgmap;
	} *mappings;		/* one for each call */
	unsigned int nr_calls;
	unsigned int nr_mapped;
	struct page *free_pages;	/* the list's newest */
	u64 request_ns;
	u64 map_ns;
	u64 unmap_ns;
} device;

/* No page of ours is ever handed out, so none comes back. */
#ifdef HAVE_FOLIO_FREE
static void folio_free(struct folio *folio)
#else
static void page_free(struct page *page)
#endif
{
	WARN_ON_ONCE(1);
}

static vm_fault_t migrate_to_ram(struct vm_fault *fault)
{
	return VM_FAULT_SIGBUS;
}

static const struct dev_pagemap_ops pagemap_ops = {
#ifdef HAVE_FOLIO_FREE
	.folio_free = folio_free,
#else
	.page_free = page_free,
#endif
	.migrate_to_ram = migrate_to_ram,
};

static unsigned long compound_bytes(void)
{
	return PAGE_SIZE << order;
}

/* The enumeration starts at 1: not match_string(), which ends at a gap. */
static enum memory_type type_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i] && !strcmp(name, types[i]))
			return i;
	return 0;
}

/* What memremap_pages() would answer with a splat. */
static int check_parameters(void)
{
	enum memory_type number = type_named(type);
	unsigned long align;

	if (!number) {
		pr_err("type=%s: not a type; PRIVATE, COHERENT, FS_DAX, GENERIC or PCI_P2PDMA is\n",
		       type);
		return -EINVAL;
	}
	if ((number == MEMORY_DEVICE_PRIVATE &&
	     !IS_ENABLED(CONFIG_DEVICE_PRIVATE)) ||
	    (number == MEMORY_DEVICE_FS_DAX &&
	     IS_ENABLED(CONFIG_FS_DAX_LIMITED))) {
		pr_err("type=%s: this kernel is built without it\n", type);
		return -EOPNOTSUPP;
	}
	if (order > MOST_ORDER) {
		pr_err("order=%u: at most %u\n", order, MOST_ORDER);
		return -EINVAL;
	}
	align = max(compound_bytes(), SUBSECTION_SIZE);
	chunk = chunk ?: size;
	if (!size || !IS_ALIGNED(size, chunk) || !IS_ALIGNED(chunk, align)) {
		pr_err("size=%lu chunk=%lu: not multiples of %lu bytes, which order=%u needs, or not of each other\n",
		       size, chunk, align, order);
		return -EINVAL;
	}
	if (list && order) {
		pr_err("list=1: only base pages are linked, and order=%u has none\n", order);
		return -EINVAL;
	}
	device.type = number;
	device.nr_calls = size / chunk;
	device.mappings = kvcalloc(device.nr_calls, sizeof(*device.mappings),
				   GFP_KERNEL);
	return device.mappings ? 0 : -ENOMEM;
}

/*
 * Every type takes a range of addresses where nothing is: a real device would
 * bring its own, but the memory map and the kernel's mapping of a range are
 * made without looking at what answers there.
 */
static int request_region_aligned(struct mapping *mapping, struct range *range)
{
	/* A free region comes aligned to a section, which may be too little. */
	unsigned long align = compound_bytes();
	unsigned long slack = align > PFN_PHYS(PAGES_PER_SECTION) ? align : 0;
	struct resource *region;
	u64 start_ns;

	if (chunk + slack < chunk)
		return -ERANGE;
	start_ns = ktime_get_ns();
	region = request_free_mem_region(&iomem_resource, chunk + slack,
					 KBUILD_MODNAME);
	device.request_ns += ktime_get_ns() - start_ns;
	if (IS_ERR(region))
		return PTR_ERR(region);
	mapping->region = region;
	range->start = ALIGN(region->start, align);
	range->end = range->start + chunk - 1;
	return 0;
}

static void release_region_aligned(struct mapping *mapping)
{
	release_mem_region(mapping->region->start,
			   resource_size(mapping->region));
}

static void link_pages(const struct range *range)
{
	unsigned long pfn;

	for (pfn = PHYS_PFN(range->start); pfn <= PHYS_PFN(range->end); pfn++) {
		struct page *page = pfn_to_page(pfn);

		page->zone_device_data = device.free_pages;
		device.free_pages = page;
	}
}

/* The map is then as memremap_pages() left it. */
static void unlink_pages(void)
{
	while (device.free_pages) {
		struct page *page = device.free_pages;

		device.free_pages = page->zone_device_data;
		page->zone_device_data = NULL;
	}
}

static int map_chunk(struct mapping *mapping)
{
	struct range range;
	u64 start_ns;
	void *address;
	int error;

	error = request_region_aligned(mapping, &range);
	if (error) {
		pr_err("%lu bytes: no such free range of physical addresses: error %d\n",
		       chunk, error);
		return error;
	}
	memset(&mapping->pgmap, 0, sizeof(mapping->pgmap));
	mapping->pgmap.type = device.type;
	mapping->pgmap.vmemmap_shift = order;
	mapping->pgmap.ops = &pagemap_ops;
	mapping->pgmap.owner = &device;
	mapping->pgmap.nr_range = 1;
	mapping->pgmap.range = range;

	start_ns = ktime_get_ns();
	address = memremap_pages(&mapping->pgmap,
				 own_node ? numa_node_id() : NUMA_NO_NODE);
	if (list && !IS_ERR(address))
		link_pages(&range);
	device.map_ns += ktime_get_ns() - start_ns;
	if (IS_ERR(address)) {
		error = PTR_ERR(address);
		pr_err("memremap_pages() of %s at %#llx, %lu bytes, order %u: error %d\n",
		       type, range.start, chunk, order, error);
		release_region_aligned(mapping);
		return error;
	}
	return 0;
}

static void unmap_device(void)
{
	u64 start_ns = ktime_get_ns();

	for (unsigned int i = 0; i < device.nr_mapped; i++)
		memunmap_pages(&device.mappings[i].pgmap);
	device.unmap_ns = ktime_get_ns() - start_ns;
	while (device.nr_mapped)
		release_region_aligned(&device.mappings[--device.nr_mapped]);
}

static int map_device(void)
{
	int error = 0;

	device.request_ns = 0;
	device.map_ns = 0;
	while (!error && device.nr_mapped < device.nr_calls) {
		error = map_chunk(&device.mappings[device.nr_mapped]);
		if (!error)
			device.nr_mapped++;
	}
	unlink_pages();
	if (error)
		unmap_device();
	return error;
}

static int bind_read(void *unused, u64 *bound)
{
	mutex_lock(&device_lock);
	*bound = !!device.nr_mapped;
	mutex_unlock(&device_lock);
	return 0;
}

static int bind_write(void *unused, u64 bound)
{
	int error = 0;

	if (bound > 1)
		return -EINVAL;
	mutex_lock(&device_lock);
	if (bound == !!device.nr_mapped)
		error = -EALREADY;
	else if (bound)
		error = map_device();
	else
		unmap_device();
	mutex_unlock(&device_lock);
	return error;
}
DEFINE_DEBUGFS_ATTRIBUTE(bind_fops, bind_read, bind_write, "%llu\n");

static struct dentry *folder;

static int __init memremap_init(void)
{
	int error = check_parameters();

	if (error)
		return error;
	for (unsigned int round = 0; round < rounds; round++) {
		error = map_device();
		if (error) {
			kvfree(device.mappings);
			return error;
		}
		unmap_device();
		pr_info("type=%s size=%lu order=%u round=%u request_ns=%llu map_ns=%llu unmap_ns=%llu\n",
			type, size, order, round, device.request_ns,
			device.map_ns, device.unmap_ns);
	}
	folder = debugfs_create_dir("ream-memremap", NULL);
	debugfs_create_file_unsafe("bind", 0600, folder, NULL, &bind_fops);
	debugfs_create_u64("request_ns", 0400, folder, &device.request_ns);
	debugfs_create_u64("map_ns", 0400, folder, &device.map_ns);
	debugfs_create_u64("unmap_ns", 0400, folder, &device.unmap_ns);
	return 0;
}
module_init(memremap_init);

static void __exit memremap_exit(void)
{
	debugfs_remove(folder);
	unmap_device();
	kvfree(device.mappings);
}
module_exit(memremap_exit);

MODULE_DESCRIPTION("Time memremap_pages() and memunmap_pages()");
MODULE_LICENSE("GPL");
