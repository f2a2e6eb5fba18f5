// SPDX-License-Identifier: GPL-2.0-only
/* The virtio port to the host: one JSON object per line out, lines of text in. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "guest.h"

#define PORT_NAME "ream"
#define PORTS "/sys/class/virtio-ports"

/* The host names a port in a message of its own, some time after boot. */
#define FIND_ATTEMPTS 500
#define FIND_PAUSE_NS 10000000

static FILE *port;	/* to the host */
static int port_fd = -1;

static bool find_port(char *device, size_t device_bytes)
{
	char path[PATH_BYTES], name[sizeof(PORT_NAME) + 1];
	bool found = false;
	struct dirent *entry;
	DIR *ports = opendir(PORTS);

	if (!ports)
		return false;
	while (!found && (entry = readdir(ports))) {
		snprintf(path, sizeof(path), PORTS "/%s/name", entry->d_name);
		found = read_text(path, name, sizeof(name)) >= 0 &&
			!strcmp(name, PORT_NAME);
		snprintf(device, device_bytes, "/dev/%s", entry->d_name);
	}
	closedir(ports);
	return found;
}

bool port_open(void)
{
	const struct timespec interval = { .tv_nsec = FIND_PAUSE_NS };
	char device[PATH_BYTES];

	for (int attempt = 0; attempt < FIND_ATTEMPTS; attempt++) {
		if (find_port(device, sizeof(device))) {
			/* No second opener is let in: one file for both ways. */
			port_fd = open(device, O_RDWR | O_CLOEXEC);
			port = port_fd < 0 ? NULL : fdopen(port_fd, "w");
			if (!port)
				give_up(errno, "open %s", device);
			return true;
		}
		nanosleep(&interval, NULL);
	}
	return false;
}

FILE *message_begin(const char *name)
{
	fprintf(port, "{\"%s\": ", name);
	return port;
}

void message_text(FILE *to, const char *text)
{
	if (!text) {
		fputs("null", to);
		return;
	}
	fputc('"', to);
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		/* Bytes beyond ASCII need not be UTF-8: as their numbers, then. */
		if (byte == '"' || byte == '\\')
			fprintf(to, "\\%c", byte);
		else if (byte < ' ' || byte > '~')
			fprintf(to, "\\u%04x", byte);
		else
			fputc(byte, to);
	}
	fputc('"', to);
}

void message_end(void)
{
	fputs("}\n", port);
	if (fflush(port)) {
		int error = errno;

		clearerr(port);
		give_up(error, "write to the host");
	}
}

void wait_for_host(const char *text)
{
	char line[TEXT_BYTES];
	size_t length = 0;

	/* By bytes: what follows the line belongs to the next one. */
	while (length < sizeof(line) - 1) {
		ssize_t got = read(port_fd, &line[length], 1);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			give_up(errno, "read from the host");
		if (!got)
			give_up(0, "the host went away instead of saying %s",
				text);
		if (line[length] == '\n')
			break;
		length++;
	}
	line[length] = '\0';
	if (strcmp(line, text))
		give_up(0, "the host said %s, not %s", line, text);
}
