// SPDX-License-Identifier: GPL-2.0-only
/*
 * Control files of mm in sysctl, sysfs, /proc and cgroups. There is no file
 * system for them. Functions that would create a file record it here, and steps
 * call the kernel's own functions that write and show it.
 */
#include <linux/cgroup.h>
#include <linux/kernfs.h>
#include <linux/kobject.h>
#include <linux/memcontrol.h>
#include <linux/moduleparam.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/sysctl.h>
#include <linux/sysfs.h>
#include <linux/vmstat.h>
#include "groups.h"
#include "hosted.h"
#include "steps.h"
#include "trees.h"

#define MOST_PATH 160
#define GROUPS_FOLDER "/sys/fs/cgroup/"
#define PARAMETERS_FOLDER "/sys/module/"

/**
 * struct control - files that one call has created
 * @kobj: Their kobject in sysfs. NULL for files of sysctl and /proc.
 * @group: Attribute group of @kobj.
 * @attribute: Single attribute of @kobj.
 * @folder: Directory of the sysctl files.
 * @table: The sysctl files.
 * @nr: Number of entries in @table.
 * @name: Name of a file in /proc, which has exactly one of the following.
 * @list: Its seq_operations.
 * @show: Its show function.
 * @operations: Its proc_ops.
 */
static struct control {
	struct kobject *kobj;
	const struct attribute_group *group;
	const struct attribute *attribute;
	const char *folder;
	const struct ctl_table *table;
	size_t nr;
	const char *name;
	const struct seq_operations *list;
	int (*show)(struct seq_file *file, void *unused);
	const struct proc_ops *operations;
} controls[512];
static unsigned int nr_controls;

static void note(struct control control)
{
	if (nr_controls == ARRAY_SIZE(controls))
		give_up("more than %zu folders of files", ARRAY_SIZE(controls));
	controls[nr_controls++] = control;
}

/* --- functions that create files --------------------------------------- */

void __init __register_sysctl_init(const char *path, sysctl_t *table, const char *name,
				   size_t nr)
{
	HOST_STUB("custom");
	note((struct control){ .folder = path, .table = table, .nr = nr });
}

int sysfs_create_group(struct kobject *kobj, const struct attribute_group *group)
{
	HOST_STUB("custom");
	note((struct control){ .kobj = kobj, .group = group });
	return 0;
}

int sysfs_merge_group(struct kobject *kobj, const struct attribute_group *group)
{
	HOST_STUB("custom");
	return sysfs_create_group(kobj, group);
}

int sysfs_create_file_ns(struct kobject *kobj, const struct attribute *attribute,
			 const namespace_t *space)
{
	HOST_STUB("custom");
	note((struct control){ .kobj = kobj, .attribute = attribute });
	return 0;
}

void sysfs_remove_group(struct kobject *kobj, const struct attribute_group *group)
{
	unsigned int i;

	HOST_STUB("custom");
	for (i = 0; i < nr_controls; i++)
		if (controls[i].kobj == kobj)
			controls[i--] = controls[--nr_controls];
}

void sysfs_remove_dir(struct kobject *kobj)
{
	HOST_STUB("custom");
	sysfs_remove_group(kobj, NULL);
}

struct proc_dir_entry *proc_create_seq_private(const char *name, umode_t mode,
					       struct proc_dir_entry *parent,
					       const struct seq_operations *list,
					       unsigned int bytes, void *data)
{
	HOST_STUB("custom");
	note((struct control){ .name = name, .list = list });
	return NULL;
}

struct proc_dir_entry *proc_create_single_data(const char *name, umode_t mode,
					       struct proc_dir_entry *parent,
					       int (*show)(struct seq_file *, void *), void *data)
{
	HOST_STUB("custom");
	note((struct control){ .name = name, .show = show });
	return NULL;
}

struct proc_dir_entry *proc_create(const char *name, umode_t mode, struct proc_dir_entry *parent,
				   const struct proc_ops *operations)
{
	HOST_STUB("custom");
	note((struct control){ .name = name, .operations = operations });
	return NULL;
}

/* fs/sysfs/file.c */
int sysfs_emit(char *to, const char *format, ...)
{
	va_list arguments;
	int bytes;

	HOST_STUB("duplicated");
	va_start(arguments, format);
	bytes = vscnprintf(to, PAGE_SIZE, format, arguments);
	va_end(arguments);
	return bytes;
}

