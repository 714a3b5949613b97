// SPDX-License-Identifier: Apache-2.0
/*
 * stats_flame - the command "flame": samples by module, function and block, as a picture or as
 * a JSON tree. Decides what is included; flame builds the tree, flame_draw draws it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/draw/flame_calls.h"
#include "daemon/draw/flame_draw.h"
#include "daemon/code/originals.h"
#include "daemon/stats/interrupt.h"
#include "daemon/stats/stats.h"
#include "daemon/stats/stats_calls.h"
#include "libprof/base/outfile.h"

#define MP_OPTIONS struct flame

struct flame {
	struct md_cli *cli;
	struct md_stats_filter filter;
	const char *output;
	bool calls; /* calling contexts */
	int64_t since_s, start_s;
	uint64_t total; /* samples of all modules in the period */
	struct md_flame root;
	json_t *notes;
};

static void set_output(const struct mp_option *o, void *options, char *arg,
		       struct argp_state *state)
{
	size_t len = strlen(arg);

	if (len < 5 || strcasecmp(arg + len - 4, ".svg"))
		argp_error(state, "--%s=%s: does not end in .svg", o->name, arg);
	((struct flame *)options)->output = arg;
}

static const struct mp_option options[] = {
	MP_SET("output", 'o', set_output, "FILE", "Write FILE.svg instead of to standard output"),
	MP_FLAG("calls", calls,
		"Draw who called, from calling contexts; --module, --build-id and --binary name programs"),
	MD_OPTIONS_FILTER, MD_OPTION_SINCE, MP_OPTIONS_END};

static const struct mp_usage usage = {
	.options = options,
	.doc = "Draw where the time goes: modules, functions and basic blocks, each as wide as its share.",
	.shared = &md_cli_fleet_argp};

/* ---- read ---------------------------------------------------------------------------------- */

static int add_module(struct flame *f, struct mp_store *store, const struct mp_module *module,
		      struct mp_err *err)
{
	struct mp_ip_count *counts = NULL;
	struct md_code code = {0};
	struct mp_err why = {0};
	struct md_ksyms ksyms = {0};
	bool known = true, kernel;
	size_t nr = 0;
	int r = mp_store_read_ip_counts(store, module->key, f->since_s, &counts, &nr, err);

	if (r)
		return r;
	r = md_ksyms_open(module, &ksyms);
	kernel = !r;
	if (mp_err_is_failure(r)) {
		mp_err_code(&why, -r);
	} else if ((r = md_code_open(module, f->filter.binary, true, &code, &why))) {
		known = false;
	}
	if (mp_err_is_failure(r)) {
		*err = why;
		goto out;
	}
	if (!known) {
		if (module->kind == MP_MODULE_FILE) {
			md_cli_note("%s: its functions are not known", why.msg);
			json_array_append_new(f->notes, mp_json_string(why.msg));
		}
	}
	r = md_flame_add_module(&f->root, module, known ? &code : NULL, kernel ? &ksyms : NULL,
				counts, nr);
	if (r)
		mp_err_code(err, -r);
out:
	md_code_close(&code);
	md_ksyms_fini(&ksyms);
	free(counts);
	return r;
}

static int read_all(struct flame *f, struct mp_store *store, struct mp_err *err)
{
	struct mp_module *modules = NULL;
	struct mp_id id = {0};
	size_t nr = 0;
	int r = mp_store_period_start(store, f->since_s, &f->start_s, err);

	if (!r)
		r = mp_store_list_modules(store, f->since_s, &modules, &nr, err);
	if (!r && f->filter.binary)
		r = md_original_id(f->filter.binary, &id, err);
	for (size_t i = 0; i < nr && !r; i++) {
		f->total += modules[i].nr_samples;
		if (modules[i].nr_samples && md_stats_filter_matches(&f->filter, &modules[i]) &&
		    (!f->filter.binary || mp_id_equal(&id, &modules[i].id)))
			r = add_module(f, store, &modules[i], err);
	}
	mp_store_free_modules(modules, nr);
	if (!r && md_flame_add_build_ids(&f->root))
		r = mp_err_set(err, ENOMEM, "out of memory");
	md_flame_sort(&f->root);
	return r;
}

static int read_calls(struct flame *f, struct mp_store *store, struct mp_err *err)
{
	struct md_calls calls;
	int r = mp_store_period_start(store, f->since_s, &f->start_s, err);

	if (!r)
		r = md_calls_read(store, &f->filter, f->since_s, md_stats_note_file, f->notes,
				  &calls, err);
	if (r)
		return r;
	if (md_flame_add_calls(&f->root, &calls))
		r = mp_err_set(err, ENOMEM, "out of memory");
	f->total = f->root.samples;
	md_calls_fini(&calls);
	return r;
}

/* ---- write --------------------------------------------------------------------------------- */

