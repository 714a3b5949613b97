// SPDX-License-Identifier: Apache-2.0
/*
 * evidence - reads a file's counts from the store, carries over another build's counts,
 * and keeps a fingerprint for the next build.
 */
#include "editor/evidence/evidence.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "libprof/store/contexts/store_contexts.h"
#include "libprof/store/store.h"
#include "libprof/store/store_fingerprint.h"
#include "libprof/store/store_paths.h"
#include "libprof/store/store_ways.h"

/* With fewer digits, a build-id could be a misspelt file name. */
#define BUILD_ID_DIGITS_MIN 8

static uint64_t sum_counts(const struct mp_ip_count *counts, size_t nr)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < nr; i++)
		if (__builtin_add_overflow(sum, counts[i].count, &sum))
			return UINT64_MAX;
	return sum;
}

static uint64_t sum_edges(const struct mp_edge_count *edges, size_t nr)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < nr; i++)
		if (__builtin_add_overflow(sum, edges[i].count, &sum))
			return UINT64_MAX;
	return sum;
}

static int read_module(const struct me_evidence_options *o, struct mp_store *store, int64_t module,
		       struct me_evidence *out, struct mp_err *err)
{
	int r = mp_store_read_ip_counts(store, module, o->since_s, &out->counts, &out->nr_counts,
					err);

	if (!r)
		r = mp_store_read_edges(store, module, o->since_s, &out->edges, &out->nr_edges,
					err);
	if (!r)
		r = mp_store_is_exact(store, module, o->since_s, &out->exact, err);
	return r;
}

/* ---- another build ------------------------------------------------------------------------- */

/* The other build: its module in the store, and its fingerprint. */
struct other {
	struct mp_module module;
	struct mp_fingerprint print;
};

static void other_fini(struct other *other)
{
	free(other->module.path);
	mp_fingerprint_fini(&other->print);
}

/* The other build's file still exists: make the fingerprint from it. */
static int other_from_file(struct mp_store *store, const char *path, struct other *out,
			   struct mp_err *err)
{
	struct mp_elf *elf = NULL;
	struct mp_cfg *cfg = NULL;
	struct mp_err why;
	int r = mp_elf_open(path, MP_ELF_ALL, &elf, err);

	if (r)
		return r;
	r = mp_store_find_module(store, &elf->id, &out->module, err);
	if (r == -ENOENT)
		r = mp_err_set(err, ENODATA, "%s: no samples of this file", path);
	if (!r) {
		r = mp_cfg_build(elf, NULL, &cfg, &why);
		if (r)
			mp_err_set(err, -r, "%s: %s", path, why.msg);
	}
	if (!r)
		r = mp_fingerprint_make(cfg, NULL, 0, NULL, 0, &out->print, err);
	mp_cfg_free(cfg);
	mp_elf_close(elf);
	return r;
}

static bool is_build_id(const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return len >= BUILD_ID_DIGITS_MIN;
}

static int other_by_build_id(struct mp_store *store, const char *text, struct other *out,
			     struct mp_err *err)
{
	struct mp_module *modules = NULL;
	size_t nr = 0;
	int r = mp_store_list_modules(store, 0, &modules, &nr, err);

	for (size_t i = 0; i < nr && !r && !out->module.path; i++) {
		char id[2 * MP_BUILD_ID_MAX + 1];

		mp_id_format_build_id(&modules[i].id, id);
		if (strncasecmp(id, text, strlen(text)) != 0)
			continue;
		out->module = modules[i];
		modules[i].path = NULL;
	}
	mp_store_free_modules(modules, nr);
	if (!r && !out->module.path)
		r = mp_err_set(err, ENODATA,
			       "--stale=%s: no such file, and no such build-id in "
			       "the database",
			       text);
	return r ? r : mp_store_read_fingerprint(store, out->module.key, &out->print, err);
}

static int find_other(const struct me_evidence_options *o, struct mp_store *store,
		      const struct mp_id *id, struct other *out, struct mp_err *err)
{
	char *path;
	int r;

	if (o->stale.from && access(o->stale.from, F_OK) && is_build_id(o->stale.from))
		return other_by_build_id(store, o->stale.from, out, err);
	if (o->stale.from)
		return other_from_file(store, o->stale.from, out, err);
	path = realpath(o->input, NULL);
	r = mp_store_find_other_build(store, id, path ? path : o->input, &out->module, err);
	free(path);
	return r ? r : mp_store_read_fingerprint(store, out->module.key, &out->print, err);
}

