// SPDX-License-Identifier: GPL-2.0
/*
 * code - what is mapped at an address of the interrupted program.
 * Asks the kernel once for each mapping that walks meet, and remembers the answer until the
 * process's mappings change. Called by walk.
 */
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/sched.h>

#include "kmod/stack.h"

/* The part of @vma around @ip that has one bias. Return: false: @ip lies in no segment. */
static bool describe_rows(const struct vm_area_struct *vma, u64 ip,
			  const struct morph_row_file *file, struct morph_code *out)
{
	u64 off = (u64)vma->vm_pgoff << PAGE_SHIFT, at = ip - vma->vm_start + off;
	u64 end = off + (vma->vm_end - vma->vm_start), from, to;
	const struct morph_segment *segment;
	u32 i;

	for (i = 0; i < file->key.nr_segments; i++) {
		segment = &file->segments[i];
		if (at - segment->off >= segment->size)
			continue;
		from = max_t(u64, off, segment->off);
		to = min_t(u64, end, segment->off + segment->size);
		*out = (struct morph_code){
			.start = vma->vm_start + (from - off),
			.size = to - from,
			.bias = segment->vaddr - segment->off + off - vma->vm_start,
			.rows = &file->table,
			.kind = MORPH_CODE_ROWS,
		};
		return true;
	}
	return false;
}

static bool describe(const struct vm_area_struct *vma, u64 ip, bool is_by_rows,
		     struct morph_code *out)
{
	bool is_vdso = !vma->vm_file && vma->vm_start == (unsigned long)current->mm->context.vdso;
	const struct morph_row_file *file = NULL;

	*out = (struct morph_code){
		.start = vma->vm_start,
		.size = vma->vm_end - vma->vm_start,
		.kind = is_by_rows ? MORPH_CODE_BARE : MORPH_CODE_FRAMED,
	};
	if (!is_by_rows || (!vma->vm_file && !vma->vm_ops))
		return true;
	if (vma->vm_file || is_vdso)
		file = morph_row_file_find(vma, is_vdso);
	if (!file)
		out->kind = MORPH_CODE_ASKED;
	else if (file->table.nr_rows)
		return describe_rows(vma, ip, file, out);
	return true;
}

/*
 * The interrupted code may hold the lock of its mappings. The lock is only tried. Releasing it
 * takes spinlocks that are always held with interrupts off.
 */
static bool look_up(struct morph_codes *codes, u64 ip, struct morph_code *out)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	bool ret;

	if (IS_ENABLED(CONFIG_PREEMPT_RT) || !mmap_read_trylock(mm)) {
		codes->nr_busy++;
		return false;
	}
	vma = find_vma(mm, ip);
	ret = vma && ip >= vma->vm_start && vma->vm_flags & VM_EXEC &&
	      describe(vma, ip, codes->is_by_rows, out);
	mmap_read_unlock(mm);
	return ret;
}

const struct morph_code *morph_code_find(struct morph_codes *codes, u64 ip)
{
	struct morph_code *code;

	for (code = codes->codes; code < codes->codes + codes->nr; code++)
		if (ip - code->start < code->size)
			return code;
	if ((s64)ip < 0)
		return NULL;
	/* A walk uses one entry at a time, so any other may be replaced. */
	code = &codes->codes[codes->next];
	if (!look_up(codes, ip, code)) {
		code->size = 0;
		return NULL;
	}
	codes->next = (codes->next + 1) % MORPH_NR_CODES;
	codes->nr = min_t(u32, codes->nr + 1, MORPH_NR_CODES);
	return code;
}
