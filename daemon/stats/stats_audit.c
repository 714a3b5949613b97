// SPDX-License-Identifier: Apache-2.0
/*
 * stats_audit - the command "audit": what audits inside running programs found. For each function,
 * which version was faster and by how much; for the program, the sum of these effects, weighted by
 * the functions' shares of its time, beside an audit of whole runs if there was one.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/stats_code.h"
#include "daemon/stats/stats.h"
#include "libprof/note/audit_table.h"
#include "libprof/note/map.h"
#include "libprof/store/audits/store_audits.h"
#include "libprof/store/audits/store_trials.h"

#define MP_OPTIONS struct audit_args

struct audit_args {
	struct md_cli *cli;
	const char *file; /* NULL: all programs */
};

/* One function, as it is printed. */
struct row {
	const struct mp_stored_effect *stored;
	char name[256];
	double share; /* of the program's samples; NAN: not known */
};

/* morph-optimize adds this to the names of functions whose code it copied. */
#define OLD_SUFFIX  ".morph.old"
#define RUST_SUFFIX ".llvm.0"

/* How much faster the program is, by the effects of its functions. */
struct sum {
	double estimate, lowest, highest; /* times as fast; NAN: not known */
};

struct shown {
	const struct mp_stored_audit *audit;
	struct row *rows;
	uint64_t samples;	      /* of the original's module; 0: none */
	struct sum all;		      /* B in each function */
	struct sum won;		      /* B where B won, A elsewhere */
	const struct mp_trial *trial; /* the newest audit of whole runs; NULL: none */
};

static const struct mp_usage usage = {
	.arguments = "[FILE]",
	.argument = MP_AT(file),
	.doc = "Say which version of each function was faster in audits inside running programs.\v"
	       "FILE: only the last audit of this program; it may be the audited version or its original.",
	.shared = &md_cli_common_argp};

/* ---- names and shares ---------------------------------------------------------------------- */

static bool is_known(const struct mp_id *id)
{
	return id->build_id_len || id->text_hash;
}

/* The name of the function at @vaddr in a file that morph-optimize wrote; NULL: none. */
static const char *name_in_copy(const struct mp_elf *copy, uint64_t vaddr, size_t *size)
{
	for (uint32_t i = 0; i < copy->nr_symbols; i++) {
		const struct mp_symbol *symbol = &copy->symbols[i];
		const char *old = strstr(symbol->name, OLD_SUFFIX);

		old = old ? old : strstr(symbol->name, RUST_SUFFIX);
		if (symbol->vaddr != vaddr || symbol->type != STT_FUNC)
			continue;
		*size = old ? (size_t)(old - symbol->name) : strlen(symbol->name);
		return symbol->name;
	}
	return NULL;
}

/* @code: of the original; NULL: not known. @copy: the audited file; NULL: not known. */
static void name_rows(const struct md_code *code, const struct mp_elf *copy, struct shown *s)
{
	for (uint32_t f = 0; f < s->audit->nr_functions; f++) {
		struct row *row = &s->rows[f];
		uint64_t vaddr = row->stored->vaddr;
		uint32_t range = code && vaddr ? md_code_range_at(code, vaddr) : MP_NONE;
		const char *name = NULL;
		size_t size = 0;
		char buf[32];

		if (range == MP_NONE && copy && vaddr)
			name = name_in_copy(copy, vaddr, &size);
		if (range != MP_NONE)
			snprintf(row->name, sizeof(row->name), "%s",
				 md_code_function_name(
					 &code->cfg->funcs[code->cfg->ranges[range].func], buf));
		else if (name)
			snprintf(row->name, sizeof(row->name), "%.*s", (int)size, name);
		else if (vaddr)
			snprintf(row->name, sizeof(row->name), "0x%" PRIx64, vaddr);
		else
			snprintf(row->name, sizeof(row->name), "function %" PRIu32, f);
	}
}

