/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For comparisons with other kernels, this program prints VMAs and resident
 * pages after each step, and reads all that can be read when it is over.
 */
#define USER_PAGES (1L << 31)

/* Whether a line of maps or smaps begins a VMA of the program's addresses. */
static int begins_area(const char *text, long *page, long *end, char *allows,
		       long *offset)
{
	long first, last, bytes;

	if (sscanf(text, "%lx-%lx %4s %lx ", &first, &last, allows, &bytes) != 4)
		return 0;
	*page = (first - USER_ADDRESS) / PAGE_BYTES;
	*end = (last - USER_ADDRESS) / PAGE_BYTES;
	*offset = bytes / PAGE_BYTES;
	return 1;
}

#define AREA \
	"{\"line\": %d, \"process\": %d, \"vma\": [%ld, %ld, \"%s\", %ld, \"%.*s\"]}\n"

static void show_space(int process)
{
	long page = 0, end = 0, offset = 0, kib, of_area = 0;
	long anon = 0, of_files[2] = { 0 }, swap = 0;
	int is_ours = 0, is_shmem = 0, is_known = 1, nr = 0;
	char path[32], text[512], allows[8];
	FILE *smaps;

	snprintf(path, sizeof(path), "/proc/%d/smaps", shared->pids[process]);
	smaps = fopen(path, "r");
	while (smaps && fgets(text, sizeof(text), smaps)) {
		if (begins_area(text, &page, &end, allows, &offset)) {
			is_ours = page >= 0 && page < USER_PAGES;
			is_shmem = strstr(text, "/memfd:") || strstr(text, "/dev/zero");
		} else if (!is_ours) {
			continue;
		} else if (sscanf(text, "Rss: %ld", &kib) == 1) {
			of_area = kib;
		} else if (sscanf(text, "Anonymous: %ld", &kib) == 1) {
			anon += kib;
			of_files[is_shmem] += of_area - kib;
		} else if (sscanf(text, "Swap: %ld", &kib) == 1) {
			if (is_shmem && allows[3] == 'p')
				is_known = is_known && !kib;
			swap += is_shmem ? 0 : kib;
		} else if (!strncmp(text, "VmFlags:", 8) && ++nr) {
			printf(AREA, line, process, page, end, allows, offset,
			       (int)strcspn(text + 8, "\n"), text + 8);
		}
	}
	if (nr)
		printf("{\"line\": %d, \"process\": %d, \"rss\": [%ld, %ld, %ld, %ld]}\n",
		       line, process, anon / 4, of_files[0] / 4, of_files[1] / 4,
		       is_known ? swap / 4 : -1);
	if (smaps)
		fclose(smaps);
}

/*
 * VMAs and rss of all processes, of the program's addresses alone. smaps counts
 * entries; the counters in /proc/PID/status are inexact, and have other memory.
 * Of a private mapping of shared memory it adds what the file has in swap; the
 * number of swap entries is -1 then, which stands for unknown.
 */
static void show_spaces(void)
{
	for (int i = 0; i < NR_PROCESSES; i++)
		if (is_there(i))
			show_space(i);
}

static unsigned long words_read;

static void add_contents(long page, long i, uint64_t word)
{
	uint64_t first, last;

	(void)i;
	(void)word;
	memcpy(&first, at(page), sizeof(first));
	memcpy(&last, at(page) + PAGE_BYTES - sizeof(last), sizeof(last));
	words_read = (words_read * 31 + (uintptr_t)at(page)) * 31 +
		   (first ^ last << 1);
}

/* A number of what is at the beginning and the end of each page that can be read. */
static long do_contents(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char text[512], allows[8];
	long page, end, offset;

	words_read = 0;
	while (maps && fgets(text, sizeof(text), maps))
		if (begins_area(text, &page, &end, allows, &offset))
			for (; page >= 0 && page < USER_PAGES && page < end; page++)
				accessed(add_contents, page, 1, 0);
	if (maps)
		fclose(maps);
	return words_read & INT64_MAX;
}
