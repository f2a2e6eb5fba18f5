/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Before and after the measured step, a line of JSON: `folios`, how many pages
 * of the process are in folios of order 0, 1, ...
 */
#define NR_ORDERS 10			/* of folios that anonymous memory is in */

/* Of the folio that begins at a frame; its tails follow. */
static int order_of_folio(int kpageflags, uint64_t frame)
{
	static uint64_t flags[1 << (NR_ORDERS - 1)];
	const uint64_t tail = 1ULL << 16;	/* KPF_COMPOUND_TAIL */
	ssize_t got = pread(kpageflags, flags, sizeof(flags),
			    (off_t)(frame * sizeof(*flags)));
	ssize_t nr = 1;
	int order = 0;

	while (nr < got / (ssize_t)sizeof(*flags) && (flags[nr] & tail))
		nr++;
	while (2L << order <= nr)
		order++;
	return order;
}

static uint64_t number_at(int fd, uint64_t index)
{
	uint64_t number = 0;

	if (pread(fd, &number, sizeof(number),
		  (off_t)(index * sizeof(number))) != sizeof(number))
		return 0;
	return number;
}

/*
 * Only root may see in which frame a page is, and what that is part of. Returns
 * what the step did that may come before.
 */
static long look_at_folios(long returned)
{
	const uint64_t frames = (1ULL << 55) - 1, tail = 1ULL << 16;
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	int kpageflags = open("/proc/kpageflags", O_RDONLY);
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long nr[NR_ORDERS] = { 0 };
	unsigned long from, to;
	char text[512];

	while (maps && fgets(text, sizeof(text), maps)) {
		if (sscanf(text, "%lx-%lx", &from, &to) != 2 ||
		    from < (unsigned long)USER_ADDRESS ||
		    from >= 2 * (unsigned long)USER_ADDRESS)
			continue;
		for (; from < to; from += PAGE_BYTES) {
			uint64_t page = number_at(pagemap, from / PAGE_BYTES);
			uint64_t frame = page & frames;
			int order;

			if (!(page >> 63) ||
			    number_at(kpageflags, frame) & tail)
				continue;
			order = order_of_folio(kpageflags, frame);
			nr[order] += 1UL << order;
		}
	}
	printf("{\"line\": %d, \"folios\": [%lu", line, nr[0]);
	for (int order = 1; order < NR_ORDERS; order++)
		printf(", %lu", nr[order]);
	printf("]}\n");
	if (maps)
		fclose(maps);
	close(pagemap);
	close(kpageflags);
	return returned;
}

