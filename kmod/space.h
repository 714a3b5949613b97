/* SPDX-License-Identifier: GPL-2.0 */
/*
 * space - keeps the mappings of each process in the kernel until a sample needs them.
 *
 * Most processes of a shell script end before they are sampled. Most others are sampled in kernel
 * code only. Records of all their mappings would be nine tenths of the stream. A process is
 * therefore *known* from an exec on, and so are its children: its mappings are kept here. Other
 * processes existed before, or have too many mappings; they are reported at once. Without
 * MORPH_START_LAZY all processes are reported at once.
 *
 * After a lost event the reader discards its knowledge and reads /proc, so no process is known any
 * more. A mapping for which there is no memory here is such a lost event.
 */
#ifndef MORPH_SPACE_H
#define MORPH_SPACE_H

#include <linux/sched.h>
#include <linux/types.h>

#include "kmod/uapi/morph_abi.h"

struct morph_cpu;

/* The caller's reaction to an event: write its record, write nothing, or count it as lost. */
enum morph_event_action {
	MORPH_EVENT_WRITE,
	MORPH_EVENT_WRITE_PROCESS_EXIT, /* write an EXIT record for the whole process */
	MORPH_EVENT_SKIP,
	MORPH_EVENT_COUNT_LOST,
};

void morph_spaces_init(void);
/*
 * From now on processes become known. Context: all hooks are set, and every sampled CPU is
 * prepared.
 */
void morph_spaces_start(void);
bool morph_spaces_are_on(void);
/* Context: all hooks are removed. */
void morph_spaces_stop(void);
/* No process is known any more: an event was lost, and counted. Context: any. */
void morph_spaces_invalidate(void);

/*
 * Events of a process. Context: not in an interrupt; on @cpu, preemption off. @mmap: a
 * mapping of current, as its record would have it.
 */
enum morph_event_action morph_space_map(struct morph_cpu *cpu, const struct morph_mmap *mmap,
					const char *path, u32 len);
enum morph_event_action morph_space_fork(const struct task_struct *parent,
					 const struct task_struct *child);
enum morph_event_action morph_space_exit(const struct task_struct *task);

/*
 * morph_space_open - writes the records that the next samples of current need. With
 * @is_user these are all its mappings; else its program, which goes to @flags of the
 * samples' record. Sets @cpu->has_unreported_maps.
 * Return: false if there was no room.
 * Context: on @cpu, interrupts off.
 */
bool morph_space_open(struct morph_cpu *cpu, bool is_user, u32 *flags);

#endif
