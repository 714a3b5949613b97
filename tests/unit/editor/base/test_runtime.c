// SPDX-License-Identifier: Apache-2.0
/*
 * test_runtime - the start-up code of instrumented files, executed in a child process with a
 * constructed stack and a place to continue.
 */
#include "editor/base/runtime.h"

#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "libprof/note/counts_file.h"
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

#define HASH	       0x0123456789abcdefull
#define NR_COUNTERS    1024
#define COUNTERS_BYTES (NR_COUNTERS * 8)
#define FILE_BYTES     (MP_COUNTS_FILE_HEADER_BYTES + COUNTERS_BYTES)

/* ---- entering and leaving ------------------------------------------------------------------ */

/* rax, rcx, rdx, rbx, rbp, rsi, rdi, r8 to r15, flags, rsp; test_rsp: the caller's rsp. */
#define NR_REGS 17
uint64_t test_regs_in[NR_REGS], test_regs_out[NR_REGS], test_rsp, test_entry;
void test_enter(void);
void test_landing(void);

/*
 * test_enter: loads all registers from test_regs_in and jumps to test_entry. test_landing:
 * stores all registers in test_regs_out and returns to the caller of test_enter.
 */
__asm__(".text\n"
	"	.globl	test_enter\n"
	"test_enter:\n"
	"	push	%rbx\n"
	"	push	%rbp\n"
	"	push	%r12\n"
	"	push	%r13\n"
	"	push	%r14\n"
	"	push	%r15\n"
	"	mov	%rsp, test_rsp(%rip)\n"
	"	lea	test_regs_in(%rip), %r15\n"
	"	pushq	15*8(%r15)\n"
	"	popfq\n"
	"	mov	(%r15), %rax\n"
	"	mov	1*8(%r15), %rcx\n"
	"	mov	2*8(%r15), %rdx\n"
	"	mov	3*8(%r15), %rbx\n"
	"	mov	4*8(%r15), %rbp\n"
	"	mov	5*8(%r15), %rsi\n"
	"	mov	6*8(%r15), %rdi\n"
	"	mov	7*8(%r15), %r8\n"
	"	mov	8*8(%r15), %r9\n"
	"	mov	9*8(%r15), %r10\n"
	"	mov	10*8(%r15), %r11\n"
	"	mov	11*8(%r15), %r12\n"
	"	mov	12*8(%r15), %r13\n"
	"	mov	13*8(%r15), %r14\n"
	"	mov	16*8(%r15), %rsp\n"
	"	mov	14*8(%r15), %r15\n"
	"	jmp	*test_entry(%rip)\n"
	"	.globl	test_landing\n"
	"test_landing:\n"
	"	endbr64\n"
	"	mov	%rax, test_regs_out(%rip)\n"
	"	mov	%rcx, 1*8+test_regs_out(%rip)\n"
	"	mov	%rdx, 2*8+test_regs_out(%rip)\n"
	"	mov	%rbx, 3*8+test_regs_out(%rip)\n"
	"	mov	%rbp, 4*8+test_regs_out(%rip)\n"
	"	mov	%rsi, 5*8+test_regs_out(%rip)\n"
	"	mov	%rdi, 6*8+test_regs_out(%rip)\n"
	"	mov	%r8, 7*8+test_regs_out(%rip)\n"
	"	mov	%r9, 8*8+test_regs_out(%rip)\n"
	"	mov	%r10, 9*8+test_regs_out(%rip)\n"
	"	mov	%r11, 10*8+test_regs_out(%rip)\n"
	"	mov	%r12, 11*8+test_regs_out(%rip)\n"
	"	mov	%r13, 12*8+test_regs_out(%rip)\n"
	"	mov	%r14, 13*8+test_regs_out(%rip)\n"
	"	mov	%r15, 14*8+test_regs_out(%rip)\n"
	"	mov	%rsp, 16*8+test_regs_out(%rip)\n"
	"	pushfq\n"
	"	popq	15*8+test_regs_out(%rip)\n"
	"	mov	test_rsp(%rip), %rsp\n"
	"	cld\n"
	"	pop	%r15\n"
	"	pop	%r14\n"
	"	pop	%r13\n"
	"	pop	%r12\n"
	"	pop	%rbp\n"
	"	pop	%rbx\n"
	"	ret\n");

