// SPDX-License-Identifier: Apache-2.0
/*
 * export_gcc_afdo - writes what gcc 12 reads with -fauto-profile: version 2 of the format that gcc/auto-profile.cc
 * describes. All numbers are little-endian, of 4 bytes, and of 8 bytes for counts.
 *
 *	"adcg"  2  0
 *	0xaa000000  0  NUMBER  names: each its bytes with the 0 at the end, before them their number
 *	0xac000000  0  NUMBER  functions: COUNT OF ENTRIES  body
 *	0xae000000  0  0
 *
 * A body is the name's number, numbers of spots and of inlined calls; then the spots (offset, number of targets,
 * count, targets), then the calls (offset, body). gcc skips the 0 where the length of a section would stand.
 */
#include <errno.h>
#include <string.h>

#include "daemon/export/source_counts.h"

#define MAGIC	      0x67636461u
#define VERSION	      2
#define TAG_NAMES     0xaa000000u
#define TAG_FUNCTIONS 0xac000000u
#define TAG_MODULES   0xae000000u

/* gcc keeps counts in 61 bits. */
#define COUNT_MAX (UINT64_C(1) << 60)

static void put_number(FILE *out, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		fputc((int)(value >> 8 * i & 0xff), out);
}

static void put_count(FILE *out, uint64_t count)
{
	count = count < COUNT_MAX ? count : COUNT_MAX;
	put_number(out, (uint32_t)count);
	put_number(out, (uint32_t)(count >> 32));
}

static void put_section(FILE *out, uint32_t tag, uint32_t nr)
{
	put_number(out, tag);
	put_number(out, 0);
	put_number(out, nr);
}

static void put_name(FILE *out, const char *name)
{
	size_t size = strlen(name) + 1;

	put_number(out, (uint32_t)size);
	fwrite(name, 1, size, out);
}

static void put_body(FILE *out, const struct md_body *body)
{
	put_number(out, body->key.name->number);
	put_number(out, HASH_COUNT(body->spots));
	put_number(out, HASH_COUNT(body->inlined));
	for (const struct md_spot *s = body->spots; s; s = s->hh.next) {
		put_number(out, s->at.offset << 16);
		put_number(out, HASH_COUNT(s->targets));
		put_count(out, s->count);
		for (const struct md_target *t = s->targets; t; t = t->hh.next) {
			put_number(out, 0); /* the kind; gcc skips it */
			put_count(out, t->name->number);
			put_count(out, t->count);
		}
	}
	for (const struct md_body *call = body->inlined; call; call = call->hh.next) {
		put_number(out, call->key.at.offset << 16);
		put_body(out, call);
	}
}

static int gcc_begin(struct md_export *e, struct mp_err *err)
{
	return md_source_counts_begin(e, MD_COMPILER_GCC, err);
}

static int gcc_end(struct md_export *e, struct mp_err *err)
{
	const struct md_body *functions = md_source_counts_finish(e->state);
	const struct md_source_name *names = md_source_counts_names(e->state);

	if (!functions)
		return mp_err_set(err, ENODATA, MD_SOURCE_COUNTS_NONE);
	put_number(e->out, MAGIC);
	put_number(e->out, VERSION);
	put_number(e->out, 0);
	put_section(e->out, TAG_NAMES, HASH_COUNT(names) + 1);
	put_name(e->out, "."); /* gcc knows no function with the number 0 */
	for (const struct md_source_name *name = names; name; name = name->hh.next)
		put_name(e->out, name->text);
	put_section(e->out, TAG_FUNCTIONS, HASH_COUNT(functions));
	for (const struct md_body *body = functions; body; body = body->hh.next) {
		put_count(e->out, body->entered);
		put_body(e->out, body);
	}
	put_section(e->out, TAG_MODULES, 0);
	return 0;
}

const struct md_export_format md_export_gcc_afdo = {
	.name = "gcc-afdo",
	.needs = MD_EXPORT_CODE | MD_EXPORT_COUNTS | MD_EXPORT_EDGES | MD_EXPORT_BINARY,
	.begin = gcc_begin,
	.module = md_source_counts_add,
	.end = gcc_end,
	.drop = md_source_counts_drop,
};
