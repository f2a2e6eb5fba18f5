// SPDX-License-Identifier: GPL-2.0-only
/* The kernel's random numbers, which are the same in each run. */
#include <linux/random.h>
#include "hosted.h"

static u64 state = 0x9e3779b97f4a7c15ULL;

/* xorshift64*; Vigna, An experimental exploration of Marsaglia's xorshift generators. */
static u64 draw(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1dULL;
}

u32 get_random_u32(void)
{
	HOST_STUB("custom");
	return draw() >> 32;
}

u16 get_random_u16(void)
{
	HOST_STUB("custom");
	return draw() >> 48;
}

u8 get_random_u8(void)
{
	HOST_STUB("custom");
	return draw() >> 56;
}

u64 get_random_u64(void)
{
	HOST_STUB("custom");
	return draw();
}

u32 __get_random_u32_below(u32 limit)
{
	HOST_STUB("custom");
	return (draw() >> 32) % limit;
}

void get_random_bytes(void *to, size_t bytes)
{
	u8 *at = to;

	HOST_STUB("custom");
	while (bytes--)
		*at++ = draw() >> 56;
}