/* ---- a program in a child ------------------------------------------------------------------- */

static struct {
	uint64_t *counters;
	uint8_t *code;
	struct me_runtime_params *params;
	uint64_t *stack; /* as at a program's start: argc and so on */
} child;

static void write_stack(uint64_t *stack, uint64_t secure)
{
	uint64_t words[] = {
		2,	   (uint64_t) "a", (uint64_t) "b", 0,	   (uint64_t) "C=d", 0,
		AT_PAGESZ, 4096,	   AT_SECURE,	   secure, AT_NULL,	     0,
	};

	memcpy(stack, words, sizeof(words));
}

/* Sets up counters, code and parameters as an instrumented file has them in memory. */
static void load(const char *name)
{
	uint8_t *memory =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		_exit(99);
	/* Leaves pages unmapped before the stack's 16 KiB and on both sides of the counters. */
	munmap(memory, 4096);
	child.stack = (uint64_t *)(memory + 4096 + 16384);
	write_stack(child.stack, 0);
	child.code = memory + 65536;
	memcpy(child.code, me_runtime_blob, me_runtime_blob_size);
	child.params = (struct me_runtime_params *)(child.code + me_runtime_blob_size);
	child.counters = (uint64_t *)(memory + 131072 + 4096);
	munmap(memory + 131072, 4096);
	munmap(memory + 131072 + 4096 + COUNTERS_BYTES, 4096);
	*child.params = (struct me_runtime_params){
		.magic = ME_RUNTIME_MAGIC,
		.counters = (char *)child.counters - (char *)child.params,
		.counters_bytes = COUNTERS_BYTES,
		.next = (char *)test_landing - (char *)child.params,
		.table_hash = HASH,
	};
	memcpy(child.params->path, name, strlen(name));
}

/* Makes code and parameters read-only. */
static void protect(void)
{
	if (mprotect(child.code, 65536, PROT_READ | PROT_EXEC))
		_exit(98);
}

static void run(unsigned int entry, uint64_t *rsp)
{
	for (int i = 0; i < NR_REGS; i++)
		test_regs_in[i] = 0x1111111111111111ull * (i % 15 + 1) ^ (uint64_t)i << 32;
	test_regs_in[15] = 0x202 | 0x8d5 | 0x400; /* arithmetic flags and the direction flag */
	test_regs_in[16] = (uint64_t)rsp;
	test_entry = (uint64_t)child.code + entry;
	test_enter();
}

static void start(void)
{
	protect();
	run(ME_RUNTIME_START, child.stack);
}

/* Calls the code like ld.so; as after a call, the stack is one word off its alignment. */
static void init(void)
{
	uint64_t *rsp = child.stack + 1;

	protect();
	*rsp = (uint64_t)test_landing;
	run(ME_RUNTIME_INIT, rsp);
}

static bool registers_kept(void)
{
	return !memcmp(test_regs_in, test_regs_out, sizeof(test_regs_in));
}

/* Runs @main in a child. Return: its result. */
static int in_child(int (*main)(void *), void *arg)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(main(arg));
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* ---- files ---------------------------------------------------------------------------------- */

static char path[256];

static void setup(void)
{
	scratch_make();
	snprintf(path, sizeof(path), "%s/counts", dir);
}

static size_t read_part(const char *name, void *to, size_t max)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t nr;

	if (fd < 0)
		return 0;
	nr = read(fd, to, max);
	close(fd);
	return nr < 0 ? 0 : (size_t)nr;
}

struct counts {
	struct mp_counts_file_header header;
	uint8_t rest[MP_COUNTS_FILE_HEADER_BYTES - sizeof(struct mp_counts_file_header)];
	uint64_t counters[NR_COUNTERS + 1]; /* one more than the file should have */
};

