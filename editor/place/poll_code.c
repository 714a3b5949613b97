// SPDX-License-Identifier: Apache-2.0
/* poll_code - writes the instructions that poll_code.h describes. Called by stub_code. */
#include "editor/place/poll_code.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "editor/place/stub_code.h"

_Static_assert(sizeof(struct mp_poll) == 16 && sizeof(struct mp_polls) == 4096 + 16 * 1024 &&
		       !(MP_POLLS_MAX & (MP_POLLS_MAX + 1)),
	       "so many bytes, and a mask");

struct writer {
	uint8_t *out;
	uint64_t vaddr;
	bool failed;
};

static void put(struct writer *w, uint8_t byte)
{
	*w->out++ = byte;
	w->vaddr++;
}

static void put_u32(struct writer *w, uint32_t value)
{
	memcpy(w->out, &value, sizeof(value));
	w->out += sizeof(value);
	w->vaddr += sizeof(value);
}

/* Write a displacement to @target. @behind: bytes of the instruction behind it. */
static void put_disp(struct writer *w, uint64_t target, unsigned int behind)
{
	int64_t disp = (int64_t)(target - (w->vaddr + 4 + behind));

	w->failed |= disp != (int32_t)disp;
	put_u32(w, (uint32_t)disp);
}

int me_poll_code_write(uint64_t polls, uint64_t notes, uint64_t vaddr, uint8_t *out)
{
	struct writer w = {out, vaddr, false};

	/* cmpl $0, left */
	put(&w, 0x83);
	put(&w, 0x3d);
	put_disp(&w, polls, 1);
	put(&w, 0);
	/* jg notes */
	put(&w, 0x0f);
	put(&w, 0x8f);
	put_disp(&w, notes, 0);
	return w.failed ? -ERANGE : 0;
}

#define MOVQ 5

/* movq between @stub's scratch register and the vector register that saves it; @op is the
 * direction. */
static void put_movq(struct writer *w, const struct me_stub *stub, uint8_t op)
{
	put(w, 0x66);
	put(w, 0x4c | stub->scratch >> 3);
	put(w, 0x0f);
	put(w, op);
	put(w, 0xc0 | (stub->vector & 7) << 3 | (stub->scratch & 7));
}

uint32_t me_note_code_size(const struct me_stub *stub)
{
	return 37 + 4 * (stub->scratch >= 8) + 2 * me_needs_sib(stub->scratch) +
	       (stub->vector ? 2 * MOVQ : 0);
}

static void put_base(struct writer *w, uint8_t reg, const struct me_stub *stub, uint8_t disp)
{
	put(w, 0x40 | (reg & 7) << 3 | (stub->scratch & 7));
	if (me_needs_sib(stub->scratch))
		put(w, 0x24);
	put(w, disp);
}

int me_note_code_write(const struct me_stub *stub, uint64_t polls, uint64_t vaddr, uint8_t *out)
{
	struct writer w = {out, vaddr, false};
	const uint8_t low = stub->scratch & 7;
	const bool high = stub->scratch >= 8;

	if (stub->vector)
		put_movq(&w, stub, 0x6e);
	/* mov $-16, scratch */
	if (high)
		put(&w, 0x41);
	put(&w, 0xb8 | low);
	put_u32(&w, -(uint32_t)sizeof(struct mp_poll));
	/* lock xadd scratch, left */
	put(&w, 0xf0);
	if (high)
		put(&w, 0x44);
	put(&w, 0x0f);
	put(&w, 0xc1);
	put(&w, 0x05 | low << 3);
	put_disp(&w, polls, 0);
	/* and $mask, scratch: a valid place, whatever the file holds */
	if (high)
		put(&w, 0x41);
	put(&w, 0x81);
	put(&w, 0xe0 | low);
	put_u32(&w, MP_POLLS_MAX * sizeof(struct mp_poll));
	/* add polls, scratch */
	put(&w, 0x48 | (high ? 0x04 : 0));
	put(&w, 0x03);
	put(&w, 0x05 | low << 3);
	put_disp(&w, polls + sizeof(struct mp_polls), 0);
	/* mov reg, (scratch) */
	put(&w, 0x48 | (stub->reg >= 8 ? 0x04 : 0) | (high ? 0x01 : 0));
	put(&w, 0x89);
	put_base(&w, stub->reg, stub, offsetof(struct mp_poll, number));
	/* movl $(block + 1), 8(scratch) */
	if (high)
		put(&w, 0x41);
	put(&w, 0xc7);
	put_base(&w, 0, stub, offsetof(struct mp_poll, block));
	put_u32(&w, stub->counter + 1);
	if (stub->vector)
		put_movq(&w, stub, 0x7e);
	return w.failed ? -ERANGE : 0;
}
