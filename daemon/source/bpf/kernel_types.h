/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kernel_types - the few members of kernel structures that the BPF programs read.
 *
 * libbpf takes their offsets from the running kernel's BTF when it loads the programs. The
 * order and gaps of the members here have no meaning.
 */
#ifndef MD_BPF_KERNEL_TYPES_H
#define MD_BPF_KERNEL_TYPES_H

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct {
	unsigned long start_code;
};

struct sched_entity {
	__u64 sum_exec_runtime;
};

struct task_struct {
	struct sched_entity se;
	struct mm_struct *mm;
	int pid;
	int tgid;
	int exit_code;
};

#pragma clang attribute pop

#endif
