// SPDX-License-Identifier: Apache-2.0
/*
 * stats_export - the command "export": folded stacks for flame graphs, and BOLT's fdata without
 * branches. Decides the names under which others know a function.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/stats.h"
#include "daemon/stats_rows.h"

enum format {
	FORMAT_NONE,
	FORMAT_FOLDED,
	FORMAT_FDATA
};

struct export
{
	struct md_stats *stats;
	struct md_stats_filter filter;
	enum format format;
	int64_t since_s;
	uint64_t nr_written, nr_skipped; /* samples */
};

enum {
	KEY_BUILD_ID = 256,
	KEY_BINARY,
	KEY_FORMAT
};

static const struct argp_option options[] = {
	{"format", KEY_FORMAT, "FORMAT", 0,
	 "folded: lines for flamegraph.pl; fdata: for llvm-bolt, of one module", 0},
	{"module", 'm', "NAME", 0, "Only the module with this path or file name", 0},
	{"build-id", KEY_BUILD_ID, "HEX", 0, "Only modules whose build-id begins so", 0},
	{"binary", KEY_BINARY, "FILE", 0, "Only the module that FILE is; take its code from there",
	 0},
	{"since", 's', "WHEN", 0, "2h, 3d, today, 2026-11-20, ...: not what is older", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct export *e = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = e->stats; return 0;
	case KEY_FORMAT:
		if (!strcmp(arg, "folded"))
			e->format = FORMAT_FOLDED;
		else if (!strcmp(arg, "fdata"))
			e->format = FORMAT_FDATA;
		else
			argp_error(state, "--format=%s: neither folded nor fdata", arg);
		return 0;
	case 'm': e->filter.module = arg; return 0;
	case KEY_BUILD_ID: e->filter.build_id = arg; return 0;
	case KEY_BINARY: e->filter.binary = arg; return 0;
	case 's':
		if (md_stats_parse_since(arg, time(NULL), &e->since_s))
			argp_error(state, "--since=%s: not a time", arg);
		return 0;
	case ARGP_KEY_ARG: argp_error(state, "%s: too many arguments", arg); return EINVAL;
	case ARGP_KEY_END:
		if (!e->format)
			argp_error(state, "which --format?");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&md_stats_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	options, parse, NULL, "Write samples for other tools, to standard output.", children, 0, 0};

/* ---- folded -------------------------------------------------------------------------------- */

/* A frame: ';' would end it, and a line's last blank comes before its number. */
static void put_frame(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		putchar(*p == ';' ? ':' : *p < 0x20 || *p == 0x7f ? '?' : *p);
}

static int export_folded(struct export *e, const struct mp_module *module,
			 const struct mp_ip_count *counts, size_t nr, struct mp_err *err)
{
	const char *slash = strrchr(module->path, '/');
	struct md_rows rows = {0};
	struct md_code code;
	struct mp_err why = {0};
	uint64_t unknown = 0;
	int r = 0;

	if (md_code_open(module, e->filter.binary, false, &code, &why)) {
		if (module->kind == MP_MODULE_FILE)
			md_stats_note("%s: its functions are not known", why.msg);
		for (size_t i = 0; i < nr; i++)
			unknown += counts[i].count;
	} else {
		r = md_rows_of_functions(&rows, module, &code, NULL, counts, nr);
		md_code_close(&code);
	}
	md_rows_sort(&rows, MD_SORT_SAMPLES);
	for (size_t i = 0; i < rows.nr; i++) {
		if (!rows.rows[i].function) {
			unknown += rows.rows[i].samples;
			continue;
		}
		put_frame(slash ? slash + 1 : module->path);
		putchar(';');
		put_frame(rows.rows[i].function);
		printf(" %" PRIu64 "\n", rows.rows[i].samples);
		e->nr_written += rows.rows[i].samples;
	}
	if (unknown) {
		put_frame(slash ? slash + 1 : module->path);
		printf(";[unknown] %" PRIu64 "\n", unknown);
		e->nr_written += unknown;
	}
	md_rows_free(&rows);
	return r ? mp_err_set(err, -r, "out of memory") : 0;
}

/* ---- fdata --------------------------------------------------------------------------------- */

/* BOLT numbers local functions of one name in order of their addresses: "parse/2". */
static unsigned int number_of(const struct mp_elf *elf, const struct mp_symbol *symbol)
{
	unsigned int nr = 1;

	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *s = &elf->symbols[i];

		nr += s->bind == STB_LOCAL && s->type == STT_FUNC && s->shndx != SHN_UNDEF &&
		      s->vaddr < symbol->vaddr && !strcmp(s->name, symbol->name);
	}
	return nr;
}

