/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the oracle of mremap() needs to know of a kernel. Includes are the
 * includer's: those of mapping_facts.h.
 */
#include "mapping_facts.h"

	OPTION(USERFAULTFD),

#undef OFFSET
#undef CONSTANT
#undef OPTION
