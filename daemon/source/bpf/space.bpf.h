/* SPDX-License-Identifier: GPL-2.0 */
/*
 * space - whether the interrupted program's mappings are those of the last walk on this CPU. The kernel
 * counts how often somebody released the lock under which mappings change. Linux 6.1 has no such
 * count: there, each walk looks its mappings up anew. Called by walk.
 */
#ifndef MD_BPF_SPACE_H
#define MD_BPF_SPACE_H

__u32 files_version; /* morphd counts what it says of files */

struct space {
	__u64 id;
	__u32 changes, files;
	bool is_sure; /* the numbers are known, and nobody was changing a mapping */
};

static __always_inline void get_space(const struct mm_struct *mm, struct space *out)
{
	const struct mm_struct___seqcount *seqcount = (const void *)mm;
	const struct mm_struct___count *count = (const void *)mm;

	out->id = mm->context.ctx_id;
	out->files = files_version;
	out->changes = 1;
	if (bpf_core_field_exists(seqcount->mm_lock_seq.sequence)) {
		out->changes = seqcount->mm_lock_seq.sequence;
		out->is_sure = !(out->changes & 1);
	} else if (bpf_core_field_exists(count->mm_lock_seq)) {
		out->changes = count->mm_lock_seq;
		out->is_sure = true;
	} else {
		out->is_sure = false;
	}
}

static __always_inline bool is_same_space(const struct space *a, const struct space *b)
{
	return a->is_sure && b->is_sure && a->id == b->id && a->changes == b->changes &&
	       a->files == b->files;
}

#endif