/* Adds the samples of each function up. */
static int add_shares(struct mp_store *store, const struct mp_module *module,
		      const struct md_code *code, struct shown *s, struct mp_err *err)
{
	struct mp_ip_count *counts = NULL;
	uint64_t *sums = calloc((size_t)code->cfg->nr_funcs + 1, sizeof(*sums));
	size_t nr = 0;
	int r = sums ? mp_store_read_ip_counts(store, module->key, 0, &counts, &nr, err)
		     : mp_err_set(err, ENOMEM, "out of memory");

	for (size_t i = 0; i < nr && !r; i++) {
		uint32_t range = md_code_range_at(code, counts[i].vaddr);

		s->samples += counts[i].count;
		if (range != MP_NONE)
			sums[code->cfg->ranges[range].func] += counts[i].count;
	}
	for (uint32_t f = 0; f < s->audit->nr_functions && !r && s->samples; f++) {
		uint64_t vaddr = s->rows[f].stored->vaddr;
		uint32_t range = vaddr ? md_code_range_at(code, vaddr) : MP_NONE;

		if (range != MP_NONE)
			s->rows[f].share =
				(double)sums[code->cfg->ranges[range].func] / (double)s->samples;
	}
	free(counts);
	free(sums);
	return r;
}

/* ---- sums ---------------------------------------------------------------------------------- */

/*
 * Return: the part of the program's time that B saves in a function that takes @share of this time.
 * @effect: log(time of A) - log(time of B).
 */
static double saved(double share, double effect)
{
	return share * -expm1(-effect);
}

/* If nothing is known of one function's effect, the sum is not known either. */
static struct sum add_effects(const struct shown *s, bool only_won)
{
	struct sum sum = {0};

	for (uint32_t f = 0; f < s->audit->nr_functions; f++) {
		const struct mp_audit_effect *e = &s->rows[f].stored->effect;
		double share = s->rows[f].share;

		if (only_won && e->verdict != MP_AUDIT_VERDICT_B)
			continue;
		if (isnan(share) || (share > 0 && e->earlier && !e->pairs))
			share = NAN;
		if (share == 0)
			continue;
		sum.estimate += saved(share, e->estimate);
		sum.lowest += saved(share, e->lowest);
		sum.highest += saved(share, e->highest);
	}
	sum.estimate = 1 / (1 - sum.estimate);
	sum.lowest = isfinite(sum.lowest) ? 1 / (1 - sum.lowest) : NAN;
	sum.highest = isfinite(sum.highest) && sum.highest < 1 ? 1 / (1 - sum.highest) : NAN;
	return sum;
}

static const struct mp_trial *find_trial(const struct mp_trial *trials, size_t nr,
					 const struct mp_stored_audit *audit)
{
	const struct mp_trial *found = NULL;

	/* Oldest first */
	for (size_t i = 0; i < nr && is_known(&audit->original); i++)
		if (mp_id_equal(&trials[i].original, &audit->original) &&
		    !strcmp(trials[i].machine, audit->machine) && trials[i].ratio > 0)
			found = &trials[i];
	return found;
}

/* ---- text ---------------------------------------------------------------------------------- */

static const char *const verdicts[] = {"undecided", "original's", "new order"};

static double percent(double effect)
{
	return 100 * expm1(effect);
}

static uint64_t rounds_of(const struct mp_audit_effect *e)
{
	uint64_t sum = 0;

	for (uint32_t p = 0; p < e->nr_points; p++)
		sum += e->points[p].rounds[MP_AUDIT_A] + e->points[p].rounds[MP_AUDIT_B];
	return sum;
}

static uint64_t dropped_of(const struct mp_audit_effect *e)
{
	uint64_t sum = 0;

	for (int i = 0; i < MP_NR_PAIR_DROPS; i++)
		sum += e->drops[i];
	return sum;
}

static void print_row(const struct row *row)
{
	const struct mp_audit_effect *e = &row->stored->effect;
	char range[48] = "-";

	if (isfinite(e->lowest) && isfinite(e->highest))
		snprintf(range, sizeof(range), "%+.2f %% to %+.2f %%", percent(e->lowest),
			 percent(e->highest));
	if (isnan(row->share))
		printf("       - ");
	else
		printf("%6.2f %% ", 100 * row->share);
	if (e->pairs)
		printf("%+8.2f %%", percent(e->estimate));
	else
		printf("         -");
	printf("  %-24s %9" PRIu64 " %12" PRIu64 " %8" PRIu64 "  %-10s  ", range, e->pairs,
	       rounds_of(e), dropped_of(e), verdicts[e->verdict]);
	md_cli_put_text(row->name);
	printf("%s\n", e->earlier ? " (decided by an earlier audit)" : "");
}

