// SPDX-License-Identifier: Apache-2.0
/*
 * test_stack_walk - USER_STACK records of this very process become STACK records: its mappings come
 * from /proc, its rows from its own files through the reader's records.
 */
#include "daemon/attribute/stack_walk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include "daemon/module/modcache_private.h"
#include "daemon/module/modread.h"
#include "libprof/base/clock.h"
#include "tests/support/process/own_files.h"
#include "tests/unit/suite.h"

static struct md_attribute at;
static struct md_stack_walk *walker;
static struct md_buf buf;

/* Attributes this process's EXEC and MMAP records, with the files looked up. */
static void setup(void)
{
	ck_assert_int_eq(md_attribute_init(&at), 0);
	md_modcache_want_rows(at.modcache);
	walker = md_stack_walk_new();
	ck_assert_ptr_nonnull(walker);
	ck_assert_int_eq(own_files_attribute(&at), 0);
}

static void teardown(void)
{
	md_stack_walk_free(walker);
	md_attribute_fini(&at);
	md_buf_fini(&buf);
	memset(&buf, 0, sizeof(buf));
}

/* A record as the source perf would make it here, with @nr bytes of the stack. */
static __attribute__((noinline)) struct morph_user_stack *user_stack(uint32_t nr)
{
	static const int from[MORPH_NR_REGS] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX,
						REG_RSP, REG_RBP, REG_RSI, REG_RDI,
						REG_R8,	 REG_R9,  REG_R10, REG_R11,
						REG_R12, REG_R13, REG_R14, REG_R15};
	struct morph_user_stack *r = md_record_add_task(&buf, MORPH_REC_USER_STACK, sizeof(*r) + nr,
							5, (uint32_t)getpid(), 7);
	const uint64_t top = getauxval(AT_EXECFN); /* lies at the top of the stack */
	ucontext_t context;
	uint64_t left;

	ck_assert_ptr_nonnull(r);
	r->nr = nr;
	getcontext(&context);
	r->ip = (uint64_t)context.uc_mcontext.gregs[REG_RIP];
	for (int i = 0; i < MORPH_NR_REGS; i++)
		r->registers[i] = (uint64_t)context.uc_mcontext.gregs[from[i]];
	left = top - r->registers[MORPH_REG_RSP];
	if (r->nr > left)
		r->nr = (uint32_t)left;
	memcpy(r->bytes, (const void *)(uintptr_t)r->registers[MORPH_REG_RSP], r->nr);
	return r;
}

static const struct morph_stack *walk(const struct morph_user_stack *r)
{
	struct morph_record *record = md_stack_walk(walker, &at, r);
	const struct morph_stack *stack = (const void *)record;

	ck_assert_ptr_nonnull(record);
	ck_assert_uint_eq(record->type, MORPH_REC_STACK);
	ck_assert_uint_eq(stack->task.tgid, (uint32_t)getpid());
	ck_assert_uint_eq(stack->task.tid, 7);
	return stack;
}

static uint32_t nr_ips(const struct morph_stack *stack)
{
	return (uint32_t)((stack->task.record.size - sizeof(*stack)) / sizeof(stack->ips[0]));
}

FIXTURE(setup, teardown);

TEST(stack_of_this_process_has_its_callers)
{
	const struct morph_stack *stack = walk(user_stack(4096));
	void *here = __builtin_extract_return_addr(__builtin_return_address(0));
	bool found = false;

	/* user_stack()'s caller, then this function's, which is in libcheck. */
	ck_assert_uint_ge(nr_ips(stack), 3);
	for (uint32_t i = 0; i < nr_ips(stack); i++)
		found |= stack->ips[i] == (uint64_t)(uintptr_t)here;
	ck_assert_msg(found, "%u callers, stop %u", nr_ips(stack),
		      stack->task.flags & MORPH_STACK_STOP);
	ck_assert_uint_eq(stack->task.flags & MORPH_STACK_USER_IP, 0);
}

