/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the oracle of fork and unmap needs to know of a kernel. Includes are the
 * includer's: those of mapping_facts.h.
 */
#include "mapping_facts.h"

#undef OFFSET
#undef CONSTANT
#undef OPTION
