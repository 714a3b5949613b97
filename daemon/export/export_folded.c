// SPDX-License-Identifier: Apache-2.0
/* export_folded - writes "module;function count" lines, the input of flame graph tools. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/export/export_calls.h"
#include "daemon/code/ksyms.h"
#include "daemon/code/stats_rows.h"
#include "libprof/base/text.h"

static int folded_module(struct md_export *e, const struct md_export_module *m, struct mp_err *err)
{
	const char *file = basename(m->module->path);
	struct md_ksyms ksyms = {0};
	struct md_rows rows = {0};
	uint64_t unknown = 0;
	int r = 0;

	if (m->code)
		r = md_rows_of_functions(&rows, m->module, m->code, NULL, m->counts, m->nr_counts);
	else if (!md_ksyms_open(m->module, &ksyms))
		r = md_rows_of_kernel(&rows, m->module, &ksyms, false, NULL, m->counts,
				      m->nr_counts);
	else
		for (size_t i = 0; i < m->nr_counts; i++)
			unknown += m->counts[i].count;
	md_rows_sort(&rows, MD_SORT_SAMPLES);
	for (size_t i = 0; i < rows.nr; i++) {
		if (!rows.rows[i].function) {
			unknown += rows.rows[i].samples;
			continue;
		}
		mp_text_put_but(e->out, file, MD_EXPORT_FRAMES_END);
		putc(';', e->out);
		mp_text_put_but(e->out, rows.rows[i].function, MD_EXPORT_FRAMES_END);
		fprintf(e->out, " %" PRIu64 "\n", rows.rows[i].samples);
		e->nr_written += rows.rows[i].samples;
	}
	if (unknown) {
		mp_text_put_but(e->out, file, MD_EXPORT_FRAMES_END);
		fprintf(e->out, ";[unknown] %" PRIu64 "\n", unknown);
		e->nr_written += unknown;
	}
	md_rows_free(&rows);
	md_ksyms_fini(&ksyms);
	return r ? mp_err_code(err, -r) : 0;
}

const struct md_export_format md_export_folded = {
	.name = "folded",
	.needs = MD_EXPORT_CODE,
	.module = folded_module,
	.calls = md_export_calls_folded,
};
