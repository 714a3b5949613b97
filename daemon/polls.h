// SPDX-License-Identifier: Apache-2.0
/*
 * polls - asks programs that poll which paths they take, by their file of polls.
 *
 * At each tick of a timer of its own it asks for so many paths as they end one after the other, and
 * leaves away the first few of them, each time one more: simplified Arnold-Grove sampling,
 * PEP(SAMPLES, STRIDE) (CGO 2005, section 4.4). A path should be said by how often it is taken, not by
 * how long what comes before it takes: so programs are asked while they run their own code, and
 * further paths are left away, which are told by when they were asked. The file is read and written,
 * never mapped: it is anybody's.
 */
#ifndef MD_POLLS_H
#define MD_POLLS_H

#include <stdint.h>

#include "daemon/attribute.h"
#include "libprof/err.h"

struct md_polls_config {
	const char *path; /* of the file; need not be there yet */
	uint32_t samples,
		stride; /* of each asking: paths that count; 1 to @stride - 1 go before, or none, and
			 * any number more that there is room for */
	uint32_t rate_hz; /* askings at most */
};

#define MD_POLLS_SAMPLES 64
#define MD_POLLS_STRIDE	 17
#define MD_POLLS_RATE_HZ 500

struct md_polls;

/* Return: 0, -EINVAL more than there is room for, -ENOMEM, -errno. Ownership: md_polls_stop(). */
int md_polls_start(const struct md_polls_config *config, struct md_polls **out, struct mp_err *err);
/*
 * md_polls_take - count the paths that came since, of modules that are known by now, into @at, in
 * its ledger too. @last: asks no more. Return: 0, -ENOMEM: they stay, and may be taken after a flush.
 */
int md_polls_take(struct md_polls *polls, struct md_attribute *at, bool last);
/* What a person should be told at the end, or NULL. */
const char *md_polls_remark(struct md_polls *polls);
/* Takes NULL. */
void md_polls_stop(struct md_polls *polls);

#endif
