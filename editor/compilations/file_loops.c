// SPDX-License-Identifier: Apache-2.0
/* file_loops - lists the loops of all functions, function by function; see file_loops.h. */
#include "editor/compilations/file_loops.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/base/loops.h"
#include "libprof/base/grow.h"

static int add(const struct mp_cfg *cfg, uint32_t f, uint32_t *cap, struct me_file_loops *out)
{
	const struct mp_func *func = &cfg->funcs[f];
	uint32_t first = out->nr;
	struct me_loops loops;

	if (me_loops_find(cfg, f, &loops))
		return -ENOMEM;
	if (mp_grow(out->list, *cap, (uint64_t)out->nr + loops.nr)) {
		me_loops_fini(&loops);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < loops.nr; i++) {
		uint32_t parent = loops.list[i].parent;

		out->list[out->nr++] =
			(struct me_file_loop){f, parent == MP_NONE ? MP_NONE : first + parent};
	}
	for (uint32_t b = 0; b < func->nr_blocks; b++)
		if (loops.of_block[b] != MP_NONE)
			out->of_block[func->first_block + b] = first + loops.of_block[b];
	me_loops_fini(&loops);
	return 0;
}

int me_file_loops_find(const struct mp_cfg *cfg, struct me_file_loops *out)
{
	uint32_t cap = 0;
	int rc = 0;

	*out = (struct me_file_loops){0};
	out->of_block = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*out->of_block));
	if (!out->of_block)
		return -ENOMEM;
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		out->of_block[b] = MP_NONE;
	for (uint32_t f = 0; f < cfg->nr_funcs && !rc; f++)
		rc = add(cfg, f, &cap, out);
	return rc;
}

void me_file_loops_fini(struct me_file_loops *loops)
{
	free(loops->list);
	free(loops->of_block);
	*loops = (struct me_file_loops){0};
}

bool me_file_loop_holds(const struct me_file_loops *loops, uint32_t outer, uint32_t inner)
{
	while (inner != outer && inner != MP_NONE)
		inner = loops->list[inner].parent;
	return inner == outer;
}
