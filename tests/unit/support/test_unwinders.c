// SPDX-License-Identifier: Apache-2.0
/*
 * test_unwinders - the model of libgcc finds what the real libgcc finds: random programs of FDEs are given to
 * __register_frame(), and _Unwind_Backtrace() reads the frame that they describe.
 *
 * A function made here sets the registers to known values and calls back. Every value, and every word of the stack above
 * and of the memory that the values lead to, is an address of readable memory without code. So whatever a row says, the
 * unwinder ends up there. The size of arguments cannot be seen in this way.
 */
#include "tests/unit/suite.h"

#include <sys/mman.h>
#include <unwind.h>

#include "editor/base/mix.h"
#include "tests/support/unwinders/unwinders.h"

#define PROGRAMS 4000
#define AREA	 0x4000 /* bytes of memory that values lead to, and half of those on the stack */
#define BLANK	 64	/* no-ops in front of the call, between which rows begin */

void __register_frame(void *);
void __deregister_frame(void *);

static uint8_t area[2 * AREA] __attribute__((aligned(16)));
static uint8_t *code, *after_call;
static uint64_t values[17]; /* of registers at the call */

/* What the unwinder found in the function's caller, and what it reads there. */
static struct {
	const struct found_frame *frame;
	bool reached, ends;
	char wrong[100];
} seen;

static uint64_t random_state;

static uint64_t draw(uint64_t n)
{
	return me_mix(random_state++) % n;
}

static uint64_t word_of(uint64_t at)
{
	uint64_t v;

	memcpy(&v, (const void *)at, sizeof(v));
	return v;
}

/* DW_OP_bregN with an offset, and nothing else */
static uint64_t evaluate(const struct found_rule *r)
{
	int64_t off = r->expr[1] & 0x7f;

	return values[r->expr[0] - 0x70] + (uint64_t)(off & 0x40 ? off - 0x80 : off);
}

static uint64_t cfa_of(const struct found_row *row)
{
	return row->cfa.how == FOUND_EXPR_IS ? evaluate(&row->cfa)
					     : values[row->cfa.reg] + (uint64_t)row->cfa.off;
}

/* Return: false: the unwinder knows no value. */
static bool value_of(const struct found_row *row, int reg, uint64_t *v)
{
	const struct found_rule *r = &row->reg[reg];
	uint64_t cfa = cfa_of(row);

	switch (r->how) {
	case FOUND_AT: *v = word_of(cfa + (uint64_t)r->off); return true;
	case FOUND_IS: *v = cfa + (uint64_t)r->off; return true;
	case FOUND_REGISTER: *v = values[r->off]; return true;
	case FOUND_EXPR_AT: *v = word_of(evaluate(r)); return true;
	case FOUND_EXPR_IS: *v = evaluate(r); return true;
	default: *v = values[reg]; return reg == 3 || reg == 6 || reg >= 12;
	}
}

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *arg)
{
	const struct found_row *row = found_row_at(seen.frame, (uint64_t)after_call - 1);
	uint64_t v;

	(void)arg;
	if (!seen.reached) {
		seen.reached = _Unwind_GetIP(context) == (uint64_t)after_call;
		return _URC_NO_REASON;
	}
	seen.ends = true;
	if (_Unwind_GetCFA(context) != cfa_of(row))
		snprintf(seen.wrong, sizeof(seen.wrong), "CFA");
	for (int reg = 0; reg < 17; reg++)
		if (reg != 16 && value_of(row, reg, &v) && _Unwind_GetGR(context, reg) != v)
			snprintf(seen.wrong, sizeof(seen.wrong), "register %d", reg);
	if (value_of(row, 16, &v) &&
	    _Unwind_GetIP(context) != (row->reg[16].how == FOUND_UNDEFINED ? 0 : v))
		snprintf(seen.wrong, sizeof(seen.wrong), "return address, rule %d",
			 row->reg[16].how);
	return _URC_END_OF_STACK;
}

static uint64_t place_in_area(void)
{
	return (uint64_t)area + AREA / 2 + (draw(AREA / 16) * 16);
}

