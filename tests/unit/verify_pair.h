// SPDX-License-Identifier: Apache-2.0
/*
 * verify_pair - an original and its output for tests of verify. Compiles a program of
 * tests/data, optimises it with the library, and lets the test change the output's bytes.
 */
#ifndef MORPH_TESTS_VERIFY_PAIR_H
#define MORPH_TESTS_VERIFY_PAIR_H

#include <Zydis/Zydis.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor/optimize/optimize.h"
#include "editor/verify/verify.h"
#include "libprof/elf/elf.h"
#include "libprof/note/map.h"
#include "tests/unit/places.h"

struct pair {
	struct mp_elf *original, *good;
	struct mp_map *map;
	uint8_t *bytes; /* a copy of the output that the test changes */
	size_t size;
	struct me_verify_report report;
};

enum pair_kind {
	PAIR_PLAIN,
	PAIR_COUNTS,
	PAIR_THREADS,
	PAIR_PATHS,
	PAIR_POLLS,
	PAIR_AUDITS,
	PAIR_CALLS,
	PAIR_METER,
	PAIR_INLINED, /* not instrumented: small functions replace calls */
	PAIR_DIVIDED, /* the same at random, in pieces of which some lie apart */
};

/* Writes places for a meter to @path: those of up to eight counters of the version of @exe that counts edges. */
static inline void pair_choose_places(const char *exe, const char *path)
{
	struct me_optimize_options options = {.input = exe,
					      .output = path,
					      .all = true,
					      .counting.edges = true,
					      .counting.path = "/nowhere/counts"};
	uint32_t which[MP_METER_PLACES_MAX], nr, used;
	struct me_optimize_report report;
	struct mp_err err = {""};

	ck_assert_msg(!me_optimize(&options, &report, &err), "%s", err.msg);
	nr = report.instrumented.nr_counters;
	me_optimize_report_fini(&report);
	used = nr < MP_METER_PLACES_MAX ? nr : MP_METER_PLACES_MAX;
	for (uint32_t i = 0; i < used; i++)
		which[i] = i * nr / used;
	places_write(path, which, used, path);
}

/*
 * Builds with @command (gcc or g++; "-o FILE" is appended), then optimises or instruments the
 * result. @adjust: the value of --adjust.
 */
static inline void pair_make_adjusted(struct pair *p, const char *command, uint64_t seed,
				      enum pair_kind kind, const char *adjust)
{
	const char *dir = getenv("TMPDIR");
	char exe[256], out[300], places[300], line[1024];
	struct me_optimize_options options = {
		.input = exe, .output = out, .all = true, .layout.slots = true};
	struct me_optimize_report report;
	struct mp_err err = {""};
	int rc;

	memset(p, 0, sizeof(*p));
	snprintf(exe, sizeof(exe), "%s/morph-verify-%d", dir ? dir : "/tmp", (int)getpid());
	snprintf(out, sizeof(out), "%s.out", exe);
	snprintf(line, sizeof(line), "%s -o %s", command, exe);
	ck_assert_msg(system(line) == 0, "%s", line);
	options.counting.edges = kind == PAIR_COUNTS || kind == PAIR_THREADS;
	if (kind == PAIR_THREADS)
		options.counting.how = ME_COUNT_THREADS;
	options.counting.paths = kind == PAIR_PATHS || kind == PAIR_POLLS;
	options.counting.polls = kind == PAIR_POLLS;
	options.counting.audit = kind == PAIR_AUDITS;
	options.counting.calls = kind == PAIR_CALLS;
	snprintf(places, sizeof(places), "%s.places", exe);
	if (kind == PAIR_METER) {
		pair_choose_places(exe, places);
		options.counting.meter = places;
	}
	options.layout.inline_leaves = kind == PAIR_INLINED || kind == PAIR_DIVIDED;
	options.stress_inline = kind == PAIR_DIVIDED;
	options.stress_inline_seed = seed;
	options.counting.path = "/nowhere/counts";
	options.stress = seed != 0 && kind != PAIR_DIVIDED;
	options.stress_seed = seed;
	ck_assert_int_eq(me_words_add(&options.adjust_words, adjust, &err), 0);
	rc = me_optimize(&options, &report, &err);
	me_words_fini(&options.adjust_words);
	ck_assert_msg(rc == 0, "%s", err.msg);
	me_optimize_report_fini(&report);
	ck_assert_int_eq(mp_elf_open(exe, MP_ELF_ALL, &p->original, &err), 0);
	ck_assert_int_eq(mp_elf_open(out, MP_ELF_ALL, &p->good, &err), 0);
	unlink(exe);
	unlink(out);
	unlink(places);
	ck_assert_int_eq(mp_map_read(p->good, &p->map, &err), 0);
	p->size = p->good->size;
	p->bytes = malloc(p->size);
	ck_assert_ptr_nonnull(p->bytes);
	memcpy(p->bytes, p->good->data, p->size);
	rc = me_verify(p->original, p->good, &p->report, &err);
	ck_assert_msg(rc == 0, "%s", err.msg);
}

