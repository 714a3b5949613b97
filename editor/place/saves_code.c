// SPDX-License-Identifier: Apache-2.0
/* saves_code - `lea N(%rsp), %rsp` changes no flags; `mov %reg, N(%rsp)` saves a register. */
#include "editor/place/saves_code.h"

#include <stdbool.h>
#include <string.h>

#include "editor/evidence/saves.h"

enum { /* bytes: REX prefix, opcode, ModRM, SIB, displacement */
	SHORT = 5,
	LONG = 8,
	STACK_POINTER = 4,
};

static bool is_short(int32_t disp)
{
	return disp >= INT8_MIN && disp <= INT8_MAX;
}

/* An instruction with @opcode, on register @reg and the memory at @disp from the stack pointer on. */
static uint8_t *put(uint8_t *out, uint8_t opcode, uint8_t reg, int32_t disp)
{
	*out++ = reg & 8 ? 0x4c : 0x48;
	*out++ = opcode;
	*out++ = (uint8_t)((is_short(disp) ? 0x44 : 0x84) | (reg & 7) << 3);
	*out++ = 0x24;
	if (is_short(disp)) {
		*out++ = (uint8_t)disp;
		return out;
	}
	memcpy(out, &disp, sizeof(disp));
	return out + sizeof(disp);
}

uint32_t me_saves_code_size(const struct me_unsaved *unsaved)
{
	uint32_t size = 0;

	if (unsaved->steps)
		return is_short(unsaved->adjust) ? SHORT : LONG;
	for (int i = 0; i < ME_NR_CALLEE_SAVED; i++)
		if (unsaved->before >> i & 1)
			size += is_short(unsaved->at[i]) ? SHORT : LONG;
	return size;
}

int me_saves_code_write(const struct me_unsaved *unsaved, uint8_t *out)
{
	if (unsaved->steps) {
		put(out, 0x8d, STACK_POINTER, unsaved->adjust);
		return 0;
	}
	for (int i = 0; i < ME_NR_CALLEE_SAVED; i++)
		if (unsaved->before >> i & 1)
			out = put(out, 0x89, me_callee_saved[i].operand, unsaved->at[i]);
	return 0;
}
