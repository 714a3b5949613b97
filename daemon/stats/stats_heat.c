// SPDX-License-Identifier: Apache-2.0
/*
 * stats_heat - the command "heat": shows where the executed code of a program lies, before and
 * after optimising, as a picture or as JSON. Decides what is read and refused; heat computes,
 * heat_draw draws.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/draw/heat_draw.h"
#include "daemon/code/way_evidence.h"
#include "daemon/code/originals.h"
#include "daemon/stats/interrupt.h"
#include "daemon/stats/stats.h"
#include "libprof/base/outfile.h"
#include "libprof/infer/profile.h"

#define MP_OPTIONS struct heat

struct heat {
	struct md_cli *cli;
	const char *binary, *after_path, *output;
	char *original; /* the binary from which the optimised version was made */
	bool html;
	int64_t since_s, start_s;
	/* input */
	struct mp_elf *elf, *after_elf;
	struct mp_map *map;
	struct mp_cfg *cfg;
	struct mp_counts counts;
	struct mp_ip_count *ips, *loose;
	size_t nr_ips, nr_loose;
	uint64_t *func_samples; /* the last element counts samples outside of functions */
	struct md_heat before, after;
	struct md_heat_picture picture;
};

static bool ends_in(const char *path, const char *end)
{
	size_t len = strlen(path), len_end = strlen(end);

	return len > len_end && !strcasecmp(path + len - len_end, end);
}

static void set_output(const struct mp_option *o, void *options, char *arg,
		       struct argp_state *state)
{
	struct heat *h = options;

	h->output = arg;
	h->html = ends_in(arg, ".html") || ends_in(arg, ".htm") || ends_in(arg, ".xhtml");
	if (!h->html && !ends_in(arg, ".svg"))
		argp_error(state, "--%s=%s: ends neither in .svg nor in .html", o->name, arg);
}

static const struct mp_option options[] = {
	MP_VALUE(TEXT, "after", 0, after_path, "FILE",
		 "FILE is the optimised version of BINARY: draw both"),
	MP_SET("output", 'o', set_output, "FILE",
	       "Write FILE.svg or FILE.html instead of to standard output"),
	MD_OPTION_SINCE, MP_OPTIONS_END};

static const struct mp_usage usage = {
	.options = options,
	.arguments = "BINARY",
	.argument = MP_AT(binary),
	.lacking = "no program given",
	.doc = "Draw which cache lines and pages of a program's code run, and how much.\v"
	       "With --after, also where the optimised version has the same code.",
	.shared = &md_cli_fleet_argp};

/* ---- read ---------------------------------------------------------------------------------- */

/* Writes "abc123 (/usr/bin/prog)", or no path if the store has none. */
static void describe_module(struct mp_store *store, const struct mp_id *id, char *buf, size_t size)
{
	struct mp_module module = {0};
	char hex[80];

	md_stats_format_id(id, hex);
	if (!mp_store_find_module(store, id, &module, NULL))
		snprintf(buf, size, "%s (%s)", hex, module.path);
	else
		snprintf(buf, size, "%s", hex);
	free(module.path);
}

static int open_binary(struct heat *h, struct mp_store *store, struct mp_err *err)
{
	struct mp_map *map = NULL;
	char original[160];
	struct mp_id id;
	int r = mp_elf_open(h->binary, MP_ELF_ALL, &h->elf, err);

	if (r)
		return r;
	r = mp_map_read(h->elf, &map, NULL);
	if (r == -ENOENT)
		return 0;
	if (mp_err_is_failure(r))
		return mp_err_code(err, -r);
	if (r)
		return mp_err_set(err, EBADMSG, "%s: an optimised version whose map is damaged",
				  h->binary);
	id = map->original;
	mp_map_free(map);
	/*
	 * After --in-place the path has the optimised version, and the original is kept
	 * elsewhere.
	 */
	r = h->after_path ? -EINVAL : md_original_find(&id, h->binary, &h->original);
	if (mp_err_is_failure(r))
		return mp_err_code(err, -r);
	if (!r) {
		h->after_path = h->binary;
		h->binary = h->original;
		mp_elf_close(h->elf);
		h->elf = NULL;
		return mp_elf_open(h->binary, MP_ELF_ALL, &h->elf, err);
	}
	describe_module(store, &id, original, sizeof(original));
	return mp_err_set(err, EINVAL,
			  "%s: is an optimised version; name its original, build-id %s, and this "
			  "one with --after",
			  h->binary, original);
}

