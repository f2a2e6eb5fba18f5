// SPDX-License-Identifier: GPL-2.0-only
/* Sizes of folios: programs in /workloads read these settings and write none. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "guest.h"

#define THP "/sys/kernel/mm/transparent_hugepage"
#define PAGE_KIB "4"

/* A fault takes the largest size that is enabled, so all others are not. */
void enable_folios(const char *kib)
{
	char wanted[PATH_BYTES] = "", path[PATH_BYTES];
	struct dirent *entry;
	bool found = false;
	DIR *sizes;

	if (kib)
		snprintf(wanted, sizeof(wanted), "hugepages-%skB", kib);
	sizes = opendir(THP);
	if (!sizes)
		give_up(errno, "open %s: a kernel without huge pages", THP);
	while ((entry = readdir(sizes))) {
		bool its = !kib || !strcmp(entry->d_name, wanted);

		if (strncmp(entry->d_name, "hugepages-", strlen("hugepages-")))
			continue;
		snprintf(path, sizeof(path), THP "/%s/enabled", entry->d_name);
		/* A size of files only has no such setting. */
		if (access(path, F_OK))
			continue;
		set_text(path, its ? "madvise" : "never");
		found |= its;
	}
	closedir(sizes);
	if (!found && kib && strcmp(kib, PAGE_KIB))
		give_up(0, "folios=%s: no %s/%s in this kernel", kib, THP,
			wanted);
	set_text(THP "/enabled", "madvise");
}
