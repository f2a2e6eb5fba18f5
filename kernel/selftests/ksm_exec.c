// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linked into ksm_functional_tests, whose execv() calls come here.
 *
 * Up to 6.12.117 at least, its test of fork() and exec gives a list of two
 * words that does not end in NULL. Unless NULL happens to follow on the stack,
 * nothing is executed, the test passes all the same, and the child goes on to
 * run the tests that are left once more, with results of its own.
 */
#include <unistd.h>

int __wrap_execv(const char *path, char *const argv[]);

int __wrap_execv(const char *path, char *const argv[])
{
	return execl(path, argv[0], argv[1], (char *)NULL);
}
