// SPDX-License-Identifier: Apache-2.0
/* test_stop - threads stand still, go on, and keep their registers; system calls in another process leave no trace. */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/live/halfway.h"
#include "daemon/live/inject.h"
#include "daemon/live/live_private.h"
#include "daemon/live/stack.h"
#include "libprof/base/clock.h"
#include "tests/unit/suite.h"

#define NR_THREADS 5

static uint64_t *rounds; /* shared with the child: of each of its threads */
static pid_t child;

static void *count(void *arg)
{
	uint64_t *mine = arg;
	double x = 1;

	for (;;) {
		__atomic_fetch_add(mine, 1, __ATOMIC_RELAXED);
		x = x * 1.0000001 + 1e-9;
		if (x < 1)
			_exit(3);
		sched_yield();
	}
	return NULL;
}

static void setup(void)
{
	pthread_t thread;

	rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child = fork();
	if (!child) {
		for (int i = 1; i < NR_THREADS; i++)
			if (pthread_create(&thread, NULL, count, &rounds[i]))
				_exit(2);
		count(&rounds[0]);
	}
	for (int i = 0; i < NR_THREADS; i++)
		while (!__atomic_load_n(&rounds[i], __ATOMIC_RELAXED))
			usleep(1000);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void teardown(void)
{
	end(child);
	munmap(rounds, 4096);
}

FIXTURE(setup, teardown);

static uint64_t sum(void)
{
	uint64_t all = 0;

	for (int i = 0; i < NR_THREADS; i++)
		all += __atomic_load_n(&rounds[i], __ATOMIC_RELAXED);
	return all;
}

static void goes_on(void)
{
	for (int i = 0; i < NR_THREADS; i++) {
		uint64_t now = __atomic_load_n(&rounds[i], __ATOMIC_RELAXED);

		while (__atomic_load_n(&rounds[i], __ATOMIC_RELAXED) == now) {
			ck_assert_int_eq(waitpid(child, NULL, WNOHANG), 0);
			usleep(1000);
		}
	}
}

/* What a test does in the process just before this request, once. */
static struct {
	enum __ptrace_request request;
	void (*run)(pid_t tid);
} before;

/* In place of the C library's. */
long ptrace(enum __ptrace_request request, ...)
{
	void (*run)(pid_t) = before.request == request ? before.run : NULL;
	void *address, *data;
	va_list args;
	pid_t tid;

	va_start(args, request);
	tid = va_arg(args, pid_t);
	address = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	if (run) {
		before.run = NULL;
		run(tid);
	}
	return syscall(SYS_ptrace, request, tid, address, data);
}

/* The process that a test changes, and how it stands still. */
static struct md_process p;
static struct md_gadgets gadgets;
static struct md_stop stop;
static int mem;

static void look_into(pid_t pid)
{
	ck_assert_int_eq(md_process_open(pid, &p, &err), 0);
	mem = md_live_open_mem(pid, &err);
	ck_assert_msg(mem >= 0, "%s", err.msg);
	ck_assert_msg(!md_gadgets_find(&p, &gadgets, &err), "%s", err.msg);
}

static void look_away(void)
{
	free(gadgets.sigreturns);
	close(mem);
	md_process_close(&p);
}

TEST(all_threads_stand_still_and_go_on)
{
	uint64_t before;

	for (int i = 0; i < 20; i++) {
		ck_assert_msg(!md_stop_all(child, &stop, &err), "%s", err.msg);
		ck_assert_uint_eq(stop.nr, NR_THREADS);
		before = sum();
		usleep(2000);
		ck_assert_uint_eq(sum(), before);
		ck_assert_uint_gt(md_stop_end(&stop), 0);
		goes_on();
	}
}

TEST(a_thread_of_another_process_goes_on)
{
	ck_assert_int_eq(md_stop_thread(getppid(), child, &stop, &err), -ESRCH);
	ck_assert_uint_eq(stop.nr, 0);
	goes_on();
	ck_assert_msg(!md_stop_thread(child, child, &stop, &err), "%s", err.msg);
	md_stop_end(&stop);
}

TEST(no_process_is_an_error)
{
	ck_assert_int_eq(md_stop_all(INT32_MAX, &stop, &err), -ESRCH);
}

static bool is_address(void *arg, uint64_t address)
{
	return address == *(uint64_t *)arg;
}

TEST(a_file_is_shared_with_the_process)
{
	char path[] = "/tmp/test_stop.XXXXXX";
	struct stat st;
	struct md_injection what = {
		.kind = MD_INJECT_SHARE, .path = path, .size = 4096, .off = 4096};
	const struct md_mapping *m;
	int fd = mkstemp(path);
	char byte = 'x';

	ck_assert_int_eq(ftruncate(fd, 8192), 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	what.dev = st.st_dev;
	what.ino = st.st_ino + 1;
	look_into(child);
	what.address = md_process_mapping(&p, (uint64_t)setup)->start - (64 << 20);
	ck_assert_msg(!md_stop_all(child, &stop, &err), "%s", err.msg);
	/* Another file than the one that was meant is not mapped. */
	ck_assert_int_eq(md_inject(&stop, &p, mem, &gadgets, &what, &err), -EPERM);
	what.ino = st.st_ino;
	ck_assert_msg(!md_inject(&stop, &p, mem, &gadgets, &what, &err), "%s", err.msg);
	md_stop_end(&stop);
	ck_assert_int_eq(md_process_read_maps(&p, &err), 0);
	m = md_process_mapping(&p, what.address);
	ck_assert(m && m->read && m->write && m->shared && !m->exec && m->ino == st.st_ino);
	ck_assert_int_eq(pwrite(mem, &byte, 1, (off_t)what.address), 1);
	byte = 0;
	ck_assert_int_eq(pread(fd, &byte, 1, 4096), 1);
	ck_assert_int_eq(byte, 'x');
	goes_on();
	unlink(path);
	close(fd);
	look_away();
}

TEST(a_page_is_mapped_and_unmapped_in_the_process)
{
	struct md_injection what = {.kind = MD_INJECT_PAGE, .size = 4096};
	const struct md_mapping *m;

	look_into(child);
	/* Not in the program, whose code may change meanwhile. */
	ck_assert(md_mapping_is_libc(md_process_mapping(&p, gadgets.syscall)));
	ck_assert(md_mapping_is_libc(md_process_mapping(&p, gadgets.sigreturn)));
	what.address = md_process_mapping(&p, (uint64_t)setup)->start - (64 << 20);
	for (int i = 0; i < 10; i++) {
		what.kind = MD_INJECT_PAGE;
		ck_assert_msg(!md_stop_all(child, &stop, &err), "%s", err.msg);
		ck_assert_msg(!md_inject(&stop, &p, mem, &gadgets, &what, &err), "%s", err.msg);
		md_stop_end(&stop);
		ck_assert_int_eq(md_process_read_maps(&p, &err), 0);
		m = md_process_mapping(&p, what.address);
		ck_assert_ptr_nonnull(m);
		ck_assert(m->exec && !m->write && m->end - m->start == 4096);
		/* What is there already is never replaced. */
		ck_assert_msg(!md_stop_all(child, &stop, &err), "%s", err.msg);
		ck_assert_int_eq(md_inject(&stop, &p, mem, &gadgets, &what, &err), -EPERM);
		what.kind = MD_INJECT_UNMAP;
		ck_assert_msg(!md_inject(&stop, &p, mem, &gadgets, &what, &err), "%s", err.msg);
		md_stop_end(&stop);
		ck_assert_int_eq(md_process_read_maps(&p, &err), 0);
		ck_assert_ptr_null(md_process_mapping(&p, what.address));
		goes_on();
	}
	look_away();
}

TEST(an_address_on_a_stack_is_found)
{
	uint64_t wanted = 0, found = 0;
	const struct md_stack_query query = {.wanted = is_address, .arg = &wanted};
	pid_t tid;

	look_into(child);
	ck_assert_int_eq(md_stop_all(child, &stop, &err), 0);
	wanted = 0x123456789abcdef1;
	ck_assert_int_eq(md_stacks_search(&stop, &p, &gadgets, &query, &found, &tid, &err), 0);
	ck_assert_int_eq(md_memory_search(&stop, &p, UINT64_MAX, &query, &found, &err), 0);
	ck_assert_int_eq(md_memory_search(&stop, &p, 4096, &query, &found, &err), -EFBIG);
	wanted = stop.threads[2].regs.rip;
	ck_assert_int_eq(md_stacks_search(&stop, &p, &gadgets, &query, &found, &tid, &err), 1);
	ck_assert_uint_eq(found, wanted);
	/* Where the threads' function is kept that they run. */
	wanted = (uint64_t)count;
	ck_assert_int_eq(md_memory_search(&stop, &p, UINT64_MAX, &query, &found, &err), 1);
	md_stop_end(&stop);
	goes_on();
	look_away();
}

static void *brief(void *arg)
{
	(void)arg;
	__atomic_fetch_add(&rounds[0], 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Makes threads that end at once, all the time. */
static void *churn(void *arg)
{
	pthread_t thread;

	for (;;)
		if (!pthread_create(&thread, NULL, brief, arg))
			pthread_join(thread, NULL);
	return NULL;
}

/* Runs @run in a process that says by rounds[0] that it is ready; @child counts no more in the same place. */
static pid_t start(void (*run)(void))
{
	pid_t pid;

	kill(child, SIGSTOP);
	waitpid(child, NULL, WUNTRACED);
	rounds[0] = rounds[1] = 0;
	pid = fork();
	if (!pid) {
		run();
		_exit(1);
	}
	while (!__atomic_load_n(&rounds[0], __ATOMIC_RELAXED))
		usleep(1000);
	return pid;
}

static void run_churn(void)
{
	pthread_t thread;

	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread, NULL, churn, NULL))
			_exit(2);
	churn(NULL);
}

TEST(threads_that_come_and_go_are_all_stopped)
{
	pid_t pid;
	int nr = 0;

	pid = start(run_churn);
	for (int i = 0; i < 500 && nr < 20; i++) {
		uint64_t before;
		int r = md_stop_all(pid, &stop, &err);

		if (r == -EAGAIN)
			continue;
		ck_assert_msg(!r, "%s", err.msg);
		nr++;
		before = __atomic_load_n(&rounds[0], __ATOMIC_RELAXED);
		usleep(2000);
		ck_assert_uint_eq(__atomic_load_n(&rounds[0], __ATOMIC_RELAXED), before);
		md_stop_end(&stop);
	}
	ck_assert_int_eq(nr, 20);
	end(pid);
}

/* Returns from signals by other instructions than the C library's. */
void own_restorer(void);
__asm__(".pushsection .text\nown_restorer: push $15\npop %rax\nsyscall\n.popsection");

static void on_signal(int signal)
{
	(void)signal;
	__atomic_fetch_add(&rounds[0], 1, __ATOMIC_RELAXED);
	for (;;)
		pause();
}

#define ON_THE_STACK 0x123456789abcdef1

static void run_handler(void)
{
	static char other_stack[65536];
	const stack_t to = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)};
	/* As the kernel takes it: handler, flags (SA_RESTORER too), restorer, mask. */
	const uint64_t action[4] = {(uint64_t)on_signal, SA_ONSTACK | 0x04000000,
				    (uint64_t)own_restorer, 0};
	volatile uint64_t kept = ON_THE_STACK;

	if (sigaltstack(&to, NULL) || syscall(SYS_rt_sigaction, SIGUSR1, action, NULL, 8))
		_exit(2);
	raise(SIGUSR1);
	_exit(kept != 0);
}