static __attribute__((noinline)) void called_back(void)
{
	uint64_t sp = (uint64_t)__builtin_frame_address(0) + 16;

	values[7] = sp;
	values[16] = (uint64_t)after_call;
	for (uint64_t at = sp; at < sp + AREA; at += 8) {
		uint64_t v = place_in_area();

		memcpy((void *)at, &v, sizeof(v));
	}
	_Unwind_Backtrace(look, NULL);
}

static const uint8_t before[] = {
	0x55, 0x53, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57, /* push rbp, rbx, r12 to r15 */
	0x48, 0x81, 0xec, 0x08, 0x50, 0,    0,			    /* sub $0x5008, %rsp */
	0x48, 0x8b, 0x1e, 0x48, 0x8b, 0x6e, 0x08,		    /* rbx, rbp from (%rsi) */
	0x4c, 0x8b, 0x66, 0x10, 0x4c, 0x8b, 0x6e, 0x18,		    /* r12, r13 */
	0x4c, 0x8b, 0x76, 0x20, 0x4c, 0x8b, 0x7e, 0x28,		    /* r14, r15 */
};
static const uint8_t behind[] = {
	0xff, 0xd7,						    /* call *%rdi */
	0x48, 0x81, 0xc4, 0x08, 0x50, 0,    0,			    /* add $0x5008, %rsp */
	0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5b, 0x5d, /* pop */
	0xc3,
};

static void make_code(void)
{
	uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	code = p;
	memcpy(p, before, sizeof(before));
	p += sizeof(before);
	memset(p, 0x90, BLANK);
	p += BLANK;
	memcpy(p, behind, sizeof(behind));
	after_call = p + 2;
	for (uint64_t at = 0; at < sizeof(area); at += 8) {
		uint64_t v = place_in_area();

		memcpy(area + at, &v, sizeof(v));
	}
}

/* ---- random programs ----------------------------------------------------------------------- */

static uint8_t kept(void)
{
	static const uint8_t regs[] = {3, 6, 12, 13, 14, 15};

	return regs[draw(sizeof(regs))];
}

static uint8_t *put_expr(uint8_t *p)
{
	*p++ = 2;
	*p++ = 0x70 + kept();
	*p++ = (uint8_t)(8 * draw(16));
	return p;
}

/* A register that rules are made for; libgcc passes over those from 18 on. */
static uint8_t any(void)
{
	static const uint8_t regs[] = {0, 1, 2, 3, 5, 6, 7, 8, 12, 13, 14, 15, 16, 18, 25, 40};

	return regs[draw(sizeof(regs))];
}

/* One step. *@depth: states that are remembered. @in_cie: steps of the CIE */
static uint8_t *put_step(uint8_t *p, int *depth, bool in_cie)
{
	switch (draw(in_cie ? 13 : 19)) {
	case 0:
		*p++ = 0x80 | (any() & 0x3f);
		*p++ = (uint8_t)draw(64);
		break;
	case 1:
		*p++ = 0x05;
		*p++ = any();
		*p++ = (uint8_t)draw(64);
		break;
	case 2:
		*p++ = 0x11;
		*p++ = any();
		*p++ = (uint8_t)draw(128);
		break;
	case 3:
		*p++ = 0x14;
		*p++ = any();
		*p++ = (uint8_t)draw(64);
		break;
	case 4:
		*p++ = 0x15;
		*p++ = any();
		*p++ = (uint8_t)draw(128);
		break;
	case 5:
		*p++ = 0x09;
		*p++ = any();
		*p++ = kept();
		break;
	case 6:
		*p++ = 0x07;
		*p++ = any();
		break;
	case 7:
		*p++ = 0x08;
		*p++ = any();
		break;
	case 8:
		*p++ = 0x10;
		*p++ = any();
		return put_expr(p);
	case 9:
		*p++ = 0x16;
		*p++ = any();
		return put_expr(p);
	case 10:
		*p++ = 0x2f;
		*p++ = any();
		*p++ = (uint8_t)draw(64);
		break;
	case 11:
		*p++ = 0x2e;
		*p++ = (uint8_t)draw(128);
		break;
	case 12: /* the CFA stays in memory that may be read */
		switch (draw(6)) {
		case 0:
			*p++ = 0x0c;
			*p++ = kept();
			*p++ = (uint8_t)(8 * draw(16));
			break;
		case 1:
			*p++ = 0x0c;
			*p++ = 7;
			*p++ = 0x80;
			*p++ = (uint8_t)(16 + draw(16));
			break;
		case 2:
			*p++ = 0x12;
			*p++ = kept();
			*p++ = (uint8_t)draw(128);
			break;
		case 3:
			*p++ = 0x0d;
			*p++ = kept();
			break;
		case 4: *p++ = 0x0f; return put_expr(p);
		default:
			*p++ = 0x13;
			*p++ = 0x80 | (uint8_t)draw(128);
			*p++ = 0x7e; /* -256 and above */
		}
		break;
	case 13: *p++ = 0xc0 | (any() & 0x3f); break;
	case 14:
		*p++ = 0x06;
		*p++ = any();
		break;
	case 15:
		*p++ = 0x0a;
		++*depth;
		break;
	case 16:
		if (*depth > 0) {
			*p++ = 0x0b;
			--*depth;
		}
		break;
	case 17: *p++ = 0x40 | (uint8_t)draw(24); break;
	default: *p++ = 0x02; *p++ = (uint8_t)draw(60);
	}
	return p;
}