static void print_sum(const char *what, const struct sum *sum)
{
	if (isnan(sum->estimate))
		return;
	printf("%s %.4f times as fast", what, sum->estimate);
	if (!isnan(sum->lowest) && !isnan(sum->highest))
		printf(" (%.4f to %.4f)", sum->lowest, sum->highest);
	printf("\n");
}

static void print_text(const struct shown *s)
{
	const struct mp_stored_audit *a = s->audit;
	char first[32], last[32];

	printf("Program:  ");
	md_cli_put_text(*a->path ? a->path : "(not known)");
	printf("\nAudit:    %s to %s, ", md_cli_format_time(a->start_s, first),
	       md_cli_format_time(a->last_s, last));
	md_cli_put_text(*a->machine ? a->machine : "processor not known");
	printf(", alpha %g, for each of %" PRIu32 " functions %.2g\n", a->alpha, a->nr_functions,
	       a->alpha / a->nr_functions);
	if (a->lost || a->torn || a->nr_foreign)
		printf("Windows:  %" PRIu64 " overwritten unread, %" PRIu64
		       " not finished, %" PRIu64 " of no function\n",
		       a->lost, a->torn, a->nr_foreign);
	printf("   Share  New order  %-24s %9s %12s %8s  %-10s  Function\n", "interval", "Pairs",
	       "Rounds", "Dropped", "Faster is");
	for (uint32_t f = 0; f < a->nr_functions; f++)
		print_row(&s->rows[f]);
	print_sum("The program, with the new order in all functions:", &s->all);
	print_sum("The program, with the new order where it won:", &s->won);
	if (s->trial)
		printf("By an audit of whole runs: %.4f times as fast (%.4f to %.4f), %s\n",
		       s->trial->ratio, s->trial->lowest, s->trial->highest, s->trial->verdict);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *address(uint64_t vaddr)
{
	return vaddr ? mp_json_address(vaddr) : json_null();
}

static json_t *points_json(const struct mp_audit_effect *e)
{
	json_t *points = json_array();

	for (uint32_t i = 0; i < e->nr_points; i++) {
		const struct mp_point_sums *p = &e->points[i];

		json_array_append_new(points,
				      json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "point", p->point,
						"pairs", integer(p->pairs), "ticks_original",
						integer(p->ticks[MP_AUDIT_A]), "rounds_original",
						integer(p->rounds[MP_AUDIT_A]), "ticks_new",
						integer(p->ticks[MP_AUDIT_B]), "rounds_new",
						integer(p->rounds[MP_AUDIT_B])));
	}
	return points;
}

