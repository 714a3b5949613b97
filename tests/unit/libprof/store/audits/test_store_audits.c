// SPDX-License-Identifier: Apache-2.0
/*
 * test_store_audits - audits inside programs: read back as written, replaced by their later state,
 * limited in number, merged; the last verdict on a function counts; damage is found.
 */
#include <math.h>

#include "libprof/store/audits/store_audits.h"
#include "libprof/store/whole/store_merge.h"
#include "tests/unit/store_fixture.h"

static struct mp_stored_effect effects[3];

static struct mp_stored_audit make(uint64_t hash, int64_t when_s)
{
	struct mp_stored_audit a = {.table_hash = hash,
				    .id = {{1, 2}, 2, UINT64_MAX},
				    .original = {{3}, 1, 99},
				    .path = (char *)"/usr/bin/pie",
				    .machine = "A processor",
				    .alpha = 0.01,
				    .start_s = when_s - 60,
				    .last_s = when_s,
				    .lost = 5,
				    .torn = 6,
				    .nr_foreign = 7,
				    .effects = effects,
				    .nr_functions = 3};

	memset(effects, 0, sizeof(effects));
	for (uint32_t f = 0; f < 3; f++) {
		struct mp_audit_effect *e = &effects[f].effect;

		effects[f].vaddr = 0x401000 + 0x100 * f;
		e->function = f;
		e->pairs = 1000 + f;
		for (int i = 0; i < MP_NR_PAIR_DROPS; i++)
			e->drops[i] = 10 * f + (uint64_t)i;
		e->estimate = 0.02;
		e->lowest = f ? 0.01 : -INFINITY;
		e->highest = f ? 0.03 : INFINITY;
		e->verdict = (enum mp_audit_verdict)f;
		e->earlier = f == 2;
		e->decided_at = f ? 500 : 0;
		e->nr_points = f;
		for (uint32_t p = 0; p < f; p++)
			e->points[p] = (struct mp_point_sums){.point = (uint16_t)(3 * p),
							      .pairs = 4,
							      .ticks = {UINT32_MAX, 2},
							      .rounds = {3, 4}};
	}
	return a;
}

static void list(struct mp_store *store, struct mp_stored_audit **out, size_t want)
{
	size_t nr = 99;

	ok(mp_store_list_audits(store, out, &nr, &err));
	ck_assert_uint_eq(nr, want);
}

FIXTURE(setup, teardown);

TEST(store_gives_an_audit_back)
{
	struct mp_stored_audit a = make(UINT64_MAX - 1, NOW), *got;

	store = open_as(MP_STORE_WRITE);
	ok(mp_store_put_audit(store, &a, &err));
	ck_assert_int_ne(a.key, 0);
	mp_store_close(store);
	store = open_as(MP_STORE_READ);
	list(store, &got, 1);
	ck_assert_int_eq(got->key, a.key);
	ck_assert_uint_eq(got->table_hash, UINT64_MAX - 1);
	ck_assert(mp_id_equal(&got->id, &a.id) && mp_id_equal(&got->original, &a.original));
	ck_assert_str_eq(got->path, "/usr/bin/pie");
	ck_assert_str_eq(got->machine, "A processor");
	ck_assert_double_eq_tol(got->alpha, 0.01, 1e-12);
	ck_assert_int_eq(got->start_s, NOW - 60);
	ck_assert_int_eq(got->last_s, NOW);
	ck_assert_uint_eq(got->lost * 100 + got->torn * 10 + got->nr_foreign, 567);
	ck_assert_uint_eq(got->nr_functions, 3);
	for (int f = 0; f < 3; f++) {
		ck_assert_uint_eq(got->effects[f].vaddr, effects[f].vaddr);
		ck_assert_mem_eq(&got->effects[f].effect, &effects[f].effect,
				 sizeof(effects[f].effect));
	}
	mp_store_free_audits(got, 1);
	ok(mp_store_check(store, &err));
}

TEST(store_replaces_an_audit_by_its_later_state)
{
	struct mp_stored_audit a = make(1, NOW), b = make(2, NOW + 1), *got;

	store = open_as(MP_STORE_WRITE);
	ok(mp_store_put_audit(store, &a, &err));
	ok(mp_store_put_audit(store, &b, &err));
	a.last_s = NOW + 10;
	effects[1].effect.pairs = 4000;
	ok(mp_store_put_audit(store, &a, &err));
	/* Newest first. */
	list(store, &got, 2);
	ck_assert_uint_eq(got[0].table_hash, 1);
	ck_assert_uint_eq(got[0].effects[1].effect.pairs, 4000);
	ck_assert_uint_eq(got[1].effects[1].effect.pairs, 1001);
	mp_store_free_audits(got, 2);
	ok(mp_store_check(store, &err));
}

