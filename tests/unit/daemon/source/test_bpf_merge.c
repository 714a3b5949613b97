// SPDX-License-Identifier: Apache-2.0
/* test_bpf_merge - sorts hand-made records of the BPF ring by time. */
#include "daemon/source/bpf_merge.h"

#include "daemon/source/bpf/wire.h"
#include "tests/unit/suite.h"

static struct md_bpf_merge m;

static void setup(void)
{
	ck_assert_int_eq(md_bpf_merge_init(&m, 2, 4000, 0), 0);
}

static void teardown(void)
{
	md_bpf_merge_fini(&m);
}

/* Takes @nr samples, one every @step_ns from @time_ns; the ip is the time. */
static int take_batch(uint32_t cpu, uint32_t tgid, uint64_t time_ns, uint64_t step_ns, uint32_t nr)
{
	struct md_wire_batch batch = {0};
	uint32_t i;

	batch.task.record.size = sizeof(batch.task) + nr * sizeof(batch.samples[0]);
	batch.task.record.type = MD_WIRE_SAMPLES;
	batch.task.record.cpu = cpu;
	batch.task.tgid = tgid;
	batch.task.tid = tgid;
	batch.task.time_ns = time_ns;
	for (i = 0; i < nr; i++) {
		batch.samples[i].time_ns = time_ns + i * step_ns;
		batch.samples[i].ip = time_ns + i * step_ns;
	}
	return md_bpf_merge_take(&m, &batch, batch.task.record.size);
}

/* Takes a sample with a stack of the callers 1, 2, ..., @nr, the innermost first, on one stack. */
static int take_stack(uint32_t cpu, uint32_t tgid, uint64_t time_ns, uint32_t nr, uint32_t flags)
{
	struct md_wire_stack wire = {.ip = time_ns};

	wire.task.record.size =
		offsetof(struct md_wire_stack, frames) + nr * sizeof(wire.frames[0]);
	wire.task.record.type = MD_WIRE_STACK;
	wire.task.record.cpu = cpu;
	wire.task.tgid = tgid;
	wire.task.tid = tgid;
	wire.task.time_ns = time_ns;
	wire.task.flags = flags;
	for (uint32_t i = 0; i < nr; i++)
		wire.frames[i] = (struct md_wire_frame){i + 1, 4096 - (nr - i) * 16};
	return md_bpf_merge_take(&m, &wire, wire.task.record.size);
}

/* Takes a sample with a copy of @nr bytes of its stack, in a record with room for @room. */
static int take_copy(uint32_t tgid, uint64_t time_ns, uint32_t nr, uint32_t room, uint32_t flags)
{
	static struct md_wire_copy wire;

	wire = (struct md_wire_copy){.ip = time_ns, .user_ip = 77, .nr = nr, .below = 128};
	wire.task.record.size = (uint16_t)(offsetof(struct md_wire_copy, bytes) + room);
	wire.task.record.type = MD_WIRE_COPY;
	wire.task.tgid = tgid;
	wire.task.tid = tgid;
	wire.task.time_ns = time_ns;
	wire.task.flags = flags;
	wire.registers[MORPH_REG_RSP] = 4096;
	wire.bytes[0] = 9;
	return md_bpf_merge_take(&m, &wire, wire.task.record.size);
}

/* Takes a sample with registers; register n has the value @time_ns + n. */
static int take_registers(uint32_t cpu, uint32_t tgid, uint64_t time_ns)
{
	struct md_wire_registers wire = {.ip = time_ns};
	uint32_t nr = 0;

	wire.task.record.size = sizeof(wire);
	wire.task.record.type = MD_WIRE_REGISTERS;
	wire.task.record.cpu = cpu;
	wire.task.tgid = tgid;
	wire.task.tid = tgid;
	wire.task.time_ns = time_ns;
	for (uint32_t reg = 0; reg <= MORPH_REG_FLAGS; reg++)
		if (MORPH_REGS_BRANCHES >> reg & 1)
			wire.values[nr++] = time_ns + reg;
	ck_assert_uint_eq(nr, MD_WIRE_NR_REGISTERS);
	return md_bpf_merge_take(&m, &wire, sizeof(wire));
}

