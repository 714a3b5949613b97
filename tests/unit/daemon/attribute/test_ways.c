// SPDX-License-Identifier: Apache-2.0
/* Ways of branches by registers of samples: batches, and this program's own code. */
#include "daemon/attribute/ways.h"

#include <sys/mman.h>

#include "daemon/attribute/attribute.h"
#include "daemon/module/sandbox.h"
#include "tests/support/process/own_files.h"
#define SUITE_OWN_MAIN
#include "tests/unit/suite.h"

/* Two branches; control falls through the first where rdi is 5. */
__asm__(".text\n.globl ways_code, ways_first, ways_second\n.type ways_code, @function\n"
	"ways_code: cmp $5, %rdi\nways_first: jne 1f\n nop\n1: test %rsi, %rsi\n"
	"ways_second: js 2f\n nop\n2: ret\n.size ways_code, .-ways_code\n");
extern const char ways_code[], ways_first[], ways_second[];

/* ---- batches ------------------------------------------------------------------------------ */

#define PAGE_VADDR UINT64_C(0x401000)
/* cmp $5, %rdi; jne .+1; nop; ret */
static const uint8_t code[] = {0x48, 0x83, 0xff, 0x05, 0x75, 0x01, 0x90, 0xc3};

struct batch {
	struct md_ways_batch head;
	struct md_ways_sample samples[2];
	struct md_ways_page pages[2];
	uint8_t bytes[sizeof(code)];
} __attribute__((packed));

/* The first instruction lies in both pages. */
static struct batch good_batch(void)
{
	struct batch b = {
		.head = {MD_WAYS_MAGIC, 2, 2},
		.samples = {{.vaddr = PAGE_VADDR, .known = 0xffef, .registers = {[7] = 5}},
			    {.vaddr = PAGE_VADDR, .known = 0xffef, .registers = {[7] = 6}}},
		.pages = {{.vaddr = PAGE_VADDR, .size = 3},
			  {.vaddr = PAGE_VADDR + 3, .size = sizeof(code) - 3}},
	};

	memcpy(b.bytes, code, sizeof(code));
	return b;
}

static int work_on(const void *batch, size_t size, struct md_buf *reply)
{
	int fd = memfd_create("test", MFD_CLOEXEC), ret;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq((int)write(fd, batch, size), (int)size);
	ret = md_ways_work(fd, size, reply);
	close(fd);
	return ret;
}

TEST(work_tells_the_way_of_each_sample)
{
	struct batch b = good_batch();
	const struct md_ways_reply *ways;
	AUTO(md_buf_fini) struct md_buf reply = {0};

	ck_assert_int_eq(work_on(&b, sizeof(b), &reply), 0);
	ck_assert_uint_eq(reply.size, 2 * sizeof(*ways));
	ways = (const void *)reply.data;
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(ways[i].vaddr, PAGE_VADDR + 4);
		ck_assert_uint_eq(ways[i].taken, (uint64_t)i);
	}
}

TEST(work_says_nothing_of_unknown_registers_and_missing_code)
{
	struct batch b = good_batch();
	AUTO(md_buf_fini) struct md_buf reply = {0};

	b.samples[0].known = 0xff7f;
	b.samples[1].vaddr = PAGE_VADDR - 1;
	ck_assert_int_eq(work_on(&b, sizeof(b), &reply), 0);
	ck_assert_uint_eq(reply.size, 0);
	b.samples[1].vaddr = PAGE_VADDR + sizeof(code);
	ck_assert_int_eq(work_on(&b, sizeof(b), &reply), 0);
	ck_assert_uint_eq(reply.size, 0);
}

TEST(work_refuses_what_is_no_batch)
{
	struct batch b = good_batch();
	AUTO(md_buf_fini) struct md_buf reply = {0};

	for (size_t size = 0; size < sizeof(b); size++)
		ck_assert_int_eq(work_on(&b, size, &reply),
				 size < sizeof(b.head.magic) ? 0 : -EBADMSG);
	b.head.nr_samples = MD_WAYS_SAMPLES_MAX + 1;
	ck_assert_int_eq(work_on(&b, sizeof(b), &reply), -EBADMSG);
	b = good_batch();
	b.head.nr_pages = UINT32_MAX;
	ck_assert_int_eq(work_on(&b, sizeof(b), &reply), -EBADMSG);
	b = good_batch();
	b.pages[0].size = MD_WAYS_PAGE + 1;
	ck_assert_int_eq(work_on(&b, sizeof(b), &reply), -EBADMSG);
	b = good_batch();
	b.pages[1].vaddr = PAGE_VADDR + 2; /* within the first */
	ck_assert_int_eq(work_on(&b, sizeof(b), &reply), -EBADMSG);
	b.pages[1].vaddr = PAGE_VADDR - 16;
	ck_assert_int_eq(work_on(&b, sizeof(b), &reply), -EBADMSG);
	ck_assert_uint_eq(reply.size, 0);
}