static void make_header(struct counts *counts)
{
	memset(counts, 0, sizeof(*counts));
	counts->header = (struct mp_counts_file_header){
		.version = MP_COUNTS_FILE_VERSION,
		.header_bytes = MP_COUNTS_FILE_HEADER_BYTES,
		.counters_bytes = COUNTERS_BYTES,
		.table_hash = HASH,
	};
	memcpy(counts->header.magic, MP_COUNTS_FILE_MAGIC, sizeof(counts->header.magic));
}

static void read_counts(struct counts *counts)
{
	struct counts good;

	ck_assert_uint_eq(read_part(path, counts, sizeof(*counts)), FILE_BYTES);
	make_header(&good);
	ck_assert_mem_eq(counts, &good, MP_COUNTS_FILE_HEADER_BYTES);
}

/* ---- tests ----------------------------------------------------------------------------------- */

FIXTURE(setup, scratch_remove);

TEST(runtime_begins_with_branch_targets)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

	ck_assert_uint_eq(me_runtime_blob_size % 16, 0);
	ck_assert_mem_eq(me_runtime_blob + ME_RUNTIME_START, endbr64, 4);
	ck_assert_mem_eq(me_runtime_blob + ME_RUNTIME_INIT, endbr64, 4);
	ck_assert_mem_eq(me_runtime_blob + ME_RUNTIME_THREAD, endbr64, 4);
	ck_assert_mem_eq(me_runtime_blob + ME_RUNTIME_ENTER, endbr64, 4);
	ck_assert_mem_eq(me_runtime_blob + ME_RUNTIME_LEAVE, endbr64, 4);
	ck_assert_mem_eq(me_runtime_blob + ME_RUNTIME_POINT, endbr64, 4);
	ck_assert_mem_eq(me_runtime_blob + ME_RUNTIME_CALL, endbr64, 4);
	ck_assert_uint_eq(sizeof(struct me_runtime_params), 72 + ME_RUNTIME_PATH);
	ck_assert_mem_eq(&(uint64_t){ME_RUNTIME_MAGIC}, "MORPHRT6", 8);
}

static int count_while_watched(void *arg)
{
	int *pipes = arg;
	char c;

	load(path);
	start();
	if (!registers_kept())
		return 2;
	child.counters[3] += 7;
	child.counters[NR_COUNTERS - 1] = UINT64_MAX;
	if (write(pipes[1], "x", 1) != 1 || read(pipes[2], &c, 1) != 1)
		return 3;
	child.counters[3]++;
	/* No code may be needed at the end of the program. */
	kill(getpid(), SIGKILL);
	return 4;
}

TEST(runtime_shares_the_counters_while_the_program_runs)
{
	struct counts counts;
	int pipes[4], status;
	struct stat st;
	pid_t pid;
	char c;

	umask(022);
	ck_assert_int_eq(pipe(pipes) | pipe(pipes + 2), 0);
	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(count_while_watched(pipes));
	close(pipes[1]);
	ck_assert_int_eq(read(pipes[0], &c, 1), 1);
	read_counts(&counts);
	ck_assert_uint_eq(counts.counters[3], 7);
	ck_assert_uint_eq(counts.counters[NR_COUNTERS - 1], UINT64_MAX);
	ck_assert_int_eq(write(pipes[3], "x", 1), 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	read_counts(&counts);
	ck_assert_uint_eq(counts.counters[3], 8);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0644);
}

static int count_before_and_after(void *arg)
{
	const uint64_t *expect = arg;

	load(path);
	child.counters[0] = 5;
	child.counters[511] = 1;
	child.counters[NR_COUNTERS - 1] = 2;
	start();
	if (child.counters[0] != expect[0] + 5 || child.counters[1] != expect[1])
		return 2;
	child.counters[0] += 10;
	return 0;
}

TEST(runtime_adds_what_was_counted_before_and_in_other_runs)
{
	struct counts counts;

	ck_assert_int_eq(in_child(count_before_and_after, (uint64_t[]){0, 0}), 0);
	read_counts(&counts);
	ck_assert_uint_eq(counts.counters[0], 15);
	ck_assert_uint_eq(counts.counters[511], 1);
	ck_assert_uint_eq(counts.counters[NR_COUNTERS - 1], 2);
	counts.counters[1] = 100;
	write_file(path, &counts, FILE_BYTES);
	ck_assert_int_eq(in_child(count_before_and_after, (uint64_t[]){15, 100}), 0);
	read_counts(&counts);
	ck_assert_uint_eq(counts.counters[0], 30);
	ck_assert_uint_eq(counts.counters[1], 100);
	ck_assert_uint_eq(counts.counters[511], 2);
}

