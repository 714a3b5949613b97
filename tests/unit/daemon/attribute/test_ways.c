// SPDX-License-Identifier: Apache-2.0
/* Ways of branches by registers of samples: batches, and this program's own code. */
#include "daemon/attribute/ways.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/attribute/attribute.h"
#include "daemon/module/sandbox.h"
#include "daemon/source/proc_scan.h"
#include "tests/unit/suite.h"

/* Two branches; control falls through the first where rdi is 5. */
__asm__(".text\n.globl ways_code, ways_first, ways_second\n.type ways_code, @function\n"
	"ways_code: cmp $5, %rdi\nways_first: jne 1f\n nop\n1: test %rsi, %rsi\n"
	"ways_second: js 2f\n nop\n2: ret\n.size ways_code, .-ways_code\n");
extern const char ways_code[], ways_first[], ways_second[];

/* ---- batches ------------------------------------------------------------------------------ */

#define CODE_VADDR     UINT64_C(0x401000)
#define CONSTANT_VADDR UINT64_C(0x403ffe) /* across two pages of the file */
/* cmp $5, %rdi; jne .+1; nop; cmpl $7, (%rsi); jne .+1; nop; ret: the second branch reads a constant. */
static const uint8_t code[] = {0x48, 0x83, 0xff, 0x05, 0x75, 0x01, 0x90,
			       0x83, 0x3e, 0x07, 0x75, 0x01, 0x90, 0xc3};

enum {
	CODE_OFF = 0xffd, /* the first instruction lies in two pages, too */
	CONSTANT_OFF = 0x1ffe
};

struct image {
	Elf64_Ehdr ehdr;
	Elf64_Phdr loads[2], dynamic;
	Elf64_Dyn dyn[2];
	uint8_t rest[0x3000 - sizeof(Elf64_Ehdr) - 3 * sizeof(Elf64_Phdr) - 2 * sizeof(Elf64_Dyn)];
};

/* A program of one piece of code and one constant. */
static struct image *image_make(void)
{
	struct image *image = calloc(1, sizeof(*image));

	ck_assert_ptr_nonnull(image);
	memcpy(image->ehdr.e_ident, ELFMAG, SELFMAG);
	image->ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	image->ehdr.e_machine = EM_X86_64;
	image->ehdr.e_phoff = offsetof(struct image, loads);
	image->ehdr.e_phentsize = sizeof(Elf64_Phdr);
	image->ehdr.e_phnum = 3;
	image->loads[0] = (Elf64_Phdr){.p_type = PT_LOAD,
				       .p_flags = PF_R | PF_X,
				       .p_offset = CODE_OFF,
				       .p_vaddr = CODE_VADDR,
				       .p_filesz = sizeof(code)};
	image->loads[1] = (Elf64_Phdr){.p_type = PT_LOAD,
				       .p_flags = PF_R,
				       .p_offset = CONSTANT_OFF,
				       .p_vaddr = CONSTANT_VADDR,
				       .p_filesz = 4};
	image->dynamic = (Elf64_Phdr){.p_type = PT_DYNAMIC,
				      .p_offset = offsetof(struct image, dyn),
				      .p_filesz = sizeof(image->dyn)};
	image->dyn[0] = (Elf64_Dyn){.d_tag = DT_FLAGS, .d_un = {.d_val = DF_BIND_NOW}};
	memcpy((uint8_t *)image + CODE_OFF, code, sizeof(code));
	((uint8_t *)image)[CONSTANT_OFF] = 7;
	return image;
}

struct batch {
	struct md_ways_batch head;
	struct md_ways_sample samples[2];
};

static struct batch good_batch(void)
{
	const uint64_t bias = UINT64_C(0x400000) - UINT64_C(0x555500000000);
	struct md_ways_sample sample = {.vaddr = CODE_VADDR,
					.bias = bias,
					.known = 0xffff,
					.registers = {[6] = CONSTANT_VADDR - bias, [7] = 5}};
	struct batch b = {.head = {MD_WAYS_MAGIC, 2, 0}, .samples = {sample, sample}};

	b.samples[1].registers[7] = 6;
	return b;
}

