// SPDX-License-Identifier: GPL-2.0-only
/* Reads instructions as hexadecimal digits, one a line; prints the class of each. */
#include <stdio.h>
#include <string.h>
#include "../../native/count/classify.h"

int main(void)
{
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
		printf("%u\n", classify(code, bytes));
	}
	return 0;
}
