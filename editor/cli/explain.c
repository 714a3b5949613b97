// SPDX-License-Identifier: Apache-2.0
/*
 * explain - the texts of verify's checks and assumptions. Documentation/verify.md has
 * the long version; both list the same assumptions.
 */
#include "editor/cli/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "editor/debug/debuglink.h"
#include "editor/debug/debug_file.h"
#include "libprof/elf/elf.h"

static const struct {
	size_t count; /* offset in the report */
	const char *what;
} checks[] = {
	{offsetof(struct me_verify_report, nr_pieces),
	 "copied blocks: whole instructions of one function; each exit leads to its old target "
	 "or to a copy of it"},
	{offsetof(struct me_verify_report, nr_insns),
	 "copied instructions: the same bytes, the same operands, the same callees"},
	{offsetof(struct me_verify_report, nr_via_slot),
	 "of these, calls and jumps through the slot of a PLT stub: the original calls the stub, "
	 "whose only act is a jump through the same slot"},
	{offsetof(struct me_verify_report, nr_inlined),
	 "calls replaced by the called function's instructions: wherever one of these depends on the "
	 "stack pointer, it has the value that it has in the original"},
	{offsetof(struct me_verify_report, nr_patches),
	 "jumps written over old blocks: each leads to a copy of its block; no code can enter "
	 "in the middle of the jump"},
	{offsetof(struct me_verify_report, nr_retargeted),
	 "changed calls and branches in old code: each leads to a copy of its old target"},
	{offsetof(struct me_verify_report, nr_table_entries),
	 "changed entries of jump tables: each leads to a copy of its old target"},
	{offsetof(struct me_verify_report, nr_pointers),
	 "changed pointers: all pointers to the same function hold its copy's address"},
	{offsetof(struct me_verify_report, nr_unwind_rows),
	 "unwind rows: the same as in the original at every instruction"},
	{offsetof(struct me_verify_report, nr_landing_pads),
	 "landing pads: the same as in the original, or copies of them, for the same types"},
};

static const char *const assumptions[] = {
	"code runs as Zydis decodes it; kernel, loader and unwinder follow the ABI",
	"the program does not read its own code or file as data",
	"the program does not order or subtract addresses of functions",
	"every address of code comes from a relocation, an operand, a table or the stack",
	"a call at the very end of a function does not return",
	"the program does not depend on addresses of instructions, such as return addresses",
	"branch hints and the bnd prefix on direct branches have no effect",
	"no code counts on passing through a PLT stub",
};

static const char *const if_it_counts_or_polls[] = {
	"calls, returns and indirect jumps pass no arithmetic flags",
};

static const char *const if_it_is_live[] = {
	"a process into which it is put has the original's bytes, and nothing at the new addresses",
	"its unwinders are led to the rows of copies, and it asks the loader about no other address of a copy",
};

static const char *const if_it_audits[] = {
	"no other file of the process uses the segment register %gs",
	"the program does not forbid itself the time-stamp counter or the runtime's system calls",
};

static const char *const if_it_keeps_numbers[] = {
	"calls and returns that leave the file or use pointers follow the ABI's rules for "
	"registers",
};

static const char *const if_it_polls[] = {
	"callers in other files do not rely on a vector register that this file never uses",
};

static const char *const with_relocations[] = {
	"the linker's relocations mark all addresses: a number without a relocation is no address",
	"an offset in data that only one function with an indirect jump uses is an entry of "
	"that function's switch",
};

static const char *const without_relocations[] = {
	"without relocations: no jump target lies in the middle of a patch unless an operand, a "
	"relative table, the loader or an aligned word of data names the target",
};

static uint64_t count_of(const struct me_verify_report *report, size_t i)
{
	return *(const uint64_t *)((const char *)report + checks[i].count);
}

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* Pass each assumption that applies to this output to @say. */
static void assumed_say(const struct me_verify_report *report, bool relinkable,
			void (*say)(void *to, const char *what), void *to)
{
	const bool live = report->kind == ME_KIND_LIVE || report->kind == ME_KIND_LIVE_COUNTS ||
			  report->kind == ME_KIND_LIVE_METER;
	const struct {
		bool applies;
		const char *const *list;
		size_t nr;
	} lists[] = {
		{true, assumptions, NR(assumptions)},
		{live, if_it_is_live, NR(if_it_is_live)},
		{report->kind != ME_KIND_LAYOUT && report->kind != ME_KIND_NUMBERS &&
			 report->kind != ME_KIND_LIVE,
		 if_it_counts_or_polls, NR(if_it_counts_or_polls)},
		{report->kind == ME_KIND_AUDIT, if_it_audits, NR(if_it_audits)},
		{report->kind == ME_KIND_NUMBERS || report->kind == ME_KIND_POLLS,
		 if_it_keeps_numbers, NR(if_it_keeps_numbers)},
		{report->kind == ME_KIND_POLLS, if_it_polls, NR(if_it_polls)},
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
	for (size_t i = 0; i < NR(checks); i++)
		fprintf(out, "    %10" PRIu64 " %s\n", count_of(report, i), checks[i].what);
	fprintf(out, "  every byte of the output has one owner, and is right:\n");
	for (int i = 0; i < ME_NR_OWNERS; i++)
		if (report->owned[i])
			fprintf(out, "    %10" PRIu64 " %s\n", report->owned[i],
				me_owner_name((enum me_owner)i));
	fprintf(out, "  assumed:\n");
	assumed_say(report, relinkable, say_line, out);
}

json_t *me_explain_json(const struct me_verify_report *report, bool relinkable)
{
	json_t *checked = json_array(), *owned = json_array(), *assumed = json_array();

	for (size_t i = 0; i < NR(checks); i++)
		json_array_append_new(checked, json_pack("{s:I, s:s}", "count",
							 (json_int_t)count_of(report, i), "what",
							 checks[i].what));
	for (int i = 0; i < ME_NR_OWNERS; i++)
		if (report->owned[i])
			json_array_append_new(owned,
					      json_pack("{s:I, s:s}", "bytes",
							(json_int_t)report->owned[i], "owner",
							me_owner_name((enum me_owner)i)));
	assumed_say(report, relinkable, say_item, assumed);
	return json_pack("{s:o, s:o, s:o}", "checked", checked, "owned", owned, "assumed", assumed);
}

/*
 * Open both debug files. By default, the output's is the file beside the output that its
 * .gnu_debuglink names.
 */
static int open_debug(const struct mp_elf *original, const struct mp_elf *output,
		      const struct me_optimize_options *o, struct me_verify_debug *debug,
		      struct mp_elf **was, struct mp_elf **now, struct mp_err *err)
{
	struct me_debuglink link = {0};
	char *path = NULL;
	int rc = me_debug_file_open(original, o->debug_file, was, err);

	if (rc)
		return rc;
	if (o->debug_output) {
		link.name = basename(o->debug_output);
		path = strdup(o->debug_output);
	} else if (me_debuglink_read(output, &link)) {
		return mp_err_set(err, EPERM, "%s: names no debug file", o->input);
	} else if (asprintf(&path, "%.*s%s", (int)(basename(o->input) - o->input), o->input,
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
		/* ME_DEBUG_FILE_AUTO found no debug file: nothing to verify. */
		if (rc == -ENOENT && !was && !strcmp(options->debug_file, ME_DEBUG_FILE_AUTO))
			rc = 0;
	}
	if (!rc) {
		*relinkable = o->relinkable;
		rc = me_verify_parallel(o, n, now ? &debug : NULL, options->nr_threads, report,
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
