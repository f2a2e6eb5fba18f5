// SPDX-License-Identifier: GPL-2.0-only
/* Which module copies folios that are migrated. Modules are loaded on first use. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "guest.h"

static const struct copier {
	const char *name;
	const char *needs;	/* a module that must be loaded first */
	const char *parts;	/* the parameter for the number of parts */
} copiers[] = {
	{ "dcbm", "swdma", "nr_dma_chan" },
	{ "mtcopy", NULL, "nr_threads" },
};

#define MODEL_BYTES 32
#define NR_COPIERS (sizeof(copiers) / sizeof(copiers[0]))

static const struct copier *active;
static const char *adaptive, *reasons;

static void load_once(const char *name)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "/sys/module/%s", name);
	if (access(path, F_OK))
		load_module(name, "");
}

void copy_words(const char *usual_reasons)
{
	adaptive = word("adaptive");
	reasons = word("reasons");
	if (!reasons)
		reasons = usual_reasons;
}

void copy_by(const char *name, const char *parts)
{
	if (active)
		set_parameter(active->name, "offloading", "0");
	active = NULL;
	if (!strcmp(name, "none"))
		return;
	for (size_t i = 0; i < NR_COPIERS; i++)
		if (!strcmp(name, copiers[i].name))
			active = &copiers[i];
	if (!active)
		give_up(0, "%s: copies nothing; dcbm, mtcopy or none is",
			name);
	if (active->needs)
		load_once(active->needs);
	load_once(active->name);
	set_parameter(active->name, active->parts, parts);
	if (adaptive)
		set_parameter(active->name, "adaptive", adaptive);
	if (reasons)
		set_parameter(active->name, "reasons", reasons);
	set_parameter(active->name, "offloading", "1");
}

void model_engine(const char *model)
{
	char words[MODEL_BYTES], *rate = words;
	const char *setup;

	snprintf(words, sizeof(words), "%s", model ? model : "0/0");
	setup = strsep(&rate, "/");
	if (!rate)
		give_up(0, "%s: not SETUP_NS/MB_PER_S", model);
	set_parameter("swdma", "setup_ns", setup);
	set_parameter("swdma", "mb_per_s", rate);
}
