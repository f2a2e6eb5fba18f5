// SPDX-License-Identifier: GPL-2.0-only
/*
 * experiment=zone-device: bind a device again and again; report each memory
 * map while it is in place.
 *
 *   device=fsdax|devdax   a pmem namespace on all of region0 (memmap=SIZE!AT);
 *                         ndctl makes and first binds it, then its driver is
 *                         unbound and bound again: nd_pmem, or dax_pmem
 *   device=memremap       no device: the module memremap
 *
 * Of the two drivers that make a devdax, dax_pmem is the one rebound: as with
 * nd_pmem, its probe begins with the namespace, reads the info block again and
 * has a fresh pagemap. Rebinding device_dax, on the bus dax, would map again
 * by the pagemap that is there. Published figures are of dax_pmem, too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <unistd.h>
#include "guest.h"

#define FACTS "/sys/kernel/debug/ream/facts"
#define CALLS "/sys/kernel/debug/ream/calls"
#define REGION "/sys/bus/nd/devices/region0"
#define MEMREMAP "/sys/kernel/debug/ream-memremap"
#define DYNAMIC_DEBUG "/proc/dynamic_debug/control"
#define FILE_BYTES 32768	/* of facts or calls, with room */

#define SYSLOG_CONSOLE_LEVEL 8
#define BELOW_DEBUG 7

struct device {
	const char *name;
	void (*prepare)(const struct device *device);	/* reads the words */
	/* The rest return nanoseconds. */
	uint64_t (*bind_first)(const struct device *device);
	uint64_t (*bind)(const struct device *device);
	uint64_t (*unbind)(const struct device *device);
	const char *driver;	/* of a namespace; in /sys/bus/nd/drivers */
	const char *prefix;	/* of what the driver binds to */
};

/* The message of memmap_init_zone_device() */

static int kmsg_fd;

/*
 * Only into the log: on the console it would be printed within the clock, at
 * the speed of a serial line.
 */
static void enable_message(void)
{
	/* By its text, not by its function: a patch may move it. */
	if (write_text(DYNAMIC_DEBUG,
		       "file mm/mm_init.c format initialised +p\n"))
		give_up(errno, "enable the kernel's message in %s",
			DYNAMIC_DEBUG);
	write_text("/sys/module/printk/parameters/ignore_loglevel", "N");
	if (klogctl(SYSLOG_CONSOLE_LEVEL, NULL, BELOW_DEBUG) < 0)
		give_up(errno, "set the console's log level");
	kmsg_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kmsg_fd < 0)
		give_up(errno, "open /dev/kmsg");
}

/* The last one since the file was set to its end; false if the kernel said nothing. */
static bool find_message(char *message, size_t message_bytes)
{
	char record[8192];	/* the kernel's own limit */
	bool found = false;
	ssize_t length;

	while ((length = read(kmsg_fd, record, sizeof(record) - 1)) > 0 ||
	       (length < 0 && (errno == EPIPE || errno == EINTR))) {
		char *text;

		if (length < 0)
			continue;	/* overwritten meanwhile; go on */
		record[length] = '\0';
		text = strchr(record, ';');
		if (!text || !strstr(text, " initialised ") ||
		    !strstr(text, " pages in "))
			continue;
		snprintf(message, message_bytes, "%.*s",
			 (int)strcspn(text + 1, "\n"), text + 1);
		found = true;
	}
	return found;
}

/* Namespaces */

static void need_region(unsigned long size)
{
	char text[TEXT_BYTES];

	if (read_text(REGION "/size", text, sizeof(text)) < 0)
		give_up(errno, "read %s/size: is memmap=SIZE!AT on the kernel's command line?",
			REGION);
	if (strtoul(text, NULL, 10) != size)
		give_up(0, "size=%lu: region0 has %s bytes", size, text);
}

static struct {
	char mode[64];
	char map[64];
	char align[64];
} ndctl_options;

