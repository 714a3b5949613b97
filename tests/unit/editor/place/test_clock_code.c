// SPDX-License-Identifier: Apache-2.0
/* test_clock_code - runs the code that counts calls down, and reads the code that samples one. */
#include "tests/unit/suite.h"

#include <sys/mman.h>

#include "editor/base/runtime.h"
#include "editor/place/clock_code.h"

#define PAGE 4096

static uint8_t *code;
static struct me_call_clock *counts;

static void setup(void)
{
	code = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	ck_assert(code != MAP_FAILED);
	counts = (struct me_call_clock *)(code + PAGE);
}

static void teardown(void)
{
	munmap(code, 2 * PAGE);
}

static void put_return(uint8_t *at, uint8_t value)
{
	const uint8_t bytes[] = {0xb8, value, 0, 0, 0, 0xc3}; /* mov $value, %eax; ret */

	memcpy(at, bytes, sizeof(bytes));
}

FIXTURE(setup, teardown);

/* The function returns 1; what samples returns 2. */
TEST(the_call_at_which_the_count_ends_is_sampled)
{
	const uint8_t want[] = {1, 1, 1, 2, 2};
	struct me_stub_places places = {.counters = (uint64_t)counts,
					.notes = (uint64_t)(code + 1024)};
	int (*call)(void);

	put_return(code + ME_CLOCK_CODE_SIZE, 1);
	put_return(code + 1024, 2);
	ck_assert_int_eq(me_clock_code_write(&places, (uint64_t)code, code), 0);
	memcpy(&call, &code, sizeof(call));
	counts->left = 3;
	for (size_t i = 0; i < sizeof(want); i++)
		ck_assert_int_eq(call(), want[i]);
	ck_assert_int_eq(counts->left, -2);
	ck_assert_uint_eq(counts->zero, 0);
}

/* Called with the stack pointer below the red zone, the runtime returns with `ret $128`. */
TEST(a_sample_calls_the_runtime_below_the_red_zone)
{
	/* lea 8(%rsp), %rax; ret $128 */
	const uint8_t runtime[] = {0x48, 0x8d, 0x44, 0x24, 8, 0xc2, 128, 0};
	/* sub %rsp, %rax; ret */
	const uint8_t behind[] = {0x48, 0x29, 0xe0, 0xc3};
	struct me_stub_places places = {.call = (uint64_t)(code + 512)};
	long (*call)(void);

	memcpy(code + 512, runtime, sizeof(runtime));
	memcpy(code + ME_SAMPLE_CODE_SIZE, behind, sizeof(behind));
	ck_assert_int_eq(me_sample_code_write(&places, (uint64_t)code, code), 0);
	ck_assert_uint_eq(code[ME_SAMPLE_CODE_CALL], 0xe8);
	memcpy(&call, &code, sizeof(call));
	ck_assert_int_eq(call(), -ME_RED_ZONE);
}

TEST(what_is_out_of_reach_is_refused)
{
	const uint64_t far = (uint64_t)code + (UINT64_C(1) << 33);
	uint8_t out[ME_CLOCK_CODE_SIZE];

	ck_assert_int_eq(me_clock_code_write(&(struct me_stub_places){.counters = far,
								      .notes = (uint64_t)code},
					     (uint64_t)code, out),
			 -ERANGE);
	ck_assert_int_eq(me_clock_code_write(&(struct me_stub_places){.counters = (uint64_t)code,
								      .notes = far},
					     (uint64_t)code, out),
			 -ERANGE);
	ck_assert_int_eq(me_sample_code_write(&(struct me_stub_places){.call = far}, (uint64_t)code,
					      out),
			 -ERANGE);
}