static int memory_file(const void *bytes, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq((int)write(fd, bytes, size), (int)size);
	return fd;
}

static int work_on(const void *batch, size_t size, const struct image *image, struct md_buf *reply)
{
	int fd = memory_file(batch, size), beside = memory_file(image, sizeof(*image)), ret;

	ret = md_ways_work(fd, size, beside, reply);
	close(beside);
	close(fd);
	return ret;
}

START_TEST(work_tells_the_ways_of_each_sample)
{
	struct batch b = good_batch();
	struct image *image = image_make();
	const struct md_ways_reply *ways;
	struct md_buf reply = {0};

	ck_assert_int_eq(work_on(&b, sizeof(b), image, &reply), 0);
	ck_assert_uint_eq(reply.size, 4 * sizeof(*ways));
	ways = (const void *)reply.data;
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(ways[2 * i].vaddr, CODE_VADDR + 4);
		ck_assert_uint_eq(ways[2 * i].taken, (uint64_t)i);
		ck_assert_uint_eq(ways[2 * i + 1].vaddr, CODE_VADDR + 10);
		ck_assert_uint_eq(ways[2 * i + 1].taken, 0);
	}
	md_buf_fini(&reply);
	free(image);
}
END_TEST

static size_t nr_replies(const struct batch *b, const struct image *image)
{
	struct md_buf reply = {0};
	size_t nr;

	ck_assert_int_eq(work_on(b, sizeof(*b), image, &reply), 0);
	nr = reply.size / sizeof(struct md_ways_reply);
	md_buf_fini(&reply);
	return nr;
}

START_TEST(work_says_nothing_of_what_is_not_known)
{
	struct batch b = good_batch();
	struct image *image = image_make();

	b.samples[0].known = 0xff7f;
	b.samples[1].vaddr = CODE_VADDR - 1;
	ck_assert_uint_eq(nr_replies(&b, image), 0);
	b.samples[1].vaddr = CODE_VADDR + sizeof(code);
	ck_assert_uint_eq(nr_replies(&b, image), 0);
	b = good_batch();
	image->loads[1].p_flags = PF_R | PF_W;
	ck_assert_uint_eq(nr_replies(&b, image), 2);
	image->loads[1].p_flags = PF_R;
	image->loads[1].p_filesz = 3;
	ck_assert_uint_eq(nr_replies(&b, image), 2);
	image->loads[1].p_filesz = 4;
	image->dyn[0] = (Elf64_Dyn){.d_tag = DT_TEXTREL};
	ck_assert_uint_eq(nr_replies(&b, image), 2);
	image->dyn[0] = (Elf64_Dyn){.d_tag = DT_FLAGS, .d_un = {.d_val = DF_TEXTREL}};
	ck_assert_uint_eq(nr_replies(&b, image), 2);
	image->dyn[0] = (Elf64_Dyn){.d_tag = DT_NULL};
	ck_assert_uint_eq(nr_replies(&b, image), 4);
	image->loads[0].p_flags = PF_R;
	ck_assert_uint_eq(nr_replies(&b, image), 0);
	free(image);
}
END_TEST

START_TEST(work_refuses_what_is_no_batch)
{
	struct batch b = good_batch();
	struct image *image = image_make();
	struct md_buf reply = {0};

	for (size_t size = 0; size < sizeof(b); size += size < 32 ? 1 : 61)
		ck_assert_int_eq(work_on(&b, size, image, &reply),
				 size < sizeof(b.head.magic) ? 0 : -EBADMSG);
	b.head.nr_samples = MD_WAYS_SAMPLES_MAX + 1;
	ck_assert_int_eq(work_on(&b, sizeof(b), image, &reply), -EBADMSG);
	b = good_batch();
	b.samples[1].stack_words = MD_WAYS_STACK_WORDS + 1;
	ck_assert_int_eq(work_on(&b, sizeof(b), image, &reply), -EBADMSG);
	ck_assert_uint_eq(reply.size, 0);
	free(image);
}
END_TEST

