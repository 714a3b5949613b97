// SPDX-License-Identifier: Apache-2.0
/*
 * test_unproved_registers - retries after verify refused a register: first without that
 * register, then without any.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/optimize/unproved_registers.h"
#include "tests/unit/suite.h"

static struct me_verify_report report(uint64_t start, uint16_t registers)
{
	struct me_verify_report r = {.nr_unproved = 1};

	r.unproved[0] = (struct me_unproved){start, registers};
	return r;
}

START_TEST(other_register_then_none)
{
	struct me_unproved_registers list = {0};
	struct me_verify_report first = report(0x1000, 1u << 11), other = report(0x2000, 1u << 3),
				second = report(0x1000, 1u << 10);
	struct mp_err err = {""};

	ck_assert_int_eq(me_unproved_registers_add(&list, &first, &err), 0);
	ck_assert_int_eq(me_unproved_registers_add(&list, &other, &err), 0);
	ck_assert_uint_eq(list.nr, 2);
	ck_assert_uint_eq(list.list[0].registers, 1u << 11);
	ck_assert_uint_eq(list.list[1].registers, 1u << 3);
	ck_assert_int_eq(me_unproved_registers_add(&list, &second, &err), 0);
	ck_assert_uint_eq(list.nr, 2);
	ck_assert_uint_eq(list.list[0].registers, ME_UNPROVED_ANY);
	ck_assert_uint_eq(list.list[1].registers, 1u << 3);
	/* A function without numbers that is still refused would be refused forever. */
	ck_assert_int_eq(me_unproved_registers_add(&list, &second, &err), -EPERM);
	free(list.list);
}
END_TEST

static Suite *unproved_suite(void)
{
	Suite *suite = suite_create("unproved");
	TCase *tc = tcase_create("unproved");

	tcase_add_test(tc, other_register_then_none);
	suite_add_tcase(suite, tc);
	return suite;
}

MORPH_SUITE_MAIN(unproved_suite)
