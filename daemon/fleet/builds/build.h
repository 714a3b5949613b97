// SPDX-License-Identifier: Apache-2.0
/*
 * build - makes one build: finds the original in directories (its build-id and the hash of its code are the module's), pulls the fleet's profile, runs morph-optimize as a process,
 * and stores the plan of the output. Decides nothing about hosts: they verify what is made here. Called by
 * the command "build".
 */
#ifndef MD_FLEET_BUILD_H
#define MD_FLEET_BUILD_H

#include "daemon/fleet/builds/build_job.h"
#include "daemon/fleet/command.h"

/* The places in which a builder looks for originals. */
#define MD_PLACES_MAX 16
struct md_places {
	const char *list[MD_PLACES_MAX];
	size_t nr;
};

struct md_build {
	struct md_builder builder;
	const char *database; /* where morph-fleet pull reads the profile */
	const struct md_places *originals;
	void (*say)(const struct md_build_job *job, const char *text);
};

enum md_build_end {
	MD_BUILD_STORED,
	MD_BUILD_FAILED, /* and the database says why */
	MD_BUILD_LOST	 /* another builder has the job, or this one must stop */
};

/* Return: 0, with *@end; -errno: the result could not be told to the server. */
int md_build_run(struct md_build *build, struct md_build_job *job, enum md_build_end *end,
		 struct mp_err *err);

#endif
