// SPDX-License-Identifier: GPL-2.0-only
/* A PID 1 that never says a word. */
#include <unistd.h>

int main(void)
{
	for (;;)
		pause();
}