static json_t *node_json(const struct md_flame *node, uint64_t all)
{
	json_t *json = json_pack("{s:o, s:I, s:f}", "name", mp_json_string(node->name), "samples",
				 (json_int_t)node->samples, "percent",
				 all ? 100.0 * (double)node->samples / (double)all : 0.0);
	json_t *below;
	char address[32];

	if (node->vaddr) {
		snprintf(address, sizeof(address), "0x%llx", (unsigned long long)node->vaddr);
		json_object_set_new(json, "address", json_string(address));
	}
	if (node->nr_insns)
		json_object_set_new(json, "instructions", json_integer(node->nr_insns));
	if (!node->nr)
		return json;
	below = json_array();
	for (size_t i = 0; i < node->nr; i++)
		json_array_append_new(below, node_json(&node->children[i], all));
	json_object_set_new(json, "children", below);
	return json;
}

static int print_json(const struct flame *f)
{
	json_t *root = md_cli_json_new("flame");

	json_object_set_new(root, "total_samples", json_integer((json_int_t)f->total));
	json_object_set_new(root, "period_start_s", json_integer(f->start_s));
	json_object_set(root, "notes", f->notes);
	/* Relative to all samples of the period, as in "query". */
	json_object_set_new(root, "tree", node_json(&f->root, f->total));
	return md_cli_json_print(root);
}

/* Copies the tree: the picture merges small boxes, but its list of functions does not. */
static int copy_tree(const struct md_flame *from, struct md_flame *to)
{
	*to = *from;
	to->name = strdup(from->name);
	to->children = calloc(from->nr + 1, sizeof(*to->children));
	to->max = from->nr;
	to->nr = 0;
	if (!to->name || !to->children)
		return -ENOMEM;
	for (size_t i = 0; i < from->nr; i++)
		if (copy_tree(&from->children[i], &to->children[to->nr++]))
			return -ENOMEM;
	return 0;
}

static int draw(const struct flame *f)
{
	struct md_flame shown = {0};
	struct md_flame_picture picture = {
		.root = &shown, .full = &f->root, .nr_samples = f->total, .what = ""};
	const char *inputs[] = {f->cli->path, f->filter.binary, NULL};
	struct mp_outfile out;
	struct mp_err err = {0};
	int r = copy_tree(&f->root, &shown);

	if (!r) {
		md_flame_merge(&shown, MD_FLAME_LEAST * (double)shown.samples,
			       MD_FLAME_LEAST_ABOVE * (double)shown.samples);
		shown.tenths = 1000;
		r = md_flame_round(&shown);
	}
	if (!r && (mp_outfile_check(f->output, inputs, &err) ||
		   mp_outfile_open(f->output, md_interrupt_unlinks, &out, &err))) {
		md_flame_fini(&shown);
		return md_cli_fail("%s", err.msg);
	}
	if (!r) {
		r = 0;
		if (f->calls)
			md_flame_draw_calls(&shown, out.file);
		else
			r = md_flame_draw_svg(&picture, out.file);
		if (r)
			mp_outfile_abandon(&out);
	}
	md_flame_fini(&shown);
	if (r)
		return md_cli_fail("out of memory");
	return mp_outfile_commit(&out, &err) ? md_cli_fail("%s", err.msg) : MP_EXIT_DONE;
}

int md_stats_flame(struct md_cli *cli, int argc, char **argv)
{
	struct flame f = {.cli = cli};
	struct mp_store *store;
	struct mp_err err = {0};
	int r;

	md_cli_parse(&usage, argc, argv, &f, cli);
	cli->fleet_module = f.filter.binary ? f.filter.binary : f.filter.build_id;
	r = md_cli_open(cli, MP_STORE_READ, &store);
	if (r)
		return r;
	f.notes = json_array();
	f.root.name = strdup(f.filter.module || f.filter.build_id || f.filter.binary
				     ? "these samples"
				     : "all samples");
	/* One transaction, because the daemon may be writing. */
	r = f.root.name ? mp_store_begin(store, &err) : mp_err_set(&err, ENOMEM, "out of memory");
	if (!r)
		r = f.calls ? read_calls(&f, store, &err) : read_all(&f, store, &err);
	if (r) {
		r = md_cli_fail("%s", err.msg);
	} else if (!f.root.samples) {
		md_cli_note(f.calls ? "%s: no such sample with a calling context is stored%s"
				    : "%s: no such sample is stored%s",
			    cli->path, f.since_s ? " since then" : "");
		r = MP_EXIT_NO_PROFILE;
	} else {
		md_cli_note_period(store, f.since_s);
		if (f.output || !cli->json)
			r = draw(&f);
		if (!r && cli->json)
			r = print_json(&f);
	}
	md_flame_fini(&f.root);
	json_decref(f.notes);
	mp_store_close(store);
	return r;
}
