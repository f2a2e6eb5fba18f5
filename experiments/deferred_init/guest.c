// SPDX-License-Identifier: GPL-2.0-only
/*
 * experiment=deferred-init: the boot itself is what is measured. All that is
 * left to do is to hand the kernel's log to the host, which knows the messages
 * that it wants: each record's time in microseconds and its text.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "guest.h"

#define KMSG "/dev/kmsg"
#define RECORD_BYTES 8192	/* the kernel's own limit */

/* "priority,number,time,flags;text", then lines of its dictionary */
static void report_record(char *record)
{
	char *text = strchr(record, ';');
	char *fields[3];
	FILE *to;

	for (size_t i = 0; i < 3; i++)
		fields[i] = strsep(&record, ",");
	if (!text || !fields[2] || fields[2] > text)
		give_up(0, "%s: a record without time or text", KMSG);
	text++;
	text[strcspn(text, "\n")] = '\0';
	to = message_begin("kmsg");
	fprintf(to, "{\"time_us\": %llu, \"text\": ",
		strtoull(fields[2], NULL, 10));
	message_text(to, text);
	fputs("}", to);
	message_end();
}

static bool run_deferred_init(void)
{
	int fd = open(KMSG, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char record[RECORD_BYTES];
	ssize_t length;

	refuse_unread_words();
	if (fd < 0)
		give_up(errno, "open %s", KMSG);
	while ((length = read(fd, record, sizeof(record) - 1)) > 0 ||
	       (length < 0 && errno == EINTR)) {
		if (length < 0)
			continue;
		record[length] = '\0';
		report_record(record);
	}
	/* EPIPE: a record was overwritten before it was read, and is lost. */
	if (errno != EAGAIN)
		give_up(errno, "read %s", KMSG);
	close(fd);
	return true;
}

GUEST_EXPERIMENT("deferred-init", run_deferred_init)
