// SPDX-License-Identifier: Apache-2.0
/*
 * test_attribute - each sample goes to its module or to a reason; none is counted twice or
 * dropped.
 */
#include "libprof/note/map_packed.h"
#include "tests/unit/scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "daemon/attribute/attribute.h"
#include "daemon/module/modfind.h"
#include "kmod/uapi/morph_dev.h"

static struct md_attribute at;
static struct md_buf buf;

static void setup(void)
{
	ck_assert_int_eq(md_attribute_init(&at), 0);
}

static void teardown(void)
{
	md_attribute_fini(&at);
	md_buf_fini(&buf);
}

static void feed(void)
{
	struct morph_record *record;
	size_t pos = 0;
	int ret;

	while (!(ret = md_record_next(buf.data, buf.size, &pos, &record)))
		ck_assert_int_eq(md_attribute_record(&at, record), 0);
	ck_assert_int_eq(ret, -ENODATA);
	buf.size = 0;
	ck_assert(md_attribute_is_conserved(&at));
}

static void exec(uint32_t tgid)
{
	struct morph_exec *r = md_record_add_task(&buf, MORPH_REC_EXEC, sizeof(*r), 1, tgid, tgid);

	r->nr_threads = 1;
}

/* Adds module @n: text at file offset 0x1000, linked at 0x401000, 0x2345 bytes. */
static void module(uint32_t n, uint64_t text_hash)
{
	char path[32];
	int len = snprintf(path, sizeof(path), "/bin/m%u", n);
	struct morph_module *r = md_record_add(&buf, MORPH_REC_MODULE, sizeof(*r) + 24 + len + 1);

	r->module = n;
	r->nr_segments = 1;
	r->text_hash = text_hash;
	r->text_size = 0x2345;
	r->segments[0] = (struct morph_segment){0x1000, 0x401000, 0x2345};
	memcpy(&r->segments[1], path, len);
}

static struct morph_mmap *map(uint32_t tgid, uint64_t start, uint64_t len, uint64_t off, uint32_t n)
{
	struct morph_mmap *r = md_record_add_mmap(&buf, 2, tgid, tgid, "/bin/x");

	r->start = start;
	r->len = len;
	r->off = off;
	r->module = n;
	return r;
}

static void sample(uint32_t tgid, uint64_t ip)
{
	struct morph_samples *r;

	r = md_record_add_task(&buf, MORPH_REC_SAMPLES, sizeof(*r) + 8, 3, tgid, tgid);
	r->ips[0] = ip;
}

/* Return: samples counted at @vaddr of the module with @text_hash. */
static uint64_t counted(uint64_t text_hash, uint64_t vaddr)
{
	const struct md_module *m;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < at.samples.nr_slots; i++) {
		if (!at.samples.slots[i].key)
			continue;
		m = md_modcache_module(at.modcache,
				       md_sample_table_module(at.samples.slots[i].key));
		if (m->id.text_hash == text_hash &&
		    md_sample_table_vaddr(at.samples.slots[i].key) == vaddr)
			sum += at.samples.slots[i].nr;
	}
	return sum;
}

FIXTURE(setup, teardown);

TEST(sample_counts_at_its_link_time_address)
{
	exec(1);
	module(1, 0xaa);
	map(1, 0x7f0000001000, 0x3000, 0x1000, 1);
	sample(1, 0x7f0000001000);
	sample(1, 0x7f0000003344);
	sample(1, 0x7f0000003344);
	feed();
	ck_assert_uint_eq(counted(0xaa, 0x401000), 1);
	ck_assert_uint_eq(counted(0xaa, 0x403344), 2);
	ck_assert_uint_eq(at.ledger.attributed, 3);
	ck_assert_uint_eq(at.ledger.emitted, 3);
}

TEST(two_copies_of_a_file_are_one_module)
{
	exec(1);
	module(1, 0xaa);
	module(2, 0xaa);
	map(1, 0x10000000, 0x3000, 0x1000, 1);
	map(1, 0x20000000, 0x3000, 0x1000, 2);
	sample(1, 0x10000004);
	sample(1, 0x20000004);
	feed();
	ck_assert_uint_eq(counted(0xaa, 0x401004), 2);
	ck_assert_uint_eq(md_modcache_nr_modules(at.modcache), 1);
}