static int count_with_a_child(void *arg)
{
	(void)arg;
	load(path);
	start();
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		__atomic_fetch_add(&child.counters[i], 1, __ATOMIC_RELAXED);
		if (pid < 0)
			return 2;
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

TEST(runtime_shares_the_counters_with_forked_processes)
{
	struct counts counts;

	ck_assert_int_eq(in_child(count_with_a_child, NULL), 0);
	read_counts(&counts);
	ck_assert_uint_eq(counts.counters[0], 2);
	ck_assert_uint_eq(counts.counters[1], 4);
	ck_assert_uint_eq(counts.counters[2], 8);
}

/* Private counters work, keep their values, and are not shared. */
static int count_in_private(void *arg)
{
	(void)arg;
	load(path);
	child.counters[3] = 5;
	start();
	if (!registers_kept())
		return 2;
	for (int i = 0; i < NR_COUNTERS; i++)
		if (child.counters[i]++ != (i == 3 ? 5 : 0))
			return 3;
	return 0;
}

static void assert_left_alone(const void *data, size_t size, int line)
{
	AUTO_FREE uint8_t *after = malloc(size + 1);

	write_file(path, data, size);
	ck_assert_int_eq(in_child(count_in_private, NULL), 0);
	ck_assert_msg(read_part(path, after, size + 1) == size, "line %d", line);
	ck_assert_msg(!memcmp(data, after, size), "line %d", line);
}

TEST(runtime_leaves_other_files_alone)
{
	struct counts good, other;
	const size_t header = sizeof(good.header);

	make_header(&good);
	for (size_t i = 0; i < 2 * header; i++) {
		other = good;
		((uint8_t *)&other)[i] ^= 0x10;
		assert_left_alone(&other, FILE_BYTES, __LINE__);
	}
	other = good;
	((uint8_t *)&other)[MP_COUNTS_FILE_HEADER_BYTES - 1] = 1;
	assert_left_alone(&other, FILE_BYTES, __LINE__);
	assert_left_alone(&good, FILE_BYTES - 1, __LINE__);
	assert_left_alone(&good, FILE_BYTES + 8, __LINE__);
	assert_left_alone(&good, header, __LINE__);
	assert_left_alone("\n", 1, __LINE__);
	/* The unchanged file would have been used. */
	write_file(path, &good, FILE_BYTES);
	ck_assert_int_eq(in_child(count_before_and_after, (uint64_t[]){0, 0}), 0);
	read_counts(&good);
	ck_assert_uint_eq(good.counters[0], 15);
}

TEST(runtime_runs_on_where_there_can_be_no_file)
{
	char there[300];
	struct stat st;

	ck_assert_int_eq(mkdir(path, 0755), 0);
	ck_assert_int_eq(in_child(count_in_private, NULL), 0);
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(mkfifo(path, 0644), 0);
	ck_assert_int_eq(in_child(count_in_private, NULL), 0);
	ck_assert_int_eq(unlink(path), 0);
	snprintf(there, sizeof(there), "%s/there", dir);
	ck_assert_int_eq(symlink(there, path), 0);
	ck_assert_int_eq(in_child(count_in_private, NULL), 0);
	ck_assert_int_eq(stat(there, &st), -1);
	snprintf(path, sizeof(path), "%s/none/counts", dir);
	ck_assert_int_eq(in_child(count_in_private, NULL), 0);
	strcpy(path, "/dev/null");
	ck_assert_int_eq(in_child(count_in_private, NULL), 0);
	strcpy(path, "/proc/counts");
	ck_assert_int_eq(in_child(count_in_private, NULL), 0);
	path[0] = '\0';
	ck_assert_int_eq(in_child(count_in_private, NULL), 0);
}

static int run_with_bad_params(void *arg)
{
	int which = *(int *)arg;

	load(path);
	switch (which) {
	case 0: child.params->magic++; break;
	case 1: memset(child.params->path, 'x', ME_RUNTIME_PATH); break;
	case 2: write_stack(child.stack, 1); break;
	}
	child.counters[0] = 9;
	start();
	return registers_kept() && child.counters[0] == 9 ? 0 : 2;
}

TEST(runtime_writes_nothing_for_who_has_more_rights)
{
	struct stat st;

	for (int which = 0; which < 3; which++) {
		ck_assert_int_eq(in_child(run_with_bad_params, &which), 0);
		ck_assert_int_eq(stat(path, &st), -1);
	}
	/* With correct parameters. */
	ck_assert_int_eq(in_child(run_with_bad_params, &(int){3}), 0);
	ck_assert_int_eq(stat(path, &st), 0);
}

static int init_with_more_rights(void *arg)
{
	load(path);
	child.params->next = 0;
	if (*(int *)arg && setresuid(65534, 0, 0))
		return 2;
	init();
	return 0;
}

TEST(runtime_of_a_library_writes_nothing_for_who_has_more_rights)
{
	struct stat st;

	if (getuid())
		MORPH_SKIP("needs root");
	ck_assert_int_eq(in_child(init_with_more_rights, &(int){1}), 0);
	ck_assert_int_eq(stat(path, &st), -1);
	ck_assert_int_eq(in_child(init_with_more_rights, &(int){0}), 0);
	ck_assert_int_eq(stat(path, &st), 0);
}

static int run_with_a_limit(void *arg)
{
	rlim_t bytes = *(rlim_t *)arg;
	struct rlimit limit = {bytes, bytes};

	if (setrlimit(RLIMIT_FSIZE, &limit))
		return 5;
	return count_in_private(NULL);
}

TEST(runtime_heeds_the_limit_of_file_sizes)
{
	struct stat st;

	ck_assert_int_eq(in_child(run_with_a_limit, &(rlim_t){FILE_BYTES - 1}), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_size, 0);
	/* Now the limit is large enough. */
	ck_assert_int_eq(in_child(run_with_a_limit, &(rlim_t){FILE_BYTES}), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_size, FILE_BYTES);
}

/* Return: 77 if mounting is not allowed. */
static int run_on_a_full_disk(void *arg)
{
	(void)arg;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", 0, "size=8k"))
		return 77;
	return count_in_private(NULL);
}

TEST(runtime_counts_in_private_on_a_full_disk)
{
	int ret = in_child(run_on_a_full_disk, NULL);

	if (ret == 77)
		MORPH_SKIP("may not mount");
	ck_assert_int_eq(ret, 0);
}

static int run_with_pid(void *arg)
{
	struct counts counts;
	char name[400];

	snprintf(path, sizeof(path), "%s/%%p.a%%p%%", dir);
	load(path);
	start();
	child.counters[0] = 3;
	snprintf(name, sizeof(name), "%s/%d.a%%p%%", dir, getpid());
	(void)arg;
	return read_part(name, &counts, sizeof(counts)) == FILE_BYTES && counts.counters[0] == 3
		       ? 0
		       : 2;
}

/* ramfs cannot reserve space. */
static int run_on_ramfs(void *arg)
{
	struct counts counts;

	(void)arg;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "ramfs", 0, NULL))
		return 77;
	load(path);
	start();
	child.counters[5] = 55;
	return read_part(path, &counts, sizeof(counts)) == FILE_BYTES && counts.counters[5] == 55
		       ? 0
		       : 2;
}

