// SPDX-License-Identifier: Apache-2.0
/*
 * annotate_print - prints an annotated function as text; see annotate_print.h. Decides the
 * layout of a line. annotate_json.c prints JSON.
 */
#include "daemon/annotate/annotate_print.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/demangle.h"
#include "libprof/base/text.h"
#include "libprof/cli/stdio.h"

#define RED    "\033[31m"
#define GREEN  "\033[32m"
#define BOLD   "\033[1m"
#define DIM    "\033[2m"
#define NORMAL "\033[0m"
#define TAB    8
/* Source lines and inlined names are indented to the column of the instructions. */
#define MARGIN "                                 "

static void color(const struct md_ann_print *p, const char *escape)
{
	if (!p->color)
		return;
	mp_stdio_raw(true);
	fputs(escape, stdout);
	mp_stdio_raw(false);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* ---- head ---------------------------------------------------------------------------------- */

static void print_ranges(const struct md_ann_print *p)
{
	const struct md_annotation *a = p->a;
	const struct mp_range *ranges = a->code->cfg->ranges + a->func->first_range;

	for (uint32_t i = 0; i < a->func->nr_ranges; i++)
		printf("%s0x%" PRIx64 "..0x%" PRIx64 "%s", i ? ", " : "  ", ranges[i].start,
		       ranges[i].start + ranges[i].size, ranges[i].cold ? " (cold part)" : "");
	printf(": %zu instructions in %" PRIu32 " blocks\n", a->nr_insns, a->nr_blocks);
}

/* Most callers in the text's head. */
#define CALLERS_MAX 4

static void print_callers(const struct md_ann_print *p)
{
	for (size_t i = 0; i < p->nr_callers && i < CALLERS_MAX; i++) {
		const struct md_ann_caller *c = &p->callers[i];
		char *brief = c->function ? md_name_brief(c->function) : NULL;

		fputs(i ? ", " : "  called by ", stdout);
		mp_text_put(stdout, brief ? brief : c->function ? c->function : "(nobody)");
		free(brief);
		if (c->module) {
			fputs(" [", stdout);
			mp_text_put(stdout, basename(c->module));
			fputs("]", stdout);
		}
		printf(" %.1f%%", 100 * c->share);
	}
	if (p->nr_callers > CALLERS_MAX)
		printf(", and %zu more", p->nr_callers - CALLERS_MAX);
	if (p->nr_callers)
		fputs("\n", stdout);
}

static void print_head(const struct md_ann_print *p)
{
	const struct md_annotation *a = p->a;
	char id[80];

	color(p, BOLD);
	mp_text_put(stdout, a->name);
	color(p, NORMAL);
	printf(": %" PRIu64 " samples, %.2f%% of all %" PRIu64 "\n  ", a->samples,
	       percent(a->samples, p->total), p->total);
	mp_text_put(stdout, p->path);
	printf(", %s %s\n", a->map ? "optimised from" : "build-id", md_stats_format_id(p->id, id));
	print_ranges(p);
	print_callers(p);
	if (a->func->problem)
		printf("  not fully understood: %s at 0x%" PRIx64 "\n",
		       mp_problem_name(a->func->problem), a->func->problem_vaddr);
	if (a->map)
		printf("  each instruction with the samples of its original, which copies of it "
		       "share\n");
	else if (a->counted)
		printf("  weight: samples per instruction; count: inferred runs, in the same "
		       "unit\n");
	printf("\n Percent    Samples      Address  %sInstruction\n",
	       a->map ? "    Original  " : "");
}

/* ---- blocks -------------------------------------------------------------------------------- */

static const char *end_of(const struct mp_block *block)
{
	switch (block->term) {
	case MP_TERM_TAIL: return "leaves by a tail call";
	case MP_TERM_INDIRECT_TAIL: return "leaves by an indirect jump";
	case MP_TERM_UNRESOLVED: return "ends in a jump whose targets are not known";
	case MP_TERM_TABLE: return "ends in a jump table";
	case MP_TERM_NORETURN: return "ends in a call that does not return";
	default: return NULL;
	}
}

/* Prints which blocks branch to this one. A predecessor that falls through is not listed. */
static void print_predecessors(const struct md_annotation *a, uint32_t index)
{
	const struct mp_cfg *cfg = a->code->cfg;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < a->nr_blocks && nr <= 6; i++) {
		const struct mp_block *block = a->blocks[i].block;

		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
			if (a->index_of[cfg->edges[e].to - a->func->first_block] != index ||
			    cfg->edges[e].kind == MP_EDGE_FALL)
				continue;
			if (nr == 6)
				printf(", ...");
			else
				printf("%sB%" PRIu32, nr ? ", " : "; from ", i);
			nr++;
			break;
		}
	}
}

