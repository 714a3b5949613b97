// SPDX-License-Identifier: Apache-2.0
/*
 * export_calls - writes folded stacks and speedscope's JSON; see export_calls.h. In speedscope each
 * program is a profile of its own.
 */
#include "daemon/export/export_calls.h"
#include "libprof/base/text.h"
#include "libprof/cli/json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

struct writer {
	struct md_export *e;
	const struct md_calls *calls;
	/* speedscope */
	uint32_t *frame_of; /* by node: its frame + 1; 0: none yet */
	json_t *frames, *profiles;
	json_t *numbers; /* from "NAME FILE" to the frame's number */
	/* the profile that is being made */
	uint32_t program; /* 0: none */
	json_t *samples, *weights;
	uint64_t sum;
	bool failed; /* out of memory */
};

/* ---- folded --------------------------------------------------------------------------------- */

static int put_folded(void *arg, const uint32_t *path, size_t nr)
{
	struct writer *w = arg;
	uint64_t samples = w->calls->tree.nodes[path[nr - 1]].self;

	for (size_t i = 0; i < nr; i++) {
		if (i)
			putc(';', w->e->out);
		mp_text_put_but(w->e->out, md_export_calls_name(w->calls, path[i]),
				MD_EXPORT_FRAMES_END);
	}
	fprintf(w->e->out, " %" PRIu64 "\n", samples);
	w->e->nr_written += samples;
	return 0;
}

int md_export_calls_folded(struct md_export *e, const struct md_calls *calls, struct mp_err *err)
{
	struct writer w = {.e = e, .calls = calls};
	int r = md_calls_each_path(calls, put_folded, &w);

	return r ? mp_err_code(err, -r) : 0;
}

/* ---- speedscope ----------------------------------------------------------------------------- */

static json_t *json_text(const char *text)
{
	char *clean = mp_text_escaped(text);
	json_t *string = clean ? json_string(clean) : NULL;

	free(clean);
	return string;
}

/* Return: number of the frame of @node. */
static uint32_t frame_of(struct writer *w, uint32_t node)
{
	const struct mp_module *module = md_calls_module(w->calls, node);
	const char *name = md_export_calls_name(w->calls, node);
	json_t *frame, *number;
	char *key;

	if (w->frame_of[node])
		return w->frame_of[node] - 1;
	if (asprintf(&key, "%s %s", name, module ? module->path : "") < 0) {
		w->failed = true;
		return 0;
	}
	number = json_object_get(w->numbers, key);
	if (!number) {
		number = json_integer((json_int_t)json_array_size(w->frames));
		json_object_set_new(w->numbers, key, number);
		frame = json_pack("{s:o}", "name", json_text(name));
		w->failed |= !frame;
		if (module)
			json_object_set_new(frame, "file", json_text(module->path));
		json_array_append_new(w->frames, frame);
	}
	free(key);
	w->frame_of[node] = (uint32_t)json_integer_value(number) + 1;
	return w->frame_of[node] - 1;
}

/* Adds the profile of w->program, whose samples are complete. Return: 0, -ENOMEM. */
static int end_profile(struct writer *w)
{
	json_t *profile;

	if (!w->program)
		return 0;
	profile = json_pack("{s:s, s:o, s:s, s:i, s:I, s:o, s:o}", "type", "sampled", "name",
			    json_text(md_export_calls_name(w->calls, w->program)), "unit",
			    "nanoseconds", "startValue", 0, "endValue", (json_int_t)w->sum,
			    "samples", w->samples, "weights", w->weights);
	w->program = 0;
	return json_array_append_new(w->profiles, profile) ? -ENOMEM : 0;
}

/* Paths come program by program. */
static int add_sample(void *arg, const uint32_t *path, size_t nr)
{
	struct writer *w = arg;
	const struct mp_context_node *node = &w->calls->tree.nodes[path[nr - 1]];
	json_t *stack = json_array();

	if (path[0] != w->program) {
		int r = end_profile(w);

		if (r)
			return r;
		w->program = path[0];
		w->samples = json_array();
		w->weights = json_array();
		w->sum = 0;
	}
	for (size_t i = 0; i < nr; i++)
		json_array_append_new(stack, json_integer(frame_of(w, path[i])));
	json_array_append_new(w->samples, stack);
	json_array_append_new(w->weights, json_integer((json_int_t)node->self_ns));
	w->sum += node->self_ns;
	w->e->nr_written += node->self;
	return 0;
}

static int export_calls_speedscope(struct md_export *e, const struct md_calls *calls,
				   struct mp_err *err)
{
	struct writer w = {
		.e = e,
		.calls = calls,
		.frame_of = calloc(calls->tree.nr_nodes, sizeof(*w.frame_of)),
		.frames = json_array(),
		.numbers = json_object(),
		.profiles = json_array(),
	};
	json_t *root = NULL;
	bool ok = w.frame_of && w.frames && w.numbers && w.profiles &&
		  !md_calls_each_path(calls, add_sample, &w);

	ok = !end_profile(&w) && ok && !w.failed;
	if (ok)
		root = json_pack("{s:s, s:{s:O}, s:O, s:s}", "$schema",
				 "https://www.speedscope.app/file-format-schema.json", "shared",
				 "frames", w.frames, "profiles", w.profiles, "exporter",
				 "morph-stats");
	ok = mp_json_is_whole(root);
	if (ok && !json_dumpf(root, e->out, JSON_COMPACT))
		putc('\n', e->out);
	json_decref(root);
	json_decref(w.profiles);
	json_decref(w.frames);
	json_decref(w.numbers);
	free(w.frame_of);
	return ok ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

const struct md_export_format md_export_speedscope = {
	.name = "speedscope",
	.calls = export_calls_speedscope,
};