TEST(runtime_does_without_reserving_room)
{
	int ret = in_child(run_on_ramfs, NULL);

	if (ret == 77)
		MORPH_SKIP("may not mount");
	ck_assert_int_eq(ret, 0);
}

TEST(runtime_puts_the_process_id_into_the_name)
{
	ck_assert_int_eq(in_child(run_with_pid, NULL), 0);
}

static int run_with_long_path(void *arg)
{
	char name[ME_RUNTIME_PATH], made[sizeof(name) + 32];
	struct stat st;
	size_t len;

	/* "%p%u" at the end of the longest possible path. */
	len = (size_t)snprintf(name, sizeof(name), "%s", dir);
	while (len < ME_RUNTIME_PATH - 5)
		name[len++] = '/';
	strcpy(name + len, "%p%u");
	load(name);
	start();
	name[len] = '\0';
	snprintf(made, sizeof(made), "%s%d%u", name, getpid(), geteuid());
	(void)arg;
	return stat(made, &st) || st.st_size != FILE_BYTES;
}

TEST(runtime_takes_the_longest_path)
{
	ck_assert_int_eq(in_child(run_with_long_path, NULL), 0);
}

/* A file of the user, which others cannot open, and what is none. */
static int run_with_user(void *arg)
{
	static const char *const commands[] = {"true", "chmod 640 $f", "chmod 602 $f", "ln $f $f.2",
					       "rm $f $f.2; mkfifo -m 600 $f"};
	char name[300], made[300], command[700];
	struct stat st;

	(void)arg;
	snprintf(name, sizeof(name), "%s/%%u.%%u", dir);
	snprintf(made, sizeof(made), "%s/%u.%%u", dir, geteuid());
	load(name);
	start();
	if (stat(made, &st) || st.st_size != FILE_BYTES || (st.st_mode & 07777) != 0600)
		return 1;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct counts have = {0};

		snprintf(command, sizeof(command), "f='%s'; chmod 600 $f; %s", made, commands[i]);
		if (system(command))
			return 2;
		load(name);
		start();
		child.counters[5] = 55;
		if ((i == 0) !=
		    (read_part(made, &have, sizeof(have)) == FILE_BYTES && have.counters[5] == 55))
			return 10 + (int)i;
		child.counters[5] = 0;
	}
	return 0;
}

