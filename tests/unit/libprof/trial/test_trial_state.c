// SPDX-License-Identifier: Apache-2.0
/* test_trial_state - a saved trial goes on as if nothing had happened; anything else is refused. */
#include <math.h>
#include <sys/stat.h>

#include "editor/base/mix.h"
#include "libprof/trial/trial_state.h"
#include "tests/unit/suite.h"

static struct mp_trial *trial, *again;
static char *text;
static uint64_t state;

static const struct mp_trial_config config = {
	.alpha = 0.0009,
	.nr_counters = 3,
	.weights = {1e-5, 0.1 / 3, 2.5},
	.least_work = 0.1,
	.least_processes = 1,
	.max_pairs = 60,
};

static void setup(void)
{
	state = 7;
	ck_assert_int_eq(mp_trial_new(&config, &trial), 0);
}

static void teardown(void)
{
	mp_trial_free(trial);
	mp_trial_free(again);
	free(text);
}

FIXTURE(setup, teardown);

static double uniform(void)
{
	return ((double)(me_next_random(&state) >> 11) + 0.5) / 9007199254740992.0;
}

static struct mp_trial_block random_block(double times)
{
	return (struct mp_trial_block){
		.cpu_s = times * exp(uniform() / 10),
		.counts = {(uint64_t)(1e5 * uniform()), (uint64_t)(30 * uniform()),
			   me_next_random(&state) % 2},
		.processes = 5,
		.crashes = uniform() < 0.2,
	};
}

/*
 * Draws and adds a pair, to @t, that takes 1 / @speedup as long with the new version. Every seventh
 * is abandoned.
 */
static void add_random(struct mp_trial *t, double speedup)
{
	bool coin = uniform() < 0.5, abandons = uniform() < 1 / 7.0;
	const struct mp_trial_block blocks[2] = {random_block(1), random_block(1 / speedup)};

	if (mp_trial_verdict(t) != MP_TRIAL_RUNNING)
		return;
	mp_trial_draw(t, coin);
	if (abandons)
		mp_trial_abandon(t);
	else
		ck_assert_int_eq(mp_trial_add_pair(t, blocks), 0);
}

static int load(const char *from)
{
	return mp_trial_from_text(from, strlen(from), &again, &err);
}

static void are_the_same(void)
{
	struct mp_trial_result a, b;
	char *other;

	mp_trial_result(trial, &a);
	mp_trial_result(again, &b);
	ck_assert_mem_eq(&a, &b, sizeof(a));
	ck_assert_int_eq(mp_trial_drawn(trial), mp_trial_drawn(again));
	free(text);
	ck_assert_int_eq(mp_trial_to_text(trial, &text), 0);
	ck_assert_int_eq(mp_trial_to_text(again, &other), 0);
	ck_assert_str_eq(text, other);
	free(other);
}

/*
 * Saved after _i pairs, a pair being drawn or not; both then go on with the same pairs to the same
 * end. The new version is as fast, or five times as fast.
 */
TEST_EACH(state_goes_on_as_before, 24)
{
	double speedup = _i % 2 ? 5 : 1;

	for (int i = 0; i < 3 * _i; i++)
		add_random(trial, speedup);
	if (_i % 3 == 0)
		mp_trial_draw(trial, true);
	ck_assert_int_eq(mp_trial_to_text(trial, &text), 0);
	ck_assert_int_eq(load(text), 0);
	are_the_same();
	for (int i = 0; i < 80; i++) {
		uint64_t before = state;

		add_random(trial, speedup);
		state = before;
		add_random(again, speedup);
	}
	are_the_same();
	ck_assert_int_eq(mp_trial_verdict(trial), _i % 2 ? MP_TRIAL_FASTER : MP_TRIAL_UNDECIDED);
}

