// SPDX-License-Identifier: GPL-2.0-only
/*
 * experiment=selftests: the programs run=PATH[,PATH...] run one after another.
 * What they print is on the console, where kernel tests write KTAP themselves.
 * With swap=DEVICE they find that block device in use for swap.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/swap.h>
#include <unistd.h>
#include "guest.h"

#define SKIPPED 4	/* a kernel selftest's exit status; KSFT_SKIP */

#define SWAP_PAGE_BYTES 4096
#define SWAP_INFO_OFFSET 1024	/* before it is room for a boot loader */
#define SWAP_MAGIC "SWAPSPACE2"

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

/*
 * As mkswap does it: no bad pages, no label. Layout: union swap_header in
 * include/linux/swap.h.
 */
void use_swap(const char *device)
{
	static char page[SWAP_PAGE_BYTES];
	struct {
		uint32_t version;
		uint32_t last_page;
	} info = { .version = 1 };
	int fd = open(device, O_RDWR | O_CLOEXEC);
	off_t bytes;

	if (fd < 0)
		give_up(errno, "open %s", device);
	bytes = lseek(fd, 0, SEEK_END);
	if (bytes < 2 * SWAP_PAGE_BYTES)
		give_up(0, "%s: %lld bytes are no room for swap", device,
			(long long)bytes);
	info.last_page = bytes / SWAP_PAGE_BYTES - 1;
	memcpy(page + SWAP_INFO_OFFSET, &info, sizeof(info));
	memcpy(page + sizeof(page) - strlen(SWAP_MAGIC), SWAP_MAGIC,
	       strlen(SWAP_MAGIC));
	if (pwrite(fd, page, sizeof(page), 0) != sizeof(page) || fsync(fd))
		give_up(errno, "write to %s", device);
	close(fd);
	if (swapon(device, 0))
		give_up(errno, "swap to %s", device);
}

static bool run_selftests(void)
{
	const char *programs = word("run");
	const char *swap = word("swap");
	unsigned long number = 0;
	char name[PATH_BYTES];
	bool ok = true;

	refuse_unread_words();
	if (swap)
		use_swap(swap);
	printf("KTAP version 1\n1..%lu\n", count_names(programs));
	while (next_name(&programs, name, sizeof(name))) {
		const char *const argv[] = { name, NULL };
		int status = run_program(argv, TEST_DEADLINE_S);

		report_test(++number, name, status);
		ok &= !status || status == SKIPPED;
	}
	return ok;
}

GUEST_EXPERIMENT("selftests", run_selftests)
