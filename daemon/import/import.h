// SPDX-License-Identifier: Apache-2.0
/*
 * import - collects counts of another profiler for the store: counts per address, edges, ways
 * and a ledger, by module. The parsers (import_callgrind, import_counters, import_fdata, import_perf,
 * import_ways) fill it; stats_import stores it.
 */
#ifndef MD_IMPORT_H
#define MD_IMPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libprof/note/edge_solve.h"
#include "libprof/elf/elf.h"
#include "libprof/base/err.h"
#include "libprof/insn/insn.h"
#include "libprof/note/map.h"
#include "libprof/store/store.h"

struct md_import_module {
	char *path;
	enum mp_module_kind kind;
	struct mp_id id; /* for an optimised file: the id of its original */
	uint64_t text_size;
	struct mp_elf *elf;	    /* NULL: the kernel, or a file that cannot be used (@why) */
	struct mp_map *map;	    /* NULL: not an optimised file */
	int why;		    /* -1, or enum mp_unattributed: why the module cannot be used */
	bool no_memory;		    /* to read the file: nothing may be stored */
	struct mp_ip_count *counts; /* unsorted until md_import_store() */
	size_t nr, max;
	bool exact;		     /* @counts and @edges were counted, not sampled */
	struct mp_activity activity; /* of the program that this module is */
	/* needed for edges only: the file with its code, and where its copies end */
	struct mp_elf *code;
	uint32_t *map_ends;	     /* from md_copy_branch_offsets() */
	struct mp_edge_count *edges; /* unsorted, like @counts */
	size_t nr_edges, max_edges;
	struct mp_way_count *ways; /* ascending by address, from md_import_ways() */
	size_t nr_ways;
};

/*
 * Transfers of control in the imported file, by what became of them. @seen is the sum of the
 * next six.
 */
struct md_import_transfers {
	uint64_t seen;
	uint64_t counted;
	uint64_t fell;	  /* fell through, although listed as a transfer */
	uint64_t outside; /* one end in the kernel, another file, or unknown */
	uint64_t unnamed; /* one end names no function of the file */
	uint64_t unfit;	  /* impossible in the file's code */
	/* of an optimised file: the original has no such transfer, or it is not known which */
	uint64_t moved;
	/* not part of @seen: */
	/* transfers of the original that are straight-line code in an optimised file */
	uint64_t straight;
	uint64_t nr_skipped; /* other lines: BOLT's memory events */
};

/* Ways of branches in the imported file. @seen is the sum of the next two. */
struct md_import_ways {
	uint64_t seen;
	uint64_t counted;
	uint64_t unfit; /* no conditional branch at the address */
};

struct md_import {
	/*
	 * The profile names the files itself, like a profile of a whole machine. Then a file's
	 * map note is used only if the file is a confirmed output (outputs.h). If the user
	 * named the file, its note is trusted.
	 */
	bool confirms;
	struct mp_store *list; /* of confirmed outputs, if @confirms; may be NULL */
	struct md_import_module *modules;
	uint32_t nr_modules;
	struct mp_ledger ledger;
	struct md_import_transfers transfers;
	struct md_import_ways ways;
	struct mp_session session; /* collector, its reason, event, rate */
	uint64_t nr_unread_lines;  /* of perf script's text, that were not understood */
	/* for counters only: functions with counts, and how well the counts agree */
	uint32_t nr_counted_funcs;
	struct mp_edge_discrepancy discrepancy;
};

struct md_import *md_import_new(void);
void md_import_free(struct md_import *import);

/* Finds or adds the module of the file @path. Return: 0 and *@index, -ENOMEM. */
int md_import_find_file(struct md_import *import, const char *path, uint32_t *index,
			struct mp_err *err);
/* Finds or adds the kernel with that id. */
int md_import_find_kernel(struct md_import *import, const struct mp_id *id, const char *name,
			  uint64_t text_size, uint32_t *index, struct mp_err *err);

/*
 * Adds @count samples at address @vaddr of the module's file: as a count, or as unattributed
 * with the reason.
 */