TEST(a_stack_that_a_signal_interrupted_is_searched_whatever_its_handler_returns_by)
{
	uint64_t wanted = ON_THE_STACK, found = 0;
	const struct md_stack_query query = {.wanted = is_address, .arg = &wanted};
	pid_t pid = start(run_handler), tid;

	look_into(pid);
	ck_assert_int_eq(md_stop_all(pid, &stop, &err), 0);
	ck_assert_int_eq(md_stacks_search(&stop, &p, &gadgets, &query, &found, &tid, &err), 1);
	md_stop_end(&stop);
	end(pid);
	look_away();
}

/* The kernel shows the stack as three mappings. */
static void run_cut_stack(void)
{
	volatile uint64_t kept = ON_THE_STACK;
	char room[65536];
	char *page = (char *)(((uint64_t)room + sizeof(room) / 2) & -(uint64_t)4096);

	room[0] = 0;
	if (madvise(page, 4096, MADV_DONTDUMP))
		_exit(2);
	__atomic_fetch_add(&rounds[0], 1, __ATOMIC_RELAXED);
	pause();
	_exit(kept != 0 || room[0]);
}

TEST(a_stack_of_several_mappings_is_searched_to_its_end)
{
	uint64_t wanted = ON_THE_STACK, found = 0;
	const struct md_stack_query query = {.wanted = is_address, .arg = &wanted};
	pid_t pid = start(run_cut_stack), tid;

	look_into(pid);
	ck_assert_int_eq(md_stop_all(pid, &stop, &err), 0);
	ck_assert_int_eq(md_stacks_search(&stop, &p, &gadgets, &query, &found, &tid, &err), 1);
	md_stop_end(&stop);
	end(pid);
	look_away();
}

