// SPDX-License-Identifier: Apache-2.0
/*
 * fleet-sum CONNINFO MODULE FIRST-DAY LAST-DAY QUANTILE - sums a module's counts over the hosts of a fleet,
 * as rows arrive. Another reading of fleet.read_rows() for tests and benchmarks: prints each address
 * with its robust sum, and on stderr rows, bytes, seconds and the memory that it took. MODULE is in hex.
 */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "daemon/fleet/packed_counts.h"
#include "daemon/fleet/pg.h"
#include "libprof/store/store_codec.h"

typedef unsigned __int128 uint128_t;

static uint128_t sums[MP_CHUNK_SIZE];
static struct mp_ip_count plain_entries[MP_CHUNK_SIZE];
static struct md_packer packer;
static uint64_t nr_rows, nr_bytes, nr_entries, nr_wrong;

static uint64_t number_of(const PGresult *row, int column)
{
	uint64_t value;

	memcpy(&value, PQgetvalue(row, 0, column), sizeof(value));
	return be64toh(value);
}

static uint32_t short_number_of(const PGresult *row, int column)
{
	uint32_t value;

	memcpy(&value, PQgetvalue(row, 0, column), sizeof(value));
	return be32toh(value);
}

static void print_chunk(uint64_t chunk)
{
	for (uint64_t i = 0; i < MP_CHUNK_SIZE; i++) {
		uint64_t sum = (uint64_t)((sums[i] + 32768) >> 16);

		if (sum)
			printf("%" PRIu64 " %" PRIu64 "\n", (chunk << MP_CHUNK_SHIFT) + i, sum);
	}
	memset(sums, 0, sizeof(sums));
}

/* Return: the row's entries; NULL: no valid data. */
static const struct mp_ip_count *decode(const uint8_t *data, size_t size, size_t *nr)
{
	if (md_counts_are_packed(data, size))
		return md_counts_unpack(&packer, 0, data, size, nr) ? NULL : packer.entries;
	return mp_chunk_decode(0, data, size, plain_entries, nr) ? NULL : plain_entries;
}

static void add_row(uint64_t total, uint32_t weight, const char *data, size_t size)
{
	const struct mp_ip_count *entries;
	uint64_t sum = 0;
	size_t nr;

	nr_rows++;
	nr_bytes += size;
	entries = decode((const uint8_t *)data, size, &nr);
	if (!entries) {
		nr_wrong++;
		return;
	}
	nr_entries += nr;
	for (size_t i = 0; i < nr; i++)
		sum += entries[i].count;
	if (sum != total) {
		nr_wrong++;
		return;
	}
	for (size_t i = 0; i < nr; i++)
		sums[entries[i].vaddr] += (uint128_t)entries[i].count * weight;
}

/* Return: whether all rows came. */
static int read_rows(PGconn *conn, char **argv)
{
	const char *const params[] = {argv[2], argv[3], argv[4], argv[5]};
	uint64_t chunk = 0, last = 0;
	PGresult *row;
	int done = 0;

	if (!PQsendQueryParams(
		    conn,
		    "SELECT chunk, total, weight, data FROM fleet.read_rows(decode($1, 'hex'), 0::smallint, "
		    "$2::int, $3::int, $4::float8, NULL)",
		    4, NULL, params, NULL, NULL, 1) ||
	    !PQsetSingleRowMode(conn))
		return 0;
	while ((row = PQgetResult(conn))) {
		if (PQresultStatus(row) == PGRES_SINGLE_TUPLE) {
			chunk = number_of(row, 0);
			if (chunk != last)
				print_chunk(last);
			last = chunk;
			add_row(number_of(row, 1), short_number_of(row, 2), PQgetvalue(row, 0, 3),
				(size_t)PQgetlength(row, 0, 3));
		} else {
			done = PQresultStatus(row) == PGRES_TUPLES_OK;
		}
		PQclear(row);
	}
	print_chunk(last);
	return done;
}

int main(int argc, char **argv)
{
	struct timespec start, end;
	struct rusage usage;
	struct mp_err err;
	PGconn *conn;

	if (argc != 6)
		return 2;
	if (md_fleet_connect(argv[1], &conn, &err)) {
		fprintf(stderr, "fleet-sum: %s\n", err.msg);
		return 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &start);
	if (!read_rows(conn, argv)) {
		fprintf(stderr, "fleet-sum: %s", PQerrorMessage(conn));
		return 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	getrusage(RUSAGE_SELF, &usage);
	fprintf(stderr,
		"rows=%" PRIu64 " bytes=%" PRIu64 " entries=%" PRIu64 " wrong=%" PRIu64
		" seconds=%.3f mib=%.1f\n",
		nr_rows, nr_bytes, nr_entries, nr_wrong,
		(double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9,
		(double)usage.ru_maxrss / 1024);
	PQfinish(conn);
	md_packer_fini(&packer);
	return nr_wrong != 0;
}
