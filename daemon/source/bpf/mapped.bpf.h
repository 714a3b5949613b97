/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mapped - what the interrupted program has mapped at an address.
 *
 * Reads the kernel's own tree of mappings, without its lock: bpf_find_vma() works only once in an
 * interrupt. Nodes of the tree, and mappings whose code this CPU runs, are not freed meanwhile:
 * the one waits for this interrupt as for any reader, the other for the interrupt that removes the
 * code from this CPU's TLB. A mapping that another thread is just changing counts as unknown.
 * Called by walk.
 */
#ifndef MD_BPF_MAPPED_H
#define MD_BPF_MAPPED_H

#include "daemon/source/bpf/wire_rows.h"

#define VM_EXEC	      4
#define FMODE_BACKING (1U << 25)

/* The kernel's maple tree: a pointer to a node has the node's kind in its lower bits. */
#define NODE_WORDS	32
#define NODE_MASK	(~255ULL)
#define NODE_KIND(at)	((at) >> 3 & 15)
#define NODE_RANGE_64	2 /* and smaller: a leaf */
#define NODE_ARANGE_64	3
#define NODE_DEPTH_MAX	8
#define IS_INTERNAL(at) (((at)&3) == 2)
#define PAGE_SHIFT	12

struct mapping {
	__u64 start, end, off; /* @off: of @start in the file, in bytes */
	__u64 flags, ops, file;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MD_WIRE_FILES);
	__type(key, struct md_wire_file_key);
	__type(value, struct md_wire_file);
} files SEC(".maps");

struct descent {
	__u64 *node; /* memory for one */
	__u64 at;
	__u64 page;
	bool is_done;
};

/*
 * Return: index of the slot of @node for the page @page. Pivots are the last addresses of slots;
 * that of the last slot may be 0. Comparisons are differences: branches would multiply the
 * verifier's work.
 */
static __always_inline __u64 slot_of(const __u64 *node, __u64 page, __u64 is_long)
{
	__u64 go = 1, slot = 0, pivot, is_below, is_last, i;

#pragma unroll
	for (i = 0; i < 15; i++) {
		if (i == 9)
			go &= is_long;
		pivot = node[1 + i] >> PAGE_SHIFT;
		is_below = pivot - page;
		hide(is_below);
		is_last = -pivot;
		hide(is_last);
		go &= is_below >> 63 & is_last >> 63;
		hide(go);
		slot += go;
	}
	return slot;
}

/* Goes down by one node of the tree. */
static long descend(__u32 i, struct descent *d)
{
	__u64 kind = NODE_KIND(d->at), at = d->at & NODE_MASK, slot;
	__u64 *node = d->node;

	(void)i;
	d->at = 0;
	if (bpf_probe_read_kernel(node, NODE_WORDS * sizeof(*node), (const void *)at) ||
	    (node[0] & NODE_MASK) == at)
		return 1; /* the node was replaced just now */
	if (kind == NODE_ARANGE_64)
		slot = bpf_core_field_offset(struct maple_arange_64, slot) / sizeof(*node) +
		       slot_of(node, d->page, 0);
	else
		slot = bpf_core_field_offset(struct maple_range_64, slot) / sizeof(*node) +
		       slot_of(node, d->page, 1);
	hide(slot);
	d->at = node[slot & (NODE_WORDS - 1)];
	d->is_done = kind < NODE_RANGE_64;
	return d->is_done;
}

/* Return: address of a struct vm_area_struct, of @ip unless the tree is being changed; 0: none. */
static __always_inline __u64 find_vma(__u64 *node, const struct mm_struct *mm, __u64 ip)
{
	struct descent d = {
		.node = node,
		.at = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root),
		.page = ip >> PAGE_SHIFT,
	};

	if (!IS_INTERNAL(d.at) || d.at <= 4096)
		return 0;
	d.at &= ~2ULL;
	bpf_loop(NODE_DEPTH_MAX, descend, &d, 0);
	return d.is_done && !IS_INTERNAL(d.at) ? d.at : 0;
}

/*
 * Each read of the kernel's memory is a call that costs more than what it reads. So a structure is
 * read up to its last member of interest, and members are taken from the copy.
 */
#define MEMBER(copy, type, member)                                                                 \
	(copy)[bpf_core_field_offset(struct type, member) / sizeof(*(copy)) & (NODE_WORDS - 1)]

/* Gives the mapping that has @ip. Return: false: there is none, or it is being changed. */
static __always_inline bool find_mapping(__u64 *node, const struct mm_struct *mm, __u64 ip,
					 struct mapping *out)
{
	const struct vm_area_struct *vma;
	__u64 start;

	if ((__s64)ip < 0)
		return false;
	vma = (const void *)find_vma(node, mm, ip);
	if (!vma ||
	    bpf_core_field_offset(struct vm_area_struct, vm_file) >= sizeof(*node) * NODE_WORDS)
		return false;
	if (bpf_probe_read_kernel(node, NODE_WORDS * sizeof(*node), vma))
		return false;
	out->start = MEMBER(node, vm_area_struct, vm_start);
	out->end = MEMBER(node, vm_area_struct, vm_end);
	out->flags = MEMBER(node, vm_area_struct, vm_flags);
	out->ops = MEMBER(node, vm_area_struct, vm_ops);
	out->file = MEMBER(node, vm_area_struct, vm_file);
	out->off = MEMBER(node, vm_area_struct, vm_pgoff) << PAGE_SHIFT;
	if (ip < out->start || ip >= out->end || MEMBER(node, vm_area_struct, vm_mm) != (__u64)mm)
		return false;
	/* A mapping that is cut in two gets another start and offset, one after the other. */
	start = BPF_CORE_READ(vma, vm_start);
	return start == out->start && BPF_CORE_READ(vma, vm_pgoff) << PAGE_SHIFT == out->off;
}

/* The inode that /proc/PID/maps shows for the file. */
static __always_inline const struct inode *inode_of(const struct file *file)
{
	const struct backing_file *backing = (const void *)file;

	if (bpf_core_type_exists(struct backing_file) &&
	    BPF_CORE_READ(file, f_mode) & FMODE_BACKING)
		return BPF_CORE_READ(backing, user_path.dentry, d_inode);
	return BPF_CORE_READ(file, f_inode);
}

/* Return: what morphd said of the file of @m; NULL: nothing yet. *@key: its identity. */
static __always_inline const struct md_wire_file *find_file(const struct mapping *m,
							    struct md_wire_file_key *key)
{
	const struct md_wire_file *file;
	const struct inode *inode = NULL;

	__builtin_memset(key, 0, sizeof(*key));
	if (m->file) {
		inode = inode_of((const void *)m->file);
		key->ino = BPF_CORE_READ(inode, i_ino);
		key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	}
	file = bpf_map_lookup_elem(&files, key);
	if (file && file->flags & MD_WIRE_FILE_GENERATION &&
	    file->ino_generation != BPF_CORE_READ(inode, i_generation))
		return NULL;
	return file;
}

#endif