/* A stack above the thread's own data, with more memory behind it than a stack has. */
static void run_high_stack(void)
{
	const uint64_t action[4] = {(uint64_t)on_signal, SA_ONSTACK | 0x04000000,
				    (uint64_t)own_restorer, 0};
	const size_t size = (size_t)80 << 20;
	char *below = (char *)(((uint64_t)&action & -(uint64_t)4096) - ((size_t)100 << 20));
	const stack_t to = {.ss_sp = mmap(below, size, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
						  MAP_FIXED_NOREPLACE,
					  -1, 0),
			    .ss_size = 65536};

	if (to.ss_sp != below || madvise(below, to.ss_size, MADV_DONTDUMP) ||
	    sigaltstack(&to, NULL) || syscall(SYS_rt_sigaction, SIGUSR1, action, NULL, 8))
		_exit(2);
	raise(SIGUSR1);
}

TEST(a_stack_of_its_own_with_much_memory_behind_it_is_searched)
{
	uint64_t wanted = ON_THE_STACK, found = 0;
	const struct md_stack_query query = {.wanted = is_address, .arg = &wanted};
	pid_t pid = start(run_high_stack), tid;

	look_into(pid);
	ck_assert_int_eq(md_stop_all(pid, &stop, &err), 0);
	/* The one that was interrupted, too. */
	ck_assert_int_eq(md_stacks_search(&stop, &p, &gadgets, &query, &found, &tid, &err), 1);
	md_stop_end(&stop);
	end(pid);
	look_away();
}