static int open_after(struct heat *h, struct mp_store *store, struct mp_err *err)
{
	char original[160];
	/* MP_ELF_ID would not map the file's contents. */
	int r = mp_elf_open(h->after_path, MP_ELF_SYMBOLS, &h->after_elf, err);

	if (!r)
		r = mp_map_read(h->after_elf, &h->map, err);
	if (r == -ENOENT)
		return mp_err_set(err, EINVAL, "%s: was not written by morph-optimize",
				  h->after_path);
	if (r)
		return r;
	if (mp_id_equal(&h->map->original, &h->elf->id))
		return 0;
	describe_module(store, &h->map->original, original, sizeof(original));
	return mp_err_set(err, EINVAL, "%s: is not an optimised version of %s, but of build-id %s",
			  h->after_path, h->binary, original);
}

/* Counts samples per function, as "query" does, and lists those outside of all blocks. */
static int sort_samples(struct heat *h)
{
	h->func_samples = calloc((size_t)h->cfg->nr_funcs + 1, sizeof(*h->func_samples));
	h->loose = calloc(h->nr_ips + 1, sizeof(*h->loose));
	if (!h->func_samples || !h->loose)
		return -ENOMEM;
	for (size_t i = 0; i < h->nr_ips; i++) {
		uint32_t f = mp_cfg_func_at(h->cfg, h->ips[i].vaddr);

		h->func_samples[f == MP_NONE ? h->cfg->nr_funcs : f] += h->ips[i].count;
		h->picture.nr_samples += h->ips[i].count;
		if (mp_cfg_block_at(h->cfg, h->ips[i].vaddr) != MP_NONE ||
		    !mp_elf_is_code(h->elf, h->ips[i].vaddr))
			continue;
		h->loose[h->nr_loose++] = h->ips[i];
		h->picture.nr_loose += h->ips[i].count;
	}
	return 0;
}

static int read_profile(struct heat *h, struct mp_store *store, struct mp_err *err)
{
	struct mp_edge_count *edges = NULL;
	struct mp_profile *profile = NULL;
	struct mp_module module = {0};
	size_t nr_edges = 0;
	bool exact = false;
	int r = mp_store_find_module(store, &h->elf->id, &module, err);

	if (r == -ENOENT)
		return mp_err_set(err, ENODATA, "%s: no sample of this build in %s", h->binary,
				  h->cli->path);
	if (!r)
		r = mp_store_read_ip_counts(store, module.key, h->since_s, &h->ips, &h->nr_ips,
					    err);
	if (!r)
		r = mp_store_read_edges(store, module.key, h->since_s, &edges, &nr_edges, err);
	if (!r)
		r = mp_store_is_exact(store, module.key, h->since_s, &exact, err);
	free(module.path);
	if (!r && !h->nr_ips)
		r = mp_err_set(err, ENODATA, "%s: no sample of this build in %s%s", h->binary,
			       h->cli->path, h->since_s ? " since then" : "");
	if (!r)
		r = mp_cfg_build(h->elf, NULL, &h->cfg, err);
	if (!r)
		r = mp_profile_build(h->cfg, h->ips, h->nr_ips, &profile, err);
	if (!r && nr_edges)
		r = mp_profile_add_edges(profile, h->cfg, edges, nr_edges, err);
	if (!r)
		r = md_way_evidence_add(store, module.key, h->since_s, h->cfg, profile, err);
	if (!r)
		profile->exact = exact;
	if (!r)
		r = mp_counts_build(h->cfg, profile, NULL, &h->counts, NULL, err);
	free(edges);
	mp_profile_free(profile);
	return r;
}

