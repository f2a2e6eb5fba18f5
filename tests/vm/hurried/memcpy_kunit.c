// SPDX-License-Identifier: GPL-2.0-only
/* The kernel's own test of copies, none of which says that it is slow. */
#include <kunit/test.h>

#undef KUNIT_CASE_SLOW
#define KUNIT_CASE_SLOW KUNIT_CASE
#include <lib/memcpy_kunit.c>