static int take_exec(uint32_t tgid, uint64_t time_ns)
{
	struct morph_exec exec = {
		.task = {.record = {sizeof(exec), MORPH_REC_EXEC, 0},
			 .time_ns = time_ns,
			 .tgid = tgid,
			 .tid = tgid},
		.nr_threads = 1,
	};

	return md_bpf_merge_take(&m, &exec, sizeof(exec));
}

static int take_fork(uint32_t child, uint32_t parent, uint64_t time_ns)
{
	struct morph_fork fork = {
		.task = {.record = {sizeof(fork), MORPH_REC_FORK, 0},
			 .time_ns = time_ns,
			 .tgid = child,
			 .tid = child},
		.parent_tgid = parent,
		.parent_tid = parent,
	};

	return md_bpf_merge_take(&m, &fork, sizeof(fork));
}

/* Gives out everything up to @limit_ns, as source_bpf does if perf has no records. */
static void give(uint64_t limit_ns)
{
	m.decoder.out.size = 0;
	while (md_bpf_merge_event_ns(&m) <= limit_ns)
		md_bpf_merge_event(&m);
	md_bpf_merge_samples(&m, limit_ns + 1);
	md_perf_decoder_flush(&m.decoder);
	ck_assert(!m.decoder.failed);
}

/* Expects a record of @type and @tgid; for samples, @nr of them from @ip on. */
static void expect(size_t *pos, uint16_t type, uint32_t tgid, uint64_t ip, uint32_t nr)
{
	struct morph_record *record;
	struct morph_samples *samples;

	ck_assert_int_eq(md_record_next(m.decoder.out.data, m.decoder.out.size, pos, &record), 0);
	ck_assert_uint_eq(record->type, type);
	ck_assert_uint_eq(((struct morph_task *)record)->tgid, tgid);
	if (type != MORPH_REC_SAMPLES)
		return;
	samples = (void *)record;
	ck_assert_uint_eq(md_samples_nr(samples), nr);
	ck_assert_uint_eq(samples->ips[0], ip);
	ck_assert_uint_eq(samples->task.time_ns, ip);
}

static void expect_end(size_t *pos)
{
	struct morph_record *record;

	ck_assert_int_eq(md_record_next(m.decoder.out.data, m.decoder.out.size, pos, &record),
			 -ENODATA);
}

FIXTURE(setup, teardown);

TEST(merge_takes_a_batch_apart_at_an_event_within_it)
{
	size_t pos = 0;

	ck_assert_int_eq(take_batch(0, 5, 100, 10, 10), 0);
	ck_assert_int_eq(take_exec(5, 145), 0);
	give(1000);
	expect(&pos, MORPH_REC_SAMPLES, 5, 100, 5);
	expect(&pos, MORPH_REC_EXEC, 5, 0, 0);
	expect(&pos, MORPH_REC_SAMPLES, 5, 150, 5);
	expect_end(&pos);
	ck_assert_uint_eq(m.nr_samples, 10);
}

TEST(merge_puts_what_happened_first_at_one_and_the_same_moment)
{
	size_t pos = 0;

	ck_assert_int_eq(take_batch(0, 5, 100, 10, 3), 0);
	ck_assert_int_eq(take_exec(5, 110), 0);
	give(1000);
	expect(&pos, MORPH_REC_SAMPLES, 5, 100, 1);
	expect(&pos, MORPH_REC_EXEC, 5, 0, 0);
	expect(&pos, MORPH_REC_SAMPLES, 5, 110, 2);
	expect_end(&pos);
}

TEST(merge_holds_back_what_others_may_still_precede)
{
	size_t pos = 0;

	ck_assert_int_eq(take_batch(0, 5, 100, 10, 10), 0);
	ck_assert_int_eq(take_exec(5, 300), 0);
	give(120);
	expect(&pos, MORPH_REC_SAMPLES, 5, 100, 3);
	expect_end(&pos);
	/* The other CPU's batch was written later, but part of it is older. */
	ck_assert_int_eq(take_batch(1, 6, 121, 10, 3), 0);
	ck_assert_int_eq(take_exec(6, 125), 0);
	give(400);
	pos = 0;
	expect(&pos, MORPH_REC_SAMPLES, 6, 121, 1);
	expect(&pos, MORPH_REC_EXEC, 6, 0, 0);
	expect(&pos, MORPH_REC_SAMPLES, 5, 130, 7);
	expect(&pos, MORPH_REC_EXEC, 5, 0, 0);
	expect(&pos, MORPH_REC_SAMPLES, 6, 131, 2);
	expect_end(&pos);
}