static inline void pair_make(struct pair *p, const char *command, uint64_t seed,
			     enum pair_kind kind)
{
	pair_make_adjusted(p, command, seed, kind, "");
}

static inline void pair_build_as_it_is(struct pair *p, const char *command, uint64_t seed)
{
	pair_make(p, command, seed, PAIR_PLAIN);
}

/* Builds with relocations for all addresses. */
static inline void pair_build(struct pair *p, const char *command, uint64_t seed)
{
	char line[512];

	snprintf(line, sizeof(line), "%s -Wl,--emit-relocs", command);
	pair_build_as_it_is(p, line, seed);
}

/* Builds a file like those of distributions: stripped, without relocations. */
static inline void pair_build_stock(struct pair *p, const char *command, uint64_t seed)
{
	char line[512];

	snprintf(line, sizeof(line), "%s -s", command);
	pair_build_as_it_is(p, line, seed);
	ck_assert(!p->original->relinkable);
}

static inline void pair_free(struct pair *p)
{
	mp_map_free(p->map);
	mp_elf_close(p->good);
	mp_elf_close(p->original);
	free(p->bytes);
}

static inline void pair_restore(struct pair *p)
{
	memcpy(p->bytes, p->good->data, p->size);
}

/*
 * Verifies the changed bytes. Return: result of me_verify(), or of opening the file if that
 * fails.
 */
static inline int pair_verify(struct pair *p, size_t size, struct mp_err *err)
{
	struct mp_elf *changed;
	int rc = mp_elf_open_memory("changed", p->bytes, size, MP_ELF_ALL, &changed, err);

	if (rc)
		return rc;
	rc = me_verify(p->original, changed, NULL, err);
	mp_elf_close(changed);
	return rc;
}

/* The changed bytes must be refused with @word in the message. Restores the bytes. */
static inline void pair_refused(struct pair *p, const char *word)
{
	struct mp_err err = {""};
	int rc = pair_verify(p, p->size, &err);

	ck_assert_msg(rc == -EBADMSG, "accepted (%d); wanted a refusal with '%s'", rc, word);
	ck_assert_msg(strstr(err.msg, word) != NULL, "'%s' lacks '%s'", err.msg, word);
	ck_assert_msg(strstr(err.msg, "0x") != NULL, "'%s' names no address", err.msg);
	pair_restore(p);
}

/* Is @piece a whole function? The jump over a small one may reach into the padding behind it. */
static inline bool pair_is_function(const struct pair *p, const struct mp_map_piece *piece)
{
	for (uint32_t i = 0; i < p->original->nr_fdes; i++)
		if (p->original->fdes[i].start == piece->old_vaddr &&
		    p->original->fdes[i].size == piece->old_size)
			return true;
	return false;
}

/* Return: the output's byte at @vaddr, to be changed. */
static inline uint8_t *pair_at(struct pair *p, uint64_t vaddr)
{
	uint64_t off;

	ck_assert(mp_elf_vaddr_to_off(p->good, vaddr, &off));
	return p->bytes + off;
}

/* Lets the map of the changed output say that it is an output of @original. */
static inline void pair_name_original(struct pair *p, const struct mp_elf *original)
{
	const struct mp_section *note = mp_elf_section(p->good, ".note.morph");
	struct mp_map map = *p->map;
	struct mp_err err;
	uint8_t *bytes;
	size_t size;

	map.original = original->id;
	ck_assert_int_eq(mp_map_encode(&map, &bytes, &size, &err), 0);
	ck_assert_uint_eq(size, note->size);
	memcpy(p->bytes + note->off, bytes, size);
	free(bytes);
}

/* Finds the first instruction in a copy for which @want returns true. Return: its address, or 0. */
static inline uint64_t pair_find(struct pair *p, bool (*want)(const ZydisDecodedInstruction *),
				 ZydisDecodedInstruction *insn)
{
	ZydisDecoder dec;

	ZydisDecoderInit(&dec, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint32_t i = 0; i < p->map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &p->map->pieces[i];

		for (uint32_t k = 0; k < piece->new_size; k += insn->length) {
			if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
				    &dec, NULL, pair_at(p, piece->new_vaddr + k),
				    piece->new_size - k, insn)))
				ck_abort_msg("a copy does not decode");
			if (want(insn))
				return piece->new_vaddr + k;
		}
	}
	return 0;
}

#endif
