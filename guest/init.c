// SPDX-License-Identifier: GPL-2.0-only
/*
 * PID 1 of a guest: make a minimal system, do one experiment, power off.
 *
 *   experiment=NAME ...  and whatever other words it needs
 *
 * Experiments register themselves: experiments/NAME/guest.c, and selftests.c.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "guest.h"

#define PROTOCOL_VERSION 1
#define MOST_WORDS 32	/* the kernel passes no more to its init */

static struct experiment *experiments;

static struct {
	const char *text;
	bool read;
} words[MOST_WORDS];

static bool host_listens;

void add_experiment(struct experiment *experiment)
{
	experiment->next = experiments;
	experiments = experiment;
}

const char *word(const char *key)
{
	size_t length = strlen(key);

	for (size_t i = 0; i < MOST_WORDS && words[i].text; i++) {
		if (!strncmp(words[i].text, key, length) &&
		    words[i].text[length] == '=') {
			words[i].read = true;
			return words[i].text + length + 1;
		}
	}
	return NULL;
}

const char *needed_word(const char *key)
{
	const char *value = word(key);

	if (!value)
		give_up(0, "%s=: not given, and this experiment needs it", key);
	return value;
}

unsigned long number_word(const char *key)
{
	const char *text = needed_word(key);
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno)
		give_up(0, "%s=%s: not a number", key, text);
	return number;
}

const char *next_name(const char **list, char *name, size_t name_bytes)
{
	size_t length;

	if (!*list || !**list)
		return NULL;
	length = strcspn(*list, ",");
	snprintf(name, name_bytes, "%.*s", (int)length, *list);
	*list += length + ((*list)[length] == ',');
	return name;
}

unsigned long count_names(const char *list)
{
	unsigned long count = 0;
	char name[PATH_BYTES];

	while (next_name(&list, name, sizeof(name)))
		count++;
	return count;
}

void refuse_unread_words(void)
{
	/* The kernel hands on words of its own that it does not know: nokaslr. */
	for (size_t i = 0; i < MOST_WORDS && words[i].text; i++)
		if (!words[i].read && strchr(words[i].text, '='))
			give_up(0, "%s: not a word of this experiment",
				words[i].text);
}

static void keep_words(int argc, char **argv)
{
	if (argc > MOST_WORDS + 1)
		give_up(0, "%d words: at most %d", argc - 1, MOST_WORDS);
	for (int i = 1; i < argc; i++)
		words[i - 1].text = argv[i];
}

static _Noreturn void power_off(void)
{
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	/* Not every machine has a switch; QEMU's -no-reboot ends this one. */
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

void give_up(int error, const char *format, ...)
{
	static bool giving_up;
	char text[TEXT_BYTES];
	va_list values;

	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	if (error) {
		size_t length = strlen(text);

		snprintf(text + length, sizeof(text) - length, ": %s (errno %d)",
			 strerror(error), error);
	}
	printf("Bail out! %s\n", text);
	if (host_listens && !giving_up) {
		FILE *to;

		giving_up = true;
		to = message_begin("error");
		fputs("{\"text\": ", to);
		message_text(to, text);
		fputs("}", to);
		message_end();
	}
	power_off();
}

/* Folders are in the initramfs already. */
static void mount_all(void)
{
	static const struct {
		const char *type;
		const char *at;
	} mounts[] = {
		{ "proc", "/proc" },
		{ "sysfs", "/sys" },
		{ "devtmpfs", "/dev" },
		{ "debugfs", "/sys/kernel/debug" },
		{ "tmpfs", "/tmp" },
		{ "tmpfs", "/run" },
	};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++)
		if (mount(mounts[i].type, mounts[i].at, mounts[i].type, 0, NULL))
			give_up(errno, "mount %s on %s", mounts[i].type,
				mounts[i].at);
}

static void say_hello(void)
{
	struct utsname system;
	FILE *to;

	uname(&system);
	to = message_begin("hello");
	fprintf(to, "{\"version\": %d, \"release\": ", PROTOCOL_VERSION);
	message_text(to, system.release);
	fputs("}", to);
	message_end();
}

int main(int argc, char **argv)
{
	const char *name;
	bool ok;

	setvbuf(stdout, NULL, _IOLBF, 0);
	setenv("PATH", "/usr/bin:/usr/sbin:/bin:/sbin", 1);
	umask(022);
	mount_all();
	keep_words(argc, argv);
	host_listens = port_open();
	if (!host_listens)
		give_up(0, "no virtio port is named ream");
	say_hello();
	name = needed_word("experiment");
	for (struct experiment *one = experiments; one; one = one->next) {
		if (strcmp(name, one->name))
			continue;
		ok = one->run();
		fprintf(message_begin("end"), "{\"ok\": %s}", ok ? "true" : "false");
		message_end();
		power_off();
	}
	give_up(0, "experiment=%s: not known here", name);
}
