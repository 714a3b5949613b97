// SPDX-License-Identifier: Apache-2.0
/* audit_compilations - morph-audit --compilations: runs the comparison, prints it, and decides the
 * exit status. Called by morph_audit.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "editor/cli/audit_private.h"
#include "editor/compilations/compilations.h"
#include "editor/compilations/compilations_report.h"
#include "libprof/base/outfile.h"
#include "libprof/cli/progress.h"

extern char **environ;

static int print(const struct me_audit_arguments *args, const struct me_compilations *result)
{
	struct mp_outfile out;
	struct mp_err err;
	int ret = 0;

	if (args->json)
		ret = me_compilations_print_json(result, stdout);
	else
		me_compilations_print(result, stdout);
	if (ret || !args->exports[ME_EXPORT_JSON])
		return ret;
	ret = me_audit_export_open(args, ME_EXPORT_JSON, &out, &err);
	if (!ret) {
		me_compilations_print_json(result, out.file);
		ret = mp_outfile_commit(&out, &err);
	}
	if (ret)
		fprintf(stderr, "morph-audit: %s\n", err.msg);
	return ret;
}

int me_audit_compilations(struct me_audit_arguments *args)
{
	struct me_audit_opts *opts = &args->audit;
	struct me_audit_lines lines = {.out = stderr, .every_s = args->progress_s};
	struct me_compilations result;
	struct mp_err err = {""};
	sigset_t mask;
	int ret;

	me_audit_begin(args, &lines, &mask);
	ret = me_compilations_run(opts, &result, &err);
	mp_progress_stop();
	if (ret == -ECANCELED)
		fprintf(stderr, "morph-audit: interrupted after %zu pairs\n", result.nr_pairs);
	else if (ret)
		fprintf(stderr, "morph-audit: %s\n", err.msg);
	else
		ret = print(args, &result);
	if (ret == -ENODATA)
		ret = MP_EXIT_NO_PROFILE;
	else if (ret)
		ret = MP_EXIT_FAILED;
	else if (result.differs)
		ret = MP_EXIT_DIFFERS;
	else
		ret = me_compilations_is_better(&result) ? MP_EXIT_DONE : MP_EXIT_NOT_FASTER;
	me_compilations_fini(&result);
	return ret;
}
