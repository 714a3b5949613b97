// SPDX-License-Identifier: Apache-2.0
/* report_facts - names, sums and lines that all forms of a report share. */
#include "editor/cli/report_private.h"
#include "libprof/base/text.h"

const char *const me_stage_names[ME_NR_STAGES] = {
	[ME_STAGE_READ] = "read",     [ME_STAGE_PROFILE] = "profile", [ME_STAGE_INFER] = "infer",
	[ME_STAGE_LAYOUT] = "layout", [ME_STAGE_EMIT] = "emit",	      [ME_STAGE_DEBUG] = "debug",
	[ME_STAGE_WRITE] = "write",   [ME_STAGE_VERIFY] = "verify",
};

const char *const me_slice_stay_names[ME_NR_SLICE_STAYS] = {
	[ME_SLICE_GOES] = "left out",
	[ME_SLICE_FUNCTION] = "its function is not understood",
	[ME_SLICE_UNPROVED] = "not proved to serve only markers",
	[ME_SLICE_FORM] = "an instruction of another kind",
	[ME_SLICE_READ] = "something else reads the marker, perhaps a spill",
	[ME_SLICE_BLOCK] = "not a block of its own",
};

const char *me_report_evidence(const struct me_optimize_report *r)
{
	return r->relinkable ? "relocations" : "code, loader and data (no relocations)";
}

double me_report_total_s(const double *stage_s)
{
	double sum = 0;

	for (int i = 0; i < ME_NR_STAGES; i++)
		sum += stage_s[i];
	return sum;
}

uint64_t me_report_padding(const struct me_emitted *e)
{
	return e->segment_bytes - e->copies_bytes - e->eh_frame_bytes - e->lsda_bytes -
	       e->map_bytes;
}

uint64_t me_report_warm(const struct me_emitted *e)
{
	return e->text_bytes - e->hot_bytes;
}

void me_report_line(FILE *out, const char *before, const char *name, const char *behind)
{
	fputs(before, out);
	mp_text_put(out, name);
	fputs(behind, out);
}
