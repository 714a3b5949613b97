// SPDX-License-Identifier: Apache-2.0
/*
 * host_evidence - what this host knows of a build of the fleet by now: the state of the file's job, its
 * audit, and its probation. Reads the store and the worker's evidence, and changes nothing. Called by renew.
 */
#ifndef MD_HOST_EVIDENCE_H
#define MD_HOST_EVIDENCE_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/fleet/rollout/lease.h"
#include "libprof/store/store.h"

struct md_host_evidence {
	/* The job's state, by its name. "differs": the build printed something else. "gone": no job. */
	char state[24];
	bool installed; /* in the original's place, or being audited there */
	bool ended;	/* it will not come into place any more, unless the fleet says so */
	json_t *facts;	/* numbers by name, for fleet.push_audit(); ownership: json_decref() */
};

/* Return: 0, -errno. */
int md_host_evidence_read(struct mp_store *store, const char *state_dir,
			  const struct md_lease *lease, struct md_host_evidence *out,
			  struct mp_err *err);

#endif