static int rights_now; /* -1: the page goes */
static volatile uint64_t seed = 0x0fedcba987654321;

/* A page that was written before it got other rights. Nowhere else is the word. */
static void run_protected(void)
{
	uint64_t *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	page[1] = ~seed;
	if (rights_now < 0 ? munmap(page, 4096) : mprotect(page, 4096, rights_now))
		_exit(2);
	__atomic_fetch_add(&rounds[0], 1, __ATOMIC_RELAXED);
	for (;;)
		pause();
}

TEST_RANGE(memory_that_is_protected_is_searched_if_it_was_written, 0, 4)
{
	static const int rights[] = {PROT_READ, PROT_READ | PROT_EXEC, PROT_NONE, -1};
	static const int results[] = {1, 1, -EACCES, 0};
	uint64_t wanted, found = 0;
	const struct md_stack_query query = {.wanted = is_address, .arg = &wanted};
	pid_t pid;

	rights_now = rights[_i];
	pid = start(run_protected);
	wanted = ~seed;
	look_into(pid);
	ck_assert_int_eq(md_stop_all(pid, &stop, &err), 0);
	ck_assert_int_eq(md_memory_search(&stop, &p, UINT64_MAX, &query, &found, &err),
			 results[_i]);
	md_stop_end(&stop);
	end(pid);
	look_away();
}

static void *unshare_files(void *arg)
{
	if (unshare(CLONE_FILES) || close(0) || open("/dev/null", O_RDONLY))
		_exit(2);
	__atomic_store_n(&rounds[1], (uint64_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	__atomic_fetch_add(&rounds[0], 1, __ATOMIC_RELAXED);
	for (;;)
		pause();
	return arg;
}

static void run_two_tables(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, unshare_files, NULL))
		_exit(2);
	for (;;)
		pause();
}

