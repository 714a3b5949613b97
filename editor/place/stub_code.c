// SPDX-License-Identifier: Apache-2.0
/*
 * stub_code - writes the instructions of stubs: `inc` changes no register and all arithmetic
 * flags but the carry; `mov` and `lea` change one register and no flag; `nop` changes nothing.
 * poll_code writes polls, audit_code the stubs around audited functions, clock_code those that count and
 * sample calls.
 * Called by place and copy.
 *
 * With counters per thread, each thread's base of %gs is the distance from the counters in the
 * file to the thread's own. A new thread inherits the base of the thread that started it. So
 * the stub at a function's entry checks whether %rsp lies in the window that the owner of these
 * counters noted. This needs no register:
 *
 *		cmp	%rsp, %gs:high(%rip)
 *		jb	1f
 *		cmp	%rsp, %gs:low(%rip)
 *		jbe	2f
 *	1:	lea	-128(%rsp), %rsp
 *		call	the runtime's entry for threads, which adds 128 to %rsp
 *	2:	incq	%gs:counter(%rip)
 */
#include "editor/place/stub_code.h"

#include <errno.h>
#include <string.h>

#include "editor/place/audit_code.h"
#include "editor/place/clock_code.h"
#include "editor/place/poll_code.h"
#include "editor/base/runtime.h"

enum {
	INC = 7,   /* of a rip-relative word */
	MOV = 5,   /* of 32 bits; the upper half becomes 0 */
	LEA_8 = 4, /* base and displacement */
	LEA_32 = 7,
	CMP = 8, /* %rsp and a word relative to %gs and %rip */
	JCC_8 = 2,
	CALL = 5,
	LEA = 5, /* of the stack pointer */
	CHECK = 2 * (CMP + JCC_8) + LEA + CALL,
	NOP = 0x90,
};

static bool fits_byte(int32_t value)
{
	return value >= INT8_MIN && value <= INT8_MAX;
}

static uint32_t own_size(const struct me_stub *stub, enum me_counters counters)
{
	switch (stub->does) {
	case ME_STUB_PASSES: return 0;
	case ME_STUB_NOTES: return me_note_code_size(stub);
	case ME_STUB_WAITS: return (uint32_t)stub->value;
	case ME_STUB_ENTERS: return ME_ENTER_CODE_SIZE;
	case ME_STUB_LEAVES: return ME_LEAVE_CODE_SIZE;
	case ME_STUB_TIMES: return ME_POINT_CODE_SIZE;
	case ME_STUB_CLOCKS: return ME_CLOCK_CODE_SIZE;
	case ME_STUB_SAMPLES: return ME_SAMPLE_CODE_SIZE;
	case ME_STUB_SETS: return MOV + (stub->reg >= 8);
	case ME_STUB_ADDS:
		return (fits_byte(stub->value) ? LEA_8 : LEA_32) + me_needs_sib(stub->reg_from);
	default: return INC + (counters != ME_COUNTERS_PLAIN);
	}
}

uint32_t me_stub_code_size(const struct me_stub *stub, enum me_counters counters)
{
	return own_size(stub, counters) + (stub->checks ? CHECK : 0) +
	       (stub->polls ? ME_POLL_CODE_SIZE : 0);
}

uint32_t me_stub_code_check_call(const struct me_stub *stub, enum me_counters counters)
{
	return me_stub_code_size(stub, counters) - (CHECK - CALL);
}

/* Write the displacement to @to at @out, for an instruction that ends at @end. */
static int write_disp(uint64_t to, uint64_t end, uint8_t *out)
{
	int64_t disp = (int64_t)(to - end);
	int32_t disp32 = (int32_t)disp;

	if (disp32 != disp)
		return -ERANGE;
	memcpy(out, &disp32, sizeof(disp32));
	return 0;
}

static int write_cmp(uint64_t word, uint64_t vaddr, uint8_t *out)
{
	static const uint8_t cmp[] = {0x65, 0x48, 0x39, 0x25};

	memcpy(out, cmp, sizeof(cmp));
	return write_disp(word, vaddr + CMP, out + sizeof(cmp));
}

static int write_check(const struct me_stub_places *places, uint64_t vaddr, uint8_t *out)
{
	static const uint8_t lea[LEA] = {0x48, 0x8d, 0x64, 0x24, (uint8_t)-ME_RED_ZONE};
	uint8_t *high = out, *low = high + CMP + JCC_8, *call = low + CMP + JCC_8 + LEA;
	int rc = write_cmp(places->state + offsetof(struct me_stack_range, high), vaddr, high);

	if (!rc)
		rc = write_cmp(places->state + offsetof(struct me_stack_range, low),
			       vaddr + (uint64_t)(low - out), low);
	high[CMP] = 0x72;
	high[CMP + 1] = CMP + JCC_8;
	low[CMP] = 0x76;
	low[CMP + 1] = LEA + CALL;
	memcpy(call - LEA, lea, sizeof(lea));
	*call = 0xe8;
	return rc ? rc : write_disp(places->thread, vaddr + CHECK, call + 1);
}

static int write_inc(const struct me_stub *stub, enum me_counters counters, uint64_t first,
		     uint64_t vaddr, uint8_t *out)
{
	if (counters == ME_COUNTERS_ATOMIC)
		*out++ = 0xf0;
	else if (counters == ME_COUNTERS_THREADS)
		*out++ = 0x65;
	*out++ = 0x48;
	*out++ = 0xff;
	*out++ = 0x05;
	return write_disp(first + 8 * (uint64_t)stub->counter, vaddr + own_size(stub, counters),
			  out);
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

int me_stub_code_write(const struct me_stub *stub, enum me_counters counters,
		       const struct me_stub_places *places, uint64_t vaddr, uint8_t *out)
{
	uint32_t size = own_size(stub, counters);
	int rc = 0;

	if (stub->checks) {
		rc = write_check(places, vaddr, out);
		if (rc)
			return rc;
		vaddr += CHECK;
		out += CHECK;
	}
	switch (stub->does) {
	case ME_STUB_SETS: write_mov(stub, out); break;
	case ME_STUB_ADDS: write_lea(stub, out); break;
	case ME_STUB_PASSES: break;
	case ME_STUB_WAITS: memset(out, NOP, size); break;
	case ME_STUB_ENTERS: rc = me_enter_code_write(stub, places, vaddr, out); break;
	case ME_STUB_LEAVES: rc = me_leave_code_write(stub, places, vaddr, out); break;
	case ME_STUB_TIMES: rc = me_point_code_write(stub, places, vaddr, out); break;
	case ME_STUB_CLOCKS: rc = me_clock_code_write(places, vaddr, out); break;
	case ME_STUB_SAMPLES: rc = me_sample_code_write(places, vaddr, out); break;
	case ME_STUB_NOTES: rc = me_note_code_write(stub, places->counters, vaddr, out); break;
	default: rc = write_inc(stub, counters, places->counters, vaddr, out);
	}
	if (!rc && stub->polls)
		rc = me_poll_code_write(places->counters, places->notes, vaddr + size, out + size);
	return rc;
}