static void print_block(const struct md_ann_print *p, uint32_t index)
{
	const struct md_annotation *a = p->a;
	const struct md_ann_block *b = &a->blocks[index];
	const char *end = end_of(b->block);
	const struct mp_map_piece *piece = a->map ? md_map_piece(a->map, b->block->vaddr) : NULL;

	color(p, BOLD);
	printf("B%" PRIu32, index);
	color(p, NORMAL);
	printf("  %" PRIu64 " samples in %" PRIu32 " instructions", b->samples, b->nr_insns);
	if (b->samples || b->count > 0)
		printf(", weight %.2f", b->weight);
	if (b->count >= 0)
		printf(", count %.2f", b->count);
	if (b->block->flags & MP_BLOCK_ENTRY)
		printf("; entry");
	if (b->block->flags & MP_BLOCK_LANDING_PAD)
		printf("; landing pad");
	if (b->block->flags & MP_BLOCK_COLD_PART)
		printf("; cold part");
	if (b->block->flags & MP_BLOCK_PADDING)
		printf("; padding");
	print_predecessors(a, index);
	if (end)
		printf("; %s", end);
	if (piece && piece->old_size)
		printf("; copy of 0x%" PRIx64, piece->old_vaddr);
	else if (a->map && !piece)
		printf("; where it was");
	putchar('\n');
}

/* ---- source -------------------------------------------------------------------------------- */

/* Like mp_text_put(stdout, ), but expands tabs. */
static void put_source(const char *text, size_t len)
{
	size_t column = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\t') {
			do
				putchar(' ');
			while (++column % TAB);
		} else if (c < 0x20 || c == 0x7f) {
			printf("\\x%02x", c);
			column += 4;
		} else {
			putchar(c);
			column++;
		}
	}
}

static void put_place(const struct md_line *line)
{
	mp_text_put(stdout, basename(line->file));
	printf(":%d", line->line);
}

static bool same_line(const struct md_line *a, const struct md_line *b)
{
	return a->line == b->line &&
	       (a->file == b->file || (a->file && b->file && !strcmp(a->file, b->file)));
}

/* Prints the inlined calls that begin at this instruction. */
static void print_inlines(const struct md_ann_print *p, const struct md_ann_insn *insn,
			  const struct md_ann_insn *before)
{
	const struct md_inline *now = p->a->inlines + insn->first_inline;
	const struct md_inline *was = before ? p->a->inlines + before->first_inline : NULL;
	uint32_t i = 0;

	while (before && i < insn->nr_inlines && i < before->nr_inlines && now[i].key == was[i].key)
		i++;
	for (; i < insn->nr_inlines; i++) {
		char *text = md_demangle(now[i].function);
		char *brief = md_name_brief(text ? text : now[i].function);
		const char *name = brief ? brief : now[i].function;

		color(p, DIM);
		printf(MARGIN "%*s", (int)(2 * i), "");
		mp_text_put(stdout, name);
		printf("() inlined");
		if (now[i].call.file) {
			printf(", called at ");
			put_place(&now[i].call);
		}
		color(p, NORMAL);
		putchar('\n');
		free(brief);
		free(text);
	}
}

