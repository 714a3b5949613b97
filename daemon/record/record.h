// SPDX-License-Identifier: Apache-2.0
/*
 * record - reads records one after another with checks, and writes them. Called by every
 * source, the recorder and attribute.
 *
 * Decides whether a record lies within its bytes and its parts within the record. attribute
 * interprets the records.
 */
#ifndef MD_RECORD_H
#define MD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmod/uapi/morph_abi.h"

/* A growing buffer of records. All zero: empty. */
struct md_buf {
	uint8_t *data;
	size_t size, capacity;
};

void md_buf_fini(struct md_buf *buf);
/* Adds @size bytes. Return: the added bytes; NULL: no memory. */
void *md_buf_add(struct md_buf *buf, size_t size);

/*
 * md_record_next - get the record at *@pos of the @size bytes at @data (8-aligned), and advance
 * *@pos.
 *
 * A returned record has the fixed part of its type; its counted parts lie within its size; its
 * strings are terminated. Unknown types are returned too. Return: 0, -ENODATA at the end,
 * -EBADMSG: not a record.
 */
int md_record_next(uint8_t *data, size_t size, size_t *pos, struct morph_record **out);

/* Return: true for types that begin with struct morph_task. */
bool md_record_has_task(uint16_t type);

static inline uint32_t md_samples_nr(const struct morph_samples *s)
{
	return (s->task.record.size - sizeof(*s)) / sizeof(s->ips[0]);
}

static inline uint32_t md_branches_nr(const struct morph_branches *b)
{
	return (b->task.record.size - sizeof(*b)) / sizeof(b->branches[0]);
}

/* Return: words per entry: the address, and the registers. */
static inline uint32_t md_registers_words(const struct morph_registers *r)
{
	return 1 + __builtin_popcount(r->registers) + r->stack_words;
}

static inline uint32_t md_registers_nr(const struct morph_registers *r)
{
	return (r->task.record.size - sizeof(*r)) / sizeof(r->entries[0]) / md_registers_words(r);
}

/* Return: index of the word in an entry that holds register @reg, at most MORPH_REG_FLAGS; 0: none. */
static inline uint32_t md_registers_word(const struct morph_registers *r, uint32_t reg)
{
	if (!(r->registers >> reg & 1))
		return 0;
	return 1 + __builtin_popcount(r->registers & ((1u << reg) - 1));
}

/* Return: number of samples that @record stands for, present or lost. */
uint64_t md_record_emitted(const struct morph_record *record);

/* Return: the path of a MODULE record, which follows its segments. */
const char *md_module_path(const struct morph_module *module);
uint32_t md_module_map_nr(const struct morph_module_map *map);

/*
 * Writers. Each adds one record to @buf, filled with zeros behind the fixed part. Return: the
 * record; NULL: no memory.
 */
void *md_record_add(struct md_buf *buf, uint16_t type, size_t size);
void *md_record_add_task(struct md_buf *buf, uint16_t type, size_t size, uint64_t time_ns,
			 uint32_t tgid, uint32_t tid);
struct morph_mmap *md_record_add_mmap(struct md_buf *buf, uint64_t time_ns, uint32_t tgid,
				      uint32_t tid, const char *path);
struct morph_lost *md_record_add_lost(struct md_buf *buf, uint64_t time_ns, uint64_t nr,
				      uint32_t why, uint32_t flags);

#endif
