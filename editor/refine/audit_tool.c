// SPDX-License-Identifier: Apache-2.0
/* audit_tool - the command line of morph-audit, and its JSON; see audit_tool.h. */
#include "editor/refine/audit_tool.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "editor/refine/interrupt.h"
#include "editor/refine/tool.h"
#include "libprof/cli/exit_status.h"

static int read_result(const char *path, struct me_verdict *out, struct mp_err *err)
{
	json_t *root = json_load_file(path, 0, NULL);
	json_t *interval = json_object_get(root, "interval");
	const char *verdict = json_string_value(json_object_get(root, "verdict"));
	const char *difference = json_string_value(json_object_get(root, "difference"));

	if (!verdict) {
		json_decref(root);
		return mp_err_set(err, EIO, "morph-audit wrote no result");
	}
	*out = (struct me_verdict){
		.speedup = json_number_value(json_object_get(root, "speedup")),
		.lowest = json_number_value(json_array_get(interval, 0)),
		.highest = json_number_value(json_array_get(interval, 1)),
		.alpha = json_number_value(json_object_get(root, "alpha")),
		.nr_pairs = (size_t)json_integer_value(json_object_get(root, "pairs")),
	};
	snprintf(out->verdict, sizeof(out->verdict), "%s", verdict);
	snprintf(out->difference, sizeof(out->difference), "%s", difference ? difference : "");
	json_decref(root);
	return 0;
}

/* An audit that fails writes the reason where its result would be. */
static int tell_failure(const struct me_audit_tool *audit, struct mp_err *err)
{
	json_t *root = json_load_file(audit->json, 0, NULL);
	const char *reason = json_string_value(json_object_get(root, "error"));
	int rc;

	if (!audit->quiet)
		reason = "morph-audit's message above says why";
	rc = mp_err_set(err, EIO, "the audit failed: %s",
			reason ? reason : "morph-audit did not say why");
	json_decref(root);
	return rc;
}

int me_audit_tool_run(const struct me_audit_tool *audit, struct me_verdict *out, int *status,
		      struct mp_err *err)
{
	char at[PATH_MAX + 8], limit[96], alpha[64], json[PATH_MAX + 16], csv[PATH_MAX + 16];
	char earlier[PATH_MAX + 16], *filter = NULL;
	struct me_tool tool;
	char *first[13] = {tool.path, at, alpha, limit, json, csv};
	size_t nr = 6;
	char **argv;
	int waited, rc = me_tool_find("morph-audit", &tool, err);

	if (rc)
		return rc;
	snprintf(at, sizeof(at), "--at=%s", audit->at);
	snprintf(alpha, sizeof(alpha), "--alpha=%.12g", audit->alpha);
	snprintf(json, sizeof(json), "--export=%s", audit->json);
	snprintf(csv, sizeof(csv), "--export=%s", audit->csv);
	if (audit->pairs)
		snprintf(limit, sizeof(limit), "--pairs=%s", audit->pairs);
	else
		snprintf(limit, sizeof(limit), "--max-seconds=%g", audit->limit_s);
	if (audit->earlier) {
		snprintf(earlier, sizeof(earlier), "--continue=%s", audit->earlier);
		first[nr++] = earlier;
	}
	if (audit->filter) {
		if (asprintf(&filter, "--filter=%s", audit->filter) < 0)
			return mp_err_set(err, ENOMEM, "out of memory");
		first[nr++] = filter;
	}
	first[nr++] = (char *)"--command";
	first[nr++] = (char *)audit->a;
	first[nr++] = (char *)audit->b;
	first[nr++] = (char *)"--";
	argv = me_tool_with_command(first, audit->command);
	if (!argv) {
		free(filter);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	/* The file may be that of an earlier audit. */
	unlink(audit->json);
	waited = me_tool_run(argv, audit->quiet);
	free(argv);
	free(filter);
	rc = me_interrupt_check(err);
	if (rc)
		return rc;
	if (waited < 0 || !WIFEXITED(waited))
		return mp_err_set(err, EIO, "morph-audit could not be run");
	*status = WEXITSTATUS(waited);
	if (*status != MP_EXIT_DONE && *status != MP_EXIT_NOT_FASTER && *status != MP_EXIT_DIFFERS)
		return tell_failure(audit, err);
	return read_result(audit->json, out, err);
}
