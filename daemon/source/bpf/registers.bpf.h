/* SPDX-License-Identifier: GPL-2.0 */
/*
 * registers - the registers of interrupted 64-bit user code, in the order of md_wire_registers. Called by
 * collector, for samples that carry them.
 */
#ifndef MD_BPF_REGISTERS_H
#define MD_BPF_REGISTERS_H

#define USER_CS 0x33 /* of 64-bit code; 32-bit code has other frames and half of the registers */

/* The context is read at fixed places only. */
static __always_inline void copy_registers(__u64 *to, const struct bpf_perf_event_data *ctx)
{
	to[0] = ctx->regs.rax;
	to[1] = ctx->regs.rcx;
	to[2] = ctx->regs.rdx;
	to[3] = ctx->regs.rbx;
	to[4] = ctx->regs.rbp;
	to[5] = ctx->regs.rsi;
	to[6] = ctx->regs.rdi;
	to[7] = ctx->regs.r8;
	to[8] = ctx->regs.r9;
	to[9] = ctx->regs.r10;
	to[10] = ctx->regs.r11;
	to[11] = ctx->regs.r12;
	to[12] = ctx->regs.r13;
	to[13] = ctx->regs.r14;
	to[14] = ctx->regs.r15;
	to[15] = ctx->regs.eflags;
}

#endif