TEST(merge_sorts_events_of_different_cpus)
{
	size_t pos = 0;

	ck_assert_int_eq(take_exec(7, 30), 0);
	ck_assert_int_eq(take_exec(5, 10), 0);
	ck_assert_int_eq(take_exec(6, 20), 0);
	give(25);
	expect(&pos, MORPH_REC_EXEC, 5, 0, 0);
	expect(&pos, MORPH_REC_EXEC, 6, 0, 0);
	expect_end(&pos);
	ck_assert_int_eq(take_exec(8, 26), 0);
	give(100);
	pos = 0;
	expect(&pos, MORPH_REC_EXEC, 8, 0, 0);
	expect(&pos, MORPH_REC_EXEC, 7, 0, 0);
	expect_end(&pos);
}

/* A sample that interrupts the writing of a batch enters the ring before it. */
TEST(merge_sorts_a_sample_that_overtook_a_batch)
{
	struct morph_record *record;
	struct morph_samples *samples;
	size_t pos = 0;

	ck_assert_int_eq(take_batch(0, 5, 200, 0, 1), 0);
	ck_assert_int_eq(take_batch(0, 5, 100, 10, 3), 0);
	give(1000);
	ck_assert_int_eq(md_record_next(m.decoder.out.data, m.decoder.out.size, &pos, &record), 0);
	samples = (void *)record;
	ck_assert_uint_eq(md_samples_nr(samples), 4);
	ck_assert_uint_eq(samples->ips[0], 100);
	ck_assert_uint_eq(samples->ips[3], 200);
}

TEST(merge_closes_the_batches_of_parent_and_child_at_a_fork)
{
	size_t pos = 0;

	ck_assert_int_eq(take_batch(0, 5, 100, 10, 3), 0);
	ck_assert_int_eq(take_batch(1, 9, 100, 10, 3), 0);
	ck_assert_int_eq(take_fork(6, 5, 115), 0);
	give(1000);
	expect(&pos, MORPH_REC_SAMPLES, 5, 100, 2);
	expect(&pos, MORPH_REC_FORK, 6, 0, 0);
	expect(&pos, MORPH_REC_SAMPLES, 5, 120, 1);
	/* Another process keeps its batch. */
	expect(&pos, MORPH_REC_SAMPLES, 9, 100, 3);
	expect_end(&pos);
}

TEST(merge_passes_over_events_from_before_the_mappings_are_seen)
{
	size_t pos = 0;

	m.since_ns = 50;
	ck_assert_int_eq(take_exec(5, 49), 0);
	ck_assert_int_eq(take_exec(6, 50), 0);
	give(100);
	expect(&pos, MORPH_REC_EXEC, 6, 0, 0);
	expect_end(&pos);
}

TEST(merge_loses_no_sample_however_many_there_are)
{
	uint64_t time_ns = 1, given = 0;
	struct morph_record *record;
	unsigned int round;
	size_t pos;

	for (round = 0; round < 200; round++) {
		ck_assert_int_eq(take_batch(round % 2, 5 + round % 3, time_ns, 3, MD_WIRE_BATCH),
				 0);
		time_ns += 100;
		give(time_ns);
		for (pos = 0;
		     !md_record_next(m.decoder.out.data, m.decoder.out.size, &pos, &record);)
			given += md_record_emitted(record);
	}
	give(UINT64_MAX - 1);
	for (pos = 0; !md_record_next(m.decoder.out.data, m.decoder.out.size, &pos, &record);)
		given += md_record_emitted(record);
	ck_assert_uint_eq(given, 200 * MD_WIRE_BATCH);
	ck_assert_uint_eq(m.nr_samples, given);
}