TEST(a_thread_with_descriptors_of_its_own_maps_a_file)
{
	char path[] = "/tmp/test_stop.XXXXXX";
	struct md_injection what = {.kind = MD_INJECT_SHARE, .path = path, .size = 4096};
	int fd = mkstemp(path), other = fcntl(fd, F_DUPFD, 100);
	struct stat st;
	pid_t pid;

	ck_assert_int_eq(ftruncate(fd, 4096), 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	what.dev = st.st_dev;
	what.ino = st.st_ino;
	close(fd);
	pid = start(run_two_tables);
	look_into(pid);
	what.address = md_process_mapping(&p, (uint64_t)setup)->start - (64 << 20);
	ck_assert_int_eq(md_stop_thread(pid, (pid_t)rounds[1], &stop, &err), 0);
	ck_assert_msg(!md_inject(&stop, &p, mem, &gadgets, &what, &err), "%s", err.msg);
	md_stop_end(&stop);
	end(pid);
	unlink(path);
	close(other);
	look_away();
}

static void *filter_itself(void *arg)
{
	struct sock_filter all[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
	const struct sock_fprog filter = {1, all};

	(void)arg;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(2);
	__atomic_store_n(&rounds[1], (uint64_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	__atomic_fetch_add(&rounds[0], 1, __ATOMIC_RELAXED);
	for (;;)
		pause();
}

static void run_filter(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, filter_itself, NULL))
		_exit(2);
	for (;;)
		pause();
}

TEST(a_thread_with_a_filter_makes_no_system_call)
{
	const struct md_injection what = {
		.kind = MD_INJECT_PAGE, .size = 4096, .address = 0x10000000};
	pid_t pid = start(run_filter);

	look_into(pid);
	ck_assert_int_eq(md_stop_thread(pid, (pid_t)rounds[1], &stop, &err), 0);
	ck_assert_int_eq(md_inject(&stop, &p, mem, &gadgets, &what, &err), -EAGAIN);
	md_stop_end(&stop);
	end(pid);
	look_away();
}

/* Waits in the kernel, in a way that no signal ends, until its child does. */
static void *wait_for_child(void *arg)
{
	(void)arg;
	if (!syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0)) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return NULL;
}

#define NR_WAITERS 300

static void run_waiters(void)
{
	pthread_t thread;

	for (int i = 0; i < NR_WAITERS; i++)
		if (pthread_create(&thread, NULL, wait_for_child, NULL))
			_exit(2);
	usleep(200000);
	__atomic_fetch_add(&rounds[0], 1, __ATOMIC_RELAXED);
	for (;;)
		pause();
}

/* Memory wherever the stack of another program may be, so that a thread there seems to have one. */
static void fill_gaps(void)
{
	unsigned long start, end, last = 0x7f0000000000;
	FILE *maps = fopen("/proc/self/maps", "r");
	struct {
		unsigned long at, size;
	} gaps[256];
	int nr = 0;

	while (maps && nr < 255 && fscanf(maps, "%lx-%lx%*[^\n]", &start, &end) == 2) {
		if (start > last && start - last > 16 << 20) {
			gaps[nr].at = last;
			gaps[nr++].size = start - last;
		}
		last = end > last && end < 0x7fffffffffff ? end : last;
	}
	gaps[nr].at = last;
	gaps[nr++].size = 0x7ffffffff000 - last;
	fclose(maps);
	for (int i = 0; i < nr; i++) {
		char *gap = mmap((void *)gaps[i].at, gaps[i].size, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
				 -1, 0);

		/* The first pages are like the guard of a thread's stack. */
		if (gap != MAP_FAILED && gaps[i].size > 1 << 20)
			mprotect(gap + (1 << 20), gaps[i].size - (1 << 20), PROT_READ | PROT_WRITE);
	}
}

static int keep_memory(void *arg)
{
	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
	return 0;
}

static void run_other_program(void)
{
	static char stack[65536] __attribute__((aligned(16)));

	if (clone(keep_memory, stack + sizeof(stack), CLONE_VM, NULL) < 0)
		_exit(2);
	fill_gaps();
	__atomic_fetch_add(&rounds[0], 1, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&rounds[1], __ATOMIC_RELAXED))
		usleep(1000);
	execlp("sleep", "sleep", "1000", NULL);
}

