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
#include "libprof/cli/progress.h"

extern char **environ;

static int print(const struct me_audit_arguments *args, const struct me_compilations *result)
{
	FILE *out;
	int ret = 0;

	if (args->json)
		ret = me_compilations_print_json(result, stdout);
	else
		me_compilations_print(result, stdout);
	if (ret || !args->to_json)
		return ret;
	out = strcmp(args->to_json, "-") ? fopen(args->to_json, "we") : stdout;
	ret = out ? me_compilations_print_json(result, out) : -errno;
	if (out && out != stdout && fclose(out) && !ret)
		ret = -errno;
	if (ret)
		fprintf(stderr, "morph-audit: %s: %s\n", args->to_json, strerror(-ret));
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
		ret = ME_AUDIT_STATUS_NO_SAMPLES;
	else if (ret)
		ret = ME_AUDIT_STATUS_FAILED;
	else if (result.differs)
		ret = ME_AUDIT_STATUS_DIFFERS;
	else
		ret = me_compilations_is_better(&result) ? ME_AUDIT_STATUS_FASTER
							 : ME_AUDIT_STATUS_SLOW;
	me_compilations_fini(&result);
	return ret;
}