TEST(state_in_a_file)
{
	char path[] = "/tmp/test_trial_state.XXXXXX";
	int fd = mkstemp(path);
	struct stat st;

	ck_assert_int_ge(fd, 0);
	close(fd);
	for (int i = 0; i < 10; i++)
		add_random(trial, 1);
	ck_assert_int_eq(mp_trial_save(trial, path, &err), 0);
	ck_assert_int_eq(mp_trial_load(path, &again, &err), 0);
	are_the_same();
	mp_trial_free(again);
	again = NULL;
	/* a file that was cut short */
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(truncate(path, st.st_size / 2), 0);
	ck_assert_int_eq(mp_trial_load(path, &again, &err), -EBADMSG);
	ck_assert_ptr_null(again);
	ck_assert_ptr_nonnull(strstr(err.msg, path));
	/* longer than any trial */
	ck_assert_int_eq(truncate(path, (off_t)MP_TRIAL_STATE_MAX + 1), 0);
	ck_assert_int_eq(mp_trial_load(path, &again, &err), -EBADMSG);
	unlink(path);
	ck_assert_int_eq(mp_trial_load(path, &again, &err), -ENOENT);
	ck_assert_int_eq(mp_trial_save(trial, "/nowhere/at/all", &err), -ENOENT);
}

TEST(state_that_is_torn)
{
	size_t size;

	for (int i = 0; i < 4; i++)
		add_random(trial, 1);
	ck_assert_int_eq(mp_trial_to_text(trial, &text), 0);
	size = strlen(text);
	for (size_t cut = 0; cut < size; cut++) {
		ck_assert_int_eq(mp_trial_from_text(text, cut, &again, &err), -EBADMSG);
		ck_assert_ptr_null(again);
	}
	ck_assert_int_eq(mp_trial_from_text(text, size, &again, &err), 0);
}

#define SETTINGS(alpha, weights, work, processes, pairs)                                           \
	"{\"schema\":1,\"alpha\":" alpha ",\"weights\":" weights ",\"least_work\":" work           \
	",\"least_processes\":" processes ",\"max_pairs\":" pairs ","
#define GOOD	     SETTINGS("0.01", "[1.5]", "0", "0", "4")
#define REST	     "\"abandoned\":0,\"drawn\":-1,\"pairs\":[]}"
#define PAIR	     "[1,[1.0,2,0,7],[1.0,2,0,7]]"
#define PAIRS(pairs) GOOD "\"abandoned\":0,\"drawn\":-1,\"pairs\":" pairs "}"

TEST(state_by_hand)
{
	ck_assert_int_eq(load(PAIRS("[" PAIR "]")), 0);
	mp_trial_free(again);
	ck_assert_int_eq(load(GOOD "\"abandoned\":4,\"drawn\":-1,\"pairs\":[]}"), 0);
	ck_assert_int_eq(mp_trial_verdict(again), MP_TRIAL_UNDECIDED);
	mp_trial_free(again);
	ck_assert_int_eq(load(GOOD REST), 0);
}