/* It may be one with more rights, such as sudo; what was found in the old memory says nothing of it. */
TEST(a_process_that_becomes_another_program_keeps_its_registers)
{
	const struct md_injection what = {
		.kind = MD_INJECT_PAGE, .size = 4096, .address = 0x10000000};
	char name[64], comm[16] = "";
	pid_t pid;
	int file;

	pid = start(run_other_program);
	look_into(pid);
	__atomic_store_n(&rounds[1], 1, __ATOMIC_RELAXED);
	snprintf(name, sizeof(name), "/proc/%d/comm", (int)pid);
	while (strcmp(comm, "sleep\n") != 0) {
		usleep(1000);
		ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
		file = open(name, O_RDONLY);
		memset(comm, 0, sizeof(comm));
		ck_assert_int_gt(read(file, comm, sizeof(comm) - 1), 0);
		close(file);
	}
	usleep(100000);
	ck_assert_msg(!md_stop_all(pid, &stop, &err), "%s", err.msg);
	/* As if the new stack lay where the old one was. */
	for (size_t i = 0; i < p.nr_maps; i++)
		if (stop.threads[0].regs.rsp - p.maps[i].start < p.maps[i].end - p.maps[i].start)
			p.maps[i].path = strcpy(realloc(p.maps[i].path, 8), "[stack]");
	ck_assert_int_eq(md_inject(&stop, &p, mem, &gadgets, &what, &err), -ESRCH);
	md_stop_end(&stop);
	usleep(100000);
	ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
	end(pid);
	look_away();
}

static volatile sig_atomic_t handled;

static void note_signal(int signal)
{
	(void)signal;
	handled = 1;
}

/* Ends with 0 if the wait says that a signal came. */
static void run_wait(void)
{
	const struct sigaction action = {.sa_handler = note_signal};
	struct epoll_event e;
	int epoll = epoll_create1(0), r;

	sigaction(SIGUSR1, &action, NULL);
	__atomic_fetch_add(&rounds[0], 1, __ATOMIC_RELAXED);
	r = epoll_wait(epoll, &e, 1, 5000);
	_exit(r < 0 && errno == EINTR && handled ? 0 : 1);
}

static void signal_it(pid_t tid)
{
	kill(tid, SIGUSR1);
}

static bool waits_in(pid_t pid, const char *nr)
{
	char name[64], text[16] = "";
	ssize_t n;
	int file;

	snprintf(name, sizeof(name), "/proc/%d/syscall", (int)pid);
	file = open(name, O_RDONLY);
	n = read(file, text, strlen(nr));
	ck_assert_int_gt(n, 0);
	close(file);
	return !strcmp(text, nr);
}

/* _i: whether the thread has made a system call for us before. */
TEST_RANGE(a_signal_that_comes_last_ends_a_wait, 0, 2)
{
	struct md_injection what = {.kind = MD_INJECT_PAGE, .size = 4096};
	pid_t pid = start(run_wait);
	int status;

	while (!waits_in(pid, "232 "))
		usleep(1000);
	look_into(pid);
	what.address = md_process_mapping(&p, (uint64_t)setup)->start - (64 << 20);
	/* The wait begins again as long as none comes. */
	for (int i = 0; i < 3; i++) {
		ck_assert_msg(!md_stop_all(pid, &stop, &err), "%s", err.msg);
		md_stop_end(&stop);
		while (!waits_in(pid, "232 "))
			usleep(1000);
	}
	ck_assert_msg(!md_stop_all(pid, &stop, &err), "%s", err.msg);
	if (_i)
		ck_assert_msg(!md_inject(&stop, &p, mem, &gadgets, &what, &err), "%s", err.msg);
	before.request = PTRACE_DETACH;
	before.run = signal_it;
	md_stop_end(&stop);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	look_away();
}

static void *go_on(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void run_without_first(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, go_on, NULL))
		_exit(2);
	__atomic_fetch_add(&rounds[0], 1, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&rounds[1], __ATOMIC_RELAXED))
		;
	pthread_exit(NULL);
}

static void end_first(pid_t tid)
{
	char value[64];

	__atomic_store_n(&rounds[1], 1, __ATOMIC_RELAXED);
	while (!md_process_status(tid, "State", value, sizeof(value)) || *value != 'Z')
		usleep(1000);
}

