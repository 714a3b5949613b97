// SPDX-License-Identifier: Apache-2.0
/* perf_stack - the numbers of perf's registers, and the layout of a sample's end. */
#include "daemon/source/perf_stack.h"

#include <asm/perf_regs.h>
#include <string.h>

/* Return: perf's number of register @reg. */
static uint32_t perf_reg(uint32_t reg)
{
	static const uint8_t perf[8] = {
		[MORPH_REG_RAX] = PERF_REG_X86_AX, [MORPH_REG_RCX] = PERF_REG_X86_CX,
		[MORPH_REG_RDX] = PERF_REG_X86_DX, [MORPH_REG_RBX] = PERF_REG_X86_BX,
		[MORPH_REG_RSP] = PERF_REG_X86_SP, [MORPH_REG_RBP] = PERF_REG_X86_BP,
		[MORPH_REG_RSI] = PERF_REG_X86_SI, [MORPH_REG_RDI] = PERF_REG_X86_DI,
	};

	if (reg == MORPH_REG_FLAGS)
		return PERF_REG_X86_FLAGS;
	return reg < 8 ? perf[reg] : PERF_REG_X86_R8 + reg - 8;
}

uint64_t md_perf_user_mask(uint32_t registers, bool stacks)
{
	uint64_t mask = stacks ? UINT64_C(1) << PERF_REG_X86_IP : 0;

	for (uint32_t reg = 0; reg <= MORPH_REG_FLAGS; reg++)
		if ((stacks && reg < MORPH_NR_REGS) || registers >> reg & 1)
			mask |= UINT64_C(1) << perf_reg(reg);
	return mask;
}

uint32_t md_perf_stack_words(uint32_t registers)
{
	return registers >> MORPH_REG_RSP & 1 ? MD_PERF_STACK_TOP / 8 : 0;
}

/* perf orders the values by its own register numbers. */
static uint32_t index_of(uint64_t mask, uint32_t number)
{
	return (uint32_t)__builtin_popcountll(mask & ((UINT64_C(1) << number) - 1));
}

uint32_t md_perf_reg_index(uint64_t mask, uint32_t reg)
{
	return index_of(mask, perf_reg(reg));
}

void md_perf_ask_for_stack(struct perf_event_attr *attr, uint32_t registers, bool stacks)
{
	if (registers || stacks) {
		attr->sample_type |= PERF_SAMPLE_REGS_USER;
		attr->sample_regs_user = md_perf_user_mask(registers, stacks);
	}
	if (stacks || md_perf_stack_words(registers)) {
		attr->sample_type |= PERF_SAMPLE_STACK_USER;
		attr->sample_stack_user = stacks ? MD_PERF_STACK_BYTES
						 : 8 * md_perf_stack_words(registers);
	}
}

static bool take(const uint8_t **data, size_t *room, void *to, size_t size)
{
	if (*room < size)
		return false;
	if (to)
		memcpy(to, *data, size);
	*data += size;
	*room -= size;
	return true;
}

bool md_perf_read_user(const uint8_t *data, size_t room, uint64_t mask, struct md_perf_user *out)
{
	uint64_t abi, values[64], size, used;

	if (!take(&data, &room, &abi, sizeof(abi)) || abi != PERF_SAMPLE_REGS_ABI_64 ||
	    !take(&data, &room, values, (size_t)__builtin_popcountll(mask) * sizeof(values[0])))
		return false;
	for (uint32_t reg = 0; reg < MORPH_NR_REGS; reg++)
		out->registers[reg] = values[md_perf_reg_index(mask, reg)];
	out->ip = values[index_of(mask, PERF_REG_X86_IP)];
	/* The size that was asked for, the bytes, and how many of them were read. */
	if (!take(&data, &room, &size, sizeof(size)))
		return false;
	out->stack = data;
	out->size = 0;
	if (!size)
		return true;
	if (!take(&data, &room, NULL, size) || !take(&data, &room, &used, sizeof(used)))
		return false;
	out->size = used < size ? used : size;
	return true;
}