static void plan_namespace(const struct device *device)
{
	snprintf(ndctl_options.mode, sizeof(ndctl_options.mode), "--mode=%s",
		 device->name);
	snprintf(ndctl_options.map, sizeof(ndctl_options.map), "--map=%s",
		 needed_word("map"));
	snprintf(ndctl_options.align, sizeof(ndctl_options.align),
		 "--align=%lu", number_word("align"));
	need_region(number_word("size"));
	prepare_pmem();
}

/* The time is of all that ndctl does; the bind is the last part of it. */
static uint64_t create_namespace(const struct device *device)
{
	const char *const argv[] = {
		"/usr/bin/ndctl", "create-namespace", "-f",
		"-e", "namespace0.0", ndctl_options.mode,
		ndctl_options.map, ndctl_options.align, NULL,
	};
	uint64_t start_ns = now_ns();
	int status = run_program(argv, CHILD_DEADLINE_S);

	if (status)
		give_up(0, "ndctl create-namespace %s %s %s: exit %d; the console says more",
			argv[5], argv[6], argv[7], status);
	(void)device;
	return now_ns() - start_ns;
}

/* ndctl makes its pfn0.1 or dax0.1 beside the empty ones that the bus keeps. */
static void find_bound(const struct device *device, char *name,
		       size_t name_bytes)
{
	char path[PATH_BYTES];
	struct dirent *entry;
	bool found = false;
	DIR *folder;

	snprintf(path, sizeof(path), "/sys/bus/nd/drivers/%s", device->driver);
	folder = opendir(path);
	if (!folder)
		give_up(errno, "open %s", path);
	while ((entry = readdir(folder))) {
		if (strncmp(entry->d_name, device->prefix,
			    strlen(device->prefix)))
			continue;
		if (found)
			give_up(0, "%s: bound to more than one device: %s, %s",
				path, name, entry->d_name);
		snprintf(name, name_bytes, "%s", entry->d_name);
		found = true;
	}
	closedir(folder);
	if (!found)
		give_up(0, "%s: no device %s* is bound", path, device->prefix);
}

static char bound[NAME_MAX + 1];	/* what unbind left to bind */

static uint64_t unbind_driver(const struct device *device)
{
	char path[PATH_BYTES];

	find_bound(device, bound, sizeof(bound));
	snprintf(path, sizeof(path), "/sys/bus/nd/drivers/%s/unbind",
		 device->driver);
	return write_timed(path, bound);
}

static uint64_t bind_driver(const struct device *device)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "/sys/bus/nd/drivers/%s/bind",
		 device->driver);
	return write_timed(path, bound);
}

/* The module memremap */

static void load_memremap(const struct device *device)
{
	char parameters[TEXT_BYTES];

	(void)device;
	snprintf(parameters, sizeof(parameters),
		 "type=%s size=%lu order=%lu chunk=%lu own_node=%lu list=%lu rounds=0",
		 needed_word("type"), number_word("size"),
		 number_word("order"), number_word("chunk"),
		 number_word("own_node"), number_word("list"));
	load_module("memremap", parameters);
}

static uint64_t read_memremap(const char *file)
{
	char path[PATH_BYTES], text[TEXT_BYTES];

	snprintf(path, sizeof(path), MEMREMAP "/%s", file);
	if (read_text(path, text, sizeof(text)) < 0)
		give_up(errno, "read %s", path);
	return strtoull(text, NULL, 10);
}

static uint64_t map_memory(const struct device *device)
{
	(void)device;
	write_timed(MEMREMAP "/bind", "1");
	return read_memremap("map_ns");
}

static uint64_t unmap_memory(const struct device *device)
{
	(void)device;
	write_timed(MEMREMAP "/bind", "0");
	return read_memremap("unmap_ns");
}

/* Reports */

static char *read_whole(const char *path)
{
	static char text[FILE_BYTES];
	FILE *file = fopen(path, "re");
	size_t length;

	if (!file)
		give_up(errno, "open %s", path);
	length = fread(text, 1, sizeof(text) - 1, file);
	if (ferror(file) || length == sizeof(text) - 1)
		give_up(ferror(file) ? errno : EFBIG, "read %s", path);
	fclose(file);
	text[length] = '\0';
	return text;
}

