// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_mutants - changes outputs in which functions stand in place of calls: instructions that are missing,
 * exchanged or others, branches that lead elsewhere or have another condition, other maps, notes of calls, and
 * ranges of rows. verify refuses them, or they are the same program: these run and end like the original. (An FDE may end
 * behind the no-ops that follow its last copy, or one may end later where the next has the same row.)
 *
 * With MORPH_LONG=1 it tries every change; else an equally distributed part, another one by SEED in the environment.
 */
#include "tests/unit/suite.h"

#include "editor/base/mix.h"
#include "editor/verify/verify.h"
#include "tests/support/inlined/inlined_output.h"

struct build {
	const char *command;
	uint64_t seed;
	const char *argument;
};

static const struct build builds[] = {
	{"gcc -O2 -fPIE -pie -s tests/data/leaf.c", 3, NULL},
	{"gcc -O2 -fno-pie -no-pie -Wl,--emit-relocs tests/data/leaf.c", 7, NULL},
	{"gcc -O2 -fPIE -pie -s tests/data/leaf_stack.c", 3, "steps"},
	{"g++ -x c++ -O2 -fPIE -pie -fnon-call-exceptions -s tests/data/leaf_stack.c", 7, "steps"},
	{"gcc -O2 -fPIE -pie -s tests/data/leaf_cold.c", 3, "steps"},
	{"g++ -x c++ -O2 -fPIE -pie -fnon-call-exceptions -g tests/data/leaf.c", 11, NULL},
	{"gcc -O2 -fPIE -pie tests/data/leaf_calls.c", 3, "steps"},
	{"gcc -O1 -fno-pie -no-pie -Wl,--emit-relocs tests/data/leaf_calls.c", 7, "steps"},
	{"g++ -x c++ -O2 -fPIE -pie -s tests/data/leaf_calls.c", 11, "steps"},
};

#define NR_BUILDS ((int)(sizeof(builds) / sizeof(builds[0])))
/* Changes of one kind that are tried of each output, if not all are. */
#define NR_TRIED 400

/* What became of the changes of one kind. */
struct outcome {
	uint32_t nr_tried, nr_unreadable, nr_refused, nr_passed, nr_wrong;
};

static int verify(const struct inlined_output *x, const uint8_t *bytes)
{
	struct mp_err err = {""};
	struct mp_elf *elf;
	int rc;

	if (mp_elf_open_memory("changed", bytes, x->output.size, MP_ELF_ALL, &elf, &err))
		return -ENOEXEC;
	rc = me_verify(x->original, elf, NULL, &err);
	mp_elf_close(elf);
	return rc;
}

static void try(struct inlined_mutant *m, const struct build *build, enum inlined_change how,
		uint32_t a, uint32_t b, struct outcome *o)
{
	const struct inlined_output *x = m->of;
	int rc;

	inlined_mutant_reset(m);
	if (!inlined_mutate(m, how, a, b) || !inlined_mutant_finish(m) ||
	    !memcmp(m->bytes, x->output.data, x->output.size))
		return;
	o->nr_tried++;
	rc = verify(x, m->bytes);
	ck_assert(rc == 0 || rc == -EBADMSG || rc == -ENOEXEC);
	o->nr_unreadable += rc == -ENOEXEC;
	o->nr_refused += rc == -EBADMSG;
	if (rc)
		return;
	o->nr_passed++;
	printf("passed: %s: change %d, %u %u\n", build->command, how, a, b);
	if (inlined_runs_alike(x, m->bytes, x->output.size))
		return;
	o->nr_wrong++;
	printf("another program: %s: change %d, %u %u\n", build->command, how, a, b);
}

/* The numbers @a and @b that make a difference */
static void limits(const struct inlined_output *x, enum inlined_change how, uint32_t *a,
		   uint32_t *b)
{
	*a = x->nr_insns;
	*b = 1;
	switch (how) {
	case INLINED_BYTE:
		*a = (uint32_t)x->nr_bytes;
		*b = 256;
		break;
	case INLINED_COPY: *b = x->nr_insns; break;
	case INLINED_AIM:
		*b = 2 * (x->nr_insns > x->map->nr_pieces ? x->nr_insns : x->map->nr_pieces);
		break;
	case INLINED_CONDITION: *b = 16; break;
	case INLINED_PIECE:
		*a = x->map->nr_pieces;
		*b = x->map->nr_pieces;
		break;
	case INLINED_EDGE:
	case INLINED_ROWS:
		*a = x->map->nr_pieces;
		*b = 32;
		break;
	case INLINED_CALL:
		*a = x->map->nr_calls;
		*b = 256;
		break;
	default: break;
	}
}

static struct outcome try_all(struct inlined_mutant *m, const struct build *build,
			      enum inlined_change how)
{
	struct outcome o = {0};
	const char *is_long = getenv("MORPH_LONG"), *seed = getenv("SEED");
	uint64_t nr, every = 1, part = seed ? strtoull(seed, NULL, 10) << 32 : 0;
	uint32_t a, b;

	limits(m->of, how, &a, &b);
	nr = (uint64_t)a * b;
	if (!is_long || strcmp(is_long, "1") != 0)
		every = nr / NR_TRIED + 1;
	for (uint64_t i = 0; i < nr; i += every) {
		uint64_t n = every > 1 ? i + me_mix(i + (uint64_t)how + part) % every : i;

		if (n < nr)
			try(m, build, how, (uint32_t)(n / b), (uint32_t)(n % b), &o);
	}
	return o;
}

TEST_EACH(verify_passes_no_other_program, NR_BUILDS)
{
	static const char *const names[NR_INLINED_CHANGES] = {
		"bytes",      "no-ops", "exchanged", "copied", "branches",
		"conditions", "pieces", "edges",     "calls",  "rows",
	};
	const struct build *build = &builds[_i];
	struct inlined_output x;
	struct inlined_mutant m;

	ck_assert_msg(inlined_output_make(&x, build->command, build->argument, build->seed), "%s",
		      build->command);
	ck_assert_uint_ge(x.map->nr_calls, 8);
	ck_assert_uint_ge(x.nr_insns, 100);
	ck_assert(inlined_mutant_init(&m, &x));
	ck_assert_int_eq(verify(&x, m.bytes), 0);
	ck_assert(inlined_runs_alike(&x, m.bytes, x.output.size));
	for (int how = 0; how < NR_INLINED_CHANGES; how++) {
		struct outcome o = try_all(&m, build, (enum inlined_change)how);

		printf("%s: %u tried, %u unreadable, %u refused, %u passed, %u wrong\n", names[how],
		       o.nr_tried, o.nr_unreadable, o.nr_refused, o.nr_passed, o.nr_wrong);
		ck_assert_uint_ge(o.nr_refused, 1);
		ck_assert_uint_eq(o.nr_wrong, 0);
	}
	inlined_mutant_fini(&m);
	inlined_output_fini(&x);
}
