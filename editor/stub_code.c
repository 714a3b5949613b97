// SPDX-License-Identifier: Apache-2.0
/*
 * stub_code - `inc`, which touches no register and of the flags all but the carry; `mov` and `lea`,
 * which touch one register and no flag. What polls is poll_code's. Called by place and copy.
 */
#include "editor/stub_code.h"

#include <errno.h>
#include <string.h>

#include "editor/poll_code.h"

enum {
	INC = 7,   /* of a rip-relative word */
	MOV = 5,   /* of 32 bits; the upper half becomes 0 */
	LEA_8 = 4, /* base and displacement */
	LEA_32 = 7,
};

static bool fits_byte(int32_t value)
{
	return value >= INT8_MIN && value <= INT8_MAX;
}

static uint32_t own_size(const struct me_stub *stub, bool atomic)
{
	switch (stub->does) {
	case ME_STUB_PASSES: return 0;
	case ME_STUB_NOTES: return me_note_code_size(stub);
	case ME_STUB_SETS: return MOV + (stub->reg >= 8);
	case ME_STUB_ADDS:
		return (fits_byte(stub->value) ? LEA_8 : LEA_32) + me_needs_sib(stub->reg_from);
	default: return INC + atomic;
	}
}

uint32_t me_stub_code_size(const struct me_stub *stub, bool atomic)
{
	return own_size(stub, atomic) + (stub->polls ? ME_POLL_CODE_SIZE : 0);
}

static int write_inc(const struct me_stub *stub, bool atomic, uint64_t counters, uint64_t vaddr,
		     uint8_t *out)
{
	int64_t disp =
		(int64_t)(counters + 8 * (uint64_t)stub->counter - vaddr - own_size(stub, atomic));
	int32_t disp32 = (int32_t)disp;

	if (disp32 != disp)
		return -ERANGE;
	if (atomic)
		*out++ = 0xf0;
	*out++ = 0x48;
	*out++ = 0xff;
	*out++ = 0x05;
	memcpy(out, &disp32, sizeof(disp32));
	return 0;
}

static void write_mov(const struct me_stub *stub, uint8_t *out)
{
	if (stub->reg >= 8)
		*out++ = 0x41;
	*out++ = 0xb8 | (stub->reg & 7);
	memcpy(out, &stub->value, sizeof(stub->value));
}

static void write_lea(const struct me_stub *stub, uint8_t *out)
{
	bool byte = fits_byte(stub->value);

	*out++ = 0x48 | (stub->reg >= 8 ? 0x04 : 0) | (stub->reg_from >= 8 ? 0x01 : 0);
	*out++ = 0x8d;
	*out++ = (byte ? 0x40 : 0x80) | (stub->reg & 7) << 3 | (stub->reg_from & 7);
	if (me_needs_sib(stub->reg_from))
		*out++ = 0x24;
	memcpy(out, &stub->value, byte ? 1 : sizeof(stub->value));
}

int me_stub_code_write(const struct me_stub *stub, bool atomic, uint64_t counters, uint64_t notes,
		       uint64_t vaddr, uint8_t *out)
{
	uint32_t size = own_size(stub, atomic);
	int rc = 0;

	switch (stub->does) {
	case ME_STUB_SETS: write_mov(stub, out); break;
	case ME_STUB_ADDS: write_lea(stub, out); break;
	case ME_STUB_PASSES: break;
	case ME_STUB_NOTES: rc = me_note_code_write(stub, counters, vaddr, out); break;
	default: rc = write_inc(stub, atomic, counters, vaddr, out);
	}
	if (!rc && stub->polls)
		rc = me_poll_code_write(counters, notes, vaddr + size, out + size);
	return rc;
}
