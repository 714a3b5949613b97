// SPDX-License-Identifier: Apache-2.0
/* verify_debug_private - .debug_info of two linked files while it is compared. Only verify_debug_*.c include this header. */
#ifndef VERIFY_DEBUG_PRIVATE_H
#define VERIFY_DEBUG_PRIVATE_H

#include <errno.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/debug/verify_debug_file.h"
#include "editor/verify/debug/verify_debug_info.h"
#include "editor/verify/dwarf/verify_dwarf.h"
#include "editor/verify/file/verify_rest.h"
#include "editor/verify/file/verify_symbols.h"
#include "editor/verify/read/verify_parts.h"
#include "libprof/base/grow.h"

struct vd_section {
	const uint8_t *data; /* uncompressed */
	uint64_t size;
	uint8_t *inflated; /* owned; NULL: @data is in the file */
};

/* The sections of one file. */
struct vd_file {
	union {
		struct vd_section all[9];
		struct {
			struct vd_section info, abbrev, line, ranges, rnglists, loc, loclists, addr;
			struct vd_section str_offsets;
		};
	};
	uint64_t size; /* of all sections */
};

struct vd_ranges {
	struct vf_range *list;
	uint32_t nr, cap;
	bool failed;
};

/* A call that an added unit describes. */
struct vd_call {
	uint64_t off; /* of the entry */
	uint64_t origin, file, line, column;
	uint64_t low, high;	   /* its code in place of the call */
	uint64_t apart, apart_end; /* the rest of it; empty: there is none */
	uint64_t call;		   /* old address */
	uint64_t callee;	   /* the same */
	bool seen, good; /* rows of the line program hold for the call; one says the same */
};

/* Code that the compiler inlined into a function that replaces calls. */
struct vd_scope {
	uint64_t origin, file, line, column;
	uint32_t depth;			 /* number of such scopes around it */
	uint32_t first_range, nr_ranges; /* in @scope_ranges */
};

/* Further scopes of one function are not described. */
#define VD_SCOPES_MAX 64

/* A name: the offset of a string of .debug_str or .debug_line_str, which need not be there, or the string itself. */
struct vd_name {
	unsigned int form; /* 0: none */
	uint64_t off;
	const char *text;
};

/* An entry of a function that replaces calls, in the original. */
struct vd_callee {
	uint64_t vaddr;
	uint64_t abstract, declaration; /* 0: none */
	struct vd_name name, linkage_name;
	uint64_t line_off; /* of its line program */
	uint32_t first_scope, nr_scopes;
};

/* A piece of code in place of a call. */
struct vd_changing {
	uint64_t registers; /* that the whole code changes, by DWARF's numbers; 0: the piece is none */
	uint64_t end;	    /* without a jump that leads on behind the call */
};

/* The context of all checks of .debug_info. */
struct vd {
	const struct vf *vf;   /* the files with the sections */
	const struct vf *code; /* those with the code: others if the sections are in debug files */
	struct vd_file o, n;
	struct vd_work *work;	   /* for both files */
	uint64_t next_unit;	   /* of the original: units before it have no added unit to come */
	uint64_t nr_lost;	   /* functions of the original's units that have no code now */
	uint64_t nr_moved;	   /* those that an added unit has */
	struct vd_callee *callees; /* by address */
	uint32_t nr_callees, cap_callees;
	struct vd_scope *scopes;
	uint32_t nr_scopes, cap_scopes;
	struct vd_ranges scope_ranges;
	uint8_t *described;	      /* per piece: an entry describes the code that begins there */
	struct vd_changing *changing; /* per piece; NULL: no function replaces a call */
	struct vd_ranges was, now;    /* scratch lists */
};

/* ---- verify_debug_read.c ---- */
/* Return: 0, -ENOMEM, -EPERM: a section has a form that verify cannot read. */
int vd_file_open(const struct mp_elf *elf, struct vd_file *out);
void vd_file_close(struct vd_file *file);

struct vf_cursor vd_section_at(const struct vd_section *s, uint64_t off);

/* Read the header at @off, and the abbreviations. Return: 0, -ENOMEM, -EBADMSG. Ownership: vd_unit_close(). */
int vd_unit_open(const struct vd *vd, const struct vd_file *file, uint64_t off,
		 struct vd_unit *out);
void vd_unit_close(struct vd_unit *unit);

/* Is the value an offset in another section? */
bool vd_value_is_offset(const struct vd_unit *unit, const struct vd_value *v);
/* The offset in .debug_info that the value names; 0: it names none. */
uint64_t vd_value_reference(const struct vd_unit *unit, const struct vd_value *v);
struct vd_name vd_value_name(const struct vd_unit *unit, const struct vd_value *v);

/* Offset of the unit behind the one at @off; 0: its length is damaged. */
uint64_t vd_next_unit(const struct vd_section *info, uint64_t off);
/* The old address that the code at @now stands for: that of the call if it replaces one. */
uint64_t vd_original(const struct vd *vd, uint64_t now);
/* Refuse the entry or unit at @off. Return: -EBADMSG. */
static inline int vd_refuse(const struct vd *vd, uint64_t off, const char *why)
{
	return vf_refuse(vd->vf, 0, ".debug_info+%#llx: %s", (unsigned long long)off,
			 vd->work->left ? why : VD_TOO_LONG);
}

