// SPDX-License-Identifier: Apache-2.0
/*
 * source - where records come from: one vtable, so that nothing behind it knows who collects.
 *
 * A source decides how to collect and in which order records are safe to
 * believe; it does not look at files (modcache) nor count (attribute).
 */
#ifndef MD_SOURCE_H
#define MD_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/recfile.h"
#include "daemon/record.h"
#include "libprof/err.h"

struct md_source_config {
	uint32_t rate_hz;
	pid_t command;	     /* live: only this process and what it starts; 0: all */
	bool is_probe;	     /* what a sample costs is measured on @command; later all are wanted */
	bool no_kernel;	     /* live: user samples only */
	uint16_t registers;  /* live: samples of user code come with these, bit n: register n */
	const char *input;   /* replay: the recording */
	uint32_t nr_repeats; /* replay: times, each under new process ids */
};

/*
 * Waking up costs more than the samples of a tenth of a second do. Files must be found before they
 * may be gone, but where no program is started and nothing is mapped, none has to be.
 */
#define MD_QUIET_MS 250

/* Records in the order in which they are to be believed. Writable until the next call. */
struct md_batch {
	uint8_t *data;
	size_t size;
};

struct md_source;

struct md_source_ops {
	const char *name;
	bool is_live;	   /* its files can be looked up on this machine, now */
	bool is_exclusive; /* no second one can be open beside it */
	int (*open)(const struct md_source_config *config, struct md_source **out,
		    struct mp_err *err);
	/*
	 * Return: 0 with records, or none after @timeout_ms; -ENODATA: nothing more will
	 * come; -errno. With @drain, everything collected so far is returned without waiting.
	 * A source of the whole machine may take MD_QUIET_MS after a round of nothing but samples.
	 */
	int (*next)(struct md_source *source, int timeout_ms, bool drain, struct md_batch *batch,
		    struct mp_err *err);
	/* Live: stops sampling for a while, or goes on. */
	int (*pause)(struct md_source *source, bool on, struct mp_err *err);
	/* Event, rate, clock, and why this event. */
	void (*describe)(const struct md_source *source, struct md_recfile_info *info);
	/* What a person should be told at the end, or NULL. */
	const char *(*remark)(const struct md_source *source);
	void (*close)(struct md_source *source);
};

/* Every source's structure starts with this. */
struct md_source {
	const struct md_source_ops *ops;
	bool has_kernel;      /* live: kernel samples are among its records */
	uint64_t kernel_base; /* live: where _text is in them; 0: at its run-time address */
	uint32_t fixed_hz;    /* live: the rate, where it cannot be chosen; 0: it can */
	char choice[200]; /* why this source and rate, and not others; "" where they were asked for */
};

extern const struct md_source_ops md_source_kmod;
extern const struct md_source_ops md_source_bpf;
extern const struct md_source_ops md_source_perf;
extern const struct md_source_ops md_source_replay;

/* What the source says of itself, with why it was chosen. */
void md_source_describe(const struct md_source *source, struct md_recfile_info *info);

/* Return: NULL where no source is called @name. */
const struct md_source_ops *md_source_find(const char *name);

#endif
