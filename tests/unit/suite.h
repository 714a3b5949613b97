// SPDX-License-Identifier: Apache-2.0
/*
 * suite - shared by every test program: tests that register themselves, a main() that runs them
 * with libcheck, a way to skip one, and the headers of the C library that most tests use.
 *
 * scripts/check/run reads the output: libcheck's summary line, and lines that start with "skip: ".
 * CK_RUN_CASE=NAME in the environment runs the test NAME alone.
 */
#ifndef MORPH_TESTS_SUITE_H
#define MORPH_TESTS_SUITE_H

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/err.h"

/* What went wrong in the running test. Each test has a process of its own. */
__attribute__((unused)) static struct mp_err err;

/*
 * libcheck notes each assertion that holds in a file that the test's process shares with its children.
 * A child that is killed, or that runs beside its parent, would leave half a note there, and libcheck
 * would give up. So children note only what fails.
 */
static unsigned morph_forks;

static inline void morph_forked(void)
{
	morph_forks++;
}

static inline void morph_mark_point(const char *file, int line)
{
	if (morph_forks <= 1) /* the first fork() is libcheck's, for the test */
		_mark_point(file, line);
}
#define _mark_point morph_mark_point

/* A test, in the order of the file. */
struct morph_test {
	const TTest *test;
	int first, end;	     /* it runs with each _i from the first one to the one before the end */
	void (*setup)(void); /* before each of them; or NULL */
	void (*teardown)(void); /* after each of them; or NULL */
	double timeout_s;	/* 0: the default */
	int status;		/* with which the test itself ends */
	struct morph_test *next;
};

/* The tests of this program; what the next one that registers itself gets. */
static struct morph_test *morph_tests, **morph_tests_end = &morph_tests;
static struct morph_test morph_next;

/* Runs @code before main(), in the order of the lines of the file. */
#define MORPH_BEFORE_MAIN(name, code)                                                              \
	__attribute__((constructor(1000 + __LINE__))) static void name(void)                       \
	{                                                                                          \
		code;                                                                              \
	}

static inline void morph_test_add(struct morph_test *slot, const TTest *test, int first, int end)
{
	*slot = morph_next;
	slot->test = test;
	slot->first = first;
	slot->end = end;
	*morph_tests_end = slot;
	morph_tests_end = &slot->next;
}

/* TEST_RANGE(name, first, end) { ... } is a test that runs with each _i from @first to @end - 1. */
#define TEST_RANGE(name, first, end)                                                               \
	static const TTest *name;                                                                  \
	static struct morph_test name##_slot;                                                      \
	MORPH_BEFORE_MAIN(name##_add,                                                              \
			  morph_test_add(&name##_slot, name, (int)(first), (int)(end)))            \
	START_TEST(name)

/* TEST_EACH(name, nr) { ... } is a test that runs @nr times, with _i from 0 to @nr - 1. */
#define TEST_EACH(name, nr) TEST_RANGE(name, 0, nr)

/* TEST(name) { ... } is a test. */
#define TEST(name) TEST_RANGE(name, 0, 1)

#define MORPH_PASTE2(a, b) a##b
#define MORPH_PASTE(a, b)  MORPH_PASTE2(a, b)

/* FIXTURE(setup, teardown); runs @setup before, @teardown after each test that follows in the file. */
#define FIXTURE(before, after)                                                                     \
	MORPH_BEFORE_MAIN(MORPH_PASTE(morph_fixture, __LINE__), morph_next.setup = (before);       \
			  morph_next.teardown = (after))                                           \
	struct morph_test

/* TIMEOUT(seconds); is the limit of each test that follows in the file. It only ends hangs. */
#define TIMEOUT(seconds)                                                                           \
	MORPH_BEFORE_MAIN(MORPH_PASTE(morph_timeout, __LINE__), morph_next.timeout_s = (seconds))  \
	struct morph_test

/* EXITS(status); is the exit status with which each test that follows in the file ends itself. 0: none does. */
#define EXITS(code)                                                                                \
	MORPH_BEFORE_MAIN(MORPH_PASTE(morph_exits, __LINE__), morph_next.status = (code))          \
	struct morph_test

/* Before the declaration of a local variable: calls @fini(&variable) at the end of its block. */
#define AUTO(fini) __attribute__((cleanup(fini)))
#define AUTO_FREE  AUTO(morph_free_auto)

static inline void morph_free_auto(void *pointer)
{
	free(*(void **)pointer);
}

/*
 * Leaves the running test with a reason. libcheck cannot skip and counts the test as passed;
 * scripts/check/run then counts it as skipped.
 */
#define MORPH_SKIP(...)                                                                            \
	do {                                                                                       \
		printf("skip: %s: ", __func__);                                                    \
		printf(__VA_ARGS__);                                                               \
		printf("\n");                                                                      \
		fflush(stdout);                                                                    \
		return;                                                                            \
	} while (0)

static inline int morph_suite_run(void)
{
	Suite *suite = suite_create(program_invocation_short_name);
	SRunner *runner;
	int nr_failed;

	/*
	 * libcheck's default of four seconds fails on a loaded machine or with a sanitizer.
	 * This limit only ends hangs.
	 */
	setenv("CK_DEFAULT_TIMEOUT", "600", 0);
	for (const struct morph_test *t = morph_tests; t; t = t->next) {
		TCase *tcase = tcase_create(t->test->name);

		tcase_add_checked_fixture(tcase, t->setup, t->teardown);
		if (t->timeout_s > 0)
			tcase_set_timeout(tcase, t->timeout_s);
		if (t->status)
			tcase_add_loop_exit_test(tcase, t->test, t->status, t->first, t->end);
		else
			tcase_add_loop_test(tcase, t->test, t->first, t->end);
		suite_add_tcase(suite, tcase);
	}
	pthread_atfork(NULL, NULL, morph_forked);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	nr_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return nr_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* A program that does something else first defines SUITE_OWN_MAIN, and calls morph_suite_run(). */
#ifndef SUITE_OWN_MAIN
int main(void)
{
	return morph_suite_run();
}
#endif

#endif /* MORPH_TESTS_SUITE_H */