static int compare_counts(const void *a, const void *b)
{
	const struct mp_ip_count *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int compare_edges(const void *a, const void *b)
{
	const struct mp_edge_count *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* Append @nr elements to the *@have ones. */
static int append(void *array, size_t *have, const void *more, size_t nr, size_t size)
{
	void **v = array, *bigger;

	if (!nr)
		return 0;
	bigger = realloc(*v, (*have + nr) * size);
	if (!bigger)
		return -ENOMEM;
	memcpy((char *)bigger + *have * size, more, nr * size);
	*v = bigger;
	*have += nr;
	return 0;
}

/* Add the carried counts to the file's own. They are from other runs, so nothing counts twice. */
static int add_carried(struct me_evidence *out, struct mp_stale_counts *carried, struct mp_err *err)
{
	if (append(&out->counts, &out->nr_counts, carried->counts, carried->nr_counts,
		   sizeof(*out->counts)) ||
	    append(&out->edges, &out->nr_edges, carried->edges, carried->nr_edges,
		   sizeof(*out->edges)))
		return mp_err_set(err, ENOMEM, "out of memory");
	if (out->nr_counts)
		qsort(out->counts, out->nr_counts, sizeof(*out->counts), compare_counts);
	if (out->nr_edges)
		qsort(out->edges, out->nr_edges, sizeof(*out->edges), compare_edges);
	out->unknown = carried->unknown;
	out->nr_unknown = carried->nr_unknown;
	carried->unknown = NULL;
	/* Counts of other code, scaled to this code, are not exact. */
	out->exact = false;
	return 0;
}

/* Fingerprints are compared with those of other builds, so all of them are made of the same kind of blocks. */
static int make_fingerprint(const struct me_evidence_options *o, const struct mp_cfg *cfg,
			    const struct me_evidence *own, struct mp_fingerprint *out,
			    struct mp_err *err)
{
	struct mp_cfg *plain = NULL;
	int r = o->entries ? mp_cfg_build(cfg->elf, NULL, &plain, err) : 0;

	if (!r)
		r = mp_fingerprint_make(plain ? plain : cfg, own->counts, own->nr_counts,
					own->edges, own->nr_edges, out, err);
	mp_cfg_free(plain);
	return r;
}

static int carry(const struct me_evidence_options *o, const struct mp_cfg *cfg,
		 struct mp_store *store, const struct other *other, struct me_evidence *out,
		 struct me_stale_report *report, struct mp_err *err)
{
	struct mp_fingerprint print = {0};
	struct mp_stale_match match = {0};
	struct mp_stale_counts carried = {0};
	struct me_evidence theirs = {0}, none = {0};
	int r = read_module(o, store, other->module.key, &theirs, err);

	if (!r)
		r = make_fingerprint(o, cfg, &none, &print, err);
	if (!r)
		r = mp_stale_match(&other->print, &print, &match, err);
	if (!r)
		r = mp_stale_carry(&match, theirs.counts, theirs.nr_counts, theirs.edges,
				   theirs.nr_edges, &carried, err);
	report->own_samples = sum_counts(out->counts, out->nr_counts);
	if (!r)
		r = add_carried(out, &carried, err);
	if (!r) {
		report->used = true;
		report->stats = carried.stats;
		mp_id_format_build_id(&other->module.id, report->build_id);
		report->path = strdup(other->module.path);
		if (!report->path)
			r = mp_err_set(err, ENOMEM, "out of memory");
	}
	mp_stale_counts_fini(&carried);
	mp_stale_match_fini(&match);
	mp_fingerprint_fini(&print);
	me_evidence_fini(&theirs);
	return r;
}

/* Return: 0, -errno; -ENOENT if there is no other build. */
static int add_stale(const struct me_evidence_options *o, const struct mp_cfg *cfg,
		     struct mp_store *store, struct me_evidence *out,
		     struct me_stale_report *report, struct mp_err *err)
{
	struct other other = {0};
	int r = find_other(o, store, &cfg->elf->id, &other, err);

	if (!r && mp_id_equal(&other.module.id, &cfg->elf->id))
		r = mp_err_set(err, EINVAL,
			       "--stale=%s: is the same build as the input; name another one",
			       o->stale.from);
	if (!r)
		r = carry(o, cfg, store, &other, out, report, err);
	other_fini(&other);
	return r;
}

/* ---- the file's own counts ------------------------------------------------------------------ */

/*
 * Keep a fingerprint for the next build, when this file may be gone. Users who may not
 * write the database need somebody else to run morph-stats remember.
 */
static void remember(const struct me_evidence_options *o, const struct mp_cfg *cfg,
		     const struct mp_module *module, const struct me_evidence *own)
{
	struct mp_fingerprint print;
	struct mp_store *store;
	int64_t made_s;
	struct mp_err err;

	if (access(o->db, W_OK) || mp_store_open(o->db, MP_STORE_WRITE, &store, &err))
		return;
	if (!mp_store_fingerprint_time(store, module->key, &made_s, &err) &&
	    made_s <= module->last_s && !make_fingerprint(o, cfg, own, &print, &err)) {
		mp_store_put_fingerprint(store, module->key, time(NULL), &print, NULL, &err);
		mp_fingerprint_fini(&print);
	}
	mp_store_close(store);
}

/* Reads the callers of the file's functions, in the trees of all programs. */
static int read_entries(const struct me_evidence_options *o, struct mp_store *store,
			const struct mp_cfg *cfg, struct me_evidence *out, struct mp_err *err)
{
	struct mp_context_program *programs = NULL;
	size_t nr = 0;
	int r = mp_store_list_contexts(store, MP_CONTEXTS, o->since_s, &programs, &nr, err);

	for (size_t i = 0; i < nr && !r; i++) {
		struct mp_context_tree tree = {0};

		if (mp_context_tree_init(&tree))
			r = mp_err_set(err, ENOMEM, "out of memory");
		if (!r)
			r = mp_store_read_contexts(store, MP_CONTEXTS, programs[i].module,
						   o->since_s, &tree, err);
		if (!r && mp_entry_samples_add(&out->entries, cfg,
					       mp_context_module_of(&cfg->elf->id), &tree))
			r = mp_err_set(err, ENOMEM, "out of memory");
		mp_context_tree_fini(&tree);
	}
	free(programs);
	return r;
}

/* *@known: the store has the file, however few its counts are. */
static int read_own(const struct me_evidence_options *o, struct mp_store *store,
		    const struct mp_cfg *cfg, struct mp_module *module, struct me_evidence *out,
		    bool *known, struct mp_err *err)
{
	int r = mp_store_find_module(store, &cfg->elf->id, module, err);

	*known = !r;
	if (r)
		return r == -ENOENT ? 0 : r;
	r = read_module(o, store, module->key, out, err);
	/* Ways of another build are not carried over. */
	if (!r)
		r = mp_store_read_ways(store, module->key, o->since_s, &out->ways, &out->nr_ways,
				       err);
	if (!r)
		r = read_entries(o, store, cfg, out, err);
	if (!r && o->paths)
		r = mp_store_read_paths(store, module->key, o->since_s, &out->paths, &out->nr_paths,
					err);
	return r;
}

static bool suffices(const struct me_evidence_options *o, const struct me_evidence *own)
{
	uint64_t samples = sum_counts(own->counts, own->nr_counts);
	uint64_t transfers = sum_edges(own->edges, own->nr_edges);

	return samples >= o->min_samples || transfers >= o->min_samples ||
	       samples + transfers >= o->min_samples;
}

int me_evidence_read(const struct me_evidence_options *options, const struct mp_cfg *cfg,
		     struct me_evidence *out, struct me_stale_report *stale, struct mp_err *err)
{
	struct mp_module module = {0};
	bool known = false, enough;
	struct mp_store *store;
	int r;

	*out = (struct me_evidence){0};
	*stale = (struct me_stale_report){0};
	r = mp_store_open(options->db, MP_STORE_READ, &store, err);
	if (r)
		return r == -ENOENT ? -ENODATA : r;
	r = read_own(options, store, cfg, &module, out, &known, err);
	enough = !r && known && suffices(options, out);
	if (!r && !enough && !options->stale.never) {
		r = add_stale(options, cfg, store, out, stale, err);
		if (r == -ENOENT && !options->stale.from)
			r = 0;
	}
	mp_store_close(store);
	if (enough && options->remember)
		remember(options, cfg, &module, out);
	free(module.path);
	if (!r && !known && !stale->used) {
		char id[2 * MP_BUILD_ID_MAX + 1];

		mp_id_format_build_id(&cfg->elf->id, id);
		return mp_err_set(err, ENODATA, "%s: no samples of this build (build-id %s) in %s",
				  options->input, *id ? id : "none", options->db);
	}
	return r;
}

void me_evidence_fini(struct me_evidence *evidence)
{
	free(evidence->counts);
	free(evidence->edges);
	free(evidence->paths);
	free(evidence->ways);
	free(evidence->unknown);
	mp_entry_samples_fini(&evidence->entries);
	*evidence = (struct me_evidence){0};
}
