// SPDX-License-Identifier: Apache-2.0
/*
 * stats_annotate - the command "annotate": instructions of one function with their samples.
 * Decides which files may hold the function, and what is shown for an optimised program.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/annotate/annotate.h"
#include "daemon/annotate/annotate_find.h"
#include "daemon/annotate/annotate_print.h"
#include "daemon/stats/annotate_callers.h"
#include "daemon/stats/stats.h"
#include "libprof/store/store_ways.h"

#define MP_OPTIONS struct annotate

/* Most candidates listed in a message. */
#define LIST_MAX 20

enum when {
	WHEN_AUTO,
	WHEN_ALWAYS,
	WHEN_NEVER
};

struct annotate {
	struct md_cli *cli;
	struct md_stats_filter filter;
	const char *function, *address;
	int64_t since_s;
	bool intel, no_source;
	double percent_limit;
	enum when color;
	/* results */
	struct mp_module *modules;
	size_t nr_modules;
	uint64_t total;
	struct md_ann_function wanted;
	struct md_ann_source *sources;
	size_t nr_sources;
	struct md_ann_candidates candidates;
	struct mp_err why; /* error of the first file that could not be used */
	json_t *notes;
};

static const char *const colors[] = {"auto", "always", "never", NULL};

static const struct mp_option options[] = {
	MP_VALUE(TEXT, "module", 'm', filter.module, "NAME",
		 "In the module with this path or file name"),
	MP_VALUE(TEXT, "build-id", 0, filter.build_id, "HEX",
		 "In a module whose build-id begins with HEX"),
	MP_VALUE(TEXT, "binary", 0, filter.binary, "FILE",
		 "In this file, wherever it was when it ran"),
	MP_VALUE(TEXT, "address", 0, address, "ADDRESS", "The function that holds 0x..."),
	MD_OPTION_SINCE,
	MP_NUMBER("percent-limit", 'p', percent_limit, 0, 100, "P",
		  "Text: leave out blocks with less than P percent of the function's samples"),
	MP_FLAG("intel", intel, "Intel's syntax instead of AT&T's"),
	MP_FLAG("no-source", no_source, "No source lines and inlined functions"),
	MP_WORD("color", color, colors, "WHEN", "auto (default), always or never"),
	MP_OPTIONS_END};

static void check(void *options, struct argp_state *state)
{
	struct annotate *a = options;

	if (!a->function && !a->address)
		argp_error(state, "no function given");
	if (md_ann_function_parse(a->function, a->address, &a->wanted))
		argp_error(state, "%s%s%s: not a function", a->function ? a->function : "",
			   a->function && a->address ? " at " : "", a->address ? a->address : "");
}

static const struct mp_usage usage = {
	.options = options,
	.arguments = "[FUNCTION]",
	.argument = MP_AT(function),
	.check = check,
	.doc = "Show a function's instructions with the samples of each.\v"
	       "FUNCTION is a name (of C++ mangled or not, with or without parameters), an address 0x..., "
	       "or NAME@0x... where several functions have the name.",
	.shared = &md_cli_fleet_argp};

static void note(struct annotate *a, const char *what)
{
	md_cli_note("%s", what);
	json_array_append_new(a->notes, mp_json_string(what));
}

/* ---- files that may hold the function ------------------------------------------------------ */

static int add_source(struct annotate *a, struct mp_store *store, const struct mp_module *module,
		      const char *path, struct mp_map *map, struct mp_err *err)
{
	struct md_ann_source *s;
	int r = 0;

	s = realloc(a->sources, (a->nr_sources + 1) * sizeof(*s));
	if (s) {
		a->sources = s;
		s += a->nr_sources++;
		*s = (struct md_ann_source){.module = module, .path = strdup(path), .map = map};
	} else {
		mp_map_free(map);
	}
	if (!s || !s->path)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (module)
		r = mp_store_read_ip_counts(store, module->key, a->since_s, &s->counts,
					    &s->nr_counts, err);
	if (!r && module)
		r = mp_store_read_edges(store, module->key, a->since_s, &s->edges, &s->nr_edges,
					err);
	if (!r && module)
		r = mp_store_read_ways(store, module->key, a->since_s, &s->ways, &s->nr_ways, err);
	if (!r && module)
		r = mp_store_is_exact(store, module->key, a->since_s, &s->exact, err);
	return r;
}

/* Finds the id of @path and, for an optimised file, its map. */
static int identify(const char *path, struct mp_id *id, struct mp_map **map, struct mp_err *err)
{
	struct mp_elf *elf;
	int r = mp_elf_open(path, MP_ELF_ID, &elf, err);

	*map = NULL;
	if (r)
		return r;
	*id = elf->id;
	r = mp_map_read(elf, map, err);
	mp_elf_close(elf);
	return r == -ENOENT ? 0 : r;
}

