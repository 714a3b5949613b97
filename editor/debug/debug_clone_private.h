// SPDX-License-Identifier: Apache-2.0
/*
 * debug_clone_private - a unit that is added. Only debug_clone.c and debug_clone_call.c include this header.
 */
#ifndef ME_DEBUG_CLONE_PRIVATE_H
#define ME_DEBUG_CLONE_PRIVATE_H

#include <errno.h>

#include "editor/debug/debug_unit.h"
#include "editor/debug/read/debug_form.h"
#include "libprof/base/grow.h"

struct me_entry;

/* Kinds of entries of inlined calls. */
enum {
	ME_CLONE_PARENT = 1, /* with entries below */
	ME_CLONE_LISTED = 2, /* with a list of ranges */
	ME_CLONE_NR_CALLS = 4,
};

struct me_copied_entry {
	uint64_t old_off, off; /* offsets in .debug_info */
};

struct me_copied_reference {
	size_t at; /* in the bytes of the unit */
	uint64_t to;
};

/* A declaration in the abbreviations, without its code. */
struct me_declared {
	size_t at, size;
	uint64_t code;
};

struct me_cloner {
	struct me_unit *u;
	struct me_bytes out, abbrevs; /* the added unit; its abbreviations */
	uint64_t base;		      /* offset of the added unit */
	uint32_t *codes;	      /* per old abbreviation and variant; 0: none yet */
	uint64_t next_code;
	uint64_t call_codes[ME_CLONE_NR_CALLS], callee_codes[16];
	uint64_t *callees; /* per callee: offset of its entry; 0: none yet */
	struct me_copied_entry *copied;
	uint32_t nr_copied, cap_copied;
	struct me_copied_reference *references;
	uint32_t nr_references, cap_references;
	struct open_entry {
		uint64_t old_off;
		bool has_calls, is_scope;
	} * open; /* the entries around the place */
	uint32_t nr_open, cap_open;
	struct me_declared *declared; /* of copied entries */
	uint32_t nr_declared, cap_declared;
	uint32_t no_locations; /* offset of a list without locations; 0: none yet */
	uint32_t locations; /* offset of the list in place of the current entry's location, if it has one */
};

static inline uint64_t me_clone_offset(const struct me_cloner *c, const uint8_t *p)
{
	return (uint64_t)(p - c->u->file->info.data);
}

static inline void me_clone_put_attr(struct me_bytes *out, unsigned int name, unsigned int form)
{
	me_bytes_uleb(out, name);
	me_bytes_uleb(out, form);
}

static inline void me_clone_put_list_attr(const struct me_cloner *c, struct me_bytes *out,
					  unsigned int name)
{
	me_clone_put_attr(out, name, c->u->version >= 4 ? DW_FORM_sec_offset : DW_FORM_data4);
}

static inline int me_clone_put_reference(struct me_cloner *c, uint64_t to)
{
	if (mp_grow(c->references, c->cap_references, c->nr_references + 1))
		return -ENOMEM;
	c->references[c->nr_references++] = (struct me_copied_reference){c->out.size, to};
	me_bytes_u32(&c->out, 0);
	return 0;
}

/* ---- debug_clone_call.c ---- */
/* Does the entry describe code? */
bool me_clone_is_scope(const struct me_entry *e);
/* Notes that the entry contains calls. An entry further in comes later, and wins. */
int me_clone_claim_calls(struct me_cloner *c, const struct me_entry *e);
/* Is the entry the innermost scope of any call? */
bool me_clone_has_calls(const struct me_cloner *c, const struct me_entry *e,
			const struct me_ranges *code);
/*
 * Does code in place of calls in the innermost scope around change a register on which the location of @e depends? Then
 * writes a list without this code to c->locations. Return: 1, 0, -errno.
 */
int me_clone_divide_location(struct me_cloner *c, const struct me_entry *e);
/* Write the entries of the calls whose innermost scope is the entry at @scope. */
int me_clone_put_calls(struct me_cloner *c, uint64_t scope, const struct me_ranges *code);
/* Write the entries that stand for called functions. */
int me_clone_put_callees(struct me_cloner *c);

#endif
