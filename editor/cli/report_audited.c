// SPDX-License-Identifier: Apache-2.0
/* report_audited - which order of its blocks each audited function has, and why; text and JSON. */
#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "editor/cli/report_private.h"
#include "libprof/base/text.h"
#include "libprof/cli/json.h"
#include "libprof/note/audit_file.h"

static const char *const orders[] = {
	[MP_AUDIT_VERDICT_NONE] = "undecided",
	[MP_AUDIT_VERDICT_A] = "original",
	[MP_AUDIT_VERDICT_B] = "new",
};

static void put_evidence(FILE *out, const struct me_decided *d)
{
	if (isnan(d->faster_by)) {
		fputs(", no pairs", out);
		return;
	}
	fprintf(out, ", the new order is faster by %+.2f %%", 100 * d->faster_by);
	if (!isnan(d->lowest) && !isnan(d->highest))
		fprintf(out, " (%+.2f to %+.2f)", 100 * d->lowest, 100 * d->highest);
	fprintf(out, ", %" PRIu64 " pairs", d->pairs);
}

static void put_function(FILE *out, const struct me_decided *d)
{
	time_t when = (time_t)d->last_s;
	char date[32] = "";
	struct tm tm;

	if (gmtime_r(&when, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d", &tm);
	fprintf(out, "      0x%" PRIx64 " ", d->vaddr);
	if (*d->name)
		mp_text_put(out, d->name);
	fprintf(out, ": faster is: %s", orders[d->verdict]);
	put_evidence(out, d);
	fprintf(out, ", %s, ", date);
	mp_text_put(out, d->machine);
	fprintf(out, "; has %s\n",
		!d->copied			 ? "no copy"
		: d->order == MP_AUDIT_VERDICT_A ? "the original's order"
						 : "the new order");
}

void me_report_text_audited(FILE *out, const struct me_optimize_report *r, bool explain)
{
	uint32_t nr[3] = {0};

	if (!r->nr_decided)
		return;
	for (uint32_t i = 0; i < r->nr_decided; i++)
		nr[r->decided[i].verdict]++;
	fprintf(out,
		"  decided    by audits in running programs: for %" PRIu32
		" functions the original's order, for %" PRIu32 " the new one; %" PRIu32
		" undecided have the new one\n",
		nr[MP_AUDIT_VERDICT_A], nr[MP_AUDIT_VERDICT_B], nr[MP_AUDIT_VERDICT_NONE]);
	for (uint32_t i = 0; i < r->nr_decided; i++)
		if (explain || r->decided[i].verdict == MP_AUDIT_VERDICT_A)
			put_function(out, &r->decided[i]);
}

json_t *me_report_json_audited(const struct me_optimize_report *r)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->nr_decided; i++) {
		const struct me_decided *d = &r->decided[i];

		json_array_append_new(
			list,
			json_pack("{s:o, s:I, s:f, s:s, s:s?, s:o, s:o, s:o, s:I, s:I, s:o}",
				  "function", mp_json_string(d->name), "vaddr",
				  (json_int_t)d->vaddr, "share", d->share, "faster_is",
				  orders[d->verdict], "order", d->copied ? orders[d->order] : NULL,
				  "faster_by", mp_json_number(d->faster_by), "lowest",
				  mp_json_number(d->lowest), "highest", mp_json_number(d->highest),
				  "pairs", (json_int_t)d->pairs, "last_s", (json_int_t)d->last_s,
				  "machine", mp_json_string(d->machine)));
	}
	return list;
}
