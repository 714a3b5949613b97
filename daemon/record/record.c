// SPDX-License-Identifier: Apache-2.0
/* record - checks the bounds of records; see record.h. */
#include "daemon/record/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUF_MIN	     4096
#define MAX_PATH_LEN 4096

void md_buf_fini(struct md_buf *buf)
{
	free(buf->data);
	*buf = (struct md_buf){0};
}

void *md_buf_add(struct md_buf *buf, size_t size)
{
	size_t capacity = buf->capacity ? buf->capacity : BUF_MIN;
	uint8_t *data;

	while (capacity - buf->size < size)
		capacity *= 2;
	if (capacity != buf->capacity) {
		data = realloc(buf->data, capacity);
		if (!data)
			return NULL;
		buf->data = data;
		buf->capacity = capacity;
	}
	data = buf->data + buf->size;
	buf->size += size;
	return data;
}

static const struct {
	uint16_t size;
	bool has_task;
} types[] = {
	[MORPH_REC_PAD] = {sizeof(struct morph_record), false},
	[MORPH_REC_SAMPLES] = {sizeof(struct morph_samples), true},
	[MORPH_REC_BRANCHES] = {sizeof(struct morph_branches), true},
	[MORPH_REC_EXEC] = {sizeof(struct morph_exec), true},
	[MORPH_REC_MMAP] = {sizeof(struct morph_mmap), true},
	[MORPH_REC_MUNMAP] = {sizeof(struct morph_munmap), true},
	[MORPH_REC_FORK] = {sizeof(struct morph_fork), true},
	[MORPH_REC_EXIT] = {sizeof(struct morph_exit), true},
	[MORPH_REC_SWITCH] = {sizeof(struct morph_switch), true},
	[MORPH_REC_COMM] = {sizeof(struct morph_comm), true},
	[MORPH_REC_LOST] = {sizeof(struct morph_lost), false},
	[MORPH_REC_MODULE] = {sizeof(struct morph_module), false},
	[MORPH_REC_MODULE_MAP] = {sizeof(struct morph_module_map), false},
	[MORPH_REC_MODULE_ENDS] = {sizeof(struct morph_module_ends), false},
	[MORPH_REC_STACK] = {sizeof(struct morph_stack), true},
	[MORPH_REC_FILE] = {sizeof(struct morph_file), false},
	[MORPH_REC_SPACE] = {sizeof(struct morph_space), true},
	[MORPH_REC_REGISTERS] = {sizeof(struct morph_registers), true},
	[MORPH_REC_MODULE_PATHS] = {sizeof(struct morph_module_paths), false},
	[MORPH_REC_MODULE_OUTPUT] = {sizeof(struct morph_module_output), false},
	[MORPH_REC_MODULE_PIECES] = {sizeof(struct morph_module_pieces), false},
	[MORPH_REC_MODULE_UNWIND] = {sizeof(struct morph_module_unwind), false},
	[MORPH_REC_USER_STACK] = {sizeof(struct morph_user_stack), true},
	[MORPH_REC_MODULE_CALLS] = {sizeof(struct morph_module_calls), false},
};

#define NR_TYPES (sizeof(types) / sizeof(types[0]))

bool md_record_has_task(uint16_t type)
{
	return type < NR_TYPES && types[type].has_task;
}

/* Return: true if the string at @off ends within the record. */
static bool string_ends(const struct morph_record *record, size_t off)
{
	const char *bytes = (const char *)record;
	size_t room = record->size - off;

	return room && room <= MAX_PATH_LEN + MORPH_RECORD_ALIGN && !bytes[record->size - 1];
}

/* Checks each mapping like the MMAP record that it stands for. */
static bool is_space_consistent(const struct morph_space *space)
{
	size_t room = space->task.record.size - sizeof(*space), i;
	const struct morph_space_map *map = space->maps;
	uint64_t start;

	for (i = 0; i < room / sizeof(*map); i++, map++) {
		start = map->start & MORPH_SPACE_START;
		if (!map->nr_pages || start + ((uint64_t)map->nr_pages << 12) <= start)
			return false;
	}
	return room % sizeof(*map) == 0;
}

static bool are_registers_consistent(const struct morph_registers *r)
{
	size_t room = r->task.record.size - sizeof(*r);

	return r->registers && !(r->registers & ~MORPH_REGS_BRANCHES) &&
	       r->stack_words <= MORPH_STACK_WORDS_MAX &&
	       (!r->stack_words || r->registers >> MORPH_REG_RSP & 1) &&
	       room % (md_registers_words(r) * sizeof(r->entries[0])) == 0;
}

