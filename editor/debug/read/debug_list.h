// SPDX-License-Identifier: Apache-2.0
/*
 * debug_list - reads lists of ranges and of locations: pairs up to version 4, entries of several kinds since 5. Called by
 * the makers of debug information of programs and of objects.
 */
#ifndef ME_DEBUG_LIST_H
#define ME_DEBUG_LIST_H

#include "libprof/base/dwarf_cursor.h"

/* An address of a program, with @section 0. In an object: a place in a section, or a number, with 0. */
struct me_addr {
	uint32_t section;
	uint64_t off;
};

/* Functions that give a reader of lists the addresses which the lists name. */
struct me_addresses {
	/* The 8 bytes at @p of an object; NULL in a program: the address itself. */
	struct me_addr (*field)(const void *ctx, const uint8_t *p);
	/* The address with number @index. Return: false: there is none. */
	bool (*indexed)(const void *ctx, uint64_t index, struct me_addr *out);
	const void *ctx;
};

struct me_list_reader {
	struct mp_cursor c;
	struct me_addresses from;
	unsigned int version;
	bool locations;
	struct me_addr base;
};

struct me_list_entry {
	bool last;
	bool bounded; /* it has a range; neither has a base, nor a default location */
	struct me_addr start, end;
	const uint8_t *expr; /* of a location; NULL: a base */
	uint64_t expr_size;
};

/* me_list_next - read one entry. Return: 0; -EBADMSG damaged; -EPERM of an unknown kind. */
int me_list_next(struct me_list_reader *r, struct me_list_entry *e);

#endif
