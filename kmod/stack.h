/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stack - what the walks of user stacks need: rows of files, what is mapped, and the last
 * walk of each thread.
 *	stack      a sample's callers, as a record     walk   from frame to frame
 *	row_file   files with rows, from the reader    rows   their bytes
 *	code       what a process has mapped           last   last walks
 */
#ifndef MORPH_STACK_H
#define MORPH_STACK_H

#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/sched.h>
#include <linux/types.h>

#include "kmod/rows.h"
#include "kmod/uapi/morph_dev.h"
#include "kmod/walk.h"

/* ---- row_file.c. Context: may sleep, one caller at a time, except where noted. ---- */

struct morph_row_file {
	struct hlist_node node;
	struct morph_rows key; /* as the reader gave it, without addresses */
	struct morph_segment segments[MORPH_ROWS_SEGMENTS_MAX];
	struct morph_rows_table table; /* no rows: the file has none */
	u32 *index;
	size_t bytes; /* of memory */
};

/* Takes over rows from the reader's memory. Return: 0 or -errno of MORPH_IOC_ROWS. */
int morph_row_file_add(const void __user *arg, u64 limit_bytes);
/* Context: no walk is made any more. */
void morph_row_files_free(void);
/* Incremented whenever a file's rows change. Context: any. */
u32 morph_row_files_generation(void);
/* Mappings may have changed without notice: all is looked up again. Context: any. */
void morph_row_files_distrust(void);
void morph_row_files_count(struct morph_walks *to);
/*
 * Return: the rows of the file that @vma maps, or without a file of the [vdso]; NULL: not given.
 * Valid until the interrupt returns. Context: in an interrupt, under the mmap lock.
 */
const struct morph_row_file *morph_row_file_find(const struct vm_area_struct *vma, bool is_vdso);

/* ---- code.c ---- */

#define MORPH_NR_CODES 14

/* The mappings of one process that walks on this CPU have met. */
struct morph_codes {
	u32 tgid, exec_id, epoch, generation;
	u32 nr, next;
	bool is_by_rows; /* else all code is walked along frame pointers */
	u64 nr_busy;	 /* the mappings were locked */
	struct morph_code codes[MORPH_NR_CODES];
};

/* ---- last.c ---- */

/* Gives room for the last walks of some thousand threads. Return: 0 or -ENOMEM. */
int morph_last_alloc(void);
void morph_last_free(void);
/*
 * Return: the last walk of @task, empty if there is none; NULL: no room. No other CPU uses
 * it until morph_last_put(). Context: @task runs here, interrupts are off.
 */
struct morph_last *morph_last_get(const struct task_struct *task);
void morph_last_put(struct morph_last *last);

/* ---- stack.c ---- */

#define MORPH_NR_SPACES 16 /* a power of two */

/* The state of walks on one CPU. */
struct morph_stacks {
	u64 nr_walks, nr_no_room, nr_frames, nr_read, stops[MORPH_NR_STACK_STOP];
	struct morph_walk walk;
	struct morph_codes codes[MORPH_NR_SPACES]; /* by tgid */
};

void morph_stacks_count(struct morph_walks *to);

#endif
