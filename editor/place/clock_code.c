// SPDX-License-Identifier: Apache-2.0
/* clock_code - writes the instructions that clock_code.h describes. Called by stub_code. */
#include "editor/place/clock_code.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "editor/base/runtime.h"

/* Write the displacement to @target at @out, for an instruction that ends behind it, at @end. */
static bool put_disp(uint8_t *out, uint64_t target, uint64_t end)
{
	int64_t disp = (int64_t)(target - end);
	int32_t disp32 = (int32_t)disp;

	memcpy(out, &disp32, sizeof(disp32));
	return disp == disp32;
}

int me_clock_code_write(const struct me_stub_places *places, uint64_t vaddr, uint8_t *out)
{
	static const uint8_t code[ME_CLOCK_CODE_SIZE] = {0xff, 0x0d, 0, 0, 0, 0,
							 0x0f, 0x88, 0, 0, 0, 0};

	memcpy(out, code, sizeof(code));
	return put_disp(out + 2, places->counters + offsetof(struct me_call_clock, left),
			vaddr + 6) &&
			       put_disp(out + 8, places->notes, vaddr + ME_CLOCK_CODE_SIZE)
		       ? 0
		       : -ERANGE;
}

int me_sample_code_write(const struct me_stub_places *places, uint64_t vaddr, uint8_t *out)
{
	static const uint8_t code[ME_SAMPLE_CODE_SIZE] = {
		0x48, 0x8d, 0x64, 0x24, (uint8_t)-ME_RED_ZONE, 0xe8};

	memcpy(out, code, sizeof(code));
	return put_disp(out + ME_SAMPLE_CODE_CALL + 1, places->call, vaddr + ME_SAMPLE_CODE_SIZE)
		       ? 0
		       : -ERANGE;
}