static void send_facts(void)
{
	char *rest = read_whole(FACTS), *line;
	const char *comma = "";
	FILE *to = message_begin("facts");

	fputs("{", to);
	while ((line = strsep(&rest, "\n")) && *line) {
		char *name = strsep(&line, " ");

		fprintf(to, "%s\"%s\": %s", comma, name, line);
		comma = ", ";
	}
	fputs("}", to);
	message_end();
}

/* What was said and recorded up to now is not the next bind's. */
static void forget_past(void)
{
	lseek(kmsg_fd, 0, SEEK_END);
	read_whole(CALLS);
}

static bool is_truth(const char *key)
{
	return !strcmp(key, "altmap") || !strcmp(key, "early");
}

/* "a=1 b=2" as {"a": 1, "b": 2} */
static void send_call(FILE *to, char *line)
{
	const char *comma = "";
	char *pair;

	fputs("{", to);
	while ((pair = strsep(&line, " "))) {
		char *key = strsep(&pair, "=");

		fprintf(to, "%s\"%s\": ", comma, key);
		if (is_truth(key))
			fputs(*pair == '1' ? "true" : "false", to);
		else
			fputs(pair, to);
		comma = ", ";
	}
	fputs("}", to);
}

/* unbind_ns is of the round before, and there was none before the first. */
static void report_bind(unsigned long number, uint64_t bind_ns,
			uint64_t unbind_ns)
{
	char message[TEXT_BYTES];
	bool found = find_message(message, sizeof(message));
	char *rest = read_whole(CALLS), *line;
	const char *comma = "";
	FILE *to;

	if (!*rest)
		give_up(0, "bind %lu: memmap_init_zone_device() was not called",
			number);
	if (found)
		printf("# %s\n", message);
	to = message_begin("bind");
	fprintf(to, "{\"number\": %lu, \"calls\": [", number);
	while ((line = strsep(&rest, "\n")) && *line) {
		fputs(comma, to);
		send_call(to, line);
		comma = ", ";
	}
	fputs("], \"message\": ", to);
	message_text(to, found ? message : NULL);
	fprintf(to, ", \"bind_ns\": %llu, \"unbind_ns\": ",
		(unsigned long long)bind_ns);
	if (number)
		fprintf(to, "%llu}", (unsigned long long)unbind_ns);
	else
		fputs("null}", to);
	message_end();
}

static const struct device devices[] = {
	{
		.name = "fsdax",
		.prepare = plan_namespace,
		.bind_first = create_namespace,
		.bind = bind_driver,
		.unbind = unbind_driver,
		.driver = "nd_pmem",
		.prefix = "pfn0.",
	},
	{
		.name = "devdax",
		.prepare = plan_namespace,
		.bind_first = create_namespace,
		.bind = bind_driver,
		.unbind = unbind_driver,
		.driver = "dax_pmem",
		.prefix = "dax0.",
	},
	{
		.name = "memremap",
		.prepare = load_memremap,
		.bind_first = map_memory,
		.bind = map_memory,
		.unbind = unmap_memory,
	},
};

static const struct device *device_named(const char *name)
{
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (!strcmp(name, devices[i].name))
			return &devices[i];
	give_up(0, "device=%s: not fsdax, devdax or memremap", name);
}

static bool run_zone_device(void)
{
	const struct device *device = device_named(needed_word("device"));
	unsigned long nr_binds = number_word("binds");
	uint64_t bind_ns, unbind_ns = 0;

	load_module("memmap", "");
	device->prepare(device);
	refuse_unread_words();
	send_facts();
	enable_message();

	printf("KTAP version 1\n1..%lu\n", nr_binds);
	for (unsigned long number = 0; number < nr_binds; number++) {
		if (number)
			unbind_ns = device->unbind(device);
		forget_past();
		bind_ns = number ? device->bind(device) :
				   device->bind_first(device);
		report_bind(number, bind_ns, unbind_ns);
		wait_for_host("next");
		printf("ok %lu %s %s\n", number + 1, device->name,
		       number ? "rebind" : "first bind");
	}
	return true;
}

GUEST_EXPERIMENT("zone-device", run_zone_device)
