// SPDX-License-Identifier: Apache-2.0
/*
 * explain - says in words what verify checked and what it assumes. Documentation/verify.md says the
 * same at length, with the same assumptions. Also verifies two existing files.
 */
#include "editor/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "editor/debuglink.h"
#include "editor/separate.h"
#include "libprof/elf.h"

static const struct {
	size_t count; /* offset in the report; SIZE_MAX: not counted */
	const char *what;
} checks[] = {
	{offsetof(struct me_verify_report, nr_pieces),
	 "copied blocks: made of whole instructions of one function, every way out leads where it "
	 "led or to its copy"},
	{offsetof(struct me_verify_report, nr_insns),
	 "copied instructions: the same bytes, the same operands, the same callees"},
	{offsetof(struct me_verify_report, nr_patches),
	 "jumps over old starts of blocks: to the block's own copy, no possible target in their "
	 "middle"},
	{offsetof(struct me_verify_report, nr_retargeted),
	 "calls and branches of old code: to a copy of what they led to"},
	{offsetof(struct me_verify_report, nr_table_entries),
	 "entries of jump tables: to a copy of what they led to"},
	{offsetof(struct me_verify_report, nr_pointers),
	 "addresses of functions: the copy's, and the same everywhere"},
	{offsetof(struct me_verify_report, nr_unwind_rows),
	 "unwind rows: the original's, at every instruction"},
	{offsetof(struct me_verify_report, nr_landing_pads),
	 "landing pads: the original's or its copy, for the same types"},
	{SIZE_MAX, "every other byte of the file: unchanged"},
};

static const char *const assumptions[] = {
	"the processor does as the decoder (Zydis) reads; kernel, loader and unwinder follow the ABI",
	"the program does not read its own code or file as data",
	"it does not order or subtract addresses of functions",
	"an address in code comes from a relocation, an operand, a table or the stack",
	"a call at the very end of a function does not return",
	"nobody relies on the address of an instruction",
	"branch hints and the bnd prefix on direct branches mean nothing",
};

static const char *const if_it_counts_or_polls[] = {
	"calls, returns and indirect jumps pass no arithmetic flags",
};

static const char *const if_it_keeps_numbers[] = {
	"calls and returns that leave the file, or go through pointers, pass registers as the ABI "
	"says",
};

static const char *const if_it_polls[] = {
	"no caller from outside relies on a vector register that the file never names",
};

static const char *const with_relocations[] = {
	"the linker's relocations tell all addresses: a number without one is none",
	"an offset in data that only an indirectly jumping function names is an entry of its switch",
};

static const char *const without_relocations[] = {
	"without relocations: a label that neither an operand, a relative table, the loader nor an "
	"aligned word of data names does not lie in the middle of a patch",
};

static uint64_t count_of(const struct me_verify_report *report, size_t i)
{
	return *(const uint64_t *)((const char *)report + checks[i].count);
}

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* Calls @say for each assumption about this output. */
static void assumed_say(const struct me_verify_report *report, bool relinkable,
			void (*say)(void *to, const char *what), void *to)
{
	const struct {
		bool applies;
		const char *const *list;
		size_t nr;
	} lists[] = {
		{true, assumptions, NR(assumptions)},
		{report->counts || report->polls, if_it_counts_or_polls, NR(if_it_counts_or_polls)},
		{report->keeps_numbers, if_it_keeps_numbers, NR(if_it_keeps_numbers)},
		{report->polls, if_it_polls, NR(if_it_polls)},
		{relinkable, with_relocations, NR(with_relocations)},
		{!relinkable, without_relocations, NR(without_relocations)},
	};

	for (size_t i = 0; i < NR(lists); i++)
		for (size_t k = 0; lists[i].applies && k < lists[i].nr; k++)
			say(to, lists[i].list[k]);
}

static void say_line(void *out, const char *what)
{
	fprintf(out, "    %s\n", what);
}

static void say_item(void *array, const char *what)
{
	json_array_append_new(array, json_string(what));
}

void me_explain_text(FILE *out, const struct me_verify_report *report, bool relinkable)
{
	fprintf(out, "  checked, original against output:\n");
	for (size_t i = 0; i < NR(checks); i++) {
		if (checks[i].count == SIZE_MAX)
			fprintf(out, "    %10s %s\n", "", checks[i].what);
		else
			fprintf(out, "    %10" PRIu64 " %s\n", count_of(report, i), checks[i].what);
	}
	fprintf(out, "  assumed:\n");
	assumed_say(report, relinkable, say_line, out);
}

json_t *me_explain_json(const struct me_verify_report *report, bool relinkable)
{
	json_t *checked = json_array(), *assumed = json_array();

	for (size_t i = 0; i < NR(checks); i++) {
		json_t *count = checks[i].count == SIZE_MAX
					? json_null()
					: json_integer((json_int_t)count_of(report, i));

		json_array_append_new(checked, json_pack("{s:o, s:s}", "count", count, "what",
							 checks[i].what));
	}
	assumed_say(report, relinkable, say_item, assumed);
	return json_pack("{s:o, s:o}", "checked", checked, "assumed", assumed);
}

/* Opens both debug files. By default the output's lies beside the output, as its link says. */
static int open_debug(const struct mp_elf *original, const struct mp_elf *output,
		      const struct me_optimize_options *o, struct me_verify_debug *debug,
		      struct mp_elf **was, struct mp_elf **now, struct mp_err *err)
{
	const char *slash = strrchr(o->debug_output ? o->debug_output : o->input, '/');
	struct me_debuglink link = {0};
	char *path = NULL;
	int rc = me_separate_open(original, o->debug_file, was, err);

	if (rc)
		return rc;
	if (o->debug_output) {
		link.name = slash ? slash + 1 : o->debug_output;
		path = strdup(o->debug_output);
	} else if (me_debuglink_read(output, &link)) {
		return mp_err_set(err, EPERM, "%s: names no debug file", o->input);
	} else if (asprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - o->input) : 0, o->input,
			    link.name) < 0) {
		path = NULL;
	}
	if (!path)
		return mp_err_set(err, ENOMEM, "out of memory");
	rc = mp_elf_open(path, MP_ELF_DEBUG | MP_ELF_SYMBOLS, now, err);
	free(path);
	*debug = (struct me_verify_debug){*was, *now, link.name};
	return rc;
}

int me_verify_files(const char *original, const struct me_optimize_options *options,
		    struct me_verify_report *report, bool *relinkable, struct mp_err *err)
{
	struct mp_elf *o = NULL, *n = NULL, *was = NULL, *now = NULL;
	struct me_verify_debug debug;
	struct mp_err why = {""};
	int rc = mp_elf_open(original, MP_ELF_ALL, &o, err);

	if (!rc)
		rc = mp_elf_open(options->input, MP_ELF_ALL, &n, err);
	if (!rc && options->debug_file) {
		rc = open_debug(o, n, options, &debug, &was, &now, err);
		/* No debug file is fine if ME_SEPARATE_AUTO found none for the original. */
		if (rc == -ENOENT && !was && !strcmp(options->debug_file, ME_SEPARATE_AUTO))
			rc = 0;
	}
	if (!rc) {
		*relinkable = o->relinkable;
		rc = me_verify_threads(o, n, now ? &debug : NULL, options->nr_threads, report,
				       &why);
		if (rc)
			rc = mp_err_set(err, rc == -EBADMSG ? EPERM : -rc, "%s: %s", options->input,
					why.msg);
	}
	mp_elf_close(now);
	mp_elf_close(was);
	mp_elf_close(n);
	mp_elf_close(o);
	return rc;
}