static json_t *row_json(const struct row *row)
{
	static const char *const words[] = {"undecided", "original", "new"};
	const struct mp_audit_effect *e = &row->stored->effect;
	json_t *drops = json_object();

	for (int i = 0; i < MP_NR_PAIR_DROPS; i++)
		json_object_set_new(drops, mp_pair_drop_name((enum mp_pair_drop)i),
				    integer(e->drops[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:b, s:o, s:o}",
			 "function", mp_json_string(row->name), "address",
			 address(row->stored->vaddr), "share", mp_json_number(row->share),
			 "faster_by", e->pairs ? mp_json_number(expm1(e->estimate)) : json_null(),
			 "lowest",
			 isfinite(e->lowest) ? mp_json_number(expm1(e->lowest)) : json_null(),
			 "highest", mp_json_number(expm1(e->highest)), "pairs", integer(e->pairs),
			 "rounds", integer(rounds_of(e)), "dropped", drops, "faster_is",
			 words[e->verdict], "earlier", e->earlier, "decided_at",
			 e->decided_at ? integer(e->decided_at) : json_null(), "points",
			 points_json(e));
}

static json_t *sum_json(const struct sum *sum)
{
	return json_pack("{s:o, s:o, s:o}", "times_as_fast", mp_json_number(sum->estimate),
			 "lowest", mp_json_number(sum->lowest), "highest",
			 mp_json_number(sum->highest));
}

static json_t *id_json(const struct mp_id *id)
{
	char buf[80];

	return is_known(id) ? json_string(md_stats_format_id(id, buf)) : json_null();
}

static json_t *audit_json(const struct shown *s)
{
	const struct mp_stored_audit *a = s->audit;
	json_t *rows = json_array(), *runs = json_null();

	for (uint32_t f = 0; f < a->nr_functions; f++)
		json_array_append_new(rows, row_json(&s->rows[f]));
	if (s->trial)
		runs = json_pack("{s:o, s:o, s:o, s:o}", "times_as_fast",
				 mp_json_number(s->trial->ratio), "lowest",
				 mp_json_number(s->trial->lowest), "highest",
				 mp_json_number(s->trial->highest), "verdict",
				 mp_json_string(s->trial->verdict));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "path", *a->path ? mp_json_string(a->path) : json_null(), "build_id",
			 id_json(&a->id), "original_build_id", id_json(&a->original), "machine",
			 mp_json_string(a->machine), "alpha", mp_json_number(a->alpha), "start_s",
			 (json_int_t)a->start_s, "last_s", (json_int_t)a->last_s, "windows_lost",
			 integer(a->lost), "windows_torn", integer(a->torn), "windows_foreign",
			 integer(a->nr_foreign), "functions", rows, "all_new", sum_json(&s->all),
			 "winners", sum_json(&s->won), "whole_runs", runs);
}

/* ---- which audits -------------------------------------------------------------------------- */

/* Identities and audit table of the file that the user named. */
struct asked {
	struct mp_id id, original;
	struct mp_audit_table *table; /* NULL: the file has none */
};

static int read_asked(const char *file, struct asked *out, struct mp_err *err)
{
	struct mp_elf *elf;
	struct mp_map *map = NULL;
	int r = mp_elf_open(file, MP_ELF_ALL, &elf, err);

	if (r)
		return r;
	out->id = elf->id;
	if (!mp_map_read_compact(elf, &map, NULL))
		out->original = map->original;
	mp_map_free(map);
	if (mp_audit_table_read(elf, &out->table, NULL))
		out->table = NULL;
	mp_elf_close(elf);
	return 0;
}

static bool is_asked(const struct asked *asked, const struct mp_stored_audit *a)
{
	if (asked->table)
		return asked->table->hash == a->table_hash;
	if (is_known(&asked->original))
		return mp_id_equal(&asked->original, &a->original);
	return is_known(&a->original) && mp_id_equal(&asked->id, &a->original);
}

/* Completes @a by @asked, if the collector did not find the program's file. */
static void complete(const struct asked *asked, struct mp_stored_audit *a)
{
	if (is_known(&a->original) || !asked->table || asked->table->nr_funcs != a->nr_functions)
		return;
	a->id = asked->id;
	a->original = asked->original;
	for (uint32_t f = 0; f < a->nr_functions; f++)
		a->effects[f].vaddr = asked->table->funcs[f].vaddr;
}

/*
 * The file that ran, at its path or at @file. *@out NULL: it is not there. Return: 0; -errno: a failure of the
 * machine.
 */
static int open_copy(const struct mp_stored_audit *audit, const char *file, struct mp_elf **out,
		     struct mp_err *err)
{
	const char *paths[] = {file, audit->path};
	struct mp_err why = {0};

	*out = NULL;
	for (int i = 0; i < 2 && !*out; i++) {
		int r = paths[i] && *paths[i] ? mp_elf_open(paths[i], MP_ELF_SYMBOLS, out, &why)
					      : -ENOENT;

		if (mp_err_is_failure(r)) {
			*err = why;
			return r;
		}
		if (r)
			*out = NULL;
		if (*out && !mp_id_equal(&(*out)->id, &audit->id)) {
			mp_elf_close(*out);
			*out = NULL;
		}
	}
	return 0;
}