static const struct mp_module *module_of(const struct annotate *a, const struct mp_id *id)
{
	for (size_t i = 0; i < a->nr_modules; i++)
		if (mp_id_equal(&a->modules[i].id, id))
			return &a->modules[i];
	return NULL;
}

/* Adds the file of --binary, even if nothing is stored for it. */
static int add_binary(struct annotate *a, struct mp_store *store, struct mp_err *err)
{
	const char *path = a->filter.binary;
	struct mp_id id;
	struct mp_map *map;
	char text[400];
	int r = identify(path, &id, &map, err);

	if (r)
		return r;
	if (map) {
		snprintf(text, sizeof(text),
			 "%.300s: is optimised; samples are kept for its original", path);
		note(a, text);
	}
	return add_source(a, store, module_of(a, map ? &map->original : &id), path, map, err);
}

/* Adds the module's file. If an optimised version has replaced it, adds that one. */
static int add_module(struct annotate *a, struct mp_store *store, const struct mp_module *module,
		      struct mp_err *err)
{
	struct mp_err why = {0};
	struct mp_map *map;
	struct mp_id id;
	char text[400];
	int r = -ENOENT;

	if (module->kind != MP_MODULE_FILE)
		mp_err_set(&why, ENOENT, "%s: not a file", module->path);
	else
		r = identify(module->path, &id, &map, &why);
	if (mp_err_is_failure(r)) {
		*err = why;
		return r;
	}
	if (!r) {
		if (!map && mp_id_equal(&id, &module->id))
			return add_source(a, store, module, module->path, NULL, err);
		if (map && mp_id_equal(&map->original, &module->id)) {
			snprintf(text, sizeof(text),
				 "%.200s: is the optimised version now; name the original with "
				 "--binary to see that",
				 module->path);
			note(a, text);
			return add_source(a, store, module, module->path, map, err);
		}
		mp_map_free(map);
		mp_err_set(&why, ESTALE, "%s: is not the file that was profiled", module->path);
	}
	if (!a->why.msg[0])
		a->why = why;
	return 0;
}

/*
 * Finds the module if --module names an optimised file: the store knows only its original. *@out NULL: there is
 * none. Return: 0; -errno: a failure of the machine.
 */
static int original_of(struct annotate *a, const struct mp_module **out, struct mp_err *err)
{
	const struct mp_module *module = NULL;
	struct mp_err why = {0};
	struct mp_map *map;
	struct mp_id id;
	char text[400];
	int r;

	*out = NULL;
	if (!a->filter.module)
		return 0;
	r = identify(a->filter.module, &id, &map, &why);
	if (mp_err_is_failure(r)) {
		*err = why;
		return r;
	}
	if (r || !map)
		return 0;
	module = module_of(a, &map->original);
	mp_map_free(map);
	if (module) {
		snprintf(text, sizeof(text),
			 "%.150s: is optimised; its samples are of the original, %.150s",
			 a->filter.module, module->path);
		note(a, text);
	}
	*out = module;
	return 0;
}

/*
 * Return: 1 for an output; else 0, or -errno: a failure of the machine. The store lists outputs because samples of
 * their copies are stored apart; their counts are stored for the original.
 */
static int is_output(const struct mp_module *module, struct mp_err *err)
{
	struct mp_err why = {0};
	struct mp_map *map;
	struct mp_id id;
	int r;

	if (module->nr_samples || module->kind != MP_MODULE_FILE)
		return 0;
	r = identify(module->path, &id, &map, &why);
	if (mp_err_is_failure(r))
		*err = why;
	else
		r = !r && map && mp_id_equal(&id, &module->id);
	mp_map_free(map);
	return r;
}

/* Return: number of modules that matched, or -errno. */
static long add_modules(struct annotate *a, struct mp_store *store, struct mp_err *err)
{
	const struct mp_module *original = NULL;
	long nr = 0;
	int r = 0;

	for (size_t i = 0; i < a->nr_modules && r >= 0; i++) {
		/* Include modules without samples only if the user named them. */
		if (!md_stats_filter_matches(&a->filter, &a->modules[i]) ||
		    (!a->filter.module && !a->filter.build_id && !a->modules[i].nr_samples))
			continue;
		r = is_output(&a->modules[i], err);
		if (r)
			continue;
		nr++;
		r = add_module(a, store, &a->modules[i], err);
	}
	if (r >= 0)
		r = nr ? 0 : original_of(a, &original, err);
	if (original) {
		struct mp_err why = {0};
		struct mp_map *map = NULL;
		struct mp_id id;

		nr++;
		r = identify(original->path, &id, &map, &why);
		if (!r && !map && mp_id_equal(&id, &original->id)) {
			r = add_source(a, store, original, original->path, NULL, err);
			return r ? r : nr;
		}
		mp_map_free(map);
		if (mp_err_is_failure(r)) {
			*err = why;
			return r;
		}
		r = identify(a->filter.module, &id, &map, err);
		if (!r)
			r = add_source(a, store, original, a->filter.module, map, err);
	}
	return r ? r : nr;
}