static void print_source(const struct md_ann_print *p, const struct md_ann_insn *insn,
			 const struct md_ann_insn *before)
{
	const struct md_srcfile *file;
	const char *text = NULL;
	size_t len = 0;

	if (!p->source)
		return;
	print_inlines(p, insn, before);
	if (!insn->line.file || (before && same_line(&insn->line, &before->line)))
		return;
	file = md_srcfiles_get(p->sources, insn->line.file);
	if (file)
		text = md_srcfile_line(file, insn->line.line, &len);
	color(p, DIM);
	printf(MARGIN);
	put_place(&insn->line);
	if (text) {
		printf("  ");
		put_source(text, len);
	}
	color(p, NORMAL);
	putchar('\n');
}

/* ---- instructions -------------------------------------------------------------------------- */

static void print_target(const struct md_annotation *a, const struct md_ann_insn *insn)
{
	const struct md_ann_block *b = insn->block == MP_NONE ? NULL : &a->blocks[insn->block];

	if (insn->target_block != MP_NONE) {
		printf("  -> B%" PRIu32 "%s", insn->target_block,
		       insn->target <= insn->vaddr ? " (back)" : "");
		if (b && b->taken >= 0 && insn == &a->insns[b->first_insn + b->nr_insns - 1])
			printf(", taken %.1f%%", 100 * b->taken);
	} else if (insn->target_name) {
		printf("  # ");
		mp_text_put(stdout, insn->target_name);
	}
}

static void print_insn(const struct md_ann_print *p, const struct md_ann_insn *insn)
{
	double share = percent(insn->samples, p->a->samples);
	const char *escape = share >= 5 ? RED : share >= 0.5 ? GREEN : NULL;

	if (insn->samples && escape)
		color(p, escape);
	putchar(insn->hot ? '*' : ' ');
	if (insn->samples)
		printf("%6.2f%% %10" PRIu64, share, insn->samples);
	else
		printf("%18s", "");
	printf(" %12" PRIx64 "  ", insn->vaddr);
	if (p->a->map && insn->added)
		printf("%12s  ", "(added)");
	else if (p->a->map)
		printf("%12" PRIx64 "  ", insn->original);
	fputs(insn->text, stdout);
	print_target(p->a, insn);
	if (insn->samples && escape)
		color(p, NORMAL);
	putchar('\n');
}

static bool is_left_out(const struct md_ann_print *p, const struct md_ann_insn *insn)
{
	uint64_t samples = insn->block == MP_NONE ? insn->samples
						  : p->a->blocks[insn->block].samples;

	return percent(samples, p->a->samples) < p->percent_limit;
}

/* Says how much was left out between instructions @start and @end. */
static void print_gap(const struct md_annotation *a, size_t start, size_t end)
{
	uint64_t samples = 0;

	for (size_t i = start; i < end; i++)
		samples += a->insns[i].samples;
	if (start < end)
		printf("... %zu instructions, %" PRIu64 " samples\n", end - start, samples);
}

void md_annotation_print(const struct md_ann_print *p)
{
	const struct md_annotation *a = p->a;
	size_t gap = 0; /* first instruction that was left out */

	print_head(p);
	for (size_t i = 0; i < a->nr_insns; i++) {
		const struct md_ann_insn *insn = &a->insns[i], *before = i ? insn - 1 : NULL;

		if (is_left_out(p, insn))
			continue;
		print_gap(a, gap, i);
		gap = i + 1;
		if (insn->block != MP_NONE && a->blocks[insn->block].first_insn == i) {
			print_block(p, insn->block);
			before = NULL;
		}
		print_source(p, insn, before);
		print_insn(p, insn);
	}
	print_gap(a, gap, a->nr_insns);
}
