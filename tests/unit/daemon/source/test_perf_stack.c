// SPDX-License-Identifier: Apache-2.0
/*
 * test_perf_stack - samples with registers and a copy of the stack, as perf writes them, become
 * USER_STACK records; torn samples and those whose sizes lie do not.
 */

#include "daemon/source/perf_decode.h"
#include "daemon/source/perf_stack.h"
#include "tests/unit/suite.h"

#define USER_IP	  0x401234
#define KERNEL_IP UINT64_C(0xffffffff81000000)
#define NR_VALUES 17 /* rip and the general registers */

/* A sample. The size of its parts in words. */
struct sample {
	struct perf_event_header header;
	uint64_t words[8192];
	size_t nr;
};

static struct md_perf_decoder decoder;
static struct sample sample;
static size_t abi_at, size_at, used_at;

static void setup(void)
{
	ck_assert_int_eq(md_perf_decoder_init(&decoder, 1, 4000, false), 0);
	md_perf_decoder_want_stacks(&decoder);
}

static void teardown(void)
{
	md_perf_decoder_fini(&decoder);
}

static void add(uint64_t word)
{
	sample.words[sample.nr++] = word;
}

/* Value that perf's register @number has: number 8 is rip. */
static uint64_t value_of(uint32_t number)
{
	return number == 8 ? USER_IP : 1000 + number;
}

/* Makes a sample with @bytes of the stack, of which the kernel could read @used. */
static void make(uint64_t ip, uint32_t tid, uint64_t time, size_t bytes, size_t used)
{
	/* perf's numbers of x86-64's registers: 10 to 15 are segments and flags */
	static const uint32_t order[NR_VALUES] = {0,  1,  2,  3,  4,  5,  6,  7, 8,
						  16, 17, 18, 19, 20, 21, 22, 23};

	sample = (struct sample){.header = {.type = PERF_RECORD_SAMPLE}};
	add(ip);
	add(tid | (uint64_t)tid << 32);
	add(time);
	add(3);
	if (decoder.has_branches) {
		add(1);
		sample.nr += 3;
	}
	abi_at = sample.nr;
	add(PERF_SAMPLE_REGS_ABI_64);
	for (int i = 0; i < NR_VALUES; i++)
		add(value_of(order[i]));
	size_at = sample.nr;
	add(bytes);
	for (size_t i = 0; i < bytes / 8; i++)
		add(0x5000 + i);
	used_at = sample.nr;
	if (bytes)
		add(used);
}

static void decode(size_t nr_words)
{
	sample.header.size = (uint16_t)(sizeof(sample.header) + nr_words * 8);
	md_perf_decode(&decoder, 0, &sample.header);
}

/* Return: the stack that was decoded, or NULL. All records are whole. */
static const struct morph_user_stack *flush(unsigned int nr_samples)
{
	const struct morph_user_stack *stack = NULL;
	struct morph_record *record;
	uint64_t nr = 0;
	size_t pos = 0;
	int ret;

	md_perf_decoder_flush(&decoder);
	ck_assert(!decoder.failed);
	while (!(ret = md_record_next(decoder.out.data, decoder.out.size, &pos, &record))) {
		nr += md_record_emitted(record);
		if (record->type == MORPH_REC_USER_STACK)
			stack = (const void *)record;
	}
	ck_assert_int_eq(ret, -ENODATA);
	ck_assert_uint_eq(nr, nr_samples);
	return stack;
}

FIXTURE(setup, teardown);

