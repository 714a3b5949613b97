// SPDX-License-Identifier: Apache-2.0
/*
 * machine - the programs of this machine as morph and morph-worker see them: share of the
 * samples, file, job, measured gain, expected gain.
 *
 * One entry for each path; builds of one path are added up. Reads the store and files, changes
 * nothing, decides nothing. Called by all commands of morph that show something.
 */
#ifndef MD_MACHINE_H
#define MD_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/machine/worth.h"
#include "libprof/base/err.h"
#include "libprof/store/jobs/store_jobs.h"
#include "libprof/store/store.h"
#include "libprof/store/audits/store_trials.h"

enum md_machine_file {
	MD_FILE_UNKNOWN, /* was not looked at */
	MD_FILE_NONE,	 /* the kernel: no file that could be replaced */
	MD_FILE_THERE,	 /* the build that the samples are of */
	MD_FILE_OUTPUT,	 /* an output of morph-optimize, made of that build */
	MD_FILE_OTHER,	 /* another build: it was upgraded since */
	MD_FILE_GONE,
};

struct md_machine_program {
	const char *path;
	const struct mp_module
		*module;	  /* the build of today's file, or the last one; NULL: no sample */
	const struct mp_job *job; /* NULL: none */
	uint64_t nr_samples;	  /* of all builds */
	double share;		  /* of the machine's samples */
	enum md_machine_file file;
	char *denied; /* why it is left alone in any case, in words of a user; NULL: it is not */
	/* The measured gain: the job's, or that of the last trial; ratio 0: none was measured. */
	struct mp_job_gain gain;
	int64_t gain_s; /* when; 0: not known */
	bool estimated;
	struct md_saving saving;
	struct md_worth worth;
};

struct md_machine {
	struct md_machine_program *programs; /* most samples first */
	size_t nr_programs;
	uint64_t nr_samples; /* of all modules */
	int64_t start_s;     /* where the counts begin; 0: there are none */
	struct mp_module *modules;
	size_t nr_modules;
	struct mp_job *jobs;
	size_t nr_jobs;
	struct mp_trial *trials;
	size_t nr_trials;
	struct mp_session *sessions; /* newest first */
	size_t nr_sessions;
	struct md_effect effect;
};

/* md_machine_load - Return: 0, -errno. Ownership: md_machine_fini(@out), after an error too. */
int md_machine_load(struct mp_store *store, int64_t since_s, struct md_machine *out,
		    struct mp_err *err);
void md_machine_fini(struct md_machine *machine);

/*
 * md_machine_estimate - sets @estimated, saving and worth of the first @max programs with enough
 * samples whose files are there. Begins with no further program after @seconds. Programs with
 * audits come first: their audits show how much time a saved branch is worth on this machine.
 * Return: 0, -ENOMEM. A program that cannot be read stays without an estimate.
 */
int md_machine_estimate(struct md_machine *machine, struct mp_store *store, size_t max,
			double seconds, int64_t since_s);
/* Estimates one program, whatever its share. Return: 0, -errno with a message. */
int md_machine_estimate_one(struct md_machine *machine, struct mp_store *store,
			    struct md_machine_program *program, int64_t since_s,
			    struct mp_err *err);

/* The entry of the file at @path. NULL: none. */
struct md_machine_program *md_machine_find(struct md_machine *machine, const char *path);

/* An optimised version of @program is what runs. */
bool md_machine_is_optimised(const struct md_machine_program *program);

/*
 * The order of work: expected gain, programs without an estimate last. Return: the number of
 * entries of *@out, which are programs that may be optimised now and are not. Ownership: free().
 */
size_t md_machine_order(const struct md_machine *machine, const struct md_machine_program ***out);

#endif
