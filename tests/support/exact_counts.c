// SPDX-License-Identifier: Apache-2.0
/* exact_counts - a line that is neither a block nor an edge is a comment; any other text is an error. */
#include "tests/support/exact_counts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[EXACT_NR_KINDS] = {"taken", "fall",  "jump", "call",
						  "ijump", "icall", "ret"};

static void *grown(void *v, size_t nr, size_t size)
{
	return nr & (nr - 1) ? v : realloc(v, (nr ? 2 * nr : 1) * size);
}

static bool read_run(const char *line, struct exact_run *run)
{
	uint64_t size;

	if (sscanf(line, "block %" SCNx64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &run->start, &size,
		   &run->nr_insns, &run->count) != 4 ||
	    size > UINT64_MAX - run->start)
		return false;
	run->end = run->start + size;
	return true;
}

static bool read_address(const char *word, uint64_t *vaddr)
{
	char *end;

	*vaddr = EXACT_ELSEWHERE;
	if (!strcmp(word, "-"))
		return true;
	*vaddr = strtoull(word, &end, 16);
	return end != word && !*end;
}

static bool read_edge(const char *line, struct exact_edge *edge)
{
	char from[24], to[24], kind[8];

	if (sscanf(line, "edge %23s %23s %" SCNu64 " %7s", from, to, &edge->count, kind) != 4 ||
	    !read_address(from, &edge->from) || !read_address(to, &edge->to))
		return false;
	for (int k = 0; k < EXACT_NR_KINDS; k++)
		if (!strcmp(kind, kinds[k])) {
			edge->kind = (enum exact_kind)k;
			return true;
		}
	return false;
}

static int add_line(const char *line, struct exact_counts *c)
{
	struct exact_edge edge;
	struct exact_run run;
	void *more;

	if (*line == '#')
		return 0;
	if (read_run(line, &run)) {
		more = grown(c->runs, c->nr_runs, sizeof(*c->runs));
		if (!more)
			return -ENOMEM;
		c->runs = more;
		c->runs[c->nr_runs++] = run;
		c->nr_insns += run.nr_insns * run.count;
		return 0;
	}
	if (!read_edge(line, &edge))
		return -EBADMSG;
	more = grown(c->edges, c->nr_edges, sizeof(*c->edges));
	if (!more)
		return -ENOMEM;
	c->edges = more;
	c->edges[c->nr_edges++] = edge;
	if (edge.kind != EXACT_FALL && edge.from != EXACT_ELSEWHERE)
		c->nr_transfers += edge.count;
	return 0;
}

static int run_compare(const void *a, const void *b)
{
	const struct exact_run *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int edge_compare(const void *a, const void *b)
{
	const struct exact_edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

int exact_counts_read(const char *path, struct exact_counts *counts, struct mp_err *err)
{
	FILE *in = fopen(path, "re");
	unsigned int number = 0;
	char line[256];
	int rc = 0;

	*counts = (struct exact_counts){0};
	if (!in)
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	while (!rc && fgets(line, sizeof(line), in)) {
		number++;
		rc = add_line(line, counts);
	}
	fclose(in);
	if (rc == -ENOMEM)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (rc)
		return mp_err_set(err, EBADMSG, "%s: line %u: neither block nor edge", path,
				  number);
	if (counts->nr_runs)
		qsort(counts->runs, counts->nr_runs, sizeof(*counts->runs), run_compare);
	if (counts->nr_edges)
		qsort(counts->edges, counts->nr_edges, sizeof(*counts->edges), edge_compare);
	return 0;
}

void exact_counts_fini(struct exact_counts *counts)
{
	free(counts->runs);
	free(counts->edges);
	*counts = (struct exact_counts){0};
}

uint64_t exact_counts_at(const struct exact_counts *counts, uint64_t vaddr)
{
	size_t low = 0, high = counts->nr_runs;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (counts->runs[mid].start <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && vaddr < counts->runs[low - 1].end ? counts->runs[low - 1].count : 0;
}

uint64_t exact_counts_edge(const struct exact_counts *counts, uint64_t from, uint64_t to)
{
	const struct exact_edge key = {.from = from, .to = to}, *found = NULL;

	if (counts->nr_edges)
		found = bsearch(&key, counts->edges, counts->nr_edges, sizeof(key), edge_compare);
	return found ? found->count : 0;
}