static const char *const hostile[] = {
	"",
	"{}",
	"[]",
	"nonsense",
	"{\"schema\":2}",
	SETTINGS("0", "[1.5]", "0", "0", "4") REST,
	SETTINGS("-1", "[1.5]", "0", "0", "4") REST,
	SETTINGS("1", "[1.5]", "0", "0", "4") REST,
	SETTINGS("1e999", "[1.5]", "0", "0", "4") REST,
	SETTINGS("\"a\"", "[1.5]", "0", "0", "4") REST,
	SETTINGS("0.01", "[]", "0", "0", "4") REST,
	SETTINGS("0.01", "[1,1,1,1,1,1,1,1,1]", "0", "0", "4") REST,
	SETTINGS("0.01", "[0]", "0", "0", "4") REST,
	SETTINGS("0.01", "[1e-300]", "0", "0", "4") REST,
	SETTINGS("0.01", "[1e300]", "0", "0", "4") REST,
	SETTINGS("0.01", "[null]", "0", "0", "4") REST,
	SETTINGS("0.01", "{}", "0", "0", "4") REST,
	SETTINGS("0.01", "[1.5]", "-1", "0", "4") REST,
	SETTINGS("0.01", "[1.5]", "0", "-1", "4") REST,
	SETTINGS("0.01", "[1.5]", "0", "0.5", "4") REST,
	SETTINGS("0.01", "[1.5]", "0", "0", "0") REST,
	SETTINGS("0.01", "[1.5]", "0", "0", "-4") REST,
	SETTINGS("0.01", "[1.5]", "0", "0", "20001") REST,
	SETTINGS("0.01", "[1.5]", "0", "0", "99999999999999999999") REST,
	GOOD "\"alpha\":0.02," REST,
	GOOD "\"abandoned\":5,\"drawn\":-1,\"pairs\":[]}",
	GOOD "\"abandoned\":-1,\"drawn\":-1,\"pairs\":[]}",
	GOOD "\"abandoned\":0,\"drawn\":2,\"pairs\":[]}",
	GOOD "\"abandoned\":0,\"drawn\":-2,\"pairs\":[]}",
	GOOD "\"abandoned\":0,\"drawn\":null,\"pairs\":[]}",
	GOOD "\"abandoned\":4,\"drawn\":0,\"pairs\":[]}",
	GOOD "\"abandoned\":4,\"drawn\":-1,\"pairs\":[" PAIR "]}",
	GOOD "\"abandoned\":0,\"drawn\":-1,\"pairs\":{}}",
	PAIRS("[" PAIR "," PAIR "," PAIR "," PAIR "," PAIR "]"),
	PAIRS("[1]"),
	PAIRS("[[]]"),
	PAIRS("[[2,[1.0,2,0,7],[1.0,2,0,7]]]"),
	PAIRS("[[-1,[1.0,2,0,7],[1.0,2,0,7]]]"),
	PAIRS("[[1,[1.0,2,0,7],[1.0,2,0,7],0]]"),
	PAIRS("[[1,[1.0,2,0,7],[1.0,2,0]]]"),
	PAIRS("[[1,[1.0,2,0,7],[1.0,2,0,7,7]]]"),
	PAIRS("[[1,[1.0,2,0,7],[-1.0,2,0,7]]]"),
	PAIRS("[[1,[1.0,2,0,7],[1e200,2,0,7]]]"),
	PAIRS("[[1,[1.0,2,0,7],[\"1\",2,0,7]]]"),
	PAIRS("[[1,[1.0,2,0,7],[1.0,2,3,7]]]"),
	PAIRS("[[1,[1.0,2,0,7],[1.0,-2,0,7]]]"),
	PAIRS("[[1,[1.0,2,0,7],[1.0,2,0,-7]]]"),
	PAIRS("[[1,[1.0,2,0,7],[1.0,2,0,7.5]]]"),
	PAIRS("[[1,[1.0,2,0,7],[1.0,2,0,9223372036854775807]]]"),
	PAIRS("[[1,[1.0,2,0,7],[1.0,9223372036854775807,0,7]]]"),
};

TEST_EACH(state_that_is_hostile, sizeof(hostile) / sizeof(hostile[0]))
{
	ck_assert_msg(load(hostile[_i]) == -EBADMSG, "%s", hostile[_i]);
	ck_assert_ptr_null(again);
}

/* Any byte changed: it is refused, or it is another trial, all of whose numbers are numbers. */
TEST(state_with_changed_bytes)
{
	char *changed;
	size_t size;

	for (int i = 0; i < 8; i++)
		add_random(trial, 1);
	ck_assert_int_eq(mp_trial_to_text(trial, &text), 0);
	size = strlen(text);
	changed = malloc(size);
	for (int i = 0; i < 20000; i++) {
		struct mp_trial_result r;
		int rc;

		memcpy(changed, text, size);
		for (uint64_t n = 1 + me_next_random(&state) % 3; n > 0; n--)
			changed[me_next_random(&state) % size] =
				"0123456789.e-+,[]{}\"n"[me_next_random(&state) % 21];
		rc = mp_trial_from_text(changed, size, &again, &err);
		ck_assert(rc == 0 || rc == -EBADMSG);
		if (rc)
			continue;
		mp_trial_result(again, &r);
		ck_assert(isfinite(r.speedup) && !isnan(r.lowest) && !isnan(r.highest));
		ck_assert(isfinite(r.cpu_s[0]) && isfinite(r.work[1]) && isfinite(r.unlike_shift));
		mp_trial_free(again);
		again = NULL;
	}
	free(changed);
}
