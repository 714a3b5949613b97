// SPDX-License-Identifier: Apache-2.0
/* object - calls the steps for one object, and has the result verified. */
#include "editor/object/object.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/object/object_private.h"
#include "editor/verify/object/verify_object.h"

void me_object_report_fini(struct me_object_report *report)
{
	for (uint32_t i = 0; i < report->nr_left; i++) {
		free(report->left[i].member);
		free(report->left[i].name);
		free(report->left[i].why);
	}
	free(report->left);
	*report = (struct me_object_report){0};
}

static void object_fini(struct me_object *o)
{
	for (uint32_t c = 0; c < o->nr_codes; c++)
		free(o->codes[c].at);
	for (uint32_t i = 0; i < o->nr_outs; i++) {
		free(o->outs[i].name);
		me_bytes_fini(&o->outs[i].bytes);
		me_bytes_fini(&o->outs[i].relocs);
	}
	for (uint32_t f = 0; f < o->nr_funcs; f++)
		me_olsda_free(o->funcs[f].lsda);
	for (uint32_t i = 0; o->extras && i < o->in->nr_sections; i++) {
		me_bytes_fini(&o->extras[i].bytes);
		me_bytes_fini(&o->extras[i].relocs);
	}
	for (uint32_t i = 0; o->debug && i < o->in->nr_sections; i++) {
		me_bytes_fini(&o->debug[i].bytes);
		me_bytes_fini(&o->debug[i].relocs);
	}
	for (int i = 0; i < 2; i++) {
		me_bytes_fini(&o->lists[i].made.bytes);
		me_bytes_fini(&o->lists[i].made.relocs);
	}
	free(o->debug);
	free(o->extras);
	free(o->codes);
	free(o->code_of);
	free(o->insns);
	free(o->fdes);
	free(o->funcs);
	free(o->bases);
	free(o->pieces);
	free(o->fragments);
	free(o->items);
	free(o->outs);
	me_bytes_fini(&o->symbols);
	me_bytes_fini(&o->names);
	me_bytes_fini(&o->frame);
	me_bytes_fini(&o->frame_relocs);
	me_bytes_fini(&o->calls);
	me_bytes_fini(&o->call_relocs);
}

static void count_functions(const struct me_object *o)
{
	struct me_object_report *r = o->report;

	for (uint32_t f = 0; f < o->nr_funcs; f++) {
		const struct me_ofunc *func = &o->funcs[f];

		r->nr_hot += func->hot;
		r->nr_whole += func->hot && func->whole;
		r->nr_split += func->nr_fragments == 2;
	}
}

static int (*const steps[])(struct me_object *, struct mp_err *) = {
	me_object_sections, me_object_place, me_object_symbols,
	me_object_emit,	    me_object_frame, me_object_debug};

static int rewrite(struct me_object *o, const struct me_object_plan *plan, struct me_bytes *out,
		   struct mp_err *err)
{
	bool any = false;
	int rc = me_object_code(o, err);

	if (rc)
		return rc;
	o->report->nr_funcs += o->nr_funcs;
	rc = me_object_match(o, plan, err);
	for (uint32_t f = 0; f < o->nr_funcs; f++)
		any |= o->funcs[f].hot;
	if (!rc && !any)
		rc = mp_err_set(err, ENODATA, "no function of it is hot in the program");
	for (size_t i = 0; !rc && i < sizeof(steps) / sizeof(steps[0]); i++)
		rc = steps[i](o, err);
	if (!rc)
		rc = me_object_calls(o, plan, err);
	if (!rc)
		rc = me_object_write(o, out, err);
	if (!rc)
		count_functions(o);
	return rc;
}

int me_object_rewrite(const uint8_t *bytes, size_t size, const struct me_object_plan *plan,
		      struct me_object_report *report, struct me_bytes *out, struct mp_err *err)
{
	struct mp_relobj *in = NULL;
	struct me_object o = {.report = report};
	struct mp_err why;
	int rc = mp_relobj_open(bytes, size, &in, err);

	o.in = in;
	if (!rc)
		rc = rewrite(&o, plan, out, err);
	/* verify reads both files itself, and needs as much memory. */
	object_fini(&o);
	mp_relobj_free(in);
	if (rc)
		return rc;
	rc = me_verify_object(bytes, size, out->data, out->size, NULL, &why);
	if (rc == -ENOMEM)
		return mp_err_code(err, ENOMEM);
	return rc ? mp_err_set(err, EPERM, "verify refused the new object: %s", why.msg) : 0;
}