int sysfs_emit_at(char *to, int at, const char *format, ...)
{
	va_list arguments;
	int bytes;

	HOST_STUB("duplicated");
	va_start(arguments, format);
	bytes = vscnprintf(to + at, PAGE_SIZE - at, format, arguments);
	va_end(arguments);
	return bytes;
}

/* --- showing and writing ----------------------------------------------- */

static char contents[16 * PAGE_SIZE] __aligned(PAGE_SIZE);

/* Copy the word that a step's argument points to. Return: whether it fits. */
static bool copy_word(char *to, size_t bytes, long word)
{
	const char *from = text_of_word(word);
	size_t nr = from ? strcspn(from, "\n ") : bytes;

	if (nr >= bytes)
		return false;
	strscpy(to, from, nr + 1);
	return true;
}

static long show_list(const struct seq_operations *list, void *private)
{
	struct seq_file file = {
		.buf = contents, .size = sizeof(contents), .op = list, .private = private,
	};
	loff_t at = 0;
	long bytes = 0;
	void *one = list->start(&file, &at);

	while (!IS_ERR_OR_NULL(one)) {
		size_t before = file.count;

		if (!list->show(&file, one))
			bytes += file.count - before;
		/* On overflow, discard the text and start again. */
		if (file.count == file.size)
			file.count = 0;
		one = list->next(&file, one, &at);
	}
	contents[min(file.count, sizeof(contents) - 1)] = '\0';
	list->stop(&file, one);
	return bytes;
}

static long show_once(int (*show)(struct seq_file *, void *), void *private)
{
	struct seq_file file = {
		.buf = contents, .size = sizeof(contents), .private = private,
	};

	return show(&file, NULL) ?: file.count;
}

static long open_and_show(const struct proc_ops *operations)
{
	struct file file = { };
	long result = operations->proc_open(NULL, &file);

	if (result)
		return result;
	result = show_list(((struct seq_file *)file.private_data)->op, NULL);
	seq_release(NULL, &file);
	return result;
}

/* Have the kernel read @bytes of @contents, or show the file into @contents. */
static long use_sysctl(const struct ctl_table *table, bool writes, size_t bytes)
{
	size_t nr = writes ? bytes : sizeof(contents) - 1;
	loff_t at = 0;

	return table->proc_handler((void *)table, writes, contents, &nr, &at) ?: nr;
}

static long use_attribute(struct kobject *kobj, const struct attribute *attribute, bool writes,
			  size_t bytes)
{
	const struct sysfs_ops *operations = kobj->ktype->sysfs_ops;
	struct attribute *its = (void *)attribute;

	if (writes)
		return operations->store ? operations->store(kobj, its, contents, bytes) : -EIO;
	return operations->show ? operations->show(kobj, its, contents) : -EIO;
}

/* Read, or set, all bits of a file that has one bit for each frame. */
static long use_bits(struct kobject *kobj, struct bin_attribute *attribute, bool writes)
{
	unsigned long first = LIBMM_FIRST_PFN / BITS_PER_BYTE;
	unsigned long end = first + computer.nr_frames / BITS_PER_BYTE;
	long bytes = 0, done;
	typeof(attribute->read) use = writes ? attribute->write : attribute->read;

	memset(contents, 0xff, PAGE_SIZE);
	while (first < end && use) {
		done = use(NULL, kobj, attribute, contents, first, PAGE_SIZE);
		if (done <= 0)
			return done;
		first += done;
		bytes += done;
	}
	return bytes;
}

/* --- finding a file by its path ---------------------------------------- */

static void path_of(char *to, const struct kobject *kobj)
{
	const char *name = kobject_name(kobj) ?: "";

	if (kobj->parent)
		path_of(to, kobj->parent);
	else
		strscpy(to, strstarts(name, "node") ? "/sys/devices/system/node" : "/sys/kernel",
			MOST_PATH);
	strlcat(to, "/", MOST_PATH);
	strlcat(to, name, MOST_PATH);
}

static const char *name_behind(const char *path, const char *folder)
{
	size_t bytes = strlen(folder);

	return !strncmp(path, folder, bytes) && path[bytes] == '/' ? path + bytes + 1 : NULL;
}