/* Writes an entry's length, filled up to four bytes. Return: its end. */
static uint8_t *finish(uint8_t *start, uint8_t *p)
{
	uint32_t len;

	while ((p - start) % 4)
		*p++ = 0;
	len = (uint32_t)(p - start) - 4;
	memcpy(start, &len, sizeof(len));
	return p;
}

TEST_EACH(unwinders_model_of_libgcc_is_libgcc, 5)
{
	static uint8_t section[4096] __attribute__((aligned(8)));
	void (*function)(void (*)(void), const uint64_t *) = NULL;
	struct found_frame frame = {0};
	uint32_t ended = 0;

	random_state = (uint64_t)_i << 32;
	make_code();
	memcpy(&function, &code, sizeof(function));
	for (uint32_t i = 0; i < PROGRAMS; i++) {
		static const uint8_t head[] = {0,   0,	 0, 0, 0,    0,	 0, 0, 1,
					       'z', 'R', 0, 1, 0x78, 16, 1, 0};
		uint8_t *p = section, *cie_program, *cie_end, *fde, *fde_program, *fde_end;
		uint64_t start = (uint64_t)code, size = 4096, regs[6];
		int depth = 0;
		uint32_t id;

		memset(section, 0, sizeof(section));
		memcpy(p, head, sizeof(head));
		cie_program = p += sizeof(head);
		*p++ = 0x0c, *p++ = 7, *p++ = 0x80, *p++ = 0x10;
		*p++ = 0x90, *p++ = 1;
		for (uint64_t k = draw(5); k; k--)
			p = put_step(p, &depth, true);
		cie_end = finish(section, p);
		fde = p = cie_end;
		id = (uint32_t)(fde + 4 - section);
		memcpy(p + 4, &id, sizeof(id));
		memcpy(p + 8, &start, sizeof(start));
		memcpy(p + 16, &size, sizeof(size));
		fde_program = p += 25;
		for (uint64_t k = draw(24); k; k--)
			p = put_step(p, &depth, false);
		fde_end = finish(fde, p);
		for (int k = 0; k < 6; k++) {
			regs[k] = place_in_area();
			values[k == 0 ? 3 : k == 1 ? 6 : 10 + k] = regs[k];
		}
		frame.start = start;
		unwinder_run(UNWINDER_LIBGCC, cie_program, (uint64_t)(cie_end - cie_program),
			     fde_program, (uint64_t)(fde_end - fde_program), 1, -8, &frame);
		ck_assert_msg(!frame.dies, "%s", frame.dies);
		memset(&seen, 0, sizeof(seen));
		seen.frame = &frame;
		__register_frame(section);
		function(called_back, regs);
		__deregister_frame(section);
		ck_assert_msg(!*seen.wrong, "program %u: %s", i, seen.wrong);
		ck_assert(seen.reached);
		ended += seen.ends;
	}
	/* Rows without a return address end the walk before it is seen. */
	ck_assert_uint_gt(ended, PROGRAMS / 2);
	found_frame_fini(&frame);
	munmap(code, 4096);
}