static bool is_consistent(const struct morph_record *record)
{
	const struct morph_module_paths *paths = (const void *)record;
	const struct morph_module_unwind *unwind = (const void *)record;
	const struct morph_user_stack *stack = (const void *)record;
	const struct morph_file *file = (const void *)record;
	const struct morph_module *module = (const void *)record;
	const struct morph_module_map *map = (const void *)record;
	const struct morph_module_pieces *packed = (const void *)record;
	const struct morph_module_ends *ends = (const void *)record;
	const struct morph_module_calls *calls = (const void *)record;
	const struct morph_mmap *mmap = (const void *)record;
	size_t room = record->size;

	switch (record->type) {
	case MORPH_REC_MMAP:
		return mmap->build_id_len <= MORPH_BUILD_ID_MAX && mmap->len &&
		       mmap->start + mmap->len > mmap->start && mmap->off + mmap->len > mmap->off &&
		       string_ends(record, sizeof(*mmap));
	case MORPH_REC_FILE:
		return file->number < MORPH_NR_FILES && file->build_id_len <= MORPH_BUILD_ID_MAX &&
		       string_ends(record, sizeof(*file));
	case MORPH_REC_SPACE: return is_space_consistent((const void *)record);
	case MORPH_REC_BRANCHES:
		return (room - sizeof(struct morph_branches)) % sizeof(struct morph_branch) == 0;
	case MORPH_REC_MODULE:
		room -= sizeof(*module);
		return module->build_id_len <= MORPH_BUILD_ID_MAX &&
		       module->nr_segments <= room / sizeof(module->segments[0]) &&
		       string_ends(record, sizeof(*module) + module->nr_segments *
								     sizeof(module->segments[0]));
	case MORPH_REC_MODULE_MAP:
		return map->build_id_len <= MORPH_BUILD_ID_MAX &&
		       (room - sizeof(*map)) % sizeof(map->pieces[0]) == 0;
	case MORPH_REC_MODULE_PIECES:
		return packed->build_id_len <= MORPH_BUILD_ID_MAX &&
		       packed->nr <= room - sizeof(*packed);
	case MORPH_REC_MODULE_ENDS:
		return ends->nr <= (room - sizeof(*ends)) / sizeof(ends->ends[0]);
	case MORPH_REC_MODULE_CALLS:
		return calls->nr <= (room - sizeof(*calls)) / sizeof(calls->calls[0]);
	case MORPH_REC_REGISTERS: return are_registers_consistent((const void *)record);
	case MORPH_REC_MODULE_PATHS:
		return paths->nr <= room - sizeof(*paths) && paths->off <= paths->table_size &&
		       paths->nr <= paths->table_size - paths->off;
	case MORPH_REC_MODULE_UNWIND:
		return unwind->nr <= room - sizeof(*unwind) && unwind->off <= unwind->table_size &&
		       unwind->nr <= unwind->table_size - unwind->off;
	case MORPH_REC_USER_STACK: return stack->nr <= room - sizeof(*stack);
	default: return true;
	}
}

int md_record_next(uint8_t *data, size_t size, size_t *pos, struct morph_record **out)
{
	struct morph_record *record;
	size_t left = size - *pos;

	if (!left)
		return -ENODATA; /* @data may be NULL */
	record = (void *)(data + *pos);
	if (left < sizeof(*record) || record->size < sizeof(*record) || record->size > left ||
	    record->size % MORPH_RECORD_ALIGN)
		return -EBADMSG;
	if (record->type < NR_TYPES &&
	    (record->size < types[record->type].size || !is_consistent(record)))
		return -EBADMSG;
	*pos += record->size;
	*out = record;
	return 0;
}

uint64_t md_record_emitted(const struct morph_record *record)
{
	if (record->type == MORPH_REC_SAMPLES)
		return md_samples_nr((const void *)record);
	if (record->type == MORPH_REC_LOST)
		return ((const struct morph_lost *)record)->nr;
	return 0;
}

const char *md_module_path(const struct morph_module *module)
{
	return (const char *)&module->segments[module->nr_segments];
}

uint32_t md_module_map_nr(const struct morph_module_map *map)
{
	return (map->record.size - sizeof(*map)) / sizeof(map->pieces[0]);
}

void *md_record_add(struct md_buf *buf, uint16_t type, size_t size)
{
	struct morph_record *record;

	size = (size + MORPH_RECORD_ALIGN - 1) & ~(size_t)(MORPH_RECORD_ALIGN - 1);
	if (size > MORPH_RECORD_SIZE_MAX)
		return NULL;
	record = md_buf_add(buf, size);
	if (!record)
		return NULL;
	memset(record, 0, size);
	record->size = size;
	record->type = type;
	return record;
}

void *md_record_add_task(struct md_buf *buf, uint16_t type, size_t size, uint64_t time_ns,
			 uint32_t tgid, uint32_t tid)
{
	struct morph_task *task = md_record_add(buf, type, size);

	if (task) {
		task->time_ns = time_ns;
		task->tgid = tgid;
		task->tid = tid;
	}
	return task;
}

struct morph_mmap *md_record_add_mmap(struct md_buf *buf, uint64_t time_ns, uint32_t tgid,
				      uint32_t tid, const char *path)
{
	size_t len = strnlen(path, MAX_PATH_LEN - 1);
	struct morph_mmap *mmap;

	mmap = md_record_add_task(buf, MORPH_REC_MMAP, sizeof(*mmap) + len + 1, time_ns, tgid, tid);
	if (mmap)
		memcpy(mmap->path, path, len);
	return mmap;
}

struct morph_lost *md_record_add_lost(struct md_buf *buf, uint64_t time_ns, uint64_t nr,
				      uint32_t why, uint32_t flags)
{
	struct morph_lost *lost = md_record_add(buf, MORPH_REC_LOST, sizeof(*lost));

	if (lost) {
		lost->time_ns = time_ns;
		lost->nr = nr;
		lost->why = why;
		lost->flags = flags;
	}
	return lost;
}
