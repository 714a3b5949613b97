// SPDX-License-Identifier: Apache-2.0
/*
 * import - counts of another profiler on their way into the store: modules by file, counts per
 * address, a ledger. The parsers (import_callgrind, import_perf) fill it; stats_import stores it.
 */
#ifndef MD_IMPORT_H
#define MD_IMPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libprof/elf.h"
#include "libprof/err.h"
#include "libprof/map.h"
#include "libprof/store.h"

struct md_import_module {
	char *path;
	enum mp_module_kind kind;
	struct mp_id id; /* the original's, where the file is an optimised one */
	uint64_t text_size;
	struct mp_elf *elf;	    /* NULL: the kernel, or @why */
	struct mp_map *map;	    /* NULL: not optimised */
	int why;		    /* -1, or enum mp_unattributed: why there is no such module */
	struct mp_ip_count *counts; /* in the order of arrival until md_import_sort() */
	size_t nr, max;
	struct mp_activity activity; /* of the program that this module is */
};

struct md_import {
	struct md_import_module *modules;
	uint32_t nr_modules;
	struct mp_ledger ledger;
	struct mp_session session; /* collector, why, event, rate */
};

struct md_import *md_import_new(void);
void md_import_free(struct md_import *import);

/* The module of the file at @path, opened once; *@index. Return: 0, -ENOMEM. */
int md_import_find_file(struct md_import *import, const char *path, uint32_t *index,
			struct mp_err *err);
/* The kernel of that id. */
int md_import_find_kernel(struct md_import *import, const struct mp_id *id, const char *name,
			  uint64_t text_size, uint32_t *index, struct mp_err *err);

/* @count samples at @vaddr of the module's file: counted, or unattributed with the reason. */
int md_import_add(struct md_import *import, uint32_t index, uint64_t vaddr, uint64_t count,
		  struct mp_err *err);
int md_import_add_unattributed(struct md_import *import, enum mp_unattributed why, uint64_t count,
			       struct mp_err *err);
int md_import_add_lost(struct md_import *import, enum mp_lost why, uint64_t count,
		       struct mp_err *err);

/* Put all of it in the store, as one transaction; what it counts is of @when_s. */
int md_import_store(struct md_import *import, struct mp_store *store, int64_t when_s,
		    struct mp_err *err);

/* One line at a time, with its number. */
struct md_lines {
	FILE *file;
	const char *name;
	char *line;	/* without the newline */
	size_t max, nr; /* @nr: of the line, from 1 */
	bool again;	/* give the line once more: somebody only looked at it */
};
/* Return: 1 a line, 0 the end, -errno with a message. */
int md_lines_next(struct md_lines *lines, struct mp_err *err);
/* "NAME:LINE: what". Return: -EBADMSG. */
int md_lines_fail(const struct md_lines *lines, struct mp_err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

int md_import_callgrind(struct md_import *import, struct md_lines *lines, struct mp_err *err);
/* @event: the only one to take, NULL where there must be one only. */
int md_import_perf(struct md_import *import, struct md_lines *lines, const char *event,
		   struct mp_err *err);

#endif