TEST(remapped_address_belongs_to_the_later_file)
{
	exec(1);
	module(1, 0xaa);
	module(2, 0xbb);
	map(1, 0x10000000, 0x3000, 0x1000, 1);
	sample(1, 0x10000010);
	map(1, 0x10000000, 0x3000, 0x1000, 2);
	sample(1, 0x10000010);
	feed();
	ck_assert_uint_eq(counted(0xaa, 0x401010), 1);
	ck_assert_uint_eq(counted(0xbb, 0x401010), 1);
}

TEST(each_reason_is_counted_by_name)
{
	static const struct {
		uint32_t status;
		enum mp_unattributed why;
	} cases[] = {
		{MORPH_MODULE_ANONYMOUS, MP_UNATTR_ANONYMOUS},
		{MORPH_MODULE_DELETED, MP_UNATTR_DELETED},
		{MORPH_MODULE_REPLACED, MP_UNATTR_REPLACED},
		{MORPH_MODULE_NAMESPACE, MP_UNATTR_NAMESPACE},
		{MORPH_MODULE_UNREADABLE, MP_UNATTR_UNREADABLE},
		{MORPH_MODULE_VDSO, MP_UNATTR_VDSO},
	};
	struct morph_module *r;
	uint32_t i;

	exec(1);
	for (i = 0; i < 6; i++) {
		r = md_record_add(&buf, MORPH_REC_MODULE, sizeof(*r) + 8);
		r->module = i + 1;
		r->status = cases[i].status;
		map(1, 0x10000000 + i * 0x10000, 0x1000, 0, i + 1);
		sample(1, 0x10000000 + i * 0x10000);
	}
	sample(1, 0x99999999);
	sample(2, 0x10000000);
	feed();
	for (i = 0; i < 6; i++)
		ck_assert_uint_eq(at.ledger.unattributed[cases[i].why], 1);
	ck_assert_uint_eq(at.ledger.unattributed[MP_UNATTR_NO_MAPPING], 1);
	ck_assert_uint_eq(at.ledger.unattributed[MP_UNATTR_NO_PROCESS], 1);
	ck_assert_uint_eq(at.ledger.emitted, 8);
	ck_assert_uint_eq(at.ledger.attributed, 0);
}

TEST(mapping_of_a_module_never_told_is_unreadable)
{
	exec(1);
	map(1, 0x10000000, 0x3000, 0x1000, 77);
	sample(1, 0x10000000);
	feed();
	ck_assert_uint_eq(at.ledger.unattributed[MP_UNATTR_UNREADABLE], 1);
}

TEST(mapping_over_several_segments_uses_each_ones_address)
{
	struct morph_module *r = md_record_add(&buf, MORPH_REC_MODULE, sizeof(*r) + 3 * 24 + 8);

	r->module = 1;
	r->text_hash = 0xcc;
	r->nr_segments = 3;
	r->segments[0] = (struct morph_segment){0x1000, 0x401000, 0x800};
	r->segments[1] = (struct morph_segment){0x1800, 0x701800, 0x800};
	r->segments[2] = (struct morph_segment){0x5000, 0x900000, 0x1000};
	exec(1);
	map(1, 0x10000000, 0x8000, 0, 1);
	sample(1, 0x10001004);
	sample(1, 0x10005008);
	sample(1, 0x10003000); /* between segments */
	sample(1, 0x10007000); /* behind the last */
	feed();
	ck_assert_uint_eq(counted(0xcc, 0x401004), 1);
	ck_assert_uint_eq(counted(0xcc, 0x900008), 1);
	ck_assert_uint_eq(at.ledger.unattributed[MP_UNATTR_NO_MAPPING], 2);
}

/* A producer that gives offsets in the kernel but not the kernel's address. */
TEST(kernel_offsets_count_at_link_time_addresses_and_nowhere_else)
{
	struct morph_module *kernel;

	kernel = md_record_add(&buf, MORPH_REC_MODULE, sizeof(*kernel) + 24 + 8);
	kernel->module = 9;
	kernel->kind = MORPH_MODULE_KERNEL;
	kernel->text_hash = 0xee;
	kernel->nr_segments = 1;
	kernel->segments[0] =
		(struct morph_segment){MORPH_KERNEL_BASE, 0xffffffff81000000, 0x1000000};
	strcpy((char *)&kernel->segments[1], "[k]");
	exec(1);
	sample(1, MORPH_KERNEL_BASE + 0x123);
	sample(1, MORPH_KERNEL_BASE + 0xffffff);
	sample(1, MORPH_KERNEL_BASE + 0x1000000);
	sample(1, MORPH_KERNEL_ELSEWHERE);
	feed();
	ck_assert_uint_eq(counted(0xee, 0xffffffff81000123), 1);
	ck_assert_uint_eq(counted(0xee, 0xffffffff81ffffff), 1);
	ck_assert_uint_eq(at.ledger.attributed, 2);
	ck_assert_uint_eq(at.ledger.unattributed[MP_UNATTR_NO_MAPPING], 2);
}

