// SPDX-License-Identifier: Apache-2.0
/* report_adjusted - what became of the adjustments that the user wants, as text and as JSON. */
#include <inttypes.h>

#include "editor/cli/report_private.h"
#include "editor/layout/adjust_text.h"
#include "libprof/base/text.h"
#include "libprof/cli/json.h"

enum {
	SHOWN = 10
};

static void put_kinds(FILE *out, const struct me_adjustment *how, uint8_t kinds)
{
	const char *before = "";
	char text[ME_ADJUST_TEXT_MAX];

	for (int kind = 0; kind < ME_NR_ADJUSTS; kind++) {
		if (!(kinds >> kind & 1))
			continue;
		fprintf(out, "%s%s", before, me_adjust_format(how, kind, text));
		before = ", ";
	}
}

static void put_adjusted(FILE *out, const struct me_adjusted *a)
{
	uint8_t missed = a->how.kinds & (uint8_t)~a->how.done;

	fprintf(out, "      0x%" PRIx64 " ", a->vaddr);
	if (*a->name)
		mp_text_put(out, a->name);
	fputs(": ", out);
	put_kinds(out, &a->how, a->why_not ? a->how.kinds : a->how.done);
	if (a->why_not) {
		fprintf(out, ": not copied: %s\n", a->why_not);
		return;
	}
	if (missed && a->how.done)
		fputs(", ", out);
	if (missed) {
		fputs("but not ", out);
		put_kinds(out, &a->how, missed);
		/* If the loop begins the function, both have the same place. */
		fputs(a->loop_vaddr ? " (the loop begins the function)" : " (there is no loop)",
		      out);
	}
	if (a->new_vaddr)
		fprintf(out, "; at 0x%" PRIx64, a->new_vaddr);
	if (a->loop_vaddr)
		fprintf(out, ", loop at 0x%" PRIx64, a->loop_vaddr);
	fputc('\n', out);
}

void me_report_text_adjusted(FILE *out, const struct me_optimize_report *r)
{
	uint32_t nr = 0;

	if (!r->nr_adjusted && !r->nr_adjust_unknown)
		return;
	for (uint32_t i = 0; i < r->nr_adjusted; i++)
		nr += r->adjusted[i].how.done != 0;
	fprintf(out, "  adjusted   %" PRIu32 " of %" PRIu32 " functions that are named\n", nr,
		r->nr_adjusted);
	for (uint32_t i = 0; i < r->nr_adjusted && i < SHOWN; i++)
		put_adjusted(out, &r->adjusted[i]);
	if (r->nr_adjusted > SHOWN)
		fprintf(out, "      and %" PRIu32 " more\n", r->nr_adjusted - SHOWN);
	for (uint32_t i = 0; i < r->nr_adjust_unknown && i < SHOWN; i++)
		me_report_line(out, "      there is no function ", r->adjust_unknown[i], "\n");
	if (r->nr_adjust_unknown > SHOWN)
		fprintf(out, "      nor any of %" PRIu32 " more\n", r->nr_adjust_unknown - SHOWN);
}

static json_t *json_kinds(const struct me_adjustment *how, uint8_t kinds)
{
	json_t *list = json_array();
	char text[ME_ADJUST_TEXT_MAX];

	for (int kind = 0; kind < ME_NR_ADJUSTS; kind++)
		if (kinds >> kind & 1)
			json_array_append_new(list, json_string(me_adjust_format(how, kind, text)));
	return list;
}

static json_t *json_vaddr(uint64_t vaddr)
{
	return vaddr ? json_integer((json_int_t)vaddr) : json_null();
}

json_t *me_report_json_adjusted(const struct me_optimize_report *r)
{
	json_t *list = json_array(), *unknown = json_array();

	for (uint32_t i = 0; i < r->nr_adjusted; i++) {
		const struct me_adjusted *a = &r->adjusted[i];

		json_array_append_new(
			list, json_pack("{s:o, s:I, s:o, s:o, s:o, s:o, s:s?}", "function",
					mp_json_string(a->name), "vaddr", (json_int_t)a->vaddr,
					"wanted", json_kinds(&a->how, a->how.kinds), "done",
					json_kinds(&a->how, a->how.done), "new_vaddr",
					json_vaddr(a->new_vaddr), "loop_vaddr",
					json_vaddr(a->loop_vaddr), "why_not", a->why_not));
	}
	for (uint32_t i = 0; i < r->nr_adjust_unknown; i++)
		json_array_append_new(unknown, mp_json_string(r->adjust_unknown[i]));
	return json_pack("{s:o, s:o}", "functions", list, "unknown", unknown);
}