static void format_bolt_name(const struct md_code *code, const struct mp_range *range, char *buf,
			     size_t size)
{
	const struct mp_symbol *s = md_code_symbol_at(code, range->start);

	if (!s)
		snprintf(buf, size, "__BOLT_FDE_FUNCat%" PRIx64, range->start);
	else if (s->bind == STB_LOCAL)
		snprintf(buf, size, "%s/%u", s->name, number_of(code->elf, s));
	else
		snprintf(buf, size, "%s", s->name);
}

static int export_fdata(struct export *e, const struct mp_module *module,
			const struct mp_ip_count *counts, size_t nr, struct mp_err *err)
{
	uint32_t range = MP_NONE;
	struct md_code code;
	char name[4096];
	int r = md_code_open(module, e->filter.binary, false, &code, err);

	if (r)
		return r;
	printf("no_lbr samples:\n");
	for (size_t i = 0; i < nr; i++) {
		const struct mp_range *now;
		uint32_t at = md_code_range_at(&code, counts[i].vaddr);

		if (at == MP_NONE) {
			e->nr_skipped += counts[i].count;
			continue;
		}
		now = &code.cfg->ranges[at];
		if (at != range)
			format_bolt_name(&code, now, name, sizeof(name));
		range = at;
		/* BOLT ends a name at a blank; none of a compiler's names has one. */
		if (strpbrk(name, " \t\n")) {
			e->nr_skipped += counts[i].count;
			continue;
		}
		printf("1 %s %" PRIx64 " %" PRIu64 "\n", name, counts[i].vaddr - now->start,
		       counts[i].count);
		e->nr_written += counts[i].count;
	}
	md_code_close(&code);
	return 0;
}

/* ---- modules ------------------------------------------------------------------------------- */

/* Mark what is not asked for by nr_samples = 0. Return: how many are left, or -errno. */
static long choose(const struct export *e, struct mp_module *modules, size_t nr, struct mp_err *err)
{
	struct mp_elf *elf = NULL;
	long nr_left = 0;
	int r;

	if (e->filter.binary) {
		r = mp_elf_open(e->filter.binary, MP_ELF_ID, &elf, err);
		if (r)
			return r;
	}
	for (size_t i = 0; i < nr; i++) {
		if (!md_stats_filter_matches(&e->filter, &modules[i]) ||
		    (elf && !mp_id_equal(&elf->id, &modules[i].id)))
			modules[i].nr_samples = 0;
		nr_left += modules[i].nr_samples > 0;
	}
	mp_elf_close(elf);
	return nr_left;
}

static int export_modules(struct export *e, struct mp_store *store, const struct mp_module *modules,
			  size_t nr, struct mp_err *err)
{
	int r = 0;

	for (size_t i = 0; i < nr && !r; i++) {
		struct mp_ip_count *counts = NULL;
		size_t nr_counts = 0;

		if (!modules[i].nr_samples)
			continue;
		r = mp_store_read_counts(store, modules[i].key, e->since_s, &counts, &nr_counts,
					 err);
		if (!r && e->format == FORMAT_FDATA)
			r = export_fdata(e, &modules[i], counts, nr_counts, err);
		else if (!r)
			r = export_folded(e, &modules[i], counts, nr_counts, err);
		free(counts);
	}
	return r;
}

static int run(struct export *e, struct mp_store *store)
{
	struct mp_module *modules = NULL;
	struct mp_err err = {0};
	size_t nr = 0;
	long nr_left = 0;
	int r = mp_store_list_modules(store, e->since_s, &modules, &nr, &err);

	if (!r) {
		nr_left = choose(e, modules, nr, &err);
		r = nr_left < 0 ? (int)nr_left : 0;
	}
	if (r) {
		r = md_stats_fail("%s", err.msg);
	} else if (!nr_left) {
		md_stats_note("%s: no such sample", e->stats->path);
		r = MD_EXIT_NO_PROFILE;
	} else if (e->format == FORMAT_FDATA && nr_left > 1) {
		r = md_stats_fail("fdata is of one module, these are %ld: use --binary=FILE",
				  nr_left);
	} else {
		md_stats_note_period(store, e->since_s);
		r = export_modules(e, store, modules, nr, &err);
		r = r ? md_stats_fail("%s", err.msg) : md_stats_finish(MD_EXIT_DONE);
	}
	if (!r && e->nr_skipped)
		md_stats_note("%" PRIu64 " samples in no function are left out", e->nr_skipped);
	mp_store_free_modules(modules, nr);
	return r;
}

int md_stats_export(struct md_stats *stats, int argc, char **argv)
{
	struct export e = {.stats = stats};
	struct mp_store *store;
	struct mp_err err = {0};
	int r;

	md_stats_parse(&argp, argc, argv, &e);
	if (stats->json)
		return md_stats_fail("export has formats of its own: --json does not go with it"),
		       MD_EXIT_USAGE;
	r = md_stats_open(stats, MP_STORE_READ, &store);
	if (r)
		return r;
	r = mp_store_begin(store, &err) ? md_stats_fail("%s", err.msg) : run(&e, store);
	mp_store_close(store);
	return r;
}