TEST(perf_asks_for_all_registers_and_the_stack)
{
	struct perf_event_attr attr = {0};

	md_perf_ask_for_stack(&attr, 0, true);
	ck_assert_uint_eq(attr.sample_type, PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
	ck_assert_uint_eq(__builtin_popcountll(attr.sample_regs_user), NR_VALUES);
	ck_assert_uint_eq(attr.sample_regs_user, decoder.user_mask);
	/* perf refuses other sizes; a record has 16 bits for its size */
	ck_assert_uint_eq(attr.sample_stack_user % 8, 0);
	ck_assert_uint_lt(attr.sample_stack_user, 65536 - 1024);
	attr = (struct perf_event_attr){0};
	md_perf_ask_for_stack(&attr, 0, false);
	ck_assert_uint_eq(attr.sample_type, 0);
}

TEST_EACH(sample_with_a_stack_becomes_a_record, 2)
{
	const struct morph_user_stack *stack;
	uint64_t word;

	decoder.has_branches = _i;
	make(USER_IP, 5, 77, 128, 96);
	decode(sample.nr);
	stack = flush(1);
	ck_assert_ptr_nonnull(stack);
	ck_assert_uint_eq(stack->task.tgid, 5);
	ck_assert_uint_eq(stack->task.time_ns, 77);
	ck_assert_uint_eq(stack->task.record.cpu, 3);
	ck_assert_uint_eq(stack->task.flags, 0);
	ck_assert_uint_eq(stack->ip, USER_IP);
	ck_assert_uint_eq(stack->registers[MORPH_REG_RAX], 1000);
	ck_assert_uint_eq(stack->registers[MORPH_REG_RBX], 1001);
	ck_assert_uint_eq(stack->registers[MORPH_REG_RBP], 1006);
	ck_assert_uint_eq(stack->registers[MORPH_REG_RSP], 1007);
	ck_assert_uint_eq(stack->registers[8], 1016);
	ck_assert_uint_eq(stack->registers[15], 1023);
	ck_assert_uint_eq(stack->nr, 96); /* not what was asked for */
	for (size_t i = 0; i < 12; i++) {
		memcpy(&word, stack->bytes + 8 * i, sizeof(word));
		ck_assert_uint_eq(word, 0x5000 + i);
	}
}

TEST(sample_in_the_kernel_has_the_stack_of_its_user_code)
{
	const struct morph_user_stack *stack;

	make(KERNEL_IP, 5, 1, 64, 64);
	decode(sample.nr);
	stack = flush(1);
	ck_assert_ptr_nonnull(stack);
	ck_assert_uint_eq(stack->task.flags, MORPH_USER_STACK_KERNEL);
	ck_assert_uint_eq(stack->ip, USER_IP);
}

TEST_EACH(sample_without_a_readable_stack_has_registers, 2)
{
	const struct morph_user_stack *stack;

	make(USER_IP, 5, 1, _i ? 64 : 0, 0);
	decode(sample.nr);
	stack = flush(1);
	ck_assert_ptr_nonnull(stack);
	ck_assert_uint_eq(stack->nr, 0);
	ck_assert_uint_eq(stack->registers[MORPH_REG_RSP], 1007);
}

TEST_EACH(samples_of_32_bit_code_and_of_kernel_threads_have_no_stack, 3)
{
	make(USER_IP, 5, 1, 64, 64);
	sample.words[abi_at] =
		(uint64_t[]){PERF_SAMPLE_REGS_ABI_32, PERF_SAMPLE_REGS_ABI_NONE, 99}[_i];
	decode(sample.nr);
	ck_assert_ptr_null(flush(1));
}

/* The sample itself counts, wherever its record ends. */
TEST(torn_sample_counts_without_a_stack)
{
	make(USER_IP, 5, 1, 64, 64);
	for (size_t nr = 4; nr <= sample.nr; nr++) {
		decoder.out.size = 0;
		decode(nr);
		ck_assert_msg(!flush(1) == (nr < sample.nr), "%zu words", nr);
	}
	decoder.out.size = 0;
	decode(3);
	ck_assert_ptr_null(flush(0));
}

TEST_EACH(size_beyond_the_sample_is_not_believed, 7)
{
	static const uint64_t sizes[] = {
		64 + 8, 65536, UINT32_MAX, UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63, 1 << 20,
	};

	make(USER_IP, 5, 1, 64, 64);
	sample.words[size_at] = sizes[_i];
	decode(sample.nr);
	ck_assert_ptr_null(flush(1));
}

TEST_EACH(more_bytes_used_than_there_are_are_those_that_are_there, 3)
{
	const struct morph_user_stack *stack;

	make(USER_IP, 5, 1, 64, 64);
	sample.words[used_at] = (uint64_t[]){65, 1 << 20, UINT64_MAX}[_i];
	decode(sample.nr);
	stack = flush(1);
	ck_assert_ptr_nonnull(stack);
	ck_assert_uint_eq(stack->nr, 64);
}

TEST(largest_stack_fits_into_a_record)
{
	const struct morph_user_stack *stack;

	make(USER_IP, 5, 1, MD_PERF_STACK_BYTES, MD_PERF_STACK_BYTES - 3);
	decode(sample.nr);
	stack = flush(1);
	ck_assert_ptr_nonnull(stack);
	ck_assert_uint_eq(stack->nr, MD_PERF_STACK_BYTES - 3);
	/* the largest one that a sample of perf has room for */
	decoder.out.size = 0;
	make(USER_IP, 5, 1, 8 * 8160, 8 * 8160);
	decode(sample.nr);
	ck_assert_ptr_nonnull(flush(1));
}

/* A batch of samples with registers ends when its room is used up; no stack is lost by that. */
TEST(every_sample_keeps_its_stack_beside_its_registers)
{
	struct morph_record *record;
	unsigned int nr = 0, nr_stacks = 0;
	size_t pos = 0;

	ck_assert_int_eq(md_perf_decoder_want_registers(&decoder, MORPH_REGS_PATHS), 0);
	for (; nr < 1000; nr++) {
		make(USER_IP + nr, 5, 1 + nr, 8, 8);
		decode(sample.nr);
	}
	flush(nr);
	while (!md_record_next(decoder.out.data, decoder.out.size, &pos, &record))
		nr_stacks += record->type == MORPH_REC_USER_STACK;
	ck_assert_uint_eq(nr_stacks, nr);
}

TEST(samples_before_the_start_and_during_the_scan_have_no_stack)
{
	decoder.start_ns = 10;
	decoder.scan_begin_ns = 20;
	decoder.scan_end_ns = 30;
	make(USER_IP, 5, 5, 64, 64);
	decode(sample.nr);
	ck_assert_ptr_null(flush(0));
	make(USER_IP, 5, 25, 64, 64);
	decode(sample.nr);
	ck_assert_ptr_null(flush(1)); /* of an unknown process */
	make(USER_IP, 5, 35, 64, 64);
	decode(sample.nr);
	ck_assert_ptr_nonnull(flush(2));
}