TEST(stack_is_no_sample)
{
	struct morph_stack *stack;

	exec(1);
	module(1, 0xaa);
	map(1, 0x7f0000001000, 0x3000, 0x1000, 1);
	sample(1, 0x7f0000001000);
	stack = md_record_add_task(&buf, MORPH_REC_STACK, sizeof(*stack) + 16, 3, 1, 1);
	stack->ips[0] = 0x7f0000001100;
	stack->ips[1] = 0x7f0000001200;
	feed();
	ck_assert_uint_eq(counted(0xaa, 0x401000), 1);
	ck_assert_uint_eq(at.ledger.emitted, 1);
	ck_assert_uint_eq(at.samples.nr_used, 1);
}

/* ---- numbered address spaces: records of a producer in the kernel, in its order -------------- */

/* Gives address space @exec_id to all records from @from on. */
static void number(size_t from, uint32_t exec_id)
{
	struct morph_record *record;

	while (!md_record_next(buf.data, buf.size, &from, &record))
		if (md_record_has_task(record->type))
			((struct morph_task *)record)->exec_id = exec_id;
}

TEST(numbered_program_is_mapped_before_its_exec)
{
	size_t from;

	module(1, 0xaa);
	module(2, 0xbb);
	module(3, 0xcc);
	from = buf.size;
	exec(1);
	map(1, 0x400000, 0x3000, 0x1000, 1);
	number(from, 7);
	from = buf.size;
	map(1, 0x400000, 0x3000, 0x1000, 2); /* the program, then its loader */
	map(1, 0x7f0000000000, 0x3000, 0x1000, 3);
	exec(1);
	sample(1, 0x400010);
	sample(1, 0x7f0000000010);
	number(from, 8);
	from = buf.size;
	sample(1, 0x400010); /* a late sample of the previous program */
	number(from, 7);
	feed();
	ck_assert_uint_eq(counted(0xbb, 0x401010), 1);
	ck_assert_uint_eq(counted(0xcc, 0x401010), 1);
	ck_assert_uint_eq(counted(0xaa, 0x401010), 0);
	ck_assert_uint_eq(at.ledger.unattributed[MP_UNATTR_NO_PROCESS], 1);
	ck_assert_uint_eq(md_space_program(md_procmap_find(at.procmap, 1, 8)),
			  md_modcache_file(at.modcache, 2)->module);
}

static void fork_of(uint32_t child, uint32_t tid, uint32_t parent)
{
	struct morph_fork *r = md_record_add_task(&buf, MORPH_REC_FORK, sizeof(*r), 2, child, tid);

	r->parent_tgid = r->parent_tid = parent;
}

static void exit_of(uint32_t tgid, uint32_t tid)
{
	md_record_add_task(&buf, MORPH_REC_EXIT, sizeof(struct morph_exit), 2, tgid, tid);
}

static void ends_by(uint32_t tgid, uint32_t tid, uint32_t flags)
{
	struct morph_exit *r = md_record_add_task(&buf, MORPH_REC_EXIT, sizeof(*r), 2, tgid, tid);

	r->task.flags = flags;
}

