// SPDX-License-Identifier: Apache-2.0
/* search - binary search in anything that has indexes. */
#ifndef MP_SEARCH_H
#define MP_SEARCH_H

/*
 * mp_search - The first index from @from to @end of which @before is false, or @end. @i: name of the index
 * in @before, which is true for some first indexes and false for all others. Of v = {2, 4, 4, 7}:
 *
 *   mp_search(i, 0, 4, v[i] < 4) is 1, the first 4
 *   mp_search(i, 0, 4, v[i] <= 4) is 3, the first above 4; the one before it is the last 4
 *   mp_search(i, 0, 4, v[i] < 9) is 4: there is none
 */
#define mp_search(i, from, end, before)                                                            \
	({                                                                                         \
		__typeof__((end) + 0u) low_ = (from), high_ = (end);                               \
                                                                                                   \
		while (low_ < high_) {                                                             \
			const __typeof__(low_) i = low_ + (high_ - low_) / 2;                      \
                                                                                                   \
			if (before)                                                                \
				low_ = i + 1;                                                      \
			else                                                                       \
				high_ = i;                                                         \
		}                                                                                  \
		low_;                                                                              \
	})

#endif
