// SPDX-License-Identifier: Apache-2.0
/* grow - arrays that grow by half; see grow.h. */
#include "libprof/base/grow.h"

#include <stdlib.h>

struct mp_grown mp_grow_array(void *array, uint64_t room, uint64_t wanted, uint64_t most,
			      size_t size)
{
	struct mp_grown grown = {array, room};
	uint64_t more = wanted + wanted / 2 + 3;
	void *bigger;

	if (wanted > most)
		return grown;
	if (more > most || more < wanted)
		more = most;
	bigger = reallocarray(array, more, size);
	if (bigger)
		grown = (struct mp_grown){bigger, more};
	return grown;
}
