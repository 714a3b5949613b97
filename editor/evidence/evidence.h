// SPDX-License-Identifier: Apache-2.0
/*
 * evidence - what the store knows about a file: its own counts, or another build's
 * carried over. Decides when own counts suffice, which other build's counts are used,
 * and when a fingerprint is kept. Called by optimize.
 */
#ifndef ME_EVIDENCE_H
#define ME_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/callgraph/entry_samples.h"
#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"
#include "libprof/note/path_key.h"
#include "libprof/infer/profile.h"
#include "libprof/stale/stale.h"

/* The source of another build's counts. */
struct me_stale_options {
	bool never;	  /* use own counts only */
	const char *from; /* the other build's file or build-id; NULL: let the store find it */
};

/* The counts that were carried over. */
struct me_stale_report {
	bool used;
	char build_id[2 * MP_BUILD_ID_MAX + 1]; /* of the other build */
	char *path;				/* where that build was seen last */
	uint64_t own_samples;			/* the file's own samples, added to the others */
	struct mp_stale_stats stats;
};

struct me_evidence {
	struct mp_ip_count *counts; /* ascending; an address may occur twice */
	struct mp_edge_count *edges;
	struct mp_path_count *paths;
	struct mp_way_count *ways; /* of branches, as registers of samples showed them */
	size_t nr_counts, nr_edges, nr_paths, nr_ways;
	bool exact;
	uint64_t *unknown; /* blocks whose missing counts mean nothing, ascending */
	size_t nr_unknown;
	struct mp_entry_samples entries; /* how the file's functions were entered, as stacks show */
};

struct me_evidence_options {
	const char *input, *db;
	int64_t since_s;
	uint64_t min_samples; /* a file with fewer own samples also gets another build's */
	bool paths;	      /* also read path counts */
	bool remember;	      /* keep a fingerprint of the file for its next build */
	bool entries;	      /* the CFG was made with mp_cfg_options.entries */
	struct me_stale_options stale;
};

/*
 * me_evidence_read - read the counts of the file of @cfg. Fills @stale if counts were
 * carried over. Not being able to keep a fingerprint is no error.
 * Return: 0, -ENODATA nothing is known, -errno. Ownership: me_evidence_fini(@out) and
 * free(@stale->path), after an error too.
 */
int me_evidence_read(const struct me_evidence_options *options, const struct mp_cfg *cfg,
		     struct me_evidence *out, struct me_stale_report *stale, struct mp_err *err);
void me_evidence_fini(struct me_evidence *evidence);

#endif
