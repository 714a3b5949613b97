/* SPDX-License-Identifier: GPL-2.0 */
/*
 * space - what each process has mapped, kept here until a sample needs it.
 *
 * Most processes of a shell script end before they are sampled, and of most of the others only the
 * kernel's code is: to say where all of them have what mapped would be nine tenths of the stream.
 * So a process is *known* from an exec on, and its children are; the others, whose mappings were
 * there before or are too many to keep, are said at once, as are all where nobody asked for this.
 *
 * When an event was lost the reader knows nothing any more, and looks at /proc. So nobody is known
 * then. What finds no room here is such an event.
 */
#ifndef MORPH_SPACE_H
#define MORPH_SPACE_H

#include <linux/sched.h>
#include <linux/types.h>

#include "kmod/uapi/morph_abi.h"

struct morph_cpu;

/* What the caller does with an event: writes its record, nothing, or counts it as lost. */
enum morph_saying {
	MORPH_SAY,
	MORPH_SAY_PROCESS, /* EXIT of all of it */
	MORPH_SAY_NOTHING,
	MORPH_SAY_LOST,
};

void morph_spaces_init(void);
/* From now on processes become known. Context: all is hooked, every CPU that is sampled is prepared. */
void morph_spaces_start(void);
bool morph_spaces_are_on(void);
/* Context: nothing is hooked any more. */
void morph_spaces_stop(void);
/* Nobody is known any more: an event was lost, and counted. Context: any. */
void morph_spaces_forget(void);

/*
 * Events of a process. Context: not in an interrupt; on @cpu, preemption off.
 *
 * @mmap: of current, as it would be said.
 */
enum morph_saying morph_space_map(struct morph_cpu *cpu, const struct morph_mmap *mmap,
				  const char *path, u32 len);
enum morph_saying morph_space_fork(const struct task_struct *parent,
				   const struct task_struct *child);
enum morph_saying morph_space_exit(const struct task_struct *task);

/*
 * morph_space_open - says what samples of current need that follow now: where @is_user, all its
 * mappings; else its program, as @flags of their record. Sets @cpu->is_unsaid.
 * Return: false where there was no room.
 * Context: on @cpu, interrupts off.
 */
bool morph_space_open(struct morph_cpu *cpu, bool is_user, u32 *flags);

#endif