TEST(crash_counts_once_for_a_process_and_under_its_program)
{
	module(1, 0xaa);
	module(2, 0xbb);
	for (uint32_t tgid = 1; tgid <= 6; tgid++) {
		exec(tgid);
		map(tgid, 0x400000, 0x3000, 0x1000, 1);
		map(tgid, 0x7f0000000000, 0x3000, 0x1000, 2);
		sample(tgid, 0x7f0000000010);
	}
	ends_by(1, 11, MORPH_EXIT_WITH_SIGNAL(SIGSEGV)); /* its second thread */
	ends_by(1, 1, MORPH_EXIT_WITH_SIGNAL(SIGSEGV | 0x80));
	ends_by(2, 2, 0);
	ends_by(3, 3, MORPH_EXIT_WITH_SIGNAL(SIGKILL));
	ends_by(4, 44, MORPH_EXIT_PROCESS | MORPH_EXIT_WITH_SIGNAL(SIGABRT));
	ends_by(5, 5, MORPH_EXIT_WITH_SIGNAL(3 << 8));	/* exit status 3 */
	ends_by(9, 9, MORPH_EXIT_WITH_SIGNAL(SIGSEGV)); /* nobody knows it */
	feed();
	ck_assert_uint_eq(at.nr_crashes, 2);
	ck_assert_int_eq(at.crashes[0].signal, SIGSEGV);
	ck_assert_int_eq(at.crashes[1].signal, SIGABRT);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(
			md_modcache_module(at.modcache, at.crashes[i].module)->id.text_hash, 0xaa);
	md_attribute_clear(&at);
	ck_assert_uint_eq(at.nr_crashes, 0);
	/* A table that is full costs no memory. */
	for (int i = 0; i < 2 * MD_MAX_CRASHES; i++)
		ends_by(6, 6, MORPH_EXIT_WITH_SIGNAL(SIGILL));
	feed();
	ck_assert_uint_eq(at.nr_crashes, MD_MAX_CRASHES);
}

/* A vfork's child calls exec while its parent waits; afterwards each has its own address space. */
TEST(numbered_child_inherits_and_execs_on_its_own)
{
	size_t from;

	module(1, 0xaa);
	module(2, 0xbb);
	from = buf.size;
	exec(1);
	map(1, 0x400000, 0x3000, 0x1000, 1);
	fork_of(2, 2, 1);
	sample(2, 0x400010);
	number(from, 7);
	from = buf.size;
	map(2, 0x400000, 0x3000, 0x1000, 2);
	exec(2);
	sample(2, 0x400010);
	number(from, 8);
	from = buf.size;
	sample(1, 0x400020);
	number(from, 7);
	feed();
	ck_assert_uint_eq(counted(0xaa, 0x401010), 1);
	ck_assert_uint_eq(counted(0xbb, 0x401010), 1);
	ck_assert_uint_eq(counted(0xaa, 0x401020), 1);
}

/* A thread calls exec: the other threads end first, and it continues under the process's id. */
TEST(numbered_threads_end_at_an_exec)
{
	size_t from;

	module(1, 0xaa);
	module(2, 0xbb);
	from = buf.size;
	exec(1);
	map(1, 0x400000, 0x3000, 0x1000, 1);
	fork_of(1, 11, 1);
	fork_of(1, 12, 1);
	sample(1, 0x400010);
	exit_of(1, 1);
	exit_of(1, 12);
	number(from, 7);
	from = buf.size;
	map(1, 0x400000, 0x3000, 0x1000, 2);
	exec(1);
	sample(1, 0x400010);
	number(from, 8);
	feed();
	ck_assert_uint_eq(counted(0xaa, 0x401010), 1);
	ck_assert_uint_eq(counted(0xbb, 0x401010), 1);
	/* One thread is left: when it exits, the process has exited. */
	from = buf.size;
	exit_of(1, 1);
	number(from, 8);
	for (from = 100; from < 1000; from++) {
		exec(from);
		exit_of(from, from);
	}
	feed();
	ck_assert_ptr_null(md_procmap_find(at.procmap, 1, 8));
}

TEST(activity_tells_application_library_and_kernel_apart)
{
	struct morph_module *kernel;
	const struct mp_activity *a;
	uint32_t i;

	kernel = md_record_add(&buf, MORPH_REC_MODULE, sizeof(*kernel) + 24 + 8);
	kernel->module = 9;
	kernel->kind = MORPH_MODULE_KERNEL;
	kernel->text_hash = 0xee;
	kernel->nr_segments = 1;
	kernel->segments[0] =
		(struct morph_segment){0xffffffff9a000000, 0xffffffff81000000, 0x1000000};
	module(1, 0xaa);
	module(2, 0xbb);
	exec(1);
	map(1, 0x10000000, 0x3000, 0x1000, 1); /* first mapping after exec: the program */
	map(1, 0x20000000, 0x3000, 0x1000, 2);
	for (i = 0; i < 3; i++)
		sample(1, 0x10000000);
	for (i = 0; i < 2; i++)
		sample(1, 0x20000000);
	sample(1, 0xffffffff9a000123);
	sample(1, 0x30000000);
	sample(77, 0xffffffff9a000123); /* a kernel thread */
	feed();
	a = &at.activity[md_modcache_file(at.modcache, 1)->module];
	ck_assert_uint_eq(a->app, 3);
	ck_assert_uint_eq(a->lib, 2);
	ck_assert_uint_eq(a->kernel, 1);
	ck_assert_uint_eq(a->other, 1);
	a = &at.activity[md_modcache_file(at.modcache, 9)->module];
	ck_assert_uint_eq(a->kernel, 1);
	ck_assert_uint_eq(counted(0xee, 0xffffffff81000123), 2);
}

