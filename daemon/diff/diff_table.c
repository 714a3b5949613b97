// SPDX-License-Identifier: Apache-2.0
/* diff_table - rows of a comparison: adds them, and those of one function up. */
#include "daemon/diff/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"

int md_diff_add_row(struct md_diff *diff, const struct md_diff_row *row)
{
	if (mp_grow(diff->rows, diff->max_rows, diff->nr_rows + 1)) {
		free(row->function);
		return -ENOMEM;
	}
	diff->rows[diff->nr_rows++] = *row;
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	const struct md_diff_row *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->build != y->build)
		return x->build < y->build ? -1 : 1;
	if (x->by_name != y->by_name)
		return x->by_name ? 1 : -1;
	if (!x->function != !y->function)
		return x->function ? 1 : -1;
	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (!x->by_name)
		return 0;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return strcmp(x->function, y->function);
}

void md_diff_unite_rows(struct md_diff *diff, size_t first)
{
	struct md_diff_row *rows = diff->rows + first;
	size_t nr = diff->nr_rows - first, n = 0;

	if (nr < 2)
		return;
	qsort(rows, nr, sizeof(*rows), compare_keys);
	for (size_t i = 1; i < nr; i++) {
		if (compare_keys(&rows[n], &rows[i])) {
			rows[++n] = rows[i];
			continue;
		}
		rows[n].samples[0] += rows[i].samples[0];
		rows[n].samples[1] += rows[i].samples[1];
		free(rows[i].function);
	}
	diff->nr_rows = first + n + 1;
}