/* ---- the function -------------------------------------------------------------------------- */

static const char *wish_text(const struct annotate *a)
{
	return a->function ? a->function : a->address;
}

static void list_candidates(const struct annotate *a)
{
	const struct md_ann_candidates *c = &a->candidates;

	fflush(stdout);
	for (size_t i = 0; i < c->nr && i < LIST_MAX; i++)
		md_cli_note("  %s@0x%" PRIx64 " in %s: %" PRIu64 " samples", c->all[i].name,
			    c->all[i].vaddr, a->sources[c->all[i].source].path, c->all[i].samples);
	if (c->nr > LIST_MAX)
		md_cli_note("  and %zu more", c->nr - LIST_MAX);
}

/* Chooses the candidate. Return: exit status. */
static int choose(struct annotate *a)
{
	struct md_ann_candidates *c = &a->candidates;
	size_t nr_sampled = 0;
	char text[300];

	for (size_t i = 0; i < c->nr; i++)
		nr_sampled += c->all[i].samples > 0;
	if (!c->nr && a->why.msg[0])
		return md_cli_fail("%.200s: not found; %s", wish_text(a), a->why.msg);
	if (!c->nr)
		return md_cli_fail("%s: no such function%s", wish_text(a),
				   c->nr_stripped ? " (in a stripped file, give an address: "
						    "0x...)"
						  : "");
	if (c->nr == 1)
		return 0;
	/* If only one candidate has samples, it is the one. */
	if (nr_sampled == 1) {
		snprintf(text, sizeof(text), "%.150s: %zu more functions match, without samples",
			 wish_text(a), c->nr - 1);
		note(a, text);
		return 0;
	}
	md_cli_fail("%s: %zu functions match: choose one with --module or NAME@ADDRESS",
		    wish_text(a), c->nr);
	list_candidates(a);
	return MP_EXIT_FAILED;
}

static int find(struct annotate *a, struct mp_err *err)
{
	/* An address is only meaningful in one file. */
	if (!a->wanted.name && a->nr_sources > 1)
		return mp_err_set(err, EINVAL, "%s: choose one of %zu modules with --module",
				  wish_text(a), a->nr_sources);
	for (size_t i = 0; i < a->nr_sources; i++) {
		struct mp_err why = {0};
		int r = md_ann_find(&a->sources[i], i, &a->wanted, &a->candidates, &why);

		if (mp_err_is_failure(r) || (r && a->nr_sources == 1)) {
			*err = why;
			return r;
		}
		if (r && !a->why.msg[0])
			a->why = why;
	}
	md_ann_candidates_sort(&a->candidates);
	return 0;
}

/* ---- show ---------------------------------------------------------------------------------- */

static bool wants_color(const struct annotate *a)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	if (a->color != WHEN_AUTO)
		return a->color == WHEN_ALWAYS;
	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb");
}

static void note_sources(struct annotate *a, const struct md_srcfiles *sources)
{
	char text[400];

	for (size_t i = 0; i < sources->nr; i++) {
		if (!sources->files[i].why)
			continue;
		snprintf(text, sizeof(text), "%.250s: %s", sources->files[i].path,
			 sources->files[i].why);
		note(a, text);
	}
}