int md_import_add(struct md_import *import, uint32_t index, uint64_t vaddr, uint64_t count,
		  struct mp_err *err);
/* As md_import_add(), but @vaddr is an address of the original if the file is an optimised one. */
int md_import_add_original(struct md_import *import, uint32_t index, uint64_t vaddr, uint64_t count,
			   struct mp_err *err);
int md_import_add_unattributed(struct md_import *import, enum mp_unattributed why, uint64_t count,
			       struct mp_err *err);
int md_import_add_lost(struct md_import *import, enum mp_lost why, uint64_t count,
		       struct mp_err *err);

/*
 * md_import_add_transfer - control went @count times from @from to @to in the module's file.
 * Counts the transfer if the file's code allows it, else records why not. Return: 0, -ENOMEM,
 * -EOVERFLOW.
 */
int md_import_add_transfer(struct md_import *import, uint32_t index, uint64_t from, uint64_t to,
			   uint64_t count, uint64_t mispredicted, struct mp_err *err);
/* As above for a transfer of the original that is known to be possible. */
int md_import_add_original_transfer(struct md_import *import, uint32_t index, uint64_t from,
				    uint64_t to, uint64_t count, struct mp_err *err);
/* Counts a transfer without storing it. @why: the member of @import->transfers for the reason. */
int md_import_count_transfer(struct md_import *import, uint64_t *why, uint64_t count,
			     struct mp_err *err);
/* Drops all transfers, because those that are known would mislead. */
void md_import_forget_transfers(struct md_import *import);
/* Adds a straight run from @start to the transfer at @end. Only needed for an optimised file. */
int md_import_add_straight(struct md_import *import, uint32_t index, uint64_t start, uint64_t end,
			   uint64_t count, struct mp_err *err);
/* Decodes the instruction at @vaddr. Return: false: none there. The first call reads the file. */
bool md_import_insn_at(struct md_import_module *m, uint64_t vaddr, struct mp_insn *insn);
/* Return: the module's file with its code and symbols, or NULL. */
const struct mp_elf *md_import_code(struct md_import_module *m);
/* Sorts edges and adds up equal ones. */
void md_import_sort_edges(struct md_import_module *m);

/* Stores everything in one transaction, as counts of the day of @when_s. */
int md_import_store(struct md_import *import, struct mp_store *store, int64_t when_s,
		    struct mp_err *err);

/* Reads a text file line by line. */
struct md_lines {
	FILE *file;
	const char *name;
	char *line;	  /* without the newline */
	size_t max, nr;	  /* @nr: number of the line, from 1 */
	bool repeat_line; /* return the same line again */
};
/* Return: 1 a line, 0 the end, -errno with a message. */
int md_lines_next(struct md_lines *lines, struct mp_err *err);
/* Sets the message "NAME:LINE: ...". Return: -EBADMSG. */
int md_lines_fail(const struct md_lines *lines, struct mp_err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

int md_import_callgrind(struct md_import *import, struct md_lines *lines, struct mp_err *err);
/*
 * Reads and adds up @nr files of counts; "-" is standard input. @binary: the instrumented file.
 * Return: 0, -ENOENT not instrumented, -EBADMSG damaged or counts of another file, -EOVERFLOW.
 */
int md_import_counters(struct md_import *import, const char *const *paths, size_t nr,
		       const char *binary, struct mp_err *err);
/* @binary: the profiled file, which fdata does not name */
int md_import_fdata(struct md_import *import, struct md_lines *lines, const char *binary,
		    struct mp_err *err);
/* @event: the event to import; NULL: the profile must have only one */
int md_import_perf(struct md_import *import, struct md_lines *lines, const char *event,
		   struct mp_err *err);
/*
 * Ways of branches, as lines "ADDRESS TAKEN FELL". @binary: the file whose link-time addresses they are; an
 * optimised one is refused.
 */
int md_import_ways(struct md_import *import, struct md_lines *lines, const char *binary,
		   struct mp_err *err);

#endif
