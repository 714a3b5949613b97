// SPDX-License-Identifier: Apache-2.0
/*
 * export_llvm_sample - writes LLVM's sample profile as text, which clang reads with -fprofile-sample-use, and
 * llvm-profdata with --sample. The format is described in clang's manual, "Sample Profile Text Format".
 *
 * Nothing is written before all modules are read, so that an error leaves no file that looks whole.
 */
#include <errno.h>
#include <inttypes.h>

#include "daemon/export/source_counts.h"

static void put_key(FILE *out, const struct md_spot_key *at, int depth)
{
	fprintf(out, "%*s%" PRIu32, depth, "", at->offset);
	if (at->discriminator)
		fprintf(out, ".%" PRIu32, at->discriminator);
	fputs(": ", out);
}

static void put_body(FILE *out, const struct md_body *body, int depth)
{
	for (const struct md_spot *s = body->spots; s; s = s->hh.next) {
		put_key(out, &s->at, depth);
		fprintf(out, "%" PRIu64, s->count);
		for (const struct md_target *t = s->targets; t; t = t->hh.next)
			fprintf(out, " %s:%" PRIu64, t->name->text, t->count);
		fputc('\n', out);
	}
	for (const struct md_body *call = body->inlined; call; call = call->hh.next) {
		put_key(out, &call->key.at, depth);
		fprintf(out, "%s:%" PRIu64 "\n", call->key.name->text, call->total);
		put_body(out, call, depth + 1);
	}
}

static int llvm_begin(struct md_export *e, struct mp_err *err)
{
	return md_source_counts_begin(e, MD_COMPILER_LLVM, err);
}

static int llvm_end(struct md_export *e, struct mp_err *err)
{
	const struct md_body *body = md_source_counts_finish(e->state);

	if (!body)
		return mp_err_set(err, ENODATA, MD_SOURCE_COUNTS_NONE);
	for (; body; body = body->hh.next) {
		fprintf(e->out, "%s:%" PRIu64 ":%" PRIu64 "\n", body->key.name->text, body->total,
			body->entered);
		put_body(e->out, body, 1);
	}
	return 0;
}

const struct md_export_format md_export_llvm_sample = {
	.name = "llvm-sample",
	.needs = MD_EXPORT_CODE | MD_EXPORT_COUNTS | MD_EXPORT_EDGES,
	.begin = llvm_begin,
	.module = md_source_counts_add,
	.end = llvm_end,
	.drop = md_source_counts_drop,
};