static int print(struct annotate *a, struct mp_store *store, const struct md_annotation *annotation,
		 const struct md_ann_source *source, const struct mp_id *id)
{
	struct md_srcfiles sources = {0};
	struct md_ann_caller *callers;
	struct mp_err err = {0};
	struct md_ann_print p = {.a = annotation,
				 .path = source->path,
				 .id = id,
				 .total = a->total,
				 .sources = &sources,
				 .source = !a->no_source,
				 .percent_limit = a->percent_limit,
				 .color = wants_color(a)};
	struct stat st;
	int status = MP_EXIT_DONE, r;

	if (!stat(source->path, &st))
		sources.built_s = st.st_mtime;
	if (!annotation->samples)
		note(a, "no sample of this function is stored");
	r = md_annotate_callers(store, annotation->name, id, a->since_s, &callers, &p.nr_callers,
				&err);
	if (mp_err_is_failure(r))
		return md_cli_fail("%s", err.msg[0] ? err.msg : strerror(-r));
	if (r)
		note(a, err.msg);
	p.callers = callers;
	if (a->cli->json) {
		json_t *root = md_cli_json_new("annotate");

		md_annotation_json(&p, root);
		json_object_set(root, "notes", a->notes);
		status = md_cli_json_print(root);
	} else {
		md_annotation_print(&p);
		note_sources(a, &sources);
		if (sources.failed)
			status = md_cli_fail("source files: %s", strerror(-sources.failed));
		status = md_cli_finish(status);
	}
	md_annotate_callers_free(callers, p.nr_callers);
	md_srcfiles_fini(&sources);
	return status ? status : annotation->samples ? MP_EXIT_DONE : MP_EXIT_NO_PROFILE;
}

static int show(struct annotate *a, struct mp_store *store)
{
	const struct md_ann_candidate *chosen = &a->candidates.all[0];
	struct md_ann_source *source = &a->sources[chosen->source];
	struct mp_module self = {.kind = MP_MODULE_FILE, .path = source->path};
	struct md_debuginfo *debug = NULL;
	struct md_annotation annotation = {0};
	struct md_names names = {0};
	struct md_code code = {0};
	struct mp_err err = {0};
	struct mp_map *map;
	int r = identify(source->path, &self.id, &map, &err);

	if (!r)
		mp_map_free(map);
	if (!r)
		r = md_code_open(&self, NULL, true, &code, &err);
	/* Debug information is optional. */
	if (!r && (md_debuginfo_open(source->path, &debug, NULL), 1))
		r = md_names_build(code.elf, debug, &names);
	if (!r) {
		struct md_ann_request request = {
			.code = &code,
			.vaddr = a->wanted.name ? chosen->vaddr : a->wanted.vaddr,
			.name = chosen->name[0] ? chosen->name : NULL,
			.names = &names,
			.debug = debug,
			.map = source->map,
			.counts = source->counts,
			.nr_counts = source->nr_counts,
			.edges = source->edges,
			.nr_edges = source->nr_edges,
			.ways = source->ways,
			.nr_ways = source->nr_ways,
			.exact = source->exact,
			.intel = a->intel,
		};

		r = md_annotate(&request, &annotation, &err);
	}
	if (r) {
		r = md_cli_fail("%s", err.msg[0] ? err.msg : strerror(-r));
	} else {
		md_cli_note_period(store, a->since_s);
		r = print(a, store, &annotation, source,
			  source->map ? &source->map->original : &self.id);
	}
	md_annotation_fini(&annotation);
	md_names_fini(&names);
	md_debuginfo_close(debug);
	md_code_close(&code);
	return r;
}

static int run(struct annotate *a, struct mp_store *store)
{
	struct mp_err err = {0};
	long nr = 0;
	int r = mp_store_begin(store, &err);

	if (!r)
		r = mp_store_list_modules(store, a->since_s, &a->modules, &a->nr_modules, &err);
	for (size_t i = 0; i < a->nr_modules; i++)
		a->total += a->modules[i].nr_samples;
	if (!r && a->filter.binary) {
		r = add_binary(a, store, &err);
		nr = 1;
	} else if (!r) {
		nr = add_modules(a, store, &err);
		r = nr < 0 ? (int)nr : 0;
	}
	if (!r && !nr) {
		md_cli_note("%s: no sample of such a module", a->cli->path);
		return MP_EXIT_NO_PROFILE;
	}
	if (!r)
		r = find(a, &err);
	if (r)
		return md_cli_fail("%s", err.msg);
	r = choose(a);
	return r ? r : show(a, store);
}

int md_stats_annotate(struct md_cli *cli, int argc, char **argv)
{
	struct annotate a = {.cli = cli};
	struct mp_store *store;
	int r;

	md_cli_parse(&usage, argc, argv, &a, cli);
	cli->fleet_module = a.filter.binary ? a.filter.binary : a.filter.build_id;
	r = md_cli_open(cli, MP_STORE_READ, &store);
	if (!r) {
		a.notes = json_array();
		r = run(&a, store);
		mp_store_close(store);
	}
	for (size_t i = 0; i < a.nr_sources; i++)
		md_ann_source_fini(&a.sources[i]);
	free(a.sources);
	free(a.wanted.name);
	md_ann_candidates_fini(&a.candidates);
	mp_store_free_modules(a.modules, a.nr_modules);
	json_decref(a.notes);
	return r;
}
