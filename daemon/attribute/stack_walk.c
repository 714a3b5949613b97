// SPDX-License-Identifier: Apache-2.0
/* stack_walk - finds rows by address and words in the copy of a stack; see stack_walk.h. */
#include "daemon/attribute/stack_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "daemon/source/last_stacks.h"
#include "libprof/elf/eh.h"
#include "libprof/elf/mappings.h"
#include "libprof/unwind/rows_compile.h"
#include "libprof/unwind/rows_laid.h"
#include "libprof/unwind/walk.h"

#define DEPTH_MAX 1024 /* callers in a record */

#define SAME_STOP(name)                                                                            \
	_Static_assert((int)MORPH_STACK_##name == (int)MP_WALK_##name, "reason " #name)
SAME_STOP(UNSAID);
SAME_STOP(BOTTOM);
SAME_STOP(DEPTH);
SAME_STOP(COPY);
SAME_STOP(UNMAPPED);
SAME_STOP(NO_ROWS);
SAME_STOP(NO_ROW);
SAME_STOP(RULE);
SAME_STOP(REGISTER);
SAME_STOP(ORDER);
_Static_assert((int)MORPH_NR_STACK_STOP == (int)MP_NR_WALK_STOP, "number of reasons");

struct md_stack_walk {
	struct md_buf out;
	void *vdso_bytes;
	struct mp_rows vdso; /* no rows: not to be had */
	/* the walk that is being made */
	const struct md_attribute *at;
	const struct md_space *space;
	const struct morph_user_stack *record;
	uint64_t ips[DEPTH_MAX], slots[DEPTH_MAX];
	struct md_last_stacks *last;
};

/* Return: size of the mapping at @start in this process; 0: not known. */
static size_t mapping_size(uint64_t start)
{
	struct mp_mappings maps;
	struct mp_mapping map;
	size_t size = 0;

	if (!mp_mappings_open(&maps, 0))
		while (!size && mp_mappings_next(&maps, &map) > 0)
			if (map.start == start)
				size = map.end - map.start;
	mp_mappings_close(&maps);
	return size;
}

/* The kernel maps the same vDSO into every process; this process has one, too. */
static void read_vdso(struct md_stack_walk *walk)
{
	uint64_t start = getauxval(AT_SYSINFO_EHDR);
	size_t size = start ? mapping_size(start) : 0;
	struct mp_cursor frames;
	struct mp_elf *elf = NULL;
	size_t vdso_size;
	bool sized;

	if (size &&
	    !mp_elf_open_memory("[vdso]", (const void *)(uintptr_t)start, size, MP_ELF_FDES, &elf,
				NULL) &&
	    mp_eh_frame_find(elf, &frames, &sized) &&
	    !mp_rows_make(&frames, sized, 0, NULL, &walk->vdso_bytes, &vdso_size, NULL))
		mp_rows_laid_open("[vdso]", walk->vdso_bytes, vdso_size, &walk->vdso, NULL);
	mp_elf_close(elf);
}

struct md_stack_walk *md_stack_walk_new(void)
{
	struct md_stack_walk *walk = calloc(1, sizeof(*walk));

	if (!walk)
		return NULL;
	walk->last = md_last_stacks_new();
	if (!walk->last) {
		free(walk);
		return NULL;
	}
	read_vdso(walk);
	return walk;
}

void md_stack_walk_free(struct md_stack_walk *walk)
{
	if (!walk)
		return;
	md_buf_fini(&walk->out);
	md_last_stacks_free(walk->last);
	free(walk->vdso_bytes);
	free(walk);
}

const struct mp_rows *md_stack_walk_vdso(const struct md_stack_walk *walk)
{
	return walk->vdso.nr_rows ? &walk->vdso : NULL;
}

static enum mp_walk_code find(void *arg, uint64_t ip, const struct mp_rows **rows, uint64_t *vaddr)
{
	const struct md_stack_walk *walk = arg;
	const struct md_mapping *m = walk->space ? md_space_find(walk->space, ip) : NULL;
	const struct md_module *module;

	if (!m)
		return MP_WALK_NOTHING;
	if (m->why == MP_UNATTR_VDSO && walk->vdso.nr_rows) {
		*rows = &walk->vdso;
		*vaddr = ip - m->start;
		return MP_WALK_ROWS;
	}
	if (m->why == MP_UNATTR_ANONYMOUS)
		return MP_WALK_BARE;
	/* A file that cannot be read may have rows, and then its rbp is no frame pointer. */
	module = m->why == MD_MAPPED ? md_modcache_module(walk->at->modcache, m->module) : NULL;
	if (!module)
		return MP_WALK_UNREAD;
	if (!module->rows.nr_rows)
		return MP_WALK_BARE;
	*rows = &module->rows;
	*vaddr = ip + m->bias;
	return MP_WALK_ROWS;
}

static bool read_word(void *arg, uint64_t address, uint64_t *word)
{
	const struct md_stack_walk *walk = arg;
	uint64_t off = address - walk->record->registers[MORPH_REG_RSP] + walk->record->below;

	if (off >= walk->record->nr || walk->record->nr - off < sizeof(*word))
		return false;
	memcpy(word, walk->record->bytes + off, sizeof(*word));
	return true;
}

/* Return: flags that say how many of the callers look old. */
static uint32_t flags_of_age(struct md_stack_walk *walk, uint32_t tid,
			     const struct mp_walk_result *result, size_t first)
{
	const struct md_stack stack = {
		.slots = walk->slots,
		.ips = walk->ips + first,
		.nr = result->nr,
		.is_complete = result->stop == MP_WALK_BOTTOM,
	};
	size_t nr_old;

	if (!md_last_stacks_compare(walk->last, tid, &stack, &nr_old))
		return 0;
	return MORPH_STACK_AGED | (uint32_t)nr_old << MORPH_STACK_OLD_SHIFT;
}

struct morph_record *md_stack_walk(struct md_stack_walk *walk, const struct md_attribute *at,
				   const struct morph_user_stack *record)
{
	const struct mp_walk_ops ops = {
		.find = find, .read = read_word, .arg = walk, .slots = walk->slots};
	const struct morph_task *task = &record->task;
	bool kernel = task->flags & MORPH_USER_STACK_KERNEL;
	struct mp_walk_start start = {.ip = record->ip};
	struct mp_walk_result result;
	struct morph_stack *stack;
	uint32_t age;

	_Static_assert(sizeof(start.regs) == sizeof(record->registers), "the same registers");
	memcpy(start.regs, record->registers, sizeof(start.regs));
	walk->at = at;
	walk->space = md_procmap_find(at->procmap, task->tgid, task->exec_id);
	walk->record = record;
	walk->ips[0] = record->ip;
	mp_walk(&ops, &start, walk->ips + kernel, DEPTH_MAX - kernel, &result);
	age = flags_of_age(walk, task->tid, &result, kernel);
	result.nr += kernel;
	walk->out.size = 0;
	stack = md_record_add_task(&walk->out, MORPH_REC_STACK,
				   sizeof(*stack) + result.nr * sizeof(stack->ips[0]),
				   task->time_ns, task->tgid, task->tid);
	if (!stack)
		return NULL;
	stack->task.record.cpu = task->record.cpu;
	stack->task.exec_id = task->exec_id;
	stack->task.flags = (uint32_t)result.stop | (kernel ? MORPH_STACK_USER_IP : 0) | age;
	memcpy(stack->ips, walk->ips, result.nr * sizeof(stack->ips[0]));
	return &stack->task.record;
}
