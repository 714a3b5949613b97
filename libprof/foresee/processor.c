// SPDX-License-Identifier: Apache-2.0
/* processor - reads and writes registers of all sizes, and decides conditions. Called by execute and foresee. */
#include "libprof/foresee/processor_private.h"

#include "libprof/foresee/alu_private.h"

/* The part of a general register that a name of Zydis stands for. */
struct part {
	unsigned int number, shift, bits;
};

/* Zydis numbers registers of one size in x86's order. 8 bits: al to bl, ah to bh, spl to r15b. */
static bool part_of(ZydisRegister reg, struct part *part)
{
	unsigned int n = (unsigned int)reg;

	if (reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15)
		*part = (struct part){n - ZYDIS_REGISTER_RAX, 0, 64};
	else if (reg >= ZYDIS_REGISTER_EAX && reg <= ZYDIS_REGISTER_R15D)
		*part = (struct part){n - ZYDIS_REGISTER_EAX, 0, 32};
	else if (reg >= ZYDIS_REGISTER_AX && reg <= ZYDIS_REGISTER_R15W)
		*part = (struct part){n - ZYDIS_REGISTER_AX, 0, 16};
	else if (reg >= ZYDIS_REGISTER_AL && reg <= ZYDIS_REGISTER_BL)
		*part = (struct part){n - ZYDIS_REGISTER_AL, 0, 8};
	else if (reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH)
		*part = (struct part){n - ZYDIS_REGISTER_AH, 8, 8};
	else if (reg >= ZYDIS_REGISTER_SPL && reg <= ZYDIS_REGISTER_R15B)
		*part = (struct part){n - ZYDIS_REGISTER_SPL + 4, 0, 8};
	else
		return false;
	return true;
}

bool mp_register_read(const struct mp_processor *p, ZydisRegister reg, uint64_t *value)
{
	struct part part;

	if (!part_of(reg, &part) || !(p->known >> part.number & 1))
		return false;
	*value = p->values[part.number] >> part.shift & mp_low_bits(part.bits);
	return true;
}

void mp_register_write(struct mp_processor *p, ZydisRegister reg, uint64_t value)
{
	struct part part;
	uint64_t mask;

	if (!part_of(reg, &part))
		return;
	mask = mp_low_bits(part.bits) << part.shift;
	if (part.bits >= 32) {
		p->values[part.number] = value & mask;
		p->known |= (uint16_t)(1u << part.number);
		return;
	}
	p->values[part.number] = (p->values[part.number] & ~mask) | (value << part.shift & mask);
}

void mp_register_forget(struct mp_processor *p, ZydisRegister reg)
{
	struct part part;

	if (part_of(reg, &part))
		p->known &= (uint16_t) ~(1u << part.number);
}

void mp_flags_write(struct mp_processor *p, const struct mp_alu *alu)
{
	p->flags = (p->flags & ~alu->changed) | (alu->flags & alu->defined);
	p->flags_known = (p->flags_known & ~alu->changed) | alu->defined;
}

static enum mp_truth flag(const struct mp_processor *p, uint32_t bit)
{
	if (!(p->flags_known & bit))
		return MP_UNKNOWN;
	return p->flags & bit ? MP_TRUE : MP_FALSE;
}

static enum mp_truth either(enum mp_truth a, enum mp_truth b)
{
	if (a == MP_TRUE || b == MP_TRUE)
		return MP_TRUE;
	return a == MP_UNKNOWN || b == MP_UNKNOWN ? MP_UNKNOWN : MP_FALSE;
}

static enum mp_truth differ(enum mp_truth a, enum mp_truth b)
{
	if (a == MP_UNKNOWN || b == MP_UNKNOWN)
		return MP_UNKNOWN;
	return a != b ? MP_TRUE : MP_FALSE;
}

enum mp_truth mp_condition(const struct mp_processor *p, unsigned int cc)
{
	enum mp_truth less = differ(flag(p, MP_SF), flag(p, MP_OF));
	const enum mp_truth truths[] = {flag(p, MP_OF), flag(p, MP_CF),
					flag(p, MP_ZF), either(flag(p, MP_CF), flag(p, MP_ZF)),
					flag(p, MP_SF), flag(p, MP_PF),
					less,		either(flag(p, MP_ZF), less)};
	enum mp_truth truth = truths[cc >> 1 & 7];

	if (truth == MP_UNKNOWN || !(cc & 1))
		return truth;
	return truth == MP_TRUE ? MP_FALSE : MP_TRUE;
}