START_TEST(work_refuses_what_is_no_program)
{
	struct batch b = good_batch();
	struct image *image = image_make();
	struct md_buf reply = {0};

	image->ehdr.e_phoff = sizeof(*image) - 1;
	ck_assert_int_eq(work_on(&b, sizeof(b), image, &reply), -EBADMSG);
	image->ehdr.e_phoff = UINT64_MAX;
	ck_assert_int_eq(work_on(&b, sizeof(b), image, &reply), -EBADMSG);
	image->ehdr.e_machine = EM_386;
	ck_assert_int_eq(work_on(&b, sizeof(b), image, &reply), -EBADMSG);
	free(image);
	/* Headers that lie, and code that the file does not have. */
	image = image_make();
	image->loads[0].p_offset = UINT64_MAX - 4;
	ck_assert_uint_eq(nr_replies(&b, image), 0);
	image->loads[0].p_offset = INT64_MAX - sizeof(code);
	ck_assert_uint_eq(nr_replies(&b, image), 0);
	free(image);
}
END_TEST

/* ---- this program ------------------------------------------------------------------------- */

static struct md_attribute at;

static void setup(void)
{
	struct md_buf scan = {0};
	struct morph_record *record;
	struct md_file *file;
	struct mp_err err;
	size_t pos = 0;

	ck_assert_int_eq(md_attribute_init(&at), 0);
	ck_assert_int_eq(md_proc_scan(getpid(), 0, NULL, &scan), 0);
	while (!md_record_next(scan.data, scan.size, &pos, &record)) {
		struct morph_mmap *mmap = (void *)record;

		if (record->type == MORPH_REC_MMAP) {
			ck_assert_int_eq(md_modcache_resolve(at.modcache, mmap, 0, &file), 0);
			mmap->module = file->number;
		}
		ck_assert_int_eq(md_attribute_record(&at, record), 0);
	}
	md_buf_fini(&scan);
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
	struct md_buf buf = {0};
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
	md_buf_fini(&buf);
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

START_TEST(ways_of_this_program_are_counted)
{
	sample(40, 5, 1);
	sample(20, 6, UINT64_MAX);
	md_ways_run(at.ways, at.modcache, false);
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
END_TEST

START_TEST(ways_of_few_samples_are_counted_at_the_end_only)
{
	sample(3, 5, 1);
	md_ways_run(at.ways, at.modcache, false);
	ck_assert_uint_eq(at.ways->ledger.dropped, 3);
	sample(3, 5, 1);
	md_ways_run(at.ways, at.modcache, true);
	ck_assert_uint_eq(at.ways->ledger.ways, 6);
}
END_TEST

START_TEST(samples_beyond_the_limit_are_left_out)
{
	for (int i = 0; i < 3 * 16; i++)
		sample(MD_WAYS_SAMPLES_MAX / 16, 5, 1);
	ck_assert(md_ways_is_due(at.ways));
	ck_assert_uint_eq(at.ways->ledger.dropped, MD_WAYS_SAMPLES_MAX);
	md_ways_run(at.ways, at.modcache, false);
	ck_assert(!md_ways_is_due(at.ways));
	ck_assert_uint_eq(at.ways->ledger.ways, 4ULL * MD_WAYS_SAMPLES_MAX);
	ck_assert_uint_eq(nr_ways(ways_first, 0), 2ULL * MD_WAYS_SAMPLES_MAX);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("ways");
	TCase *batch = tcase_create("batch"), *own = tcase_create("own");

	tcase_add_test(batch, work_tells_the_ways_of_each_sample);
	tcase_add_test(batch, work_says_nothing_of_what_is_not_known);
	tcase_add_test(batch, work_refuses_what_is_no_batch);
	tcase_add_test(batch, work_refuses_what_is_no_program);
	tcase_add_checked_fixture(own, setup, teardown);
	tcase_add_test(own, ways_of_this_program_are_counted);
	tcase_add_test(own, ways_of_few_samples_are_counted_at_the_end_only);
	tcase_add_test(own, samples_beyond_the_limit_are_left_out);
	suite_add_tcase(suite, batch);
	suite_add_tcase(suite, own);
	return suite;
}

int main(int argc, char **argv)
{
	(void)argc;
	md_sandbox_reader(argv, MD_SANDBOX_WAYS, md_ways_work);
	return morph_suite_run(make_suite);
}