static int count(struct heat *h, struct mp_err *err)
{
	struct md_heat_input in = {h->cfg, &h->counts, NULL, 0};
	int r = sort_samples(h);

	in.loose = h->loose;
	in.nr_loose = h->nr_loose;
	if (!r)
		r = md_heat_before(&in, &h->before);
	if (!r && h->map)
		r = md_heat_after(&in, h->map, h->after_elf, &h->after);
	if (!r)
		r = md_heat_figures_count(&h->before, h->before.insns, &h->picture.before_figures);
	if (!r && h->map)
		r = md_heat_figures_count(&h->after, h->before.insns, &h->picture.after_figures);
	if (r)
		return mp_err_code(err, -r);
	if (h->after.nr_unplaced)
		return mp_err_set(err, EBADMSG,
				  "%s: %" PRIu32 " pieces of its map are no blocks of %s: write it "
				  "anew with this version of morph-optimize",
				  h->after_path, h->after.nr_unplaced, h->binary);
	if (!(h->before.insns > 0))
		return mp_err_set(err, ENODATA, "%s: no sample lies in its code", h->binary);
	return 0;
}

static int read_all(struct heat *h, struct mp_store *store, struct mp_err *err)
{
	int r = open_binary(h, store, err);

	if (!r && h->after_path)
		r = open_after(h, store, err);
	if (!r)
		r = mp_store_period_start(store, h->since_s, &h->start_s, err);
	if (!r)
		r = read_profile(h, store, err);
	return r ? r : count(h, err);
}

/* ---- write --------------------------------------------------------------------------------- */

static json_t *cover_json(const struct md_heat_cover *cover)
{
	return json_pack("{s:I, s:I, s:I}", "p90", (json_int_t)cover->p90, "p99",
			 (json_int_t)cover->p99, "all", (json_int_t)cover->all);
}

static json_t *side_json(const struct md_heat *heat, const struct md_heat_figures *figures)
{
	return json_pack("{s:o, s:o, s:o, s:f, s:f, s:f, s:f}", "lines",
			 cover_json(&figures->lines), "pages", cover_json(&figures->pages),
			 "functions", cover_json(&figures->funcs), "taken_per_1000", figures->taken,
			 "to_other_line_per_1000", figures->leave_line, "to_other_page_per_1000",
			 figures->leave_page, "executed", heat->insns);
}

/* Sorts functions, hottest first. */
static int compare_hottest(const void *a, const void *b)
{
	const struct md_heat_cell *x = a, *y = b;

	if (x->insns < y->insns || x->insns > y->insns)
		return x->insns < y->insns ? 1 : -1;
	return (x->at > y->at) - (x->at < y->at);
}

static json_t *funcs_json(const struct heat *h)
{
	struct md_heat_cells funcs;
	json_t *array = json_array();

	if (md_heat_cells_of_funcs(&h->before, &funcs))
		return array;
	qsort(funcs.cells, funcs.nr, sizeof(*funcs.cells), compare_hottest);
	for (size_t i = 0; i < funcs.nr; i++) {
		bool none = funcs.cells[i].at == MP_NONE;
		const struct mp_func *func = none ? NULL : &h->cfg->funcs[funcs.cells[i].at];
		char address[32];
		json_t *row = json_pack(
			"{s:f, s:I}", "share", funcs.cells[i].insns / h->before.insns, "samples",
			(json_int_t)h->func_samples[none ? h->cfg->nr_funcs : funcs.cells[i].at]);

		if (func)
			snprintf(address, sizeof(address), "0x%" PRIx64, func->vaddr);
		json_object_set_new(row, "address", func ? json_string(address) : json_null());
		json_object_set_new(row, "function",
				    func && func->name[0] ? mp_json_string(func->name)
							  : json_null());
		json_array_append_new(array, row);
	}
	free(funcs.cells);
	return array;
}

