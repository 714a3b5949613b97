// SPDX-License-Identifier: Apache-2.0
/*
 * source - the interface of all producers of records. Code that uses it need not know which
 * producer it is. Called by pipeline and choose.
 *
 * A source decides how to collect, and in which order records are complete. It reads no
 * program's files (modcache does) and counts nothing (attribute does).
 */
#ifndef MD_SOURCE_H
#define MD_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/record/recfile.h"
#include "daemon/record/record.h"
#include "libprof/base/err.h"
#include "libprof/unwind/rows.h"

/* AUTO: if the rate is so low that stacks cost less than MD_STACKS_SHARE_PPM of a CPU. */
enum md_stacks {
	MD_STACKS_NO,
	MD_STACKS_YES,
	MD_STACKS_AUTO,
};

#define MD_STACKS_SHARE_PPM 4000

struct md_source_config {
	uint32_t rate_hz;
	pid_t command; /* live: only this process and its children; 0: all processes */
	/* only to measure the cost of a sample, on @command; all processes are sampled later */
	bool is_probe;
	bool no_kernel; /* live: only samples of user code */
	/* live: registers that samples of user code carry, bit n: register n */
	uint32_t registers;
	enum md_stacks stacks; /* live: who called, with each sample */
	/* bpf, for tests: after each STACK comes a USER_STACK of the same sample */
	bool stack_copies;
	const char *input;   /* replay: the recording */
	uint32_t nr_repeats; /* replay: number of repetitions, each with new process ids */
};

/* Records in the order in which they are to be processed. Writable until the next call. */
struct md_batch {
	uint8_t *data;
	size_t size;
};

struct md_source;

/* Unwind rows of one file, as @mmap named it, or of the [vdso]. */
struct md_source_rows {
	const struct morph_mmap *mmap; /* NULL: the [vdso] */
	const struct morph_segment *segments;
	uint32_t nr_segments;
	const struct mp_rows *rows; /* in the form of rows_laid; NULL: the file has no rows */
	/*
	 * NULL: not wanted. Otherwise a source that keeps rows where morphd can read them, until the
	 * source closes, describes them here, and uses @rows up. If it has done so before, it has
	 * described what @rows are.
	 */
	struct mp_rows *laid;
};

struct md_source_ops {
	const char *name;
	bool is_live;	   /* its files can be looked up on this machine */
	bool is_exclusive; /* only one can be open at a time */
	int (*open)(const struct md_source_config *config, struct md_source **out,
		    struct mp_err *err);
	/*
	 * Return: 0 with records, or without if none came within @timeout_ms; -ENODATA: no more
	 * will come; -errno. With @drain, returns everything collected so far without waiting.
	 * A source of the whole machine may wait longer if the last round had only samples
	 * (quiet.h).
	 */
	int (*next)(struct md_source *source, int timeout_ms, bool drain, struct md_batch *batch,
		    struct mp_err *err);
	/* live: stops sampling for a while, or continues */
	int (*pause)(struct md_source *source, bool on, struct mp_err *err);
	/*
	 * live, with stacks: takes rows for walks that the source makes itself; NULL: it makes none.
	 * Return: 0, -errno: walks end where they meet the file. -ENOSPC: there is no more room.
	 */
	int (*give_rows)(struct md_source *source, const struct md_source_rows *rows);
	const char *rows_full; /* message for the user if there is no more room for rows */
	/* Gives event, rate, clock, and why this event. */
	void (*describe)(const struct md_source *source, struct md_recfile_info *info);
	/* Return: a message for the user at the end, or NULL. */
	const char *(*remark)(const struct md_source *source);
	/* Rows that the source keeps are gone then: see md_modcache_gather_rows(). */
	void (*close)(struct md_source *source);
};

/* Every source's structure begins with this one. */
struct md_source {
	const struct md_source_ops *ops;
	bool has_kernel;      /* live: the kernel is sampled too */
	bool has_stacks;      /* live: STACK or USER_STACK records come with the samples */
	uint64_t kernel_base; /* live: address of _text in samples; 0: its run-time address */
	uint32_t fixed_hz;    /* live: the rate if it cannot be chosen; 0: it can */
	char choice[200];     /* why this source and rate were chosen; "" if the user chose them */
};

extern const struct md_source_ops md_source_kmod;
extern const struct md_source_ops md_source_bpf;
extern const struct md_source_ops md_source_perf;
extern const struct md_source_ops md_source_replay;

/* Return: true if stacks are wanted, each of which costs @cost_ns. @rate_hz: 0: not known. */
bool md_source_wants_stacks(enum md_stacks stacks, uint32_t rate_hz, uint32_t cost_ns);

/* Describes the source, including why it was chosen. */
void md_source_describe(const struct md_source *source, struct md_recfile_info *info);

/* Return: NULL: no source is called @name. */
const struct md_source_ops *md_source_find(const char *name);

#endif