/* All samples are in the kernel: the program is known, but no mapping is. */
TEST(program_that_is_mapped_nowhere_has_its_activity_and_no_samples)
{
	struct morph_mmap *mmap;
	uint32_t index;

	module(1, 0xaa);
	exec(1);
	mmap = map(1, 0, 0x1000, 0, 1);
	mmap->task.flags = MORPH_MMAP_PROGRAM | MORPH_MMAP_NOWHERE;
	sample(1, UINT64_C(0xffffffff81000000));
	sample(1, 0x10);
	feed();
	index = md_modcache_file(at.modcache, 1)->module;
	ck_assert_uint_gt(at.nr_activity, index);
	ck_assert_uint_eq(at.activity[index].kernel, 1);
	ck_assert_uint_eq(at.activity[index].app, 0);
	ck_assert_uint_eq(at.activity[index].other, 1);
}

/* Not all threads were reported: one EXIT with MORPH_EXIT_PROCESS ends all of them. */
TEST(exit_of_the_whole_process_ends_it_at_once)
{
	struct morph_exit *exit;
	size_t from;

	module(1, 0xaa);
	from = buf.size;
	((struct morph_exec *)md_record_add_task(&buf, MORPH_REC_EXEC, sizeof(struct morph_exec), 1,
						 1, 1))
		->nr_threads = 5;
	map(1, 0x400000, 0x3000, 0x1000, 1);
	exit = md_record_add_task(&buf, MORPH_REC_EXIT, sizeof(*exit), 2, 1, 1);
	exit->task.flags = MORPH_EXIT_PROCESS;
	sample(1, 0x400010); /* late */
	number(from, 7);
	feed();
	ck_assert_uint_eq(at.ledger.attributed, 1);
	/* Another process with the same numbers must inherit nothing. */
	exec(1);
	sample(1, 0x400010);
	number(0, 7);
	feed();
	ck_assert_uint_eq(at.ledger.attributed, 1);
	ck_assert_uint_eq(at.ledger.unattributed[MP_UNATTR_NO_MAPPING], 1);
}

TEST(lost_state_makes_later_samples_unknown_not_wrong)
{
	exec(1);
	module(1, 0xaa);
	map(1, 0x10000000, 0x3000, 0x1000, 1);
	sample(1, 0x10000000);
	md_record_add_lost(&buf, 3, 17, MORPH_LOST_TORN, MORPH_LOST_STATE);
	sample(1, 0x10000000);
	feed();
	ck_assert_uint_eq(at.ledger.attributed, 1);
	ck_assert_uint_eq(at.ledger.lost[MP_LOST_TORN], 17);
	ck_assert_uint_eq(at.ledger.unattributed[MP_UNATTR_NO_PROCESS], 1);
	ck_assert_uint_eq(at.ledger.emitted, 19);
}

