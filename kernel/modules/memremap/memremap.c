// SPDX-License-Identifier: GPL-2.0-only
/*
 * memremap: what memremap_pages() and memunmap_pages() cost.
 *
 *   insmod memremap.ko type=PRIVATE size=64G order=0 rounds=5
 *
 * finds a free range of physical addresses, maps and unmaps it that often and
 * prints each round's times to the kernel log. With rounds=0 nothing happens
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
#include <linux/sizes.h>
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
	struct resource *region;	/* NULL = not mapped */
	struct dev_pagemap pgmap;
	u64 request_ns;
	u64 map_ns;
	u64 unmap_ns;
} device;

/* No page of ours is ever handed out, so none comes back. */
static void page_free(struct page *page)
{
	WARN_ON_ONCE(1);
}

static vm_fault_t migrate_to_ram(struct vm_fault *fault)
{
	return VM_FAULT_SIGBUS;
}

static const struct dev_pagemap_ops pagemap_ops = {
	.page_free = page_free,
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
	if (!size || !IS_ALIGNED(size, align)) {
		pr_err("size=%lu: not a multiple of %lu bytes, which order=%u needs\n",
		       size, align, order);
		return -EINVAL;
	}
	device.pgmap.type = number;
	return 0;
}

/*
 * Every type takes a range of addresses where nothing is: a real device would
 * bring its own, but the memory map and the kernel's mapping of a range are
 * made without looking at what answers there.
 */
static int request_region_aligned(struct range *range)
{
	/* A free region comes aligned to a section, which may be too little. */
	unsigned long align = compound_bytes();
	unsigned long slack = align > PFN_PHYS(PAGES_PER_SECTION) ? align : 0;
	struct resource *region;
	u64 start_ns;

	if (size + slack < size)
		return -ERANGE;
	start_ns = ktime_get_ns();
	region = request_free_mem_region(&iomem_resource, size + slack,
					 KBUILD_MODNAME);
	device.request_ns = ktime_get_ns() - start_ns;
	if (IS_ERR(region))
		return PTR_ERR(region);
	device.region = region;
	range->start = ALIGN(region->start, align);
	range->end = range->start + size - 1;
	return 0;
}

static void release_region_aligned(void)
{
	release_mem_region(device.region->start, resource_size(device.region));
	device.region = NULL;
}

static int map_device(void)
{
	enum memory_type number = device.pgmap.type;
	struct range range;
	u64 start_ns;
	void *address;
	int error;

	error = request_region_aligned(&range);
	if (error) {
		pr_err("size=%lu: no such free range of physical addresses: error %d\n",
		       size, error);
		return error;
	}
	memset(&device.pgmap, 0, sizeof(device.pgmap));
	device.pgmap.type = number;
	device.pgmap.vmemmap_shift = order;
	device.pgmap.ops = &pagemap_ops;
	device.pgmap.owner = &device;
	device.pgmap.nr_range = 1;
	device.pgmap.range = range;

	start_ns = ktime_get_ns();
	address = memremap_pages(&device.pgmap, NUMA_NO_NODE);
	device.map_ns = ktime_get_ns() - start_ns;
	if (IS_ERR(address)) {
		error = PTR_ERR(address);
		pr_err("memremap_pages() of %s at %#llx, %lu bytes, order %u: error %d\n",
		       type, range.start, size, order, error);
		release_region_aligned();
		return error;
	}
	return 0;
}

static void unmap_device(void)
{
	u64 start_ns = ktime_get_ns();

	memunmap_pages(&device.pgmap);
	device.unmap_ns = ktime_get_ns() - start_ns;
	release_region_aligned();
}

static int bind_read(void *unused, u64 *bound)
{
	mutex_lock(&device_lock);
	*bound = !!device.region;
	mutex_unlock(&device_lock);
	return 0;
}

static int bind_write(void *unused, u64 bound)
{
	int error = 0;

	if (bound > 1)
		return -EINVAL;
	mutex_lock(&device_lock);
	if (bound == !!device.region)
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
		if (error)
			return error;
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
	if (device.region)
		unmap_device();
}
module_exit(memremap_exit);

MODULE_DESCRIPTION("Time memremap_pages() and memunmap_pages()");
MODULE_LICENSE("GPL");
