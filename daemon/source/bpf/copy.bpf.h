/* SPDX-License-Identifier: GPL-2.0 */
/*
 * copy - copies the interrupted code's registers and a piece of its stack, for morphd to walk. Called
 * by collector, where a walk has met a file whose rows morphd may not have given yet.
 */
#ifndef MD_BPF_COPY_H
#define MD_BPF_COPY_H

#include "daemon/source/bpf/walk.bpf.h"

#define BELOW 128 /* leaf functions may use so much memory below rsp */

struct copy {
	struct md_wire_copy record;
	__u8 room[PAGE_BYTES]; /* so that the verifier accepts a page at any place */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct copy);
} copies SEC(".maps");

/* Copies up to the end of one page. */
static long copy_page(__u32 i, struct copy **at)
{
	struct md_wire_copy *record = &(*at)->record;
	__u64 nr = record->nr, from = record->registers[MORPH_REG_RSP] - BELOW + nr, size;

	(void)i;
	size = PAGE_BYTES - (from & (PAGE_BYTES - 1));
	if (size > MD_WIRE_COPY_BYTES - nr)
		size = MD_WIRE_COPY_BYTES - nr;
	hide(nr);
	hide(size);
	if (nr >= MD_WIRE_COPY_BYTES || !size || size > PAGE_BYTES ||
	    bpf_probe_read_user(record->bytes + nr, size, (const void *)from))
		return 1;
	record->nr = nr + size;
	return 0;
}

/* Copies what @w was to walk. */
static __always_inline void copy_stack(struct copy *copy, const struct walk *w)
{
	struct md_wire_copy *record = &copy->record;
	__u32 i;

	record->task = w->record.task;
	record->task.record.type = MD_WIRE_COPY;
	record->task.flags = w->record.task.flags & MORPH_STACK_USER_IP ? MORPH_USER_STACK_KERNEL
									: 0;
	record->ip = w->record.ip;
	record->user_ip = w->pt_regs[16];
#pragma unroll
	for (i = 0; i < MORPH_NR_REGS; i++)
		record->registers[i] = w->regs[i];
	record->nr = 0;
	record->below = BELOW;
	bpf_loop(MD_WIRE_COPY_BYTES / PAGE_BYTES + 1, copy_page, &copy, 0);
}

#endif
