// SPDX-License-Identifier: Apache-2.0
/*
 * test_next_try - what the next attempt leaves out after verify refused: a register, then all
 * registers of a function; functions.
 */

#include "editor/optimize/next_try.h"
#include "tests/unit/suite.h"

static struct me_verify_report report(uint64_t start, uint16_t registers)
{
	struct me_verify_report r = {.nr_unproved = 1};

	r.unproved[0] = (struct me_unproved){start, registers};
	return r;
}

TEST(other_register_then_none)
{
	AUTO(me_next_try_fini) struct me_next_try list = {0};
	struct me_verify_report first = report(0x1000, 1u << 11), other = report(0x2000, 1u << 3),
				second = report(0x1000, 1u << 10);

	ck_assert_int_eq(me_next_try_learn(&list, &first, &err), 0);
	ck_assert_int_eq(me_next_try_learn(&list, &other, &err), 0);
	ck_assert_uint_eq(list.nr_registers, 2);
	ck_assert_uint_eq(list.registers[0].registers, 1u << 11);
	ck_assert_uint_eq(list.registers[1].registers, 1u << 3);
	ck_assert_int_eq(me_next_try_learn(&list, &second, &err), 0);
	ck_assert_uint_eq(list.nr_registers, 2);
	ck_assert_uint_eq(list.registers[0].registers, ME_UNPROVED_ANY);
	ck_assert_uint_eq(list.registers[1].registers, 1u << 3);
	/* A function without numbers that is still refused would be refused forever. */
	ck_assert_int_eq(me_next_try_learn(&list, &second, &err), -EPERM);
}

static struct me_verify_report refused(uint64_t first, uint64_t second)
{
	struct me_verify_report r = {.nr_refused = second ? 2 : 1};

	r.refused[0] = (struct me_refused){first, "a reason"};
	r.refused[1] = (struct me_refused){second, "another"};
	return r;
}

TEST(functions_while_there_are_new_ones)
{
	struct me_next_try list = {0};
	struct me_verify_report both = refused(0x1000, 0x2000), again = refused(0x2000, 0x3000),
				none = {0};

	ck_assert_int_eq(me_next_try_learn(&list, &none, &err), -EPERM);
	ck_assert_int_eq(me_next_try_learn(&list, &both, &err), 0);
	ck_assert_int_eq(me_next_try_learn(&list, &again, &err), 0);
	ck_assert_uint_eq(list.nr_left_out, 3);
	ck_assert_uint_eq(list.left_out[2].vaddr, 0x3000);
	ck_assert_str_eq(list.left_out[2].why, "another");
	/* They are left out already. */
	ck_assert_int_eq(me_next_try_learn(&list, &again, &err), -EPERM);
	me_next_try_fini(&list);
	for (uint64_t i = 1; i <= ME_NEXT_TRIES_MAX; i++) {
		struct me_verify_report one = refused(i << 12, 0);

		ck_assert_int_eq(me_next_try_learn(&list, &one, &err), 0);
	}
	both = refused(0x100000, 0);
	ck_assert_int_eq(me_next_try_learn(&list, &both, &err), -EPERM);
	me_next_try_fini(&list);
}
