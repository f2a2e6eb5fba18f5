// SPDX-License-Identifier: GPL-2.0-only
/*
 * experiment=selftests: the programs run=PATH[,PATH...] run one after another.
 * What they print is on the console, where kernel tests write KTAP themselves.
 *
 * experiment=shell: /bin/sh on the console, if the initramfs has one.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "guest.h"

#define SKIPPED 4	/* a kernel selftest's exit status; KSFT_SKIP */

/* The next name of a list; *list moves on. NULL at its end. */
static const char *next_name(const char **list, char *name, size_t name_bytes)
{
	size_t length;

	if (!*list || !**list)
		return NULL;
	length = strcspn(*list, ",");
	snprintf(name, name_bytes, "%.*s", (int)length, *list);
	*list += length + ((*list)[length] == ',');
	return name;
}

static unsigned long count_names(const char *list)
{
	unsigned long count = 0;
	char name[PATH_BYTES];

	while (next_name(&list, name, sizeof(name)))
		count++;
	return count;
}

static void report_test(unsigned long number, const char *name, int status)
{
	FILE *to = message_begin("test");

	fputs("{\"name\": ", to);
	message_text(to, name);
	fprintf(to, ", \"exit\": %d}", status);
	message_end();
	printf("%s %lu %s%s\n", status && status != SKIPPED ? "not ok" : "ok",
	       number, name, status == SKIPPED ? " # SKIP" : "");
}

bool run_selftests(void)
{
	const char *programs = word("run");
	unsigned long number = 0;
	char name[PATH_BYTES];
	bool ok = true;

	refuse_unread_words();
	printf("KTAP version 1\n1..%lu\n", count_names(programs));
	while (next_name(&programs, name, sizeof(name))) {
		const char *const argv[] = { name, NULL };
		int status = run_program(argv, TEST_DEADLINE_S);

		report_test(++number, name, status);
		ok &= !status || status == SKIPPED;
	}
	return ok;
}

/* /dev/console cannot be a controlling terminal, without which no Ctrl-C. */
static void use_terminal(void)
{
	int terminal = open("/dev/ttyS0", O_RDWR);

	if (terminal < 0)
		return;
	for (int fd = 0; fd <= 2; fd++)
		dup2(terminal, fd);
	if (terminal > 2)
		close(terminal);
}

bool run_shell(void)
{
	static const char *const argv[] = { "/bin/sh", "-l", NULL };
	/* Links to itself for ls and the rest. */
	static const char *const install[] = {
		"/bin/busybox", "--install", "-s", "/bin", NULL
	};

	refuse_unread_words();
	if (access(argv[0], X_OK))
		give_up(errno, "%s: the initramfs has no shell", argv[0]);
	run_program(install, CHILD_DEADLINE_S);
	use_terminal();
	run_program(argv, NO_DEADLINE);
	return true;
}
