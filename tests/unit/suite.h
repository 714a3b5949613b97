// SPDX-License-Identifier: Apache-2.0
/*
 * suite - shared by every test program: a main() that runs one libcheck suite, and a way to
 * skip a test.
 *
 * scripts/check/run reads the output: libcheck's summary line, and lines that start with "skip: ".
 */
#ifndef MORPH_TESTS_SUITE_H
#define MORPH_TESTS_SUITE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

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

static inline int morph_suite_run(Suite *(*make_suite)(void))
{
	SRunner *runner;
	int nr_failed;

	/*
	 * libcheck's default of four seconds fails on a loaded machine or with a sanitizer.
	 * This limit only ends hangs.
	 */
	setenv("CK_DEFAULT_TIMEOUT", "600", 0);
	runner = srunner_create(make_suite());
	srunner_run_all(runner, CK_NORMAL);
	nr_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return nr_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define MORPH_SUITE_MAIN(suite_fn)                                                                 \
	int main(void)                                                                             \
	{                                                                                          \
		return morph_suite_run(suite_fn);                                                  \
	}

#endif /* MORPH_TESTS_SUITE_H */
