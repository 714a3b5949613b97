// SPDX-License-Identifier: Apache-2.0
/* test_filter - seccomp filters are executed as the kernel executes them, and what is not known must not matter. */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "daemon/live/filter.h"
#include "tests/unit/suite.h"

#define NR	offsetof(struct seccomp_data, nr)
#define ARG(k)	(offsetof(struct seccomp_data, args) + 8 * (k))
#define LOAD(o) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (o))
#define ALLOW	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static const struct md_filter_call map = {
	.data = {.nr = SYS_mmap, .args = {0x10000, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, 0, 0}},
	.unknown = 1 << 4 | MD_FILTER_NO_IP};

static bool allows(const struct sock_filter *program, size_t nr)
{
	return md_filter_allows(program, nr, &map);
}
#define ALLOWS(...)                                                                                \
	allows((const struct sock_filter[]){__VA_ARGS__},                                          \
	       sizeof((const struct sock_filter[]){__VA_ARGS__}) / sizeof(struct sock_filter))

TEST(only_what_returns_allow_is_allowed)
{
	ck_assert(ALLOWS(ALLOW));
	ck_assert(!ALLOWS(KILL));
	ck_assert(!ALLOWS(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1)));
	ck_assert(!ALLOWS(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_LOG)));
	ck_assert(!ALLOWS(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE)));
	/* The end without a return is none. */
	ck_assert(!ALLOWS(LOAD(NR)));
	ck_assert(!allows(NULL, 0));
}

TEST(system_calls_are_told_apart)
{
	ck_assert(
		ALLOWS(LOAD(NR), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1), ALLOW, KILL));
	ck_assert(!ALLOWS(LOAD(NR), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0), ALLOW,
			  KILL));
	ck_assert(
		ALLOWS(LOAD(NR), BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SYS_mmap, 0, 1), KILL, ALLOW));
	ck_assert(
		ALLOWS(LOAD(NR), BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SYS_mmap, 1, 0), KILL, ALLOW));
	ck_assert(ALLOWS(BPF_STMT(BPF_JMP | BPF_JA, 1), KILL, ALLOW));
	/* A jump behind the end. */
	ck_assert(!ALLOWS(BPF_STMT(BPF_JMP | BPF_JA, 7), ALLOW));
}

TEST(arguments_are_looked_at)
{
	const struct sock_filter no_exec = BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
				 no_write = BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_WRITE, 0, 1);

	ck_assert(!ALLOWS(LOAD(ARG(2)), no_exec, KILL, ALLOW));
	ck_assert(ALLOWS(LOAD(ARG(2)), no_write, KILL, ALLOW));
	/* As systemd's MemoryDenyWriteExecute=: both at the same time. */
	ck_assert(ALLOWS(LOAD(ARG(2)), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, PROT_EXEC | PROT_WRITE),
			 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_EXEC | PROT_WRITE, 0, 1), KILL,
			 ALLOW));
}

TEST(what_is_not_known_must_not_matter)
{
	ck_assert(!ALLOWS(LOAD(ARG(4)), ALLOW));
	ck_assert(!ALLOWS(LOAD(ARG(4) + 4), ALLOW));
	ck_assert(ALLOWS(LOAD(ARG(3)), LOAD(ARG(5)), ALLOW));
	ck_assert(!ALLOWS(LOAD(offsetof(struct seccomp_data, instruction_pointer)), ALLOW));
	ck_assert(ALLOWS(LOAD(offsetof(struct seccomp_data, arch)), ALLOW));
	ck_assert(!ALLOWS(LOAD(sizeof(struct seccomp_data)), ALLOW));
	ck_assert(!ALLOWS(LOAD(2), ALLOW));
}

TEST(registers_and_memory_are_kept)
{
	ck_assert(ALLOWS(
		BPF_STMT(BPF_LD | BPF_IMM, 6), BPF_STMT(BPF_ST, 3), BPF_STMT(BPF_LD | BPF_IMM, 7),
		BPF_STMT(BPF_LDX | BPF_MEM, 3), BPF_STMT(BPF_ALU | BPF_MUL | BPF_X, 0),
		BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, 2), BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 3),
		BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 5),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1), ALLOW, KILL));
	ck_assert(ALLOWS(BPF_STMT(BPF_LD | BPF_IMM, SECCOMP_RET_ALLOW),
			 BPF_STMT(BPF_RET | BPF_A, 0)));
	ck_assert(!ALLOWS(BPF_STMT(BPF_ST, BPF_MEMWORDS), ALLOW));
	ck_assert(!ALLOWS(BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), ALLOW));
	/* Loads from packets are no business of such a filter. */
	ck_assert(!ALLOWS(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), ALLOW));
}
