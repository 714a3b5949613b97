// SPDX-License-Identifier: Apache-2.0
/*
 * test_trials - what a refinement writes is what the next one reads: the last version found faster,
 * unless a later audit contradicts.
 */

#include "editor/refine/trials.h"
#include "libprof/store/audits/store_trials.h"
#include "tests/unit/scratch.h"

static char db[256];
static const struct mp_id id = {.build_id = {1, 2}, .build_id_len = 2, .text_hash = 3};
static const struct me_refine_func funcs[] = {{"first", 0x401000}, {"", 0x402000}};

#define ok(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.msg)

static void setup(void)
{
	scratch_make();
	snprintf(db, sizeof(db), "%s/morph.db", dir);
}

static struct me_verdict verdict(const char *word)
{
	struct me_verdict v = {.speedup = 1.1, .lowest = 1.05, .highest = 1.2, .nr_pairs = 9};

	snprintf(v.verdict, sizeof(v.verdict), "%s", word);
	return v;
}

/* A refinement whose first version has no adjustments. */
static void write_one(const char *first, const char *wishes, const char *audited)
{
	struct me_refine_report report = {.verdict = verdict(audited)};
	struct me_verdict v = verdict(first);
	struct me_wishes none = {0};

	ok(me_wishes_parse(wishes, &report.wishes, &err));
	ok(me_trials_write(db, &id, funcs, 2, &none, &v, &report, &err));
	me_wishes_fini(&report.wishes);
}

/* Expects the good adjustments that the next refinement knows, as text. */
static void expect_good(const char *want)
{
	AUTO(me_wishes_fini) struct me_wishes good = {0};
	AUTO_FREE char *text = NULL;

	ok(me_trials_read(db, &id, &good, &err));
	text = me_wishes_format(&good);
	ck_assert_str_eq(text, want);
}

FIXTURE(setup, scratch_remove);

TEST(what_was_found_is_known_the_next_time)
{
	struct mp_trial *trials;
	struct mp_store *store;
	size_t nr;

	expect_good(""); /* there is no store */
	write_one("slower", "0x401000:loop=0 0x402000:stay", "faster");
	expect_good("0x401000:loop=0 0x402000:stay");
	write_one("undecided", "0x401000:end", "undecided");
	expect_good("0x401000:loop=0 0x402000:stay");
	write_one("undecided", "0x401000:loop=0 0x402000:stay", "slower");
	expect_good("");
	ok(mp_store_open(db, MP_STORE_READ, &store, &err));
	ok(mp_store_list_trials(store, &id, NULL, &trials, &nr, &err));
	ck_assert_uint_eq(nr, 6);
	ck_assert_str_eq(trials[0].verdict, "slower");
	ck_assert_str_eq(trials[1].verdict, "faster");
	ck_assert_str_eq(trials[1].functions, "first 0x402000");
	ck_assert_uint_gt(strlen(trials[0].machine), 0);
	mp_store_free_trials(trials, nr);
	mp_store_close(store);
}

TEST(best_version_may_have_no_adjustments)
{
	write_one("slower", "0x401000:loop=0", "faster");
	write_one("faster", "0x401000:end", "slower");
	expect_good("");
}

TEST(adjustments_of_a_newer_program_are_left_out)
{
	struct mp_trial trial = {.original = id,
				 .functions = (char *)"f",
				 .adjustments = (char *)"0x401000:fly=9",
				 .verdict = (char *)"faster",
				 .ratio = 2};
	char machine[128];
	struct mp_store *store;

	me_trials_machine(machine);
	trial.machine = machine;
	ok(mp_store_open(db, MP_STORE_WRITE, &store, &err));
	ok(mp_store_add_trial(store, &trial, &err));
	mp_store_close(store);
	expect_good("");
}
