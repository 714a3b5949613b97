// SPDX-License-Identifier: Apache-2.0
/*
 * What every test program shares: a main() that runs one libcheck suite and a
 * way to skip that is seen and counted. scripts/check reads what is printed
 * here: libcheck's summary line and the lines that start with "skip: ".
 */
#ifndef MORPH_TESTS_SUITE_H
#define MORPH_TESTS_SUITE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Leave the running test with a reason. libcheck knows no skip; the test
 * counts as passed there and scripts/check moves it to the skipped ones.
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
	 * libcheck's four seconds a test are an assertion about time, which a
	 * loaded machine or a sanitizer breaks; this limit only ends a hang.
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