static int fill(struct mp_store *store, const char *file, struct shown *s, struct mp_err *err)
{
	struct mp_module module = {0};
	struct md_code code = {0};
	struct mp_err unknown = {0};
	struct mp_elf *copy = NULL;
	bool opened = false;
	int r;

	s->rows = calloc(s->audit->nr_functions, sizeof(*s->rows));
	if (!s->rows)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t f = 0; f < s->audit->nr_functions; f++) {
		s->rows[f].stored = &s->audit->effects[f];
		s->rows[f].share = NAN;
	}
	r = mp_store_find_module(store, &s->audit->original, &module, &unknown);
	if (r && !mp_err_is_failure(r)) {
		module.id = s->audit->original;
		module.path = strdup(s->audit->path);
		r = module.path ? -ENOENT : mp_err_code(&unknown, ENOMEM);
	}
	if (!mp_err_is_failure(r) && is_known(&module.id)) {
		r = md_code_open(&module, file, false, &code, &unknown);
		if (r && file && !mp_err_is_failure(r))
			r = md_code_open(&module, NULL, false, &code, &unknown);
		opened = !r;
	}
	if (mp_err_is_failure(r)) {
		*err = unknown;
		free(module.path);
		return r;
	}
	r = opened ? 0 : open_copy(s->audit, file, &copy, err);
	if (!r)
		name_rows(opened ? &code : NULL, copy, s);
	mp_elf_close(copy);
	if (opened && module.key)
		r = add_shares(store, &module, &code, s, err);
	if (opened)
		md_code_close(&code);
	s->all = add_effects(s, false);
	s->won = add_effects(s, true);
	free(module.path);
	return r;
}

/* True for the newest audit of its table of functions. @audits has the newest first. */
static bool is_last(const struct mp_stored_audit *audits, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (audits[k].table_hash == audits[i].table_hash)
			return false;
	return true;
}

static int show(const struct audit_args *args, struct mp_store *store,
		struct mp_stored_audit *audits, size_t nr, const struct asked *asked)
{
	json_t *root = args->cli->json ? md_cli_json_new("program-audit") : NULL,
	       *list = json_array();
	struct mp_trial *trials = NULL;
	struct mp_err err = {0};
	size_t nr_trials = 0, nr_shown = 0;
	int r = mp_store_list_trials(store, NULL, NULL, &trials, &nr_trials, &err);

	for (size_t i = 0; i < nr && !r; i++) {
		struct shown s = {.audit = &audits[i]};

		if (!is_last(audits, i) || (args->file && !is_asked(asked, &audits[i])))
			continue;
		if (args->file)
			complete(asked, &audits[i]);
		s.trial = find_trial(trials, nr_trials, &audits[i]);
		r = fill(store, args->file, &s, &err);
		if (!r && root)
			json_array_append_new(list, audit_json(&s));
		else if (!r)
			printf("%s", nr_shown ? "\n" : ""), print_text(&s);
		nr_shown++;
		free(s.rows);
	}
	mp_store_free_trials(trials, nr_trials);
	if (r) {
		json_decref(root);
		json_decref(list);
		return md_cli_fail("%s", err.msg);
	}
	if (!nr_shown) {
		json_decref(root);
		json_decref(list);
		md_cli_note("%s: no audit inside a running program is stored%s%s", args->cli->path,
			    args->file ? " of " : "", args->file ? args->file : "");
		return MP_EXIT_NO_PROFILE;
	}
	if (!root) {
		json_decref(list);
		return md_cli_finish(MP_EXIT_DONE);
	}
	json_object_set_new(root, "audits", list);
	return md_cli_json_print(root);
}

int md_stats_audit(struct md_cli *cli, int argc, char **argv)
{
	struct audit_args args = {.cli = cli};
	struct mp_stored_audit *audits = NULL;
	struct asked asked = {0};
	struct mp_store *store;
	struct mp_err err = {0};
	size_t nr = 0;
	int r;

	md_cli_parse(&usage, argc, argv, &args, cli);
	if (args.file && read_asked(args.file, &asked, &err))
		return md_cli_fail("%s", err.msg);
	r = md_cli_open(cli, MP_STORE_READ, &store);
	if (!r) {
		if (mp_store_list_audits(store, &audits, &nr, &err))
			r = md_cli_fail("%s", err.msg);
		else
			r = show(&args, store, audits, nr, &asked);
		mp_store_close(store);
	}
	mp_store_free_audits(audits, nr);
	mp_audit_table_free(asked.table);
	return r;
}
