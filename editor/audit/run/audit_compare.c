// SPDX-License-Identifier: Apache-2.0
/* audit_compare - compares two runs, and says in words how they differ. */
#include "editor/audit/run/audit_compare.h"

#include <stdio.h>
#include <sys/wait.h>

#include "editor/audit/run/audit_child.h"

static void describe_end(const struct me_run *run, char *to, size_t size)
{
	if (run->timed_out)
		snprintf(to, size, "did not end in time");
	else
		me_child_describe(run->status, to, size);
}

static bool output_same(const struct me_run_output *x, const struct me_run_output *y)
{
	return x->hash[0] == y->hash[0] && x->hash[1] == y->hash[1] &&
	       x->size_bytes == y->size_bytes;
}

static void describe_output(char *to, size_t size, const char *what,
			    const struct me_run_output *ref, const struct me_run_output *got)
{
	if (ref->size_bytes == got->size_bytes)
		snprintf(to, size, "%s: %llu bytes, but different ones", what,
			 (unsigned long long)got->size_bytes);
	else
		snprintf(to, size, "%s: %llu bytes instead of %llu", what,
			 (unsigned long long)got->size_bytes, (unsigned long long)ref->size_bytes);
}

bool me_run_failed(const struct me_run *run, char *what, size_t size)
{
	char end[80];

	if (run->server[0]) {
		snprintf(what, size, "%s", run->server);
		return true;
	}
	if (!run->timed_out && !WIFSIGNALED(run->status))
		return false;
	describe_end(run, end, sizeof(end));
	snprintf(what, size, "%s%s%s", end, run->last_stderr_line[0] ? "; it said: " : "",
		 run->last_stderr_line);
	return true;
}

bool me_run_differs(const struct me_run *ref, const struct me_run *run, bool with_output,
		    char *what, size_t size)
{
	char end[80], ref_end[80];

	if (run->server[0]) {
		snprintf(what, size, "%s", run->server);
	} else if (run->status != ref->status || run->timed_out) {
		describe_end(run, end, sizeof(end));
		describe_end(ref, ref_end, sizeof(ref_end));
		snprintf(what, size, "%s instead of %s%s%s", end, ref_end,
			 run->last_stderr_line[0] ? "; it said: " : "", run->last_stderr_line);
	} else if (with_output && !output_same(&run->out, &ref->out)) {
		describe_output(what, size, "stdout", &ref->out, &run->out);
	} else if (!output_same(&run->err, &ref->err)) {
		describe_output(what, size, "stderr", &ref->err, &run->err);
	} else if (!output_same(&run->files, &ref->files)) {
		describe_output(what, size, "files", &ref->files, &run->files);
	} else {
		return false;
	}
	return true;
}
