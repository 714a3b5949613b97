// SPDX-License-Identifier: Apache-2.0
/* audit_code - writes the instructions that audit_code.h describes. Called by stub_code. */
#include "editor/place/audit_code.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "libprof/note/audit_file.h"

enum {
	JMP = 5,
	DECL = 7,
	LEA = 5,
	CALL = 5,
	TEST = 5,
};

struct writer {
	uint8_t *out;
	uint64_t vaddr;
	bool failed;
};

static void put(struct writer *w, const void *bytes, unsigned int nr)
{
	memcpy(w->out, bytes, nr);
	w->out += nr;
	w->vaddr += nr;
}

/* Write a displacement to @target. @behind: bytes of the instruction behind it. */
static void put_disp(struct writer *w, uint64_t target, unsigned int behind)
{
	int64_t disp = (int64_t)(target - (w->vaddr + 4 + behind));
	int32_t disp32 = (int32_t)disp;

	w->failed |= disp != disp32;
	put(w, &disp32, sizeof(disp32));
}

/* cmpb $0, %gs:@byte(%rip) */
static void put_compare(struct writer *w, uint64_t byte)
{
	put(w, "\x65\x80\x3d", 3);
	put_disp(w, byte, 1);
	put(w, "", 1);
}

/* lea -ME_RED_ZONE(%rsp), %rsp */
static void put_lower(struct writer *w)
{
	const uint8_t lea[LEA] = {0x48, 0x8d, 0x64, 0x24, (uint8_t)-ME_RED_ZONE};

	put(w, lea, sizeof(lea));
}

/* call @runtime; test $@number, %eax */
static void put_call(struct writer *w, uint64_t runtime, uint32_t number)
{
	put(w, "\xe8", 1);
	put_disp(w, runtime, 0);
	put(w, "\xa9", 1);
	put(w, &number, sizeof(number));
}

static void put_jump(struct writer *w, uint64_t target)
{
	put(w, "\xe9", 1);
	put_disp(w, target, 0);
}

static uint64_t slot_of(const struct me_stub *stub, const struct me_stub_places *places)
{
	return places->counters + stub->counter * sizeof(struct me_audit_slot);
}

int me_enter_code_write(const struct me_stub *stub, const struct me_stub_places *places,
			uint64_t vaddr, uint8_t *out)
{
	const uint8_t jns[] = {0x79, LEA + CALL + TEST};
	uint64_t slot = slot_of(stub, places);
	struct writer w = {out, vaddr, false};

	put_jump(&w, vaddr + (1 + MP_AUDIT_NR_VERSIONS) * JMP);
	for (int v = 0; v < MP_AUDIT_NR_VERSIONS; v++)
		put_jump(&w, places->untimed[v]);
	put(&w, "\x65\xff\x0d", 3);
	put_disp(&w, slot + offsetof(struct me_audit_slot, countdown), 0);
	put(&w, jns, sizeof(jns));
	put_lower(&w);
	put_call(&w, places->enter, stub->counter | (stub->value ? ME_AUDIT_NUMBER_LOOPS : 0));
	put_compare(&w, slot + offsetof(struct me_audit_slot, version));
	put(&w, "\x0f\x85", 2);
	put_disp(&w, places->other, 0);
	return w.failed ? -ERANGE : 0;
}

int me_point_code_write(const struct me_stub *stub, const struct me_stub_places *places,
			uint64_t vaddr, uint8_t *out)
{
	const uint8_t jns[] = {0x79, ME_POINT_CODE_SIZE - DECL - 2};
	const uint8_t jcc[] = {0x0f, stub->version == MP_AUDIT_A ? 0x85 : 0x84};
	uint64_t untimed = places->untimed[stub->version == MP_AUDIT_A ? MP_AUDIT_A : MP_AUDIT_B];
	uint64_t slot = slot_of(stub, places);
	uint64_t left = slot + offsetof(struct me_audit_slot, points) +
			stub->point * sizeof(struct me_audit_point) +
			offsetof(struct me_audit_point, left) + stub->version * sizeof(int32_t);
	struct writer w = {out, vaddr, false};

	put(&w, "\x65\xff\x0d", 3);
	put_disp(&w, left, 0);
	put(&w, jns, sizeof(jns));
	put_lower(&w);
	put_call(&w, places->point,
		 stub->counter | (uint32_t)stub->point << ME_AUDIT_NUMBER_POINT |
			 (uint32_t)stub->version << ME_AUDIT_NUMBER_VERSION |
			 (uint32_t)stub->value << ME_AUDIT_NUMBER_ROUNDS);
	put_compare(&w, slot + offsetof(struct me_audit_slot, version));
	put(&w, jcc, sizeof(jcc));
	put_disp(&w, places->other, 0);
	put_compare(&w, slot + offsetof(struct me_audit_slot, decided));
	put(&w, "\x0f\x85", 2);
	put_disp(&w, untimed, 0);
	return w.failed ? -ERANGE : 0;
}

int me_leave_code_write(const struct me_stub *stub, const struct me_stub_places *places,
			uint64_t vaddr, uint8_t *out)
{
	const uint8_t je[] = {0x74, LEA + CALL + TEST};
	struct writer w = {out, vaddr, false};

	put_compare(&w, slot_of(stub, places) + offsetof(struct me_audit_slot, timing));
	put(&w, je, sizeof(je));
	put_lower(&w);
	put_call(&w, places->leave, stub->counter);
	return w.failed ? -ERANGE : 0;
}