TEST(a_first_thread_that_ends_while_it_is_stopped_is_not_waited_for)
{
	pid_t pid = start(run_without_first);
	uint64_t begun;

	/* The first thread is the first that is asked. */
	before.request = PTRACE_INTERRUPT;
	before.run = end_first;
	begun = mp_now_ns();
	ck_assert_int_eq(md_stop_all(pid, &stop, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "first thread has ended"));
	ck_assert_uint_lt(mp_now_ns() - begun, 2500000000);
	end(pid);
}

static void stop_it(pid_t tid)
{
	kill(tid, SIGSTOP);
}

TEST(a_stop_that_comes_during_a_system_call_of_ours_comes_later)
{
	struct md_injection what = {.kind = MD_INJECT_PAGE, .size = 4096};
	char value[64];
	pid_t pid = start(run_wait);
	int status;

	while (!waits_in(pid, "232 "))
		usleep(1000);
	look_into(pid);
	what.address = md_process_mapping(&p, (uint64_t)setup)->start - (64 << 20);
	ck_assert_msg(!md_stop_all(pid, &stop, &err), "%s", err.msg);
	before.request = PTRACE_SYSCALL;
	before.run = stop_it;
	ck_assert_msg(!md_inject(&stop, &p, mem, &gadgets, &what, &err), "%s", err.msg);
	md_stop_end(&stop);
	/* It waits for five seconds. */
	do {
		usleep(1000);
		ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
		ck_assert(md_process_status(pid, "State", value, sizeof(value)));
	} while (*value != 'T');
	kill(pid, SIGCONT);
	while (!waits_in(pid, "232 "))
		usleep(1000);
	kill(pid, SIGUSR1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	look_away();
}

/* As for a user who may be prompt, but may not undo all of that. */
static void lose_rights(pid_t tid)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {{0}};

	(void)tid;
	if (syscall(SYS_capset, &header, none))
		_exit(2);
}

/* The stopper is as prompt as before. */
static void stop_without_rights(void)
{
	int policy = sched_getscheduler(0);

	before.request = PTRACE_DETACH;
	before.run = lose_rights;
	if (md_stop_all(child, &stop, &err))
		_exit(3);
	if (!(sched_getscheduler(0) & SCHED_FIFO))
		_exit(77);
	md_stop_end(&stop);
	_exit((sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) != policy);
}

TEST(a_command_is_not_prompt_for_good)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		stop_without_rights();
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) == 77)
		MORPH_SKIP("it may not go before others");
	ck_assert_int_eq(status, 0);
}

static int to_fill[2];

/* The first page has room; the second one waits for a reader. */
static void run_long_write(void)
{
	char bytes[8192] = "";

	__atomic_fetch_add(&rounds[0], 1, __ATOMIC_RELAXED);
	_exit(write(to_fill[1], bytes, sizeof(bytes)) == sizeof(bytes) ? 0 : 1);
}

