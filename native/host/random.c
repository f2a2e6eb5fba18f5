// SPDX-License-Identifier: GPL-2.0-only
/* Seeded random numbers: the same seed gives the same launch. */
#include "program.h"

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. */
uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/**
 * random_order() - draw a permutation
 * @order: Filled with 0 .. @nr - 1 in random order.
 * @nr: Number of elements.
 * @state: State of the generator. It is advanced, so that rounds differ.
 */
void random_order(unsigned int *order, unsigned int nr, uint64_t *state)
{
	for (unsigned int i = 0; i < nr; i++) {
		unsigned int j = random_next(state) % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
}