TEST(store_keeps_the_newest_audits_of_a_table)
{
	struct mp_stored_audit *got, old;

	store = open_as(MP_STORE_WRITE);
	for (int i = 0; i < MP_AUDITS_KEPT + 5; i++) {
		struct mp_stored_audit a = make(1, NOW + i);

		ok(mp_store_put_audit(store, &a, &err));
	}
	old = make(1, NOW - 1000);
	ok(mp_store_put_audit(store, &old, &err));
	old = make(2, NOW - 1000);
	ok(mp_store_put_audit(store, &old, &err));
	list(store, &got, MP_AUDITS_KEPT + 1);
	ck_assert_int_eq(got[0].last_s, NOW + MP_AUDITS_KEPT + 4);
	ck_assert_int_eq(got[MP_AUDITS_KEPT - 1].last_s, NOW + 5);
	mp_store_free_audits(got, MP_AUDITS_KEPT + 1);
	ok(mp_store_check(store, &err));
}

TEST(store_refuses_an_audit_of_nothing)
{
	struct mp_stored_audit a = make(1, NOW);

	store = open_as(MP_STORE_WRITE);
	a.nr_functions = 0;
	ck_assert_int_eq(mp_store_put_audit(store, &a, &err), -EINVAL);
	a.nr_functions = MP_AUDIT_MAX_FUNCTIONS + 1;
	ck_assert_int_eq(mp_store_put_audit(store, &a, &err), -EINVAL);
}

TEST(store_merges_audits_once)
{
	struct mp_store *store = open_as(MP_STORE_WRITE), *in;
	struct mp_stored_audit a = make(1, NOW), b = make(1, NOW + 100), *got;
	struct mp_merge_stats stats;
	char path[256];

	snprintf(path, sizeof(path), "%s/in.db", dir);
	ok(mp_store_open(path, MP_STORE_WRITE, &in, &err));
	ok(mp_store_put_audit(store, &a, &err));
	ok(mp_store_put_audit(in, &b, &err));
	for (int i = 0; i < 2; i++) {
		ok(mp_store_begin(store, &err));
		ok(mp_store_begin(in, &err));
		ok(mp_store_merge(store, in, true, &stats, &err));
		ok(mp_store_commit(in, &err));
		ok(mp_store_commit(store, &err));
		list(store, &got, 2);
		ck_assert_int_eq(got[0].last_s, NOW + 100);
		mp_store_free_audits(got, 2);
	}
	mp_store_close(in);
	ok(mp_store_check(store, &err));
	mp_store_close(store);
}

static const char *const damages[] = {
	"UPDATE program_audit_effect SET verdict = 3 WHERE function = 1",
	"UPDATE program_audit_effect SET pairs = -1 WHERE function = 1",
	"UPDATE program_audit_effect SET estimate = 9e999 WHERE function = 1",
	"UPDATE program_audit_effect SET function = 7 WHERE function = 2",
	"DELETE FROM program_audit_effect WHERE function = 1",
	"UPDATE program_audit SET nr_functions = 300",
	"UPDATE program_audit SET nr_functions = 0",
	"UPDATE program_audit SET build_id = zeroblob(33)",
	"UPDATE program_audit_point SET function = 3 WHERE function = 1",
	"UPDATE program_audit_point SET point = 70000 WHERE function = 1",
	"UPDATE program_audit_point SET ticks_a = -5",
	"INSERT INTO program_audit_point VALUES(555, 0, 0, 0, 0, 0, 0, 0)",
};

TEST_EACH(store_finds_a_damaged_audit, sizeof(damages) / sizeof(damages[0]))
{
	struct mp_stored_audit a = make(1, NOW);

	store = open_as(MP_STORE_WRITE);
	ok(mp_store_put_audit(store, &a, &err));
	ok(mp_store_check(store, &err));
	mp_store_close(store);
	tamper(damages[_i]);
	store = open_as(MP_STORE_READ);
	ck_assert_int_eq(mp_store_check(store, &err), -EBADMSG);
}