TEST(optimised_module_needs_its_whole_map)
{
	struct morph_module *r = md_record_add(&buf, MORPH_REC_MODULE, sizeof(*r) + 24 + 8);
	struct morph_module_map *m;
	const struct md_module *optimised, *original;

	r->module = 1;
	r->text_hash = 0xaa;
	r->nr_segments = 1;
	r->nr_pieces = 2;
	r->segments[0] = (struct morph_segment){0x1000, 0x401000, 0x2000};
	exec(1);
	map(1, 0x10000000, 0x2000, 0x1000, 1);
	sample(1, 0x10000000);
	m = md_record_add(&buf, MORPH_REC_MODULE_MAP, sizeof(*m) + 24);
	m->module = 1;
	m->text_hash = 0xbb;
	m->pieces[0] = (struct morph_piece){0x401000, 0x5000, 0x10, 0x10};
	map(1, 0x10000000, 0x2000, 0x1000, 1);
	sample(1, 0x10000000);
	m = md_record_add(&buf, MORPH_REC_MODULE_MAP, sizeof(*m) + 24);
	m->module = 1;
	m->text_hash = 0xbb;
	m->pieces[0] = (struct morph_piece){0x401010, 0x6000, 0x10, 0x10};
	map(1, 0x10000000, 0x2000, 0x1000, 1);
	sample(1, 0x10000014);
	feed();
	ck_assert_uint_eq(at.ledger.unattributed[MP_UNATTR_UNREADABLE], 2);
	ck_assert_uint_eq(at.ledger.attributed, 1);
	optimised = md_modcache_module(at.modcache, md_modcache_file(at.modcache, 1)->module);
	ck_assert_uint_eq(optimised->id.text_hash, 0xaa);
	original = md_modcache_module(at.modcache, optimised->original);
	ck_assert_uint_eq(original->id.text_hash, 0xbb);
	ck_assert_uint_eq(mp_map_original(optimised->map, 0x401014), 0x6004);
}

TEST(modules_description_reads_back_the_same)
{
	struct morph_module *r = md_record_add(&buf, MORPH_REC_MODULE, sizeof(*r) + 24 + 8);
	struct morph_module_map *m;
	AUTO(md_attribute_fini) struct md_attribute other = {0};
	AUTO(md_buf_fini) struct md_buf said = {0};
	struct morph_record *record;
	const struct md_file *file;
	size_t pos = 0;
	uint32_t i;

	r->module = 1;
	r->text_hash = 0xaa;
	r->nr_segments = 1;
	r->nr_pieces = 2600; /* more than one record holds */
	r->build_id_len = 20;
	r->segments[0] = (struct morph_segment){0x1000, 0x401000, 0x2000};
	for (i = 0; i < 2; i++) {
		uint32_t k;

		m = md_record_add(&buf, MORPH_REC_MODULE_MAP, sizeof(*m) + 1300 * 24);
		m->module = 1;
		m->text_hash = 0xbb;
		for (k = 0; k < 1300; k++)
			m->pieces[k] = (struct morph_piece){0x500000 + (i * 1300 + k) * 16,
							    0x401000 + k, 16, 16};
	}
	feed();
	file = md_modcache_file(at.modcache, 1);
	ck_assert_uint_eq(file->why, MD_MAPPED);
	ck_assert_int_eq(md_modcache_write_records(at.modcache, file, &said), 0);
	ck_assert_int_eq(md_attribute_init(&other), 0);
	while (!md_record_next(said.data, said.size, &pos, &record))
		ck_assert_int_eq(md_attribute_record(&other, record), 0);
	file = md_modcache_file(other.modcache, 1);
	ck_assert_uint_eq(file->why, MD_MAPPED);
	ck_assert_uint_eq(md_modcache_module(other.modcache, file->module)->map->nr_pieces, 2600);
	ck_assert_uint_eq(md_modcache_module(other.modcache, file->module)->id.build_id_len, 20);
}