/* ---- verify_debug_ranges.c ---- */
/* Read the own entry's bases. Return: false: they cannot be read. */
bool vd_unit_read_bases(struct vd_unit *unit);
/* The ranges of an entry, without empty ones. Return: 0, -ENOMEM, -EBADMSG. */
int vd_entry_ranges(const struct vd_unit *unit, const struct vd_entry *e, struct vd_ranges *out);
bool vd_ranges_hold(const struct vd *vd, const struct vd_ranges *ranges, uint64_t vaddr);
/* Appends a range, unless it is empty. Return: false: out of memory. */
bool vd_ranges_add(struct vd_ranges *ranges, uint64_t start, uint64_t end);
/* Sorts the ranges, and joins those that touch. */
void vd_ranges_join(struct vd_ranges *ranges);

/* The section of @f that has lists of locations, or of ranges, of @unit. */
const struct vd_section *vd_list_section(const struct vd_file *f, const struct vd_unit *unit,
					 bool locations);
/* Finds the list that @v names. Return: false: there is none. */
bool vd_list_find(const struct vd_unit *unit, const struct vd_value *v, bool locations,
		  uint64_t *off);
struct vd_list vd_list_open(const struct vd_unit *unit, bool locations, uint64_t off);

/* ---- verify_debug_line.c ---- */
bool vd_line_is_program(const struct vd *vd, const struct vd_file *file, uint64_t off);
/* Compare @calls, ascending, with the rows of the original's program at @off. Return: 0, -ENOMEM, -EBADMSG. */
int vd_line_compare(const struct vd *vd, uint64_t off, struct vd_call *calls, uint32_t nr);

/* ---- verify_debug_added.c ---- */
/* Check the unit of the output at @off, which the original lacks. *@next: the offset behind it. */
int vd_check_added(struct vd *vd, uint64_t off, uint64_t *next);

/* ---- verify_debug_copy.c ---- */
/* A copied entry, and a reference of one: offsets in .debug_info. */
struct vd_pair {
	uint64_t old, now;
};

/* An entry of an added unit that stands for a function that replaces calls. */
struct vd_origin {
	uint64_t off, declaration;
	struct vd_name name, linkage_name;
};

/* An added unit, and the units that its functions come from. */
struct vd_added {
	struct vd *vd;
	struct vd_unit unit, o, n; /* @o: of the original; @n: the same in the output */
	struct vf_cursor c;	   /* in @unit */
	struct vd_pair *copied, *references;
	uint32_t nr_copied, cap_copied, nr_references, cap_references;
	struct vd_call *calls;
	uint32_t nr_calls, cap_calls;
	struct vd_origin *origins;
	uint32_t nr_origins, cap_origins;
	struct vd_ranges function; /* old code of the function at hand */
	struct vd_ranges code;	   /* of all functions */
};

/* The entry at offset @now must be that of @old, or its copy. Return: 0, -ENOMEM. */
static inline int vd_add_reference(struct vd_added *x, uint64_t old, uint64_t now)
{
	if (mp_grow(x->references, x->cap_references, x->nr_references + 1))
		return -ENOMEM;
	x->references[x->nr_references++] = (struct vd_pair){old, now};
	return 0;
}

/* Is @e a copy of the entry @was of the original? Return: 0, -ENOMEM, or a refusal. */
int vd_check_copy(struct vd_added *x, const struct vd_entry *was, const struct vd_entry *e);
/* Check the copy of the function at @off, with all entries below. Return: the same. */
int vd_check_function(struct vd_added *x, uint64_t off);

/* ---- verify_debug_call.c ---- */
/* Find the entries of all functions that replace calls. Return: 0, -ENOMEM. */
int vd_find_callees(struct vd *vd);
/* Read @e, which must be the entry of a call in code of @x->function that was replaced. */
int vd_read_call(struct vd_added *x, const struct vd_entry *e);
/* Check what these entries say of the called functions, and where the calls stand. */
int vd_check_calls(struct vd_added *x);

/* ---- verify_debug_changing.c ---- */
/* Registers from number 33 on, which verify_debug_changing does not tell apart. */
#define VD_OTHER_REGISTERS (UINT64_C(1) << 33)
/* rbx, rbp, rsp, r12 to r15: calls keep them. */
#define VD_KEPT_REGISTERS UINT64_C(0xf0c8)
/* Find out which registers code in place of calls changes. Return: 0, -ENOMEM. */
int vd_find_changing(struct vd *vd);
/* Does any of this code within [@start, @end) change one of @registers? */
bool vd_any_changing(const struct vd *vd, uint64_t start, uint64_t end, uint64_t registers);

/* ---- verify_debug_location.c ---- */
/*
 * Check where the entries of @unit, one of the output, find variables in code in place of calls. @added: the original
 * has no such unit. Return: 0, -ENOMEM, or a refusal.
 */
int vd_check_locations(struct vd *vd, const struct vd_unit *unit, bool added);
/* Has every range of the list at @now the expression at @expr, of @size bytes? */
bool vd_has_one_location(const struct vd_unit *unit, const struct vd_value *now,
			 const uint8_t *expr, uint64_t size);
/* Is the entry about a call, or an argument of one? */
bool vd_is_call_site(const struct vd_entry *e);

#endif
