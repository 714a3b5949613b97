// SPDX-License-Identifier: Apache-2.0
/*
 * import - counts of another profiler on their way into the store: modules by file, counts per
 * address, transfers of control, a ledger. The parsers (import_callgrind, import_counters,
 * import_fdata, import_perf) fill it; stats_import stores it.
 */
#ifndef MD_IMPORT_H
#define MD_IMPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libprof/edge_solve.h"
#include "libprof/elf.h"
#include "libprof/err.h"
#include "libprof/insn.h"
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
	bool exact; /* @counts and @edges are executions that were counted, each of them */
	struct mp_activity activity; /* of the program that this module is */
	/* For transfers, once there are any: the file with its code, and where its copies end. */
	struct mp_elf *code;
	uint32_t *map_ends;	     /* of md_moved_ends() */
	struct mp_edge_count *edges; /* as @counts */
	size_t nr_edges, max_edges;
};

/* What became of the transfers in the file: seen is the sum of the six after it. */
struct md_import_transfers {
	uint64_t seen;
	uint64_t counted;
	uint64_t fell;	  /* fell through: no transfers, though listed among them */
	uint64_t outside; /* one end in the kernel, in another file, or nowhere */
	uint64_t unnamed; /* one end names no function of the file */
	uint64_t unfit;	  /* the file's code does not go from the one to the other */
	uint64_t moved;	  /* of an optimised file: nothing in the original, or cannot be told */
	/* beside them */
	uint64_t straight; /* transfers of the original that an optimised file runs straight through */
	uint64_t nr_skipped; /* lines that are neither: BOLT's memory events */
};

struct md_import {
	/*
	 * The data name their files themselves, as samples of a whole machine do: a map note counts only
	 * where it is confirmed (outputs.h). Else the user named the file, and the note is believed.
	 */
	bool confirms;
	struct mp_store *list; /* of outputs, with @confirms; may be NULL */
	struct md_import_module *modules;
	uint32_t nr_modules;
	struct mp_ledger ledger;
	struct md_import_transfers transfers;
	struct mp_session session; /* collector, why, event, rate */
	/* Of counters alone: functions that have some, and how far they agree. */
	uint32_t nr_counted_funcs;
	struct mp_edge_discrepancy discrepancy;
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
/* The same, but @vaddr is the original's, where the file is an optimised one. */
int md_import_add_original(struct md_import *import, uint32_t index, uint64_t vaddr, uint64_t count,
			   struct mp_err *err);
int md_import_add_unattributed(struct md_import *import, enum mp_unattributed why, uint64_t count,
			       struct mp_err *err);
int md_import_add_lost(struct md_import *import, enum mp_lost why, uint64_t count,
		       struct mp_err *err);

/*
 * md_import_add_transfer - @count times control went from @from to @to, both in the module's file.
 * Counted where the file's code can do that, else put with the reason. Return: 0, -ENOMEM,
 * -EOVERFLOW.
 */
int md_import_add_transfer(struct md_import *import, uint32_t index, uint64_t from, uint64_t to,
			   uint64_t count, uint64_t mispredicted, struct mp_err *err);
/* The same of the original's transfer, which is known to be one. */
int md_import_add_original_transfer(struct md_import *import, uint32_t index, uint64_t from,
				    uint64_t to, uint64_t count, struct mp_err *err);
/* Others; @why: the member of @import->transfers that says why. */
int md_import_drop_transfer(struct md_import *import, uint64_t *why, uint64_t count,
			    struct mp_err *err);
/* None of the transfers is to be stored: what is there would mislead. */
void md_import_forget_transfers(struct md_import *import);
/* What ran straight from @start on to the transfer at @end: news in an optimised file only. */
int md_import_add_straight(struct md_import *import, uint32_t index, uint64_t start, uint64_t end,
			   uint64_t count, struct mp_err *err);
/* The instruction at @vaddr, if the file has one there. The file is read at the first call. */
bool md_import_insn_at(struct md_import_module *m, uint64_t vaddr, struct mp_insn *insn);
/* The module's file with its code and symbols, or NULL. */
const struct mp_elf *md_import_code(struct md_import_module *m);
/* Ascending, each once. */
void md_import_sort_edges(struct md_import_module *m);

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
/*
 * Files of counts, @nr of them added up; "-" is standard input. @binary: the instrumented file.
 * Return: 0, -ENOENT not instrumented, -EBADMSG damaged, or counts of another file, -EOVERFLOW.
 */
int md_import_counters(struct md_import *import, const char *const *paths, size_t nr,
		       const char *binary, struct mp_err *err);
/* @binary: what was profiled; the file itself does not say. */
int md_import_fdata(struct md_import *import, struct md_lines *lines, const char *binary,
		    struct mp_err *err);
/* @event: the only one to take, NULL where there must be one only. */
int md_import_perf(struct md_import *import, struct md_lines *lines, const char *event,
		   struct mp_err *err);

#endif