/* A module with more pieces than fit an array is attributed and described. */
TEST(module_of_more_than_a_million_pieces_is_attributed)
{
	const uint32_t nr = (1 << 20) + 1, at_once = 2048;
	struct morph_module *r = md_record_add(&buf, MORPH_REC_MODULE, sizeof(*r) + 24 + 8);
	struct mp_varint_writer w = {0};
	const struct md_module *module;
	struct morph_record *record;
	AUTO(md_attribute_fini) struct md_attribute other = {0};
	AUTO(md_buf_fini) struct md_buf said = {0};
	const struct md_file *file;
	size_t pos = 0;

	r->module = 1;
	r->text_hash = 0xaa;
	r->nr_segments = 1;
	r->nr_pieces = nr;
	r->segments[0] = (struct morph_segment){0x1000, 0x401000, 16 * (uint64_t)nr};
	for (uint32_t from = 0; from < nr; from += at_once) {
		uint32_t now = nr - from < at_once ? nr - from : at_once;
		struct mp_map_cursor cursor = {0};
		struct morph_module_pieces *m;

		w.size = 0;
		for (uint32_t i = from; i < from + now; i++)
			mp_map_put_piece(&w, &cursor,
					 &(struct mp_map_piece){0x401000 + 16 * (uint64_t)i, 16, 16,
								0x90000000 - 16 * (uint64_t)i});
		m = md_record_add(&buf, MORPH_REC_MODULE_PIECES, sizeof(*m) + w.size);
		m->module = 1;
		m->text_hash = 0xbb;
		m->nr_pieces = now;
		m->nr = (uint32_t)w.size;
		memcpy(m->bytes, w.bytes, w.size);
	}
	free(w.bytes);
	exec(1);
	map(1, 0x10000000, 16 * (uint64_t)nr, 0x1000, 1);
	sample(1, 0x10000000 + 16 * (uint64_t)(nr - 1) + 3);
	feed();
	ck_assert_uint_eq(at.ledger.attributed, 1);
	file = md_modcache_file(at.modcache, 1);
	ck_assert_uint_eq(file->why, MD_MAPPED);
	module = md_modcache_module(at.modcache, file->module);
	ck_assert_uint_eq(module->map->nr_pieces, nr);
	ck_assert_uint_eq(mp_map_original(module->map, 0x401000 + 16 * (uint64_t)(nr - 1) + 3),
			  0x90000000 - 16 * (uint64_t)(nr - 1) + 3);
	ck_assert_int_eq(md_modcache_write_records(at.modcache, file, &said), 0);
	ck_assert_int_eq(md_attribute_init(&other), 0);
	while (!md_record_next(said.data, said.size, &pos, &record))
		ck_assert_int_eq(md_attribute_record(&other, record), 0);
	file = md_modcache_file(other.modcache, 1);
	ck_assert_uint_eq(file->why, MD_MAPPED);
	ck_assert(mp_map_packed_equal(md_modcache_module(other.modcache, file->module)->map->packed,
				      module->map->packed));
}

/* Bytes that are no pieces, or more pieces than announced: the module stays unknown. */
TEST_EACH(damaged_pieces_leave_the_module_unknown, 2)
{
	static const uint8_t bytes[][8] = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
					   {64, 0, 64, 0, 64, 0, 64, 0}};
	struct morph_module *r = md_record_add(&buf, MORPH_REC_MODULE, sizeof(*r) + 24 + 8);
	struct morph_module_pieces *m;

	r->module = 1;
	r->text_hash = 0xaa;
	r->nr_segments = 1;
	r->nr_pieces = 3;
	r->segments[0] = (struct morph_segment){0x1000, 0x401000, 0x2000};
	m = md_record_add(&buf, MORPH_REC_MODULE_PIECES, sizeof(*m) + 8);
	m->module = 1;
	m->nr_pieces = _i ? 4 : 3;
	m->nr = 8;
	memcpy(m->bytes, bytes[_i], 8);
	feed();
	ck_assert_uint_eq(md_modcache_file(at.modcache, 1)->why, MP_UNATTR_UNREADABLE);
}

TEST(full_table_refuses_a_record_whole)
{
	struct morph_samples *r;
	uint64_t emitted;
	uint32_t i, k;
	int ret = 0;

	exec(1);
	module(1, 0xaa);
	((struct morph_module *)(buf.data + sizeof(struct morph_exec)))->segments[0].size =
		0x40000000;
	map(1, 0x10000000, 0x40000000, 0x1000, 1);
	feed();
	for (i = 0; !ret && i < 1000; i++) {
		buf.size = 0;
		r = md_record_add_task(&buf, MORPH_REC_SAMPLES, sizeof(*r) + 8000 * 8, 3, 1, 1);
		for (k = 0; k < 8000; k++)
			r->ips[k] = 0x10000000 + i * 8000 + k;
		emitted = at.ledger.emitted;
		ret = md_attribute_record(&at, (void *)buf.data);
	}
	ck_assert_int_eq(ret, -ENOMEM);
	ck_assert_uint_eq(at.ledger.emitted, emitted);
	ck_assert(md_attribute_is_conserved(&at));
	md_attribute_clear(&at);
	ck_assert_int_eq(md_attribute_record(&at, (void *)buf.data), 0);
	ck_assert_uint_eq(at.ledger.attributed, 8000);
}

/* ---- files of this machine ----------------------------------------------------------------- */

static void setup_files(void)
{
	setup();
	scratch_make();
}

static void teardown_files(void)
{
	scratch_remove();
	teardown();
}