TEST(merge_refuses_what_is_no_record_of_the_ring)
{
	struct md_wire_batch batch = {0};

	batch.task.record.size = sizeof(batch.task);
	batch.task.record.type = MORPH_REC_MMAP;
	ck_assert_int_eq(md_bpf_merge_take(&m, &batch, sizeof(batch.task)), -EBADMSG);
	batch.task.record.type = MORPH_REC_EXEC; /* too short */
	ck_assert_int_eq(md_bpf_merge_take(&m, &batch, sizeof(batch.task)), -EBADMSG);
	ck_assert_int_eq(md_bpf_merge_take(&m, &batch, sizeof(batch.task) - 8), -EBADMSG);
	ck_assert_int_eq(take_batch(2, 5, 100, 10, 1), -EBADMSG); /* there are two CPUs */
	give(1000);
	ck_assert_uint_eq(m.decoder.out.size, 0);
}

TEST(lost_records_of_the_mappings_are_no_samples)
{
	struct {
		struct perf_event_header header;
		uint64_t words[5];
	} lost = {.header = {.type = PERF_RECORD_LOST, .size = 8 + 16 + 24}};
	struct morph_record *record;
	size_t pos = 0;

	lost.words[1] = 42;
	md_perf_decode(&m.decoder, 1, &lost.header);
	ck_assert_int_eq(md_record_next(m.decoder.out.data, m.decoder.out.size, &pos, &record), 0);
	ck_assert_uint_eq(record->type, MORPH_REC_LOST);
	ck_assert_uint_eq(md_record_emitted(record), 0);
	ck_assert_uint_eq(((struct morph_lost *)record)->flags, MORPH_LOST_STATE);
	ck_assert(m.decoder.lost_events);
}

static const struct morph_stack *expect_stack(size_t *pos, uint16_t type, uint64_t time_ns)
{
	struct morph_record *record;

	ck_assert_int_eq(md_record_next(m.decoder.out.data, m.decoder.out.size, pos, &record), 0);
	ck_assert_uint_eq(record->type, type);
	ck_assert_uint_eq(((struct morph_task *)record)->time_ns, time_ns);
	return (const void *)record;
}

TEST(a_stack_follows_its_sample_and_ends_the_batch)
{
	const struct morph_stack *stack;
	size_t pos = 0;

	ck_assert_int_eq(take_batch(0, 5, 100, 10, 2), 0);
	ck_assert_int_eq(take_stack(0, 5, 120, 3, MORPH_STACK_BOTTOM), 0);
	/* A sample without a stack waited in its stage meanwhile. */
	ck_assert_int_eq(take_batch(0, 5, 115, 10, 2), 0);
	ck_assert_int_eq(take_stack(1, 6, 121, 0, MORPH_STACK_NO_ROWS), 0);
	give(1000);
	expect(&pos, MORPH_REC_SAMPLES, 5, 100, 4);
	stack = expect_stack(&pos, MORPH_REC_STACK, 120);
	ck_assert_uint_eq(stack->task.flags, MORPH_STACK_BOTTOM);
	ck_assert_uint_eq(stack->task.record.size, sizeof(*stack) + 3 * 8);
	ck_assert_uint_eq(stack->ips[2], 3);
	expect(&pos, MORPH_REC_SAMPLES, 6, 121, 1);
	stack = expect_stack(&pos, MORPH_REC_STACK, 121);
	ck_assert_uint_eq(stack->task.record.size, sizeof(*stack));
	expect(&pos, MORPH_REC_SAMPLES, 5, 125, 1);
	expect_end(&pos);
	ck_assert_uint_eq(m.nr_samples, 6);
}

TEST(a_stack_that_is_not_given_out_yet_is_kept)
{
	size_t pos = 0;

	ck_assert_int_eq(take_stack(0, 5, 100, 3, MORPH_STACK_BOTTOM), 0);
	ck_assert_int_eq(take_exec(5, 150), 0);
	ck_assert_int_eq(take_stack(0, 5, 200, 1, MORPH_STACK_BOTTOM), 0);
	give(170);
	expect(&pos, MORPH_REC_SAMPLES, 5, 100, 1);
	expect_stack(&pos, MORPH_REC_STACK, 100);
	expect(&pos, MORPH_REC_EXEC, 5, 0, 0);
	expect_end(&pos);
	pos = 0;
	give(1000);
	expect(&pos, MORPH_REC_SAMPLES, 5, 200, 1);
	expect_stack(&pos, MORPH_REC_STACK, 200);
	expect_end(&pos);
	/* This one is freed with the merge. */
	ck_assert_int_eq(take_stack(1, 5, 2000, 1, MORPH_STACK_BOTTOM), 0);
}

