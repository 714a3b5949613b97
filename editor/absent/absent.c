// SPDX-License-Identifier: Apache-2.0
/*
 * absent - what `make CORE=1' has in place of the optional parts (PARTS of the Makefile): each function is
 * the way into one of them, and says that this build lacks it.
 */
#include <errno.h>

#include "editor/cli/audit_private.h"
#include "editor/cli/cli.h"
#include "editor/optimize/optimize_private.h"
#include "editor/verify/marker/verify_marker.h"

static int lacks_objects(void)
{
	struct mp_err err;

	mp_err_set(&err, ENOTSUP, "this build of Morph does not rewrite objects and archives");
	me_cli_complain(&err);
	return MP_EXIT_USAGE;
}

int me_cli_object(struct me_cli *cli, const char *program)
{
	(void)cli;
	(void)program;
	return lacks_objects();
}

int me_cli_verify_object(struct me_cli *cli, const char *original)
{
	(void)cli;
	(void)original;
	return lacks_objects();
}

int me_audit_compilations(struct me_audit_arguments *args)
{
	(void)args;
	fputs("morph-audit: this build of Morph does not compare compilations\n", stderr);
	return MP_EXIT_USAGE;
}

int me_job_find_markers(struct me_job *job, struct mp_err *err)
{
	(void)job;
	return mp_err_set(err, ENOTSUP, "this build of Morph does not know code markers");
}

int me_job_leave_markers_out(struct me_job *job, struct mp_err *err)
{
	return me_job_find_markers(job, err);
}

/* Copies may lack nothing. An output that lacks markers is refused. */
int vf_find_markers(struct vf *vf)
{
	(void)vf;
	return 0;
}
