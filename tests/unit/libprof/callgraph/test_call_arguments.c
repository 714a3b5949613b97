// SPDX-License-Identifier: Apache-2.0
/* test_call_arguments - a call that passes a function on is told from one that does not. */
#include "libprof/callgraph/call_arguments.h"

#include "tests/unit/program.h"

static struct mp_call_sites sites;

static void build(const char *flags, const char *source)
{
	program_build(flags, source);
	ck_assert_int_eq(mp_call_sites_find(cfg, &sites), 0);
}

static void clean_up(void)
{
	free(sites.sites);
	program_free();
}

/* Return: number of indirect calls in @caller which pass @passed on. */
static uint32_t passing(const char *caller, const char *passed)
{
	uint32_t f = program_func(caller), nr = 0, nr_sites = 0;

	for (uint32_t i = 0; i < sites.nr; i++) {
		if (cfg->blocks[sites.sites[i].block].func != f ||
		    sites.sites[i].kind != MP_CALL_INDIRECT)
			continue;
		nr_sites++;
		nr += mp_call_passes(cfg, &sites.sites[i], program_func(passed));
	}
	ck_assert_uint_gt(nr_sites, 0);
	return nr;
}

static const char *const flags[] = {
	"-w -O2 -fPIE -pie -fno-inline -fno-unroll-loops -fcf-protection=none",
	"-w -O2 -fno-pie -no-pie -fno-inline -fno-unroll-loops -fcf-protection=full",
	"-w -O1 -fno-pie -no-pie -fno-inline",
};

TEST_EACH(a_function_that_a_loop_passes_on, 3)
{
	build(flags[_i], "tests/data/callgraph.c");
	ck_assert_uint_eq(passing("callback", "visit"), 1);
	ck_assert_uint_eq(passing("callback", "quick"), 0);
	ck_assert_uint_eq(passing("callback", "callback"), 0);
	ck_assert_uint_eq(passing("indirect", "quick"), 0);
	ck_assert_uint_eq(passing("indirect", "visit"), 0);
	clean_up();
}

/* Indirect calls in hand-written functions, where f may be passed on or not. */
#define FUNCTION(name, body)                                                                       \
	".type " name ", @function\n" name ":\n.cfi_startproc\n" body                              \
	"ret\n.cfi_endproc\n.size " name ", .-" name "\n"

static const char *const code[] = {
	".text\n.globl main\n",
	FUNCTION("f", "nop\n"),
	FUNCTION("main", "lea f(%rip), %rax\n"),
	FUNCTION("lea_rsi", "lea f(%rip), %rsi\ncall *8(%rax)\n"),
	FUNCTION("through_itself", "lea f(%rip), %rdx\ncall *%rdx\n"),
	FUNCTION("through_r9", "lea f(%rip), %r9\ncall *%r9\n"),
	FUNCTION("beside_r9", "lea f(%rip), %r9\ncall *%rcx\n"),
	FUNCTION("no_argument", "lea f(%rip), %r10\ncall *(%rax)\n"),
	FUNCTION("replaced", "lea f(%rip), %rsi\nmov %rbx, %rsi\ncall *(%rax)\n"),
	FUNCTION("forgotten", "lea f(%rip), %rsi\ncall *(%rax)\ncall *(%rax)\n"),
	FUNCTION("over_local", "lea f(%rip), %rsi\ncall f\ncall *(%rax)\n"),
	FUNCTION("compared", "lea f(%rip), %rsi\ncmp %rsi, %rax\nje 1f\nnop\n1: call *(%rax)\n"),
	FUNCTION("kept", "lea f(%rip), %r13\n1: mov %r13, %rsi\ncall *(%rax)\ndec %ebx\njnz 1b\n"),
	FUNCTION("copied", "lea f(%rip), %r10\nmov %r10, %rcx\ncall *(%rax)\n"),
};

TEST(what_passes_and_what_does_not)
{
	char path[] = "/tmp/morph-arguments-XXXXXX.s";
	int fd = mkstemps(path, 2);

	ck_assert_int_ge(fd, 0);
	for (size_t i = 0; i < sizeof(code) / sizeof(*code); i++)
		ck_assert_int_eq(write(fd, code[i], strlen(code[i])), (ssize_t)strlen(code[i]));
	close(fd);
	build("-z noexecstack", path);
	ck_assert_uint_eq(passing("lea_rsi", "f"), 1);
	ck_assert_uint_eq(passing("through_itself", "f"), 0);
	ck_assert_uint_eq(passing("through_r9", "f"), 0);
	ck_assert_uint_eq(passing("beside_r9", "f"), 1);
	ck_assert_uint_eq(passing("no_argument", "f"), 0);
	ck_assert_uint_eq(passing("replaced", "f"), 0);
	ck_assert_uint_eq(passing("forgotten", "f"), 1);
	ck_assert_uint_eq(passing("over_local", "f"), 1);
	ck_assert_uint_eq(passing("compared", "f"), 0);
	ck_assert_uint_eq(passing("kept", "f"), 1);
	ck_assert_uint_eq(passing("copied", "f"), 1);
	clean_up();
}