TEST(a_stack_says_which_callers_look_old)
{
	const struct morph_stack *stack;
	size_t pos = 0;

	ck_assert_int_eq(take_stack(0, 5, 100, 3, MORPH_STACK_BOTTOM), 0);
	ck_assert_int_eq(take_stack(1, 5, 110, 3, MORPH_STACK_BOTTOM), 0);
	ck_assert_int_eq(take_stack(0, 6, 115, 3, MORPH_STACK_BOTTOM), 0);
	/* The second CPU's is older, and is compared first, but is given out later. */
	ck_assert_int_eq(take_stack(0, 5, 120, 3, MORPH_STACK_BOTTOM), 0);
	give(1000);
	expect(&pos, MORPH_REC_SAMPLES, 5, 100, 1);
	stack = expect_stack(&pos, MORPH_REC_STACK, 100);
	ck_assert_uint_eq(stack->task.flags, MORPH_STACK_BOTTOM);
	expect(&pos, MORPH_REC_SAMPLES, 6, 115, 1);
	stack = expect_stack(&pos, MORPH_REC_STACK, 115);
	ck_assert_uint_eq(stack->task.flags, MORPH_STACK_BOTTOM);
	for (uint64_t time_ns = 120; time_ns >= 110; time_ns -= 10) {
		expect(&pos, MORPH_REC_SAMPLES, 5, time_ns, 1);
		stack = expect_stack(&pos, MORPH_REC_STACK, time_ns);
		ck_assert_uint_eq(stack->task.flags, MORPH_STACK_BOTTOM | MORPH_STACK_AGED |
							     3 << MORPH_STACK_OLD_SHIFT);
	}
	expect_end(&pos);
}

TEST(a_copy_becomes_a_user_stack)
{
	const struct morph_user_stack *user;
	size_t pos = 0;

	ck_assert_int_eq(take_copy(5, 100, 12, 16, MORPH_USER_STACK_KERNEL), 0);
	/* For tests: a stack, and the copy of the same sample. */
	ck_assert_int_eq(take_stack(0, 5, 110, 1, MORPH_STACK_BOTTOM), 0);
	ck_assert_int_eq(take_copy(5, 110, 8, 8, MD_WIRE_AGAIN), 0);
	give(1000);
	expect(&pos, MORPH_REC_SAMPLES, 5, 100, 1);
	user = (const void *)expect_stack(&pos, MORPH_REC_USER_STACK, 100);
	ck_assert_uint_eq(user->task.flags, MORPH_USER_STACK_KERNEL);
	ck_assert_uint_eq(user->ip, 77);
	ck_assert_uint_eq(user->registers[MORPH_REG_RSP], 4096);
	ck_assert_uint_eq(user->nr, 12);
	ck_assert_uint_eq(user->below, 128);
	ck_assert_uint_eq(user->bytes[0], 9);
	expect(&pos, MORPH_REC_SAMPLES, 5, 110, 1);
	expect_stack(&pos, MORPH_REC_STACK, 110);
	user = (const void *)expect_stack(&pos, MORPH_REC_USER_STACK, 110);
	ck_assert_uint_eq(user->task.flags, 0);
	expect_end(&pos);
	ck_assert_uint_eq(m.nr_samples, 2);
}

static const struct morph_registers *next_registers(size_t *pos)
{
	struct morph_record *record;

	ck_assert_int_eq(md_record_next(m.decoder.out.data, m.decoder.out.size, pos, &record), 0);
	ck_assert_uint_eq(record->type, MORPH_REC_REGISTERS);
	return (const void *)record;
}

static void want_registers(uint32_t registers)
{
	md_bpf_merge_fini(&m);
	ck_assert_int_eq(md_bpf_merge_init(&m, 2, 4000, registers), 0);
}

