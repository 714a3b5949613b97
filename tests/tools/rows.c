// SPDX-License-Identifier: Apache-2.0
/*
 * rows - compiles the unwind rows of ELF files and prints their figures as JSON, one object for
 * each file. For benchmarks.
 *
 *	rows [--compare] FILE...
 *	rows --write=ROWS FILE
 *
 * "size" is that of rows as morphd keeps them, "flat_size" that of the form that the kernel module gets.
 * With --compare, every row that morphd would have is compared with libdw's reading of the file. With
 * --write, the bytes of the flat form go to a file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libprof/unwind/rows_laid.h"
#include "tests/support/rows_compare.h"

#define NR_RUNS 5

static double cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec * 1e-6;
}

static int compare(const struct mp_elf *elf, const struct mp_rows *rows)
{
	struct rows_comparison c;

	if (rows_compare(elf, rows, &c)) {
		fprintf(stderr, "rows: %s: libdw cannot read it\n", elf->path);
		return 1;
	}
	printf(", \"ranges\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"differ\": %" PRIu64
	       ", \"gaps\": %" PRIu64 ", \"stopped\": %" PRIu64,
	       c.nr_ranges, c.nr_bytes, c.nr_differ, c.nr_gaps, c.nr_stopped);
	for (int i = 1; i < MP_NR_ROW_STOP; i++)
		if (c.stopped_bytes[i])
			printf(", \"stopped bytes: %s\": %" PRIu64, mp_row_stop_name(i),
			       c.stopped_bytes[i]);
	if (c.nr_differ)
		fprintf(stderr, "rows: %s\n", c.first);
	return c.nr_differ != 0;
}

/* Lays @flat. The rows that are compared with libdw's are those that morphd has. */
static int lay(const struct mp_rows *flat, void **bytes, size_t *size, struct mp_rows *rows)
{
	int ret = mp_rows_lay(flat, bytes, size);

	return ret ? ret : mp_rows_laid_open("", *bytes, *size, rows, NULL);
}

static int one(const char *path, bool compares)
{
	double start, ms, best = 0, worst = 0;
	struct mp_rows flat, rows;
	struct mp_elf *elf;
	struct mp_err err;
	void *bytes = NULL, *flat_bytes = NULL;
	size_t size, flat_size;
	int ret = 0;

	if (mp_elf_open(path, MP_ELF_FDES, &elf, &err)) {
		fprintf(stderr, "rows: %s\n", err.msg);
		return 1;
	}
	for (int i = 0; i < NR_RUNS; i++) {
		free(bytes);
		free(flat_bytes);
		bytes = flat_bytes = NULL;
		start = cpu_ms();
		ret = rows_of_elf(elf, &flat_bytes, &flat_size, &flat, &err);
		if (!ret && lay(&flat, &bytes, &size, &rows))
			ret = mp_err_set(&err, EBADMSG, "its rows cannot be laid");
		ms = cpu_ms() - start;
		if (!i || ms < best)
			best = ms;
		if (!i || ms > worst)
			worst = ms;
		if (ret) {
			fprintf(stderr, "rows: %s: %s\n", path, err.msg);
			free(bytes);
			free(flat_bytes);
			mp_elf_close(elf);
			return 1;
		}
	}
	printf("{\"file\": \"%s\", \"text\": %" PRIu64
	       ", \"fdes\": %u, \"rows\": %u, \"rules\": %u, \"size\": %zu, "
	       "\"flat_size\": %zu, \"ms\": %.3f, \"worst_ms\": %.3f",
	       path, mp_elf_text_size(elf), elf->nr_fdes, rows.nr_rows, rows.nr_rules, size,
	       flat_size, best, worst);
	if (compares)
		ret = compare(elf, &rows);
	printf("}\n");
	free(bytes);
	free(flat_bytes);
	mp_elf_close(elf);
	return ret;
}

static int write_rows(const char *to, const char *path)
{
	struct mp_rows rows;
	struct mp_elf *elf;
	struct mp_err err;
	void *bytes;
	size_t size;
	FILE *f;
	int ret;

	if (mp_elf_open(path, MP_ELF_FDES, &elf, &err) ||
	    rows_of_elf(elf, &bytes, &size, &rows, &err)) {
		fprintf(stderr, "rows: %s\n", err.msg);
		return 1;
	}
	f = fopen(to, "we");
	ret = !f || fwrite(bytes, 1, size, f) != size;
	if (f && fclose(f))
		ret = 1;
	if (ret)
		fprintf(stderr, "rows: %s: cannot be written\n", to);
	free(bytes);
	mp_elf_close(elf);
	return ret;
}

int main(int argc, char **argv)
{
	bool compares = argc > 1 && !strcmp(argv[1], "--compare");
	int ret = 0;

	if (argc == 3 && !strncmp(argv[1], "--write=", 8))
		return write_rows(argv[1] + 8, argv[2]);
	if (argc < 2 + compares) {
		fprintf(stderr, "usage: rows [--compare] FILE...\n       rows --write=ROWS FILE\n");
		return 2;
	}
	for (int i = 1 + compares; i < argc; i++)
		ret |= one(argv[i], compares);
	return ret;
}