/* Return: -ENOENT if the path is none of these files. */
static long use_sysfs(const struct control *control, const char *path, bool writes, size_t bytes)
{
	struct bin_attribute **bits = control->group ? (void *)control->group->bin_attrs : NULL;
	struct attribute **one = control->group ? control->group->attrs : NULL;
	char folder[MOST_PATH];
	const char *name;

	path_of(folder, control->kobj);
	if (control->group && control->group->name) {
		strlcat(folder, "/", MOST_PATH);
		strlcat(folder, control->group->name, MOST_PATH);
	}
	name = name_behind(path, folder);
	if (!name)
		return -ENOENT;
	if (control->attribute && !strcmp(control->attribute->name, name))
		return use_attribute(control->kobj, control->attribute, writes, bytes);
	for (; one && *one; one++)
		if (!strcmp((*one)->name, name))
			return use_attribute(control->kobj, *one, writes, bytes);
	for (; bits && *bits; bits++)
		if (!strcmp((*bits)->attr.name, name))
			return use_bits(control->kobj, *bits, writes);
	return -ENOENT;
}

static long use_proc(const struct control *control, const char *path, bool writes, size_t bytes)
{
	const char *name = name_behind(path, "/proc");
	size_t i;

	if (control->name && name && !strcmp(name, control->name) && !writes)
		return control->list ? show_list(control->list, NULL) :
		       control->show ? show_once(control->show, NULL) :
		       open_and_show(control->operations);
	name = name_behind(path, "/proc/sys");
	name = name && control->folder ? name_behind(name, control->folder) : NULL;
	for (i = 0; name && i < control->nr; i++)
		if (control->table[i].procname && !strcmp(name, control->table[i].procname))
			return use_sysctl(&control->table[i], writes, bytes);
	return -ENOENT;
}

/* /sys/module/zswap/parameters/enabled is zswap.enabled. */
static long use_parameter(const char *path, bool writes)
{
	const struct kernel_param *one;
	char wanted[MOST_PATH];

	for (one = __start___param; one < __stop___param; one++) {
		const char *name = strchr(one->name, '.');
		long result;

		snprintf(wanted, sizeof(wanted), "%.*s/parameters/%s",
			 name ? (int)(name - one->name) : 0, one->name, name ? name + 1 : "");
		if (strcmp(wanted, path))
			continue;
		kernel_param_lock(NULL);
		result = writes ? one->ops->set(contents, one) : one->ops->get(contents, one);
		kernel_param_unlock(NULL);
		return result;
	}
	return -ENOENT;
}

/* --- files of groups --------------------------------------------------- */

static struct cgroup_subsys_state *group_in_use;
static struct {
	const struct cgroup_subsys *subsystem;
	struct cftype *its;
} types[12];
static unsigned int nr_types;

int cgroup_add_dfl_cftypes(struct cgroup_subsys *subsystem, struct cftype *its)
{
	HOST_STUB("custom");
	if (nr_types == ARRAY_SIZE(types))
		give_up("more than %zu lists of files of groups", ARRAY_SIZE(types));
	types[nr_types].subsystem = subsystem;
	types[nr_types++].its = its;
	return 0;
}

int cgroup_add_legacy_cftypes(struct cgroup_subsys *subsystem, struct cftype *its)
{
	HOST_STUB("custom");
	return its ? cgroup_add_dfl_cftypes(subsystem, its) : 0;
}

struct cgroup_subsys_state *of_css(struct kernfs_open_file *file)
{
	HOST_STUB("custom");
	return group_in_use;
}

struct cgroup_of_peak *of_peak(struct kernfs_open_file *file)
{
	static struct cgroup_of_peak peak;

	HOST_STUB("custom");
	return &peak;
}

static long use_type(struct cftype *type, bool writes, size_t bytes)
{
	struct kernfs_node node = { .priv = type };
	static struct file opened;
	struct kernfs_open_file file = { .kn = &node, .file = &opened };
	u64 number;

	if (!writes && type->seq_show)
		return show_once(type->seq_show, &file);
	if (!writes && type->read_u64)
		return sysfs_emit(contents, "%llu\n", type->read_u64(group_in_use, type));
	if (writes && type->write)
		return type->write(&file, contents, bytes, 0);
	if (writes && type->write_u64)
		return kstrtou64(contents, 0, &number) ?:
		       type->write_u64(group_in_use, type, number);
	return -EIO;
}