TEST(runtime_uses_a_file_of_the_user_alone)
{
	ck_assert_int_eq(in_child(run_with_user, NULL), 0);
}

static int run_as_library(void *arg)
{
	bool next = *(int *)arg;

	load(path);
	if (!next)
		child.params->next = 0;
	child.counters[1] = 1;
	init();
	child.counters[2] = 2;
	if (test_regs_out[16] != test_regs_in[16] + (next ? 0 : 8))
		return 2;
	test_regs_out[16] = test_regs_in[16];
	return registers_kept() ? 0 : 3;
}

TEST(runtime_of_a_library_returns_or_goes_on)
{
	struct counts counts;

	for (int next = 0; next < 2; next++) {
		unlink(path);
		ck_assert_int_eq(in_child(run_as_library, &next), 0);
		read_counts(&counts);
		ck_assert_uint_eq(counts.counters[1], 1);
		ck_assert_uint_eq(counts.counters[2], 2);
	}
}

static int run_at_once(void *arg)
{
	int *go = arg;

	load(path);
	child.counters[0] = 1;
	protect();
	__atomic_fetch_add(go, -1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(go, __ATOMIC_SEQ_CST) > 0)
		sched_yield();
	run(ME_RUNTIME_START, child.stack);
	for (int i = 0; i < 100; i++)
		__atomic_fetch_add(&child.counters[i], 1, __ATOMIC_RELAXED);
	return 0;
}

TEST(runtimes_that_start_at_once_share_one_file)
{
	enum {
		NR = 4,
		ROUNDS = 200
	};
	int *go = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct counts counts;

	for (int round = 0; round < ROUNDS; round++) {
		*go = NR;
		unlink(path);
		fflush(NULL);
		for (int i = 0; i < NR; i++)
			if (!fork())
				_exit(run_at_once(go));
		for (int i = 0; i < NR; i++) {
			int status;

			ck_assert_int_gt(wait(&status), 0);
			ck_assert_int_eq(status, 0);
		}
		read_counts(&counts);
		ck_assert_uint_eq(counts.counters[0], 2 * NR);
		for (int i = 1; i < 100; i++)
			ck_assert_uint_eq(counts.counters[i], NR);
	}
	munmap(go, 4096);
}