TEST(registers_stand_behind_the_batch_of_their_samples)
{
	const struct morph_registers *registers;
	size_t pos = 0;

	want_registers(MORPH_REGS_BRANCHES);
	/* The batch was staged first, but came later; its samples are of the kernel. */
	ck_assert_int_eq(take_registers(0, 5, 110), 0);
	ck_assert_int_eq(take_registers(0, 5, 130), 0);
	ck_assert_int_eq(take_batch(0, 5, 100, 20, 2), 0);
	give(1000);
	expect(&pos, MORPH_REC_SAMPLES, 5, 100, 4);
	registers = next_registers(&pos);
	ck_assert_uint_eq(registers->task.tgid, 5);
	ck_assert_uint_eq(registers->registers, MORPH_REGS_BRANCHES);
	ck_assert_uint_eq(md_registers_nr(registers), 2);
	for (uint32_t i = 0; i < 2; i++) {
		const __u64 *entry = registers->entries + i * md_registers_words(registers);

		ck_assert_uint_eq(entry[0], 110 + 20 * i);
		for (uint32_t reg = 0; reg <= MORPH_REG_FLAGS; reg++)
			if (reg != MORPH_REG_RSP)
				ck_assert_uint_eq(entry[md_registers_word(registers, reg)],
						  110 + 20 * i + reg);
	}
	expect_end(&pos);
	ck_assert_uint_eq(m.nr_samples, 4);
}

TEST(only_wanted_registers_are_kept)
{
	const struct morph_registers *registers;
	size_t pos = 0;

	want_registers(1U << MORPH_REG_RDI | 1U << 15);
	ck_assert_int_eq(take_registers(1, 5, 100), 0);
	give(1000);
	expect(&pos, MORPH_REC_SAMPLES, 5, 100, 1);
	registers = next_registers(&pos);
	ck_assert_uint_eq(registers->task.record.size, sizeof(*registers) + 24);
	ck_assert_uint_eq(registers->entries[1], 100 + MORPH_REG_RDI);
	ck_assert_uint_eq(registers->entries[2], 100 + 15);
	expect_end(&pos);
}

TEST(a_sample_with_registers_and_a_stack_counts_once)
{
	size_t pos = 0;

	want_registers(MORPH_REGS_BRANCHES);
	ck_assert_int_eq(take_registers(0, 5, 100), 0);
	ck_assert_int_eq(take_stack(0, 5, 100, 2, MORPH_STACK_BOTTOM | MD_WIRE_AGAIN), 0);
	give(1000);
	expect(&pos, MORPH_REC_SAMPLES, 5, 100, 1);
	ck_assert_uint_eq(next_registers(&pos)->entries[0], 100);
	ck_assert_uint_eq(expect_stack(&pos, MORPH_REC_STACK, 100)->task.flags, MORPH_STACK_BOTTOM);
	expect_end(&pos);
	ck_assert_uint_eq(m.nr_samples, 1);
}

TEST(registers_that_were_not_wanted_are_refused)
{
	struct md_wire_registers wire = {.task.record = {.type = MD_WIRE_REGISTERS}};

	ck_assert_int_eq(take_registers(0, 5, 100), -EBADMSG);
	want_registers(MORPH_REGS_PATHS);
	wire.task.record.size = sizeof(wire) - 8;
	ck_assert_int_eq(md_bpf_merge_take(&m, &wire, sizeof(wire) - 8), -EBADMSG);
	ck_assert_uint_eq(m.nr_samples, 0);
}

TEST(stacks_whose_sizes_lie_are_refused)
{
	struct md_wire_stack wire = {.task.record = {.type = MD_WIRE_STACK}};

	wire.task.record.size = sizeof(wire.task);
	ck_assert_int_eq(md_bpf_merge_take(&m, &wire, sizeof(wire.task)), -EBADMSG);
	ck_assert_int_eq(take_stack(2, 5, 100, 1, 0), -EBADMSG);
	ck_assert_int_eq(take_copy(5, 100, 17, 16, 0), -EBADMSG);
	ck_assert_int_eq(take_copy(5, 100, 1, 4, 0), -EBADMSG);
	ck_assert_uint_eq(m.nr_samples, 0);
}

TEST(processes_of_the_mappings_rings_are_not_told_twice)
{
	struct {
		struct perf_event_header header;
		uint64_t words[6];
	} end = {.header = {.type = PERF_RECORD_EXIT, .size = 8 + 24 + 24}};

	end.words[0] = 5 | (uint64_t)4 << 32;
	end.words[1] = 5 | (uint64_t)4 << 32;
	md_perf_decode(&m.decoder, 0, &end.header);
	end.header.type = PERF_RECORD_FORK;
	md_perf_decode(&m.decoder, 0, &end.header);
	ck_assert_uint_eq(m.decoder.out.size, 0);
}