TEST(stack_of_a_sample_in_the_kernel_begins_with_the_user_code)
{
	struct morph_user_stack *r = user_stack(4096);
	const struct morph_stack *stack;
	uint32_t nr = nr_ips(walk(r));

	r->task.flags = MORPH_USER_STACK_KERNEL;
	stack = walk(r);
	ck_assert_uint_eq(nr_ips(stack), nr + 1);
	ck_assert_uint_eq(stack->ips[0], r->ip);
	ck_assert_uint_ne(stack->task.flags & MORPH_STACK_USER_IP, 0);
}

TEST(second_stack_of_a_thread_tells_what_is_new)
{
	struct morph_user_stack *r = user_stack(4096);
	uint32_t flags = walk(r)->task.flags, nr;

	ck_assert_uint_eq(flags & MORPH_STACK_AGED, 0);
	nr = nr_ips(walk(r));
	flags = walk(r)->task.flags;
	ck_assert_uint_ne(flags & MORPH_STACK_AGED, 0);
	ck_assert_uint_eq(MORPH_STACK_OLD(flags), nr);
	/* In the kernel, the address of the user code is no caller. */
	r->task.flags = MORPH_USER_STACK_KERNEL;
	ck_assert_uint_eq(MORPH_STACK_OLD(walk(r)->task.flags), nr);
}

TEST(stack_that_is_cut_or_not_of_mapped_code_says_so)
{
	struct morph_user_stack *r = user_stack(0);

	ck_assert_uint_eq(walk(r)->task.flags, MORPH_STACK_COPY);
	r->ip = 0x1000;
	ck_assert_uint_eq(walk(r)->task.flags, MORPH_STACK_UNMAPPED);
}

TEST(stacks_are_counted_by_why_they_end)
{
	const struct morph_stack *stack = walk(user_stack(0));

	ck_assert_int_eq(md_attribute_record(&at, &stack->task.record), 0);
	ck_assert_uint_eq(at.ledger.stacks[MP_WALK_COPY], 1);
	ck_assert_uint_eq(at.ledger.emitted, 0);
	ck_assert(md_attribute_is_conserved(&at));
}

/* ---- the reader's records ------------------------------------------------------------------- */

static void read_self(struct md_buf *reply, uint64_t *size)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	*size = (uint64_t)st.st_size;
	ck_assert_int_eq(md_modread_file_with_rows(fd, *size, reply), 0);
	close(fd);
}

static struct morph_module_unwind *find_unwind(struct md_buf *reply)
{
	struct morph_record *record;
	size_t pos = 0;

	while (!md_record_next(reply->data, reply->size, &pos, &record))
		if (record->type == MORPH_REC_MODULE_UNWIND)
			return (void *)record;
	ck_abort_msg("no rows");
	return NULL;
}

FIXTURE(NULL, NULL);

TEST_EACH(reply_with_damaged_rows_is_refused, 6)
{
	struct md_modcache *mc = md_modcache_new();
	struct morph_module_unwind *unwind;
	AUTO(md_buf_fini) struct md_buf reply = {0};
	uint64_t size;

	read_self(&reply, &size);
	unwind = find_unwind(&reply);
	switch (_i) {
	case 0: break;
	case 1: unwind->bytes[0]++; break;	       /* another magic */
	case 2: unwind->table_size += 8; break;	       /* the rest never comes */
	case 3: unwind->off = 8; break;		       /* not in order */
	case 4: unwind->module = 2; break;	       /* another file's */
	case 5: unwind->bytes[24 + 24 * 7] = 9; break; /* a rule of another kind */
	}
	ck_assert_int_eq(md_modread_take(&reply, size, mc), _i ? -EBADMSG : 0);
	if (!_i)
		ck_assert_uint_gt(md_modcache_module(mc, 1)->rows.nr_rows, 100);
	md_modcache_free(mc);
}
