// SPDX-License-Identifier: Apache-2.0
/*
 * variants - the versions of a job's file that verify proves to behave the same, and which of them is in its
 * place. The worker wrote them into the job's directory; a file there, `variants', has the hashes of their bytes.
 *
 *	original ---> counting ---> original		for a while, to count how control goes
 *	original ---> metered original <--> metered new	for a trial: which is faster?
 *	original ---> new				for good
 *
 * Each swap is one rename, by morph-optimize or spare.c. Processes go on with the file that they started with.
 */
#ifndef MD_VARIANTS_H
#define MD_VARIANTS_H

#include "daemon/worker/work_dir.h"
#include "libprof/base/err.h"
#include "libprof/store/jobs/store_jobs.h"

enum md_variant {
	MD_ORIGINAL,
	MD_COUNTING,	     /* counts its branches */
	MD_METERED_ORIGINAL, /* the original's layout, with the counters of the work meter */
	MD_METERED_NEW,	     /* the new layout, with the same counters */
	MD_NEW,
	MD_NEW_RUNNING, /* the new layout, for processes that run already */
	MD_NR_VARIANTS
};

/* The name of its file in the job's directory; NULL for the original. */
const char *md_variant_name(enum md_variant variant);
/* The directory in which its processes count, VERSION.counts; see count_dir.h. Makes nothing. */
struct md_work_path md_variant_counts(const struct md_work_dir *dir, enum md_variant variant);
/* Words for users: "the version that counts". */
const char *md_variant_words(enum md_variant variant);

struct md_variants {
	char hash[MD_NR_VARIANTS][MP_JOB_HASH_MAX]; /* as md_file_hash(); "": there is none */
};
/* Those of the job's directory; none if the file is missing or damaged. */
void md_variants_load(const struct md_work_dir *dir, struct md_variants *out);
/*
 * md_variants_note - adds the hash of a version that was just written, before it may be put in place.
 * Return: 0, -errno.
 */
int md_variants_note(const struct md_work_dir *dir, enum md_variant variant, const char *hash,
		     struct mp_err *err);
/* Return: which of them has this hash; MD_ORIGINAL: none. */
enum md_variant md_variants_find(const struct md_variants *variants, const char *hash);

#endif
