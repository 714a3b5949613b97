// SPDX-License-Identifier: Apache-2.0
/*
 * evidence - what the store knows of a file: its own counts, or those of another build carried over.
 */
#ifndef ME_EVIDENCE_H
#define ME_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/cfg.h"
#include "libprof/err.h"
#include "libprof/path_key.h"
#include "libprof/profile.h"
#include "libprof/stale.h"

/* Where counts of another build come from. */
struct me_stale_options {
	bool never;	  /* own counts or none */
	const char *from; /* the other build: its file, or its build-id; NULL: what the store finds */
};

/* What was carried over. */
struct me_stale_report {
	bool used;
	char build_id[2 * MP_BUILD_ID_MAX + 1]; /* of the other build */
	char *path;				/* where that was seen last */
	uint64_t own_samples;			/* of the file itself, too few, that were added */
	struct mp_stale_stats stats;
};

struct me_evidence {
	struct mp_ip_count *counts; /* ascending; the same address may come twice */
	struct mp_edge_count *edges;
	struct mp_path_count *paths;
	size_t nr_counts, nr_edges, nr_paths;
	bool exact;
	uint64_t *unknown; /* blocks whose lack of counts says nothing, ascending */
	size_t nr_unknown;
};

struct me_evidence_options {
	const char *input, *db;
	int64_t since_s;
	uint64_t min_samples; /* with fewer of its own a file gets another build's as well */
	bool paths;	      /* read these, too */
	bool remember;	      /* keep a fingerprint of the file, for its next build */
	struct me_stale_options stale;
};

/*
 * me_evidence_read - of the file that @cfg was made of. Fills @stale where counts were carried over.
 * That a fingerprint cannot be kept is no error. Return: 0, -ENODATA nothing is known, -errno.
 * Ownership: me_evidence_fini(@out), and free(@stale->path), always.
 */
int me_evidence_read(const struct me_evidence_options *options, const struct mp_cfg *cfg,
		     struct me_evidence *out, struct me_stale_report *stale, struct mp_err *err);
void me_evidence_fini(struct me_evidence *evidence);

#endif