static int print_json(const struct heat *h)
{
	json_t *root = md_cli_json_new("heat");
	char id[80];

	json_object_set_new(root, "module", mp_json_string(h->binary));
	json_object_set_new(root, "build_id", json_string(md_stats_format_id(&h->elf->id, id)));
	json_object_set_new(root, "period_start_s", json_integer(h->start_s));
	json_object_set_new(root, "samples", json_integer((json_int_t)h->picture.nr_samples));
	json_object_set_new(root, "samples_outside_blocks",
			    json_integer((json_int_t)h->picture.nr_loose));
	json_object_set_new(root, "before", side_json(&h->before, &h->picture.before_figures));
	if (h->map) {
		json_object_set_new(root, "after", side_json(&h->after, &h->picture.after_figures));
		json_object_set_new(root, "functions_moved", json_integer(h->after.nr_moved));
		json_object_set_new(root, "predicted_taken_ratio",
				    json_real(h->after.expected_ratio));
		json_object_set_new(root, "promised_taken_ratio",
				    json_real(h->before.taken > 0 ? h->after.taken / h->before.taken
								  : 1));
	}
	json_object_set_new(root, "functions", funcs_json(h));
	return md_cli_json_print(root);
}

static int draw(const struct heat *h)
{
	const char *inputs[] = {h->cli->path, h->binary, h->after_path, NULL};
	struct mp_outfile out;
	struct mp_err err = {0};
	int r = mp_outfile_check(h->output, inputs, &err);

	if (!r)
		r = mp_outfile_open(h->output, md_interrupt_unlinks, &out, &err);
	if (r)
		return md_cli_fail("%s", err.msg);
	r = h->html ? md_heat_draw_html(&h->picture, out.file)
		    : md_heat_draw_svg(&h->picture, out.file);
	if (r) {
		mp_outfile_abandon(&out);
		return md_cli_fail("out of memory");
	}
	return mp_outfile_commit(&out, &err) ? md_cli_fail("%s", err.msg) : MP_EXIT_DONE;
}

static int write_all(struct heat *h)
{
	int r = MP_EXIT_DONE;

	h->picture.program = basename(h->binary);
	h->picture.cfg = h->cfg;
	h->picture.func_samples = h->func_samples;
	h->picture.before = &h->before;
	h->picture.after = h->map ? &h->after : NULL;
	if (h->output || !h->cli->json)
		r = draw(h);
	return !r && h->cli->json ? print_json(h) : r;
}

static void fini(struct heat *h)
{
	md_heat_fini(&h->before);
	md_heat_fini(&h->after);
	mp_counts_fini(&h->counts);
	mp_cfg_free(h->cfg);
	mp_map_free(h->map);
	mp_elf_close(h->elf);
	mp_elf_close(h->after_elf);
	free(h->ips);
	free(h->loose);
	free(h->func_samples);
	free(h->original);
}

int md_stats_heat(struct md_cli *cli, int argc, char **argv)
{
	struct heat h = {.cli = cli};
	struct mp_store *store;
	struct mp_err err = {0};
	int r;

	md_cli_parse(&usage, argc, argv, &h, cli);
	cli->fleet_module = h.binary;
	r = md_cli_open(cli, MP_STORE_READ, &store);
	if (r)
		return r;
	/* One transaction, because the daemon may be writing. */
	r = mp_store_begin(store, &err);
	if (!r)
		r = read_all(&h, store, &err);
	if (r) {
		md_cli_fail("%s", err.msg);
		r = r == -ENODATA ? MP_EXIT_NO_PROFILE : MP_EXIT_FAILED;
	} else {
		md_cli_note_period(store, h.since_s);
		r = write_all(&h);
	}
	mp_store_close(store);
	fini(&h);
	return r;
}
