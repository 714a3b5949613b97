// SPDX-License-Identifier: GPL-2.0
/*
 * registers - records the registers of sampled user code; off unless the reader asks for
 * them.
 * Called by sample.
 */
#include <linux/bitops.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/stddef.h>

#include <asm/segment.h>

#include "kmod/morphmon.h"

/* Indexed by x86's register numbers; the flags come last. */
static const u8 offsets[MORPH_REG_FLAGS + 1] = {
	offsetof(struct pt_regs, ax),	 offsetof(struct pt_regs, cx),
	offsetof(struct pt_regs, dx),	 offsetof(struct pt_regs, bx),
	offsetof(struct pt_regs, sp),	 offsetof(struct pt_regs, bp),
	offsetof(struct pt_regs, si),	 offsetof(struct pt_regs, di),
	offsetof(struct pt_regs, r8),	 offsetof(struct pt_regs, r9),
	offsetof(struct pt_regs, r10),	 offsetof(struct pt_regs, r11),
	offsetof(struct pt_regs, r12),	 offsetof(struct pt_regs, r13),
	offsetof(struct pt_regs, r14),	 offsetof(struct pt_regs, r15),
	offsetof(struct pt_regs, flags),
};

/*
 * If there is no room, the sample has no registers. The sample itself is kept, and no loss is
 * counted.
 */
void morph_registers_add(struct morph_cpu *cpu, const struct pt_regs *regs)
{
	u32 mask = morph_settings.registers;
	struct morph_registers *record;
	u64 *to;
	u32 size;

	/* 32-bit code has only half of the registers. */
	if (!user_mode((struct pt_regs *)regs) || regs->cs != __USER_CS)
		return;
	size = sizeof(*record) + (1 + hweight32(mask)) * sizeof(*to);
	record = morph_record_begin(cpu, MORPH_REC_REGISTERS, size, current);
	if (!record)
		return;
	record->registers = mask;
	record->pad = 0;
	to = record->entries;
	*to++ = regs->ip;
	for (; mask; mask &= mask - 1)
		*to++ = *(const unsigned long *)((const char *)regs + offsets[__ffs(mask)]);
	morph_ring_commit(&cpu->ring, size);
}
