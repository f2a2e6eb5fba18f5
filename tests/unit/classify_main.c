// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads instructions as hexadecimal digits, one a line; prints the class of each,
 * and the mark that it is. Its argument is the architecture.
 */
#include <stdio.h>
#include <string.h>
#include "../../native/count/isa.h"

int main(int argc, char **argv)
{
	const struct isa *isa = argc > 1 && !strcmp(argv[1], isa_arm64.target) ?
				&isa_arm64 : &isa_x86_64;
	char line[64];

	while (scanf("%63s", line) == 1) {
		unsigned char code[32];
		size_t bytes = strlen(line) / 2;
		unsigned int byte;

		for (size_t i = 0; i < bytes; i++) {
			if (sscanf(line + 2 * i, "%2x", &byte) != 1)
				return 1;
			code[i] = (unsigned char)byte;
		}
		printf("%u %u\n", isa->classify(code, bytes), isa->mark(code, bytes));
	}
	return 0;
}
