// SPDX-License-Identifier: Apache-2.0
/* compilations_json - a comparison of compilations as JSON; see Documentation/json.md. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "editor/audit/audit_report.h"
#include "editor/compilations/compilations_report.h"
#include "editor/compilations/compilations_rows.h"
#include "libprof/cli/json.h"

static json_t *json_name(const char *text, int len)
{
	char *copy = strndup(text, (size_t)len);
	json_t *name = mp_json_string(copy);

	free(copy);
	return name;
}

static json_t *json_marker(const struct me_region_marker *m)
{
	const struct me_marker_place *p = &m->place;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:[I,I], s:[I,I], s:[I,I]}", "name",
			 mp_json_string(m->name), "file",
			 m->placed ? json_name(p->file, p->file_len) : json_null(), "line",
			 m->placed ? json_integer(p->line) : json_null(), "function",
			 m->placed ? json_name(p->function, p->function_len) : json_null(), "kind",
			 m->placed ? json_name(p->kind, p->kind_len) : json_null(), "rounds_old",
			 (json_int_t)m->total[ME_OLD], "rounds_new", (json_int_t)m->total[ME_NEW],
			 "accesses_inside", (json_int_t)m->nr_inside[ME_OLD],
			 (json_int_t)m->nr_inside[ME_NEW], "accesses_outside",
			 (json_int_t)m->nr_outside[ME_OLD], (json_int_t)m->nr_outside[ME_NEW],
			 "accesses_stay", (json_int_t)m->nr_stay[ME_OLD],
			 (json_int_t)m->nr_stay[ME_NEW]);
}

static json_t *json_markers(const struct me_regions *r, int division, uint32_t region)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->nr_markers; i++)
		if (r->markers[i].region[division] == region)
			json_array_append_new(list, json_marker(&r->markers[i]));
	return list;
}

static json_t *json_functions(const struct me_regions *r, int division, uint32_t region)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->nr_functions; i++) {
		const struct me_region_function *f = &r->functions[i];

		if (f->region[division] == region)
			json_array_append_new(list, json_pack("{s:o, s:b, s:b, s:b}", "name",
							      mp_json_string(f->name), "in_old",
							      f->present[ME_OLD], "in_new",
							      f->present[ME_NEW], "perhaps_inlined",
							      f->perhaps_inlined));
	}
	return list;
}

static json_t *json_bound(const struct me_region_test *c, double bound)
{
	return c->tested && isfinite(bound) ? json_real(exp(bound)) : json_null();
}

static void add_effect(json_t *object, const struct me_region_test *c)
{
	json_t *verdict = c->tested ? json_string(me_region_verdict_name(c->verdict))
				    : json_string("other work");

	json_object_set_new(object, "verdict", verdict);
	json_object_set_new(object, "times_as_fast",
			    c->tested ? json_real(exp(mp_seq_estimate(&c->seq))) : json_null());
	json_object_set_new(object, "lowest", json_bound(c, c->lowest));
	json_object_set_new(object, "highest", json_bound(c, c->highest));
	json_object_set_new(object, "samples",
			    json_pack("[I,I]", (json_int_t)c->samples[ME_OLD],
				      (json_int_t)c->samples[ME_NEW]));
}

static json_t *json_row(const struct me_compilations *result, int division,
			const struct me_compilations_row *row)
{
	const struct me_regions *r = &result->regions;
	bool round = row->marker != MP_NONE && division == ME_DIVISION_LOOPS;
	json_t *object = json_pack("{s:f, s:[f,f]}", "share", row->share, "seconds",
				   row->seconds[ME_OLD], row->seconds[ME_NEW]);

	json_object_set_new(object, "round_ns",
			    round ? json_pack("[f,f]", row->round_ns[ME_OLD], row->round_ns[ME_NEW])
				  : json_null());
	json_object_set_new(object, "round_of",
			    round ? mp_json_string(r->markers[row->marker].name) : json_null());
	if (division == ME_DIVISION_FUNCTIONS)
		json_object_set_new(object, "functions", json_functions(r, division, row->region));
	json_object_set_new(object, "markers", json_markers(r, division, row->region));
	add_effect(object, row->result);
	return object;
}

static int add_division(json_t *root, const struct me_compilations *result, int division)
{
	static const char *const names[] = {
		[ME_DIVISION_FUNCTIONS] = "functions", [ME_DIVISION_LOOPS] = "loops"};
	struct me_compilations_row *rows;
	json_t *list;
	size_t nr;

	if (me_compilations_rows(result, division, &rows, &nr))
		return -ENOMEM;
	list = json_array();
	for (size_t i = 0; i < nr; i++)
		json_array_append_new(list, json_row(result, division, &rows[i]));
	free(rows);
	return json_object_set_new(root, names[division], list) ? -ENOMEM : 0;
}

static json_t *json_build(const struct me_compilations *r, int b)
{
	const struct me_markers_report *m = &r->markers[b];

	return json_pack("{s:o, s:I, s:I, s:I, s:f}", "path", mp_json_string(r->builds[b].path),
			 "markers", (json_int_t)m->nr_markers, "accesses",
			 (json_int_t)m->nr_accesses, "left_out", (json_int_t)m->nr_removed,
			 "seconds",
			 me_compilations_seconds(r, r->tests.list[r->tests.nr].samples[b]));
}

static json_t *json_whole(const struct me_compilations *result)
{
	json_t *root = mp_json_new(ME_AUDIT_SCHEMA, "compilations"), *other = json_array();
	const struct me_regions *r = &result->regions;

	json_object_set_new(root, "old", json_build(result, ME_OLD));
	json_object_set_new(root, "new", json_build(result, ME_NEW));
	json_object_set_new(root, "alpha", json_real(result->tests.alpha));
	json_object_set_new(root, "tests", json_integer(result->tests.nr_tested));
	json_object_set_new(root, "pairs", json_integer((json_int_t)result->nr_pairs));
	json_object_set_new(root, "runs", json_integer((json_int_t)result->nr_runs));
	json_object_set_new(root, "elapsed_s", json_real(result->seconds));
	json_object_set_new(root, "difference",
			    mp_json_string(result->differs ? result->difference : NULL));
	for (uint32_t i = 0; i < r->nr_markers; i++)
		if (!me_compilations_agree(&r->markers[i]))
			json_array_append_new(other, json_marker(&r->markers[i]));
	json_object_set_new(root, "other_work", other);
	add_effect(root, &result->tests.list[result->tests.nr]);
	if (result->differs)
		json_object_set_new(root, "verdict", json_string("output differs"));
	return root;
}

int me_compilations_print_json(const struct me_compilations *result, FILE *out)
{
	json_t *root = json_whole(result);
	int ret = root ? 0 : -ENOMEM;

	for (int d = 0; d < ME_NR_DIVISIONS && !ret; d++)
		ret = add_division(root, result, d);
	if (!ret && !mp_json_is_whole(root))
		ret = -ENOMEM;
	if (!ret && json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9)))
		ret = -EIO;
	json_decref(root);
	putc('\n', out);
	return ret;
}
