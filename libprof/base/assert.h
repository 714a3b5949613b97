// SPDX-License-Identifier: Apache-2.0
/*
 * assert - invariants that a comment states and that code checks.
 *
 * They are always on, since a program that goes on with a wrong order writes a wrong file: a file that breaks an
 * invariant ends the program before an output is there. So they stand where an array is finished or taken
 * over, once for each, and never in a loop over samples. Bad input is no broken invariant: it gets a message.
 */
#ifndef MP_ASSERT_H
#define MP_ASSERT_H

#include <stdbool.h>
#include <stdint.h>

/* Prints the place and @what, and ends the program by SIGABRT. */
_Noreturn void mp_assert_failed(const char *what, const char *file, int line);

#define mp_assert(condition)                                                                       \
	(__builtin_expect(!(condition), 0) ? mp_assert_failed(#condition, __FILE__, __LINE__)      \
					   : (void)0)

/* Does @field of the @nr structures of @list ascend? Equal neighbours are allowed. */
#define mp_ascends(list, nr, field)                                                                \
	({                                                                                         \
		bool ascends_ = true;                                                              \
		for (uint64_t i_ = 1; i_ < (nr); i_++)                                             \
			ascends_ &= (list)[i_ - 1].field <= (list)[i_].field;                      \
		ascends_;                                                                          \
	})

/* The same of numbers. */
static inline bool mp_numbers_ascend(const uint64_t *list, uint64_t nr)
{
	bool ascends = true;

	for (uint64_t i = 1; i < nr; i++)
		ascends &= list[i - 1] <= list[i];
	return ascends;
}

#endif