TEST(a_write_of_which_a_part_is_done_is_not_interrupted)
{
	char bytes[8192];
	int status;
	pid_t pid;

	ck_assert_int_eq(pipe(to_fill), 0);
	ck_assert_int_eq(fcntl(to_fill[1], F_SETPIPE_SZ, 4096), 4096);
	pid = start(run_long_write);
	while (!waits_in(pid, "1 "))
		usleep(1000);
	ck_assert_int_eq(md_stop_all(pid, &stop, &err), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(err.msg, "halfway"));
	ck_assert_int_eq(md_stop_thread(pid, pid, &stop, &err), -EAGAIN);
	for (ssize_t n, left = sizeof(bytes); left; left -= n) {
		n = read(to_fill[0], bytes, (size_t)left);
		ck_assert_int_gt(n, 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static int to_wake[2];

/* Begins a write that waits once it is told to. */
static void *write_late(void *arg)
{
	char bytes[8192] = "";

	__atomic_store_n(&rounds[2], (uint64_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	__atomic_fetch_add(&rounds[0], 1, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&rounds[1], __ATOMIC_RELAXED))
		;
	if (write(to_fill[1], bytes, sizeof(bytes)) != sizeof(bytes))
		_exit(1);
	go_on(arg);
	return NULL;
}

static void *note_and_go_on(void *arg)
{
	__atomic_store_n(&rounds[3], (uint64_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	return go_on(arg);
}

/* Ends with 0 if the first thread's wait ends with what it waits for. */
static void run_late_write(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	int epoll = epoll_create1(0);
	pthread_t thread;

	rounds[2] = rounds[3] = 0;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, to_wake[0], &e) ||
	    pthread_create(&thread, NULL, write_late, NULL))
		_exit(2);
	while (!__atomic_load_n(&rounds[2], __ATOMIC_RELAXED))
		;
	if (pthread_create(&thread, NULL, note_and_go_on, NULL))
		_exit(2);
	_exit(epoll_wait(epoll, &e, 1, -1) == 1 ? 0 : 1);
}

/* The write ends once the thread behind it goes on, which therefore cannot wait for it. */
static void read_all(pid_t tid)
{
	char bytes[8192];

	if (tid != (pid_t)rounds[3]) {
		before.run = read_all;
		return;
	}
	for (ssize_t n, left = sizeof(bytes); left; left -= n) {
		n = read(to_fill[0], bytes, (size_t)left);
		ck_assert_int_gt(n, 0);
	}
}

static void begin_write(pid_t tid)
{
	int there = 0;

	(void)tid;
	__atomic_store_n(&rounds[1], 1, __ATOMIC_RELAXED);
	/* Until its first half is there, it may wait for memory. */
	while (ioctl(to_fill[0], FIONREAD, &there) || there < 4096 ||
	       !waits_in((pid_t)rounds[2], "1 "))
		usleep(1000);
	before.request = PTRACE_DETACH;
	before.run = read_all;
}

TEST(a_stop_that_is_given_up_ends_no_wait_and_no_thread_waits_for_another)
{
	int status;
	pid_t pid;

	ck_assert_int_eq(pipe(to_wake), 0);
	ck_assert_int_eq(pipe(to_fill), 0);
	ck_assert_int_eq(fcntl(to_fill[1], F_SETPIPE_SZ, 4096), 4096);
	pid = start(run_late_write);
	close(to_fill[1]);
	while (!waits_in(pid, "232 ") || !__atomic_load_n(&rounds[3], __ATOMIC_RELAXED))
		usleep(1000);
	/* The first thread has been asked when the second one turns out to write. */
	before.request = PTRACE_INTERRUPT;
	before.run = begin_write;
	ck_assert_int_eq(md_stop_all(pid, &stop, &err), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(err.msg, "halfway"));
	ck_assert_ptr_null(before.run);
	while (!waits_in((pid_t)rounds[2], "34 "))
		usleep(1000);
	ck_assert_int_eq(write(to_wake[1], "x", 1), 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static int busy_file;

/* Waits for the disk at each write, but only for moments. */
static void run_busy_writer(void)
{
	static char bytes[65536];

	do
		__atomic_fetch_add(&rounds[0], 1, __ATOMIC_RELAXED);
	while (pwrite(busy_file, bytes, sizeof(bytes), 0) == sizeof(bytes));
}

/* It wakes up while it is looked at. */
TEST(a_thread_that_writes_to_a_file_all_the_time_is_in_no_halfway_write)
{
	char path[] = "/var/tmp/test_stop.XXXXXX";
	int fd = mkstemp(path);
	pid_t pid;

	busy_file = open(path, O_WRONLY | O_DSYNC);
	ck_assert_int_ge(busy_file, 0);
	unlink(path);
	close(fd);
	pid = start(run_busy_writer);
	for (int i = 0; i < 20000; i++)
		ck_assert_int_ne(md_halfway(pid), MD_HALFWAY_YES);
	close(busy_file);
	end(pid);
}

/* Each that is waited for by itself takes a second: then this takes minutes, with thousands hours. */
TIMEOUT(150);

TEST(threads_that_do_not_stop_are_given_up_together)
{
	pid_t pid = start(run_waiters), stopper;
	int status;

	/* In a process of its own: whoever traces threads must wait for each of them. */
	stopper = fork();
	if (!stopper)
		_exit(md_stop_all(pid, &stop, &err) == -ETIMEDOUT ? 0 : 1);
	ck_assert_int_eq(waitpid(stopper, &status, 0), stopper);
	ck_assert_int_eq(status, 0);
	end(pid);
}
