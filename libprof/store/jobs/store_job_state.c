// SPDX-License-Identifier: Apache-2.0
/* store_job_state - names of the states of jobs. */
#include <string.h>

#include "libprof/store/jobs/store_jobs.h"

static const char *const state_names[MP_NR_JOB_STATES] = {
	[MP_JOB_WANTED] = "wanted",	  [MP_JOB_COUNTING] = "counting",
	[MP_JOB_PROFILED] = "profiled",	  [MP_JOB_WRITTEN] = "written",
	[MP_JOB_VERIFIED] = "verified",	  [MP_JOB_AUDITING] = "auditing",
	[MP_JOB_TRYING] = "trying",	  [MP_JOB_AUDITED] = "audited",
	[MP_JOB_ADVISED] = "advised",	  [MP_JOB_ADOPTED] = "adopted",
	[MP_JOB_KEPT] = "kept",		  [MP_JOB_UNDOING] = "undoing",
	[MP_JOB_UNDONE] = "undone",	  [MP_JOB_NOT_FASTER] = "not-faster",
	[MP_JOB_UNDECIDED] = "undecided", [MP_JOB_REFUSED] = "refused",
	[MP_JOB_FAILED] = "failed",	  [MP_JOB_GONE] = "gone",
};

int mp_job_find_name(const char *const *names, int nr, const char *name)
{
	int i;

	for (i = 0; i < nr; i++)
		if (name && !strcmp(names[i], name))
			return i;
	return -1;
}

const char *mp_job_state_name(enum mp_job_state state)
{
	return state_names[state];
}

bool mp_job_state_find(const char *name, enum mp_job_state *out)
{
	int found = mp_job_find_name(state_names, MP_NR_JOB_STATES, name);

	if (found >= 0)
		*out = (enum mp_job_state)found;
	return found >= 0;
}
