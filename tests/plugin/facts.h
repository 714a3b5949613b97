// SPDX-License-Identifier: Apache-2.0
/*
 * facts - reads what tests/tools/register_uses.c prints about the main program's code. Included by
 * activations.c.
 */
#ifndef MORPH_TESTS_FACTS_H
#define MORPH_TESTS_FACTS_H

#include "tests/plugin/objects.h"

/* Part of a function. */
struct code {
	uint64_t start, size, entry;
	uint32_t function; /* from 1 */
};

/* Which registers an instruction pushes, and which it uses. */
struct fact {
	uint64_t vaddr;
	uint16_t mask;
	bool push;
};

static struct {
	struct code *codes;
	struct fact *facts;
	size_t nr_codes, nr_facts;
	uint32_t nr_functions;
} known;

static const struct code *code_find(uint64_t vaddr)
{
	size_t low = 0, high = known.nr_codes;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (known.codes[mid].start <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || vaddr - known.codes[low - 1].start >= known.codes[low - 1].size)
		return NULL;
	return &known.codes[low - 1];
}

static const struct fact *fact_find(uint64_t vaddr)
{
	size_t low = 0, high = known.nr_facts;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (known.facts[mid].vaddr == vaddr)
			return &known.facts[mid];
		if (known.facts[mid].vaddr < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static int code_compare(const void *a, const void *b)
{
	const struct code *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int fact_compare(const void *a, const void *b)
{
	const struct fact *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static bool fact_read(const char *line)
{
	struct code c;
	struct fact f;
	unsigned int mask;
	char kind[8];

	if (sscanf(line, "range %" SCNx64 " %" SCNu64 " %" SCNu32 " %" SCNx64, &c.start, &c.size,
		   &c.function, &c.entry) == 4) {
		known.codes = grow(known.codes, known.nr_codes, sizeof(*known.codes));
		known.codes[known.nr_codes++] = c;
		if (!c.function || c.function >= 1u << 24)
			return false;
		if (c.function > known.nr_functions)
			known.nr_functions = c.function;
		return true;
	}
	if (sscanf(line, "%7s %" SCNx64 " %x", kind, &f.vaddr, &mask) != 3 ||
	    (strcmp(kind, "push") && strcmp(kind, "use")))
		return false;
	f.mask = (uint16_t)mask;
	f.push = *kind == 'p';
	known.facts = grow(known.facts, known.nr_facts, sizeof(*known.facts));
	known.facts[known.nr_facts++] = f;
	return true;
}

/* Return: false after an error message. */
static bool facts_read(const char *path)
{
	FILE *in = fopen(path, "re");
	unsigned int nr = 0;
	char line[256];
	bool good = true;

	if (!in) {
		fprintf(stderr, "activations: %s: %s\n", path, strerror(errno));
		return false;
	}
	while (good && fgets(line, sizeof(line), in)) {
		nr++;
		good = fact_read(line);
	}
	fclose(in);
	if (!good)
		fprintf(stderr, "activations: %s: line %u: not a fact\n", path, nr);
	if (known.nr_codes)
		qsort(known.codes, known.nr_codes, sizeof(*known.codes), code_compare);
	if (known.nr_facts)
		qsort(known.facts, known.nr_facts, sizeof(*known.facts), fact_compare);
	return good;
}

#endif