/* ---- this program ------------------------------------------------------------------------- */

static struct md_attribute at;
static struct mp_err said;

static void setup(void)
{
	ck_assert_int_eq(md_attribute_init(&at), 0);
	ck_assert_int_eq(own_files_attribute(&at), 0);
	ck_assert_int_eq(md_ways_new(&at.ways, &err), 0);
}

static void teardown(void)
{
	md_attribute_fini(&at);
}

/* Adds @nr samples at ways_code with these registers. */
static void sample(uint32_t nr, uint64_t rdi, uint64_t rsi)
{
	const uint32_t words = 3, mask = 1u << MORPH_REG_RSI | 1u << MORPH_REG_RDI;
	AUTO(md_buf_fini) struct md_buf buf = {0};
	struct morph_registers *r = md_record_add_task(&buf, MORPH_REC_REGISTERS,
						       sizeof(*r) + nr * words * 8, 5,
						       (uint32_t)getpid(), (uint32_t)getpid());

	ck_assert_ptr_nonnull(r);
	r->registers = mask;
	for (uint32_t i = 0; i < nr; i++) {
		r->entries[i * words] = (uint64_t)(uintptr_t)ways_code;
		r->entries[i * words + 1] = rsi;
		r->entries[i * words + 2] = rdi;
	}
	ck_assert_int_eq(md_attribute_record(&at, &r->task.record), 0);
}

/* How often the branch at @branch went this way. */
static uint64_t nr_ways(const char *branch, uint64_t taken)
{
	const struct md_edges *counts = &at.ways->counts;
	struct md_space *space = md_procmap_find(at.procmap, (uint32_t)getpid(), 0);
	const struct md_mapping *m = md_space_find(space, (uint64_t)(uintptr_t)branch);
	uint64_t key = md_sample_table_key(m->module, (uint64_t)(uintptr_t)branch + m->bias);

	for (size_t i = 0; i < counts->nr_slots; i++)
		if (counts->slots[i].from == key && counts->slots[i].to == taken)
			return counts->slots[i].nr;
	return 0;
}

FIXTURE(setup, teardown);

TEST(ways_of_this_program_are_counted)
{
	sample(40, 5, 1);
	sample(20, 6, UINT64_MAX);
	md_ways_run(at.ways, at.modcache, false, &said);
	ck_assert_uint_eq(at.ways->nr_pending, 0);
	ck_assert_uint_eq(at.ways->ledger.samples, 60);
	ck_assert_uint_eq(at.ways->ledger.dropped, 0);
	ck_assert_uint_eq(at.ways->ledger.failed, 0);
	ck_assert_uint_eq(at.ways->ledger.ways, 120);
	ck_assert_uint_eq(nr_ways(ways_first, 0), 40);
	ck_assert_uint_eq(nr_ways(ways_first, 1), 20);
	ck_assert_uint_eq(nr_ways(ways_second, 0), 40);
	ck_assert_uint_eq(nr_ways(ways_second, 1), 20);
	md_attribute_clear(&at);
	ck_assert_uint_eq(nr_ways(ways_first, 0), 0);
}

TEST(ways_of_few_samples_are_counted_at_the_end_only)
{
	sample(3, 5, 1);
	md_ways_run(at.ways, at.modcache, false, &said);
	ck_assert_uint_eq(at.ways->ledger.dropped, 3);
	sample(3, 5, 1);
	md_ways_run(at.ways, at.modcache, true, &said);
	ck_assert_uint_eq(at.ways->ledger.ways, 6);
}

