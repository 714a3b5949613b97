// SPDX-License-Identifier: Apache-2.0
/*
 * function_order - orders functions as libprof/order does.
 *
 *  function_order original|ph|cds <LINES
 *
 * scripts/bench/bench-function-orders writes the lines:
 *  function SIZE WEIGHT			functions count from 0
 *  arc CALLER CALLEE OFFSET WEIGHT
 * Prints the numbers of the functions, the first in memory first.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/order/order.h"

static struct mp_order_func *funcs;
static struct mp_order_arc *arcs;
static uint32_t nr_funcs, nr_arcs;

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "function-order: %s\n", what);
	exit(1);
}

static void *grow(void *array, uint32_t nr, size_t size)
{
	if (nr & (nr - 1))
		return array;
	array = reallocarray(array, nr ? 2 * (size_t)nr : 1, size);
	if (!array)
		die(strerror(ENOMEM));
	return array;
}

static void line_read(const char *line)
{
	struct mp_order_func f;
	struct mp_order_arc a;

	if (sscanf(line, "function %" SCNu64 " %lf", &f.size, &f.weight) == 2) {
		funcs = grow(funcs, nr_funcs, sizeof(f));
		funcs[nr_funcs++] = f;
	} else if (sscanf(line, "arc %" SCNu32 " %" SCNu32 " %" SCNu64 " %lf", &a.caller, &a.callee,
			  &a.offset, &a.weight) == 4) {
		arcs = grow(arcs, nr_arcs, sizeof(a));
		arcs[nr_arcs++] = a;
	} else {
		die("a line is neither a function nor an arc");
	}
}

int main(int argc, char **argv)
{
	enum mp_order order;
	char line[256];
	uint32_t *out;

	if (argc != 2 || mp_order_parse(argv[1], &order))
		die("original, ph or cds is needed");
	while (fgets(line, sizeof(line), stdin))
		line_read(line);
	out = calloc((size_t)nr_funcs + 1, sizeof(*out));
	if (!out || mp_order_funcs(order, funcs, nr_funcs, arcs, nr_arcs, out))
		die("the functions cannot be ordered");
	for (uint32_t i = 0; i < nr_funcs; i++)
		printf("%" PRIu32 "\n", out[i]);
	free(out);
	free(funcs);
	free(arcs);
	return 0;
}