static void copy_self(const char *path)
{
	char command[256];

	snprintf(command, sizeof(command), "cp /proc/%d/exe %s", getpid(), path);
	ck_assert_int_eq(system(command), 0);
}

static struct morph_mmap *map_of(const char *path)
{
	struct morph_mmap *r;
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	buf.size = 0;
	/* There is no such process, so only the path identifies the file. */
	r = md_record_add_mmap(&buf, 0, 0x3fffff, 0x3fffff, path);
	r->start = 0x10000000;
	r->len = 0x1000;
	r->dev_major = major(st.st_dev);
	r->dev_minor = minor(st.st_dev);
	r->ino = st.st_ino;
	return r;
}

static struct md_file *resolve(const struct morph_mmap *mmap, int64_t mapped_ns)
{
	struct md_file *file;

	ck_assert_int_eq(md_modcache_resolve(at.modcache, mmap, mapped_ns, &file), 0);
	return file;
}

FIXTURE(setup_files, teardown_files);

TEST(file_is_read_once_while_it_stays_the_same)
{
	struct md_file *file;
	char path[256];

	snprintf(path, sizeof(path), "%s/prog", dir);
	copy_self(path);
	file = resolve(map_of(path), 0);
	ck_assert_uint_eq(file->why, MD_MAPPED);
	ck_assert_uint_ge(file->nr_segments, 1);
	ck_assert_ptr_eq(resolve(map_of(path), 0), file);
	ck_assert_uint_eq(md_modcache_nr_modules(at.modcache), 1);
}

TEST(deleted_file_of_an_ended_process_is_said_to_be_deleted)
{
	struct morph_mmap *mmap;
	char path[256];

	snprintf(path, sizeof(path), "%s/prog", dir);
	copy_self(path);
	mmap = map_of(path);
	unlink(path);
	ck_assert_uint_eq(resolve(mmap, 0)->why, MP_UNATTR_DELETED);
}

TEST(another_file_under_the_path_is_never_taken_for_it)
{
	struct morph_mmap *mmap;
	char path[256], other[256];

	snprintf(path, sizeof(path), "%s/prog", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	copy_self(path);
	mmap = map_of(path);
	copy_self(other);
	ck_assert_int_eq(rename(other, path), 0);
	ck_assert_uint_eq(resolve(mmap, 0)->why, MP_UNATTR_REPLACED);
}

TEST(file_written_since_it_was_mapped_is_not_believed)
{
	struct timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
	struct morph_mmap *mmap;
	struct stat st;
	char path[256];

	snprintf(path, sizeof(path), "%s/prog", dir);
	copy_self(path);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	mmap = map_of(path);
	ck_assert_uint_eq(
		resolve(mmap, st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec - 1)->why,
		MP_UNATTR_REPLACED);
	ck_assert_uint_eq(
		resolve(mmap, st.st_ctim.tv_sec * INT64_C(1000000000) + st.st_ctim.tv_nsec + 1)->why,
		MD_MAPPED);
}

TEST(file_that_is_no_elf_is_unreadable)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/script", dir);
	fd = open(path, O_CREAT | O_WRONLY, 0755);
	ck_assert_int_eq(write(fd, "#!/bin/sh\n", 10), 10);
	close(fd);
	ck_assert_uint_eq(resolve(map_of(path), 0)->why, MP_UNATTR_UNREADABLE);
}

FIXTURE(setup, teardown);

TEST_EACH(memory_without_a_file_is_told_by_its_name, 7)
{
	static const struct {
		const char *path;
		uint8_t why;
	} cases[] = {
		{"//anon", MP_UNATTR_ANONYMOUS},    {"", MP_UNATTR_ANONYMOUS},
		{"[heap]", MP_UNATTR_ANONYMOUS},    {"[stack]", MP_UNATTR_ANONYMOUS},
		{"[vdso]", MP_UNATTR_VDSO},	    {"/dev/zero (deleted)", MP_UNATTR_ANONYMOUS},
		{"[anon:v8]", MP_UNATTR_ANONYMOUS},
	};
	struct morph_mmap *mmap;

	mmap = md_record_add_mmap(&buf, 0, 0x3fffff, 0x3fffff, cases[_i].path);
	mmap->len = 0x1000;
	ck_assert_uint_eq(resolve(mmap, 0)->why, cases[_i].why);
}
