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

struct maple_tree {
	void *ma_root;
};

/* The program reads only the offsets of a node's fields. */
struct maple_range_64 {
	unsigned long pivot[15];
	void *slot[16];
};

struct maple_arange_64 {
	unsigned long pivot[9];
	void *slot[10];
};

typedef struct {
	__u64 ctx_id; /* no other address space ever has it */
	void *vdso;
} mm_context_t;

struct mm_struct {
	struct maple_tree mm_mt; /* since Linux 6.1 */
	mm_context_t context;
	unsigned long start_code;
};

/* Since Linux 6.4, if mappings have locks of their own; a count of changes. */
struct mm_struct___count {
	int mm_lock_seq;
};

struct seqcount___any {
	unsigned int sequence;
};

/* Since Linux 6.13: odd while somebody may change a mapping. */
struct mm_struct___seqcount {
	struct seqcount___any mm_lock_seq;
};

struct super_block {
	__u32 s_dev;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	__u32 i_generation;
};

struct dentry {
	struct inode *d_inode;
};

struct path {
	struct dentry *dentry;
};

struct file {
	unsigned int f_mode;
	struct inode *f_inode;
};

/* An overlay's file has @user_path, the file that the program opened. Since Linux 6.8. */
struct backing_file {
	struct file file;
	struct path user_path;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_flags;
	void *vm_ops;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct sched_entity {
	__u64 sum_exec_runtime;
};

struct task_struct {
	struct sched_entity se;
	struct mm_struct *mm;
	unsigned int flags;
	int pid;
	int tgid;
	int exit_code;
};

#pragma clang attribute pop

#endif
