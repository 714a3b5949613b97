// SPDX-License-Identifier: Apache-2.0
/* test_pg - a server may answer with fewer rows, columns and bytes than were asked for. */
#include "tests/unit/suite.h"

#include "daemon/fleet/pg.h"

/* A result with @columns columns and, if @value is not NULL, one row of it in column 0. */
static PGresult *result_of(int columns, const char *value, int size)
{
	PGresAttDesc names[2] = {{.name = (char *)"a"}, {.name = (char *)"b"}};
	PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);

	ck_assert(result && PQsetResultAttrs(result, columns, names));
	if (value)
		ck_assert(PQsetvalue(result, 0, 0, (char *)value, size));
	return result;
}

TEST(pg_reads_what_the_server_did_not_send_as_nothing)
{
	PGresult *row = result_of(2, "\xff\xfe", 2), *none = result_of(1, NULL, 0);
	int64_t number = 7;

	ck_assert_str_eq(md_pg_text(row, 0), "\xff\xfe");
	ck_assert(md_pg_number(row, 0, 2, &number) && number == -2);
	ck_assert(!md_pg_number(row, 0, 4, &number));
	/* Column 1 is NULL, and column 2 is not there. */
	for (int column = 1; column < 3; column++) {
		ck_assert_str_eq(md_pg_text(row, column), "");
		ck_assert(!md_pg_number(row, column, 2, &number));
	}
	ck_assert_str_eq(md_pg_text(none, 0), "");
	ck_assert(!md_pg_number(none, 0, 8, &number));
	ck_assert_int_eq(number, -2);
	PQclear(row);
	PQclear(none);
}