static long use_group(const char *path, bool writes, size_t bytes)
{
	const int group = *path - '0';
	bool is_huge = strstarts(path + 1, "/hugetlb.");
	struct cftype *type;
	unsigned int i;

	if (!memory_of_group(group) || !(is_huge || strstarts(path + 1, "/memory.")))
		return -ENOENT;
	group_in_use = is_huge ? huge_pages_of_group(group) : &memory_of_group(group)->css;
	if (!group_in_use)
		return -ENOENT;
	path = strchr(path, '.') + 1;
	for (i = 0; i < nr_types; i++)
		for (type = types[i].its; *type->name; type++)
			if (types[i].subsystem == group_in_use->ss && !strcmp(path, type->name))
				return use_type(type, writes, bytes);
	return -ENOENT;
}

static long use(long word, bool writes, size_t bytes)
{
	char path[MOST_PATH];
	long result;
	unsigned int i;

	if (!copy_word(path, sizeof(path), word))
		return -EINVAL;
	if (strstarts(path, GROUPS_FOLDER))
		return use_group(path + strlen(GROUPS_FOLDER), writes, bytes);
	if (strstarts(path, PARAMETERS_FOLDER))
		return use_parameter(path + strlen(PARAMETERS_FOLDER), writes);
	for (i = 0; i < nr_controls; i++) {
		result = controls[i].kobj ? use_sysfs(&controls[i], path, writes, bytes) :
			 use_proc(&controls[i], path, writes, bytes);
		if (result != -ENOENT)
			return result;
	}
	return -ENOENT;
}

/* --- steps ------------------------------------------------------------- */

static long write_control(long file, long value)
{
	if (!copy_word(contents, PAGE_SIZE, value))
		return -EINVAL;
	strreplace(contents, ',', ' ');
	return use(file, true, strlen(contents));
}

/* Count of a NUMA event, including what CPUs have not folded into the zones yet. */
static unsigned long nr_numa_events(enum numa_stat_item item)
{
	unsigned long nr = 0;
	struct zone *zone;
	int cpu;

	for_each_populated_zone(zone) {
		nr += zone_numa_event_state(zone, item);
		for_each_online_cpu(cpu)
			nr += per_cpu_ptr(zone->per_cpu_zonestats, cpu)->vm_numa_event[item];
	}
	return nr;
}

/* Sum of the numbers that follow a name in the text. */
static unsigned long said(const char *name)
{
	const char *at = contents;
	unsigned long sum = 0;

	while ((at = strstr(at, name))) {
		unsigned long one;

		at += strlen(name);
		if (*at == ' ' && sscanf(at, " %lu", &one) == 1)
			sum += one;
	}
	return sum;
}

/* Check that /proc/zoneinfo reports all NUMA events that CPUs have counted. */
static long show_zones(long file)
{
	unsigned long before[NR_VM_NUMA_EVENT_ITEMS];
	enum numa_stat_item item;
	long result;

	for (item = 0; item < NR_VM_NUMA_EVENT_ITEMS; item++)
		before[item] = nr_numa_events(item);
	result = use(file, false, 0);
	for (item = 0; item < NR_VM_NUMA_EVENT_ITEMS && result > 0; item++)
		if (said(numa_stat_name(item)) < before[item] ||
		    said(numa_stat_name(item)) > nr_numa_events(item))
			wrong("/proc/zoneinfo says %s %lu, and CPUs have counted %lu",
			      numa_stat_name(item), said(numa_stat_name(item)), before[item]);
	return result;
}

/* Show a file. Return: its number if it shows a single one, and 0 otherwise. */
static long show_control(long file)
{
	char path[MOST_PATH];
	long result, number;

	if (copy_word(path, sizeof(path), file) && !strcmp(path, "/proc/zoneinfo"))
		result = show_zones(file);
	else
		result = use(file, false, 0);
	if (result < 0)
		return result;
	contents[min(result, (long)sizeof(contents) - 1)] = '\0';
	return kstrtol(contents, 10, &number) ? 0 : number;
}

/* Writing or reading a file may sleep, so a helper process does it. */
long step_set(long file, long value)
{
	static const struct step step = { .name = "set", .run = (void *)write_control };

	return run_in_helper(&step, file, value);
}

long step_show(long file)
{
	static const struct step step = { .name = "show", .run = (void *)show_control };

	return run_in_helper(&step, file, 0);
}
