// SPDX-License-Identifier: Apache-2.0
/*
 * path_requests - asks running programs which paths they take, through their file of polls. Called
 * by morphd's main and the pipeline.
 *
 * A timer triggers requests. A request asks for a number of consecutive paths and skips the first
 * few, one more each time: simplified Arnold-Grove sampling, PEP(SAMPLES, STRIDE) (CGO 2005,
 * section 4.4). A path's count should depend on how often it is taken, not on how long the code
 * before it runs. So programs are asked while they run their own code, and a random number of
 * further paths is skipped. The file is read and written, never mapped, because any user may have
 * made it.
 */
#ifndef MD_PATH_REQUESTS_H
#define MD_PATH_REQUESTS_H

#include <stdint.h>

#include "daemon/attribute/attribute.h"
#include "libprof/base/err.h"

struct md_path_requests_config {
	const char *path; /* of the file, which may not exist yet */
	uint32_t samples,
		/*
		 * per request: @samples paths that count; before them 0 to @stride - 1 paths
		 * are skipped, and a random number more if there is room
		 */
		stride;
	uint32_t rate_hz; /* most requests per second */
};

#define MD_PATH_REQUESTS_SAMPLES 64
#define MD_PATH_REQUESTS_STRIDE	 17
#define MD_PATH_REQUESTS_RATE_HZ 500

struct md_path_requests;

/*
 * Return: 0, -EINVAL the file has no room for so many, -ENOMEM, -errno. Ownership:
 * md_path_requests_stop().
 */
int md_path_requests_start(const struct md_path_requests_config *config,
			   struct md_path_requests **out, struct mp_err *err);
/*
 * md_path_requests_take - add the paths reported since the last call to @at and its ledger, for modules
 * that are known. @last: make no more requests. Return: 0, -ENOMEM: they are kept; call again
 * after a flush.
 */
int md_path_requests_take(struct md_path_requests *polls, struct md_attribute *at, bool last);
/* Return: a message for the user at the end, or NULL. */
const char *md_path_requests_remark(struct md_path_requests *polls);
/* Accepts NULL. */
void md_path_requests_stop(struct md_path_requests *polls);

#endif