TEST(samples_beyond_the_limit_are_left_out)
{
	for (int i = 0; i < 3 * 16; i++)
		sample(MD_WAYS_SAMPLES_MAX / 16, 5, 1);
	ck_assert(md_ways_is_due(at.ways));
	ck_assert_uint_eq(at.ways->ledger.dropped, MD_WAYS_SAMPLES_MAX);
	md_ways_run(at.ways, at.modcache, false, &said);
	ck_assert(!md_ways_is_due(at.ways));
	ck_assert_uint_eq(at.ways->ledger.ways, 4ULL * MD_WAYS_SAMPLES_MAX);
	ck_assert_uint_eq(nr_ways(ways_first, 0), 2ULL * MD_WAYS_SAMPLES_MAX);
}

/* Samples of @nr files that do not exist, @each of each. */
static void pend(uint32_t nr, uint32_t each)
{
	for (uint32_t i = 0; i < nr * each; i++)
		at.ways->pending[at.ways->nr_pending++] =
			(struct md_ways_pending){.module = 1000 + i / each};
}

/* A reader that is gone: its samples are counted, and why is said once. */
TEST(samples_whose_reader_fails_are_counted_with_the_reason)
{
	const struct md_sandbox_config none = {10000, 0, MD_SANDBOX_WAYS};

	md_sandbox_close(at.ways->sandbox);
	at.ways->sandbox = NULL;
	if (md_sandbox_open(&none, &at.ways->sandbox, &err))
		MORPH_SKIP("no sandbox");
	sample(40, 5, 1);
	md_ways_run(at.ways, at.modcache, false, &said);
	ck_assert_uint_eq(at.ways->ledger.ways, 0);
	ck_assert_uint_eq(at.ways->ledger.failed, 40);
	ck_assert_ptr_nonnull(strstr(said.msg, "no ways of branches: "));
	sample(40, 5, 1);
	md_ways_run(at.ways, at.modcache, false, &said);
	ck_assert_uint_eq(at.ways->ledger.failed, 80);
	ck_assert_str_eq(said.msg, "");
}

TEST(of_many_files_those_with_the_most_samples_are_executed)
{
	pend(64, 30);
	sample(20, 5, 1);
	md_ways_run(at.ways, at.modcache, false, &said);
	ck_assert_uint_eq(at.ways->ledger.ways, 0);
	pend(64, 30);
	sample(40, 5, 1);
	md_ways_run(at.ways, at.modcache, false, &said);
	ck_assert_uint_eq(at.ways->ledger.ways, 80);
	/* As many files as are executed at a time. */
	pend(31, 30);
	sample(20, 5, 1);
	md_ways_run(at.ways, at.modcache, false, &said);
	ck_assert_uint_eq(at.ways->ledger.ways, 120);
}

TEST(a_share_of_the_samples_shows_ways)
{
	at.ways_share = MD_WAYS_SHARE_ALL / 4 * 3;
	for (int i = 0; i < 100; i++)
		sample(1, 5, 1);
	ck_assert_uint_eq(at.ways->ledger.samples, 75);
	at.ways_share = 0;
	sample(100, 5, 1);
	ck_assert_uint_eq(at.ways->ledger.samples, 175);
}

TEST(a_file_with_plenty_of_samples_shows_fewer_ways_until_the_next_day)
{
	at.ways_a_day = 40;
	sample(40, 5, 1);
	ck_assert_uint_eq(at.ways->ledger.samples, 40);
	sample(80, 5, 1);
	ck_assert_uint_eq(at.ways->ledger.samples, 50);
	at.last_time_ns = UINT64_C(86400) * 1000000000;
	sample(40, 5, 1);
	ck_assert_uint_eq(at.ways->ledger.samples, 90);
}

TEST(no_register_remains_after_a_run)
{
	const struct md_ways_pending none = {0};

	sample(40, 0x5ec2e7, 1);
	ck_assert_uint_eq(at.ways->pending[39].sample.registers[MORPH_REG_RDI], 0x5ec2e7);
	md_ways_run(at.ways, at.modcache, false, &said);
	for (int i = 0; i < 40; i++)
		ck_assert_int_eq(memcmp(&at.ways->pending[i], &none, sizeof(none)), 0);
}

int main(int argc, char **argv)
{
	(void)argc;
	md_sandbox_reader(argv, MD_SANDBOX_WAYS, md_ways_work);
	return morph_suite_run();
}
