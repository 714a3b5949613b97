// SPDX-License-Identifier: Apache-2.0
/*
 * test_sandbox - files are read by processes that can do nothing else, and their replies are
 * checked.
 *
 * This program is also the reader. A file that begins with '!' tells the worker how to
 * misbehave, as if it had compromised the worker. Any other file is read as morphd reads it.
 */
#define SUITE_OWN_MAIN
#include "tests/unit/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/module/modcache.h"
#include "daemon/module/modread.h"
#include "daemon/module/sandbox.h"
#include "libprof/note/map.h"
#include "tests/support/tiny_elf.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

#define REPLY_MAX (1u << 20)
#define TEXT	  0x1000 /* address of the tiny programs' code */

/* ---- in the worker -------------------------------------------------------------------------- */

/* "!p", four bytes of size, the reply. */
#define PAYLOAD 8

static int say(int fd, uint64_t size, struct md_buf *reply)
{
	uint32_t nr = 0;
	uint8_t *to;

	if (pread(fd, &nr, sizeof(nr), 4) != sizeof(nr) || nr > size - PAYLOAD)
		return -1;
	to = md_buf_add(reply, nr);
	return to && pread(fd, to, nr, PAYLOAD) == (ssize_t)nr ? 0 : -1;
}

static int say_number(struct md_buf *reply, uint64_t number)
{
	uint8_t *to = md_buf_add(reply, sizeof(number));

	memcpy(to, &number, sizeof(number));
	return 0;
}

static void turn(uint64_t nr)
{
	for (; nr; nr--)
		__asm__ volatile("" ::: "memory");
}

static int work(int fd, uint64_t size, struct md_buf *reply)
{
	char what[2] = "";
	uint64_t nr;

	if (pread(fd, what, 2, 0) != 2 || what[0] != '!')
		return md_modread_file(fd, size, reply);
	switch (what[1]) {
	case 'p': return say(fd, size, reply);
	case 'c': __builtin_trap();
	case 'e': return -1;
	case 'l':
		for (;;)
			__asm__ volatile("" ::: "memory");
	case '.': return 0;
	case 't':
		if (pread(fd, &nr, sizeof(nr), 8) != sizeof(nr))
			return -1;
		turn(nr);
		return 0;
	case 'w': /* until the file's content is '.' */
		while (what[1] == 'w')
			if (pread(fd, what, 2, 0) != 2)
				return -1;
		return 0;
	case 'b': return md_buf_add(reply, REPLY_MAX + 1) ? 0 : -1;
	case 'm': return say_number(reply, malloc(1024u << 20) != NULL);
	/* calls that the kernel must prevent */
	case 'o': return say_number(reply, open("/etc/passwd", O_RDONLY));
	case 's': return say_number(reply, socket(AF_UNIX, SOCK_STREAM, 0));
	case 'k': return say_number(reply, kill(getppid(), SIGKILL));
	case 'f': return say_number(reply, fork());
	case 'x': return say_number(reply, execl("/bin/true", "true", NULL));
	case 'j':
		return say_number(reply, mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
					      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	case 'M':
		return say_number(reply,
				  mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	case 'r': return say_number(reply, recv(3, what, 1, 0));
	default: return -1;
	}
}

/* ---- helpers --------------------------------------------------------------------------------- */

static struct md_sandbox *sandbox;
static struct md_modcache *mc;
static struct md_buf reply, lie;

static void start_sandbox(uint32_t deadline_ms, size_t reply_max)
{
	const struct md_sandbox_config config = {deadline_ms, reply_max, NULL};
	int ret = md_sandbox_open(&config, &sandbox, &err);

	ck_assert_msg(!ret, "%s", err.msg);
	md_modcache_set_sandbox(mc, sandbox);
}

static void setup(void)
{
	scratch_make();
	mc = md_modcache_new();
	start_sandbox(60000, REPLY_MAX);
}

static void teardown(void)
{
	md_buf_fini(&reply);
	md_buf_fini(&lie);
	md_modcache_free(mc);
	mc = NULL;
	md_sandbox_close(sandbox);
	sandbox = NULL;
	scratch_remove();
}

static void restart(uint32_t deadline_ms, size_t reply_max)
{
	md_sandbox_close(sandbox);
	start_sandbox(deadline_ms, reply_max);
}

static const char *write_file(const char *name, const void *bytes, size_t size)
{
	static char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
	close(fd);
	return path;
}

static int read_path(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	reply.size = 0;
	err.msg[0] = 0;
	ret = md_sandbox_read(sandbox, fd, (uint64_t)st.st_size, &reply, &err);
	close(fd);
	return ret;
}

static int misbehave(char how)
{
	const char bytes[PAYLOAD] = {'!', how};

	return read_path(write_file("odd", bytes, sizeof(bytes)));
}

/* Builds a program with one segment; @text distinguishes it from others. */
static uint8_t *make_program(const char *text, const void *note, size_t note_size, size_t *size)
{
	const struct tiny_section sections[] = {
		{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, text, strlen(text), 0, 0,
		 0},
		{MP_MAP_SECTION, SHT_NOTE, SHF_ALLOC, TEXT + 0x1000, note, note_size, 0, 0, 0},
	};

	return tiny_elf_build(sections, note ? 2 : 1, NULL, 0, size);
}

static const char *write_program(const char *name, const char *text)
{
	size_t size;
	uint8_t *bytes = make_program(text, NULL, 0, &size);
	const char *path = write_file(name, bytes, size);

	free(bytes);
	return path;
}

/* Resolves @path like a process's mapping about which nothing else is known. */
static const struct md_file *resolve(const char *path)
{
	AUTO(md_buf_fini) struct md_buf buf = {0};
	struct morph_mmap *r;
	struct md_file *file;
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	r = md_record_add_mmap(&buf, 0, 0x3fffff, 0x3fffff, path);
	r->start = 0x10000000;
	r->len = 0x1000;
	r->dev_major = major(st.st_dev);
	r->dev_minor = minor(st.st_dev);
	r->ino = st.st_ino;
	ck_assert_int_eq(md_modcache_resolve(mc, r, 0, &file), 0);
	return file;
}

static const struct md_module *module_of(const struct md_file *file)
{
	return md_modcache_module(mc, file->module);
}

static void assert_works(void)
{
	ck_assert_msg(!read_path(write_program("sound", "sound")), "%s", err.msg);
	ck_assert_uint_gt(reply.size, sizeof(struct morph_module));
}

/* Return: number of processes whose parent is @parent; *@child is the first one. */
static unsigned int children_of(pid_t parent, pid_t *child)
{
	char name[300], line[512];
	struct dirent *e;
	DIR *d = opendir("/proc");
	unsigned int nr = 0;
	int ppid;
	char *p;
	FILE *f;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d))) {
		snprintf(name, sizeof(name), "/proc/%s/stat", e->d_name);
		f = e->d_name[0] >= '0' && e->d_name[0] <= '9' ? fopen(name, "re") : NULL;
		if (!f)
			continue;
		p = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
		fclose(f);
		if (!p || sscanf(p + 1, " %*c %d", &ppid) != 1 || ppid != parent)
			continue;
		if (child && !nr)
			*child = atoi(e->d_name);
		nr++;
	}
	closedir(d);
	return nr;
}

static unsigned int nr_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int nr = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		nr++;
	closedir(d);
	return nr;
}

/* ---- what is read ----------------------------------------------------------------------------- */

FIXTURE(setup, teardown);

TEST(sandbox_reads_what_would_be_read_here)
{
	static const char *const paths[] = {"/proc/self/exe", "/bin/sh", "/etc/passwd",
					    "/usr/lib/x86_64-linux-gnu/libc.so.6"};
	AUTO(md_buf_fini) struct md_buf here = {0};
	struct stat st;
	size_t i;
	int fd;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		ck_assert_int_eq(fstat(fd, &st), 0);
		here.size = 0;
		ck_assert_int_eq(md_modread_file(fd, (uint64_t)st.st_size, &here), 0);
		close(fd);
		ck_assert_msg(!read_path(paths[i]), "%s", err.msg);
		ck_assert_uint_eq(reply.size, here.size);
		ck_assert_mem_eq(reply.data, here.data, here.size);
	}
}

TEST(program_read_in_a_sandbox_is_a_module)
{
	const struct md_file *file = resolve(write_program("prog", "text of it"));
	const struct md_module *module = module_of(file);

	ck_assert_uint_eq(file->why, MD_MAPPED);
	ck_assert_uint_eq(file->nr_segments, 1);
	ck_assert_uint_eq(module->text_size, TEXT + strlen("text of it"));
	ck_assert_ptr_nonnull(strstr(module->path, "/prog"));
	/* A copy is the same module; other text is another module. */
	ck_assert_ptr_eq(module_of(resolve(write_program("copy", "text of it"))), module);
	ck_assert_ptr_ne(module_of(resolve(write_program("other", "other text"))), module);
	ck_assert_ptr_null(md_modcache_remark(mc));
}

TEST_EACH(damaged_file_is_unreadable_and_nothing_else_happens, 6)
{
	size_t size;
	AUTO_FREE uint8_t *bytes = make_program("text", NULL, 0, &size);
	Elf64_Ehdr *ehdr = (void *)bytes;
	const char *path;

	switch (_i) {
	case 0: size = 100; break;
	case 1:
		ehdr->e_shnum = 0;
		((Elf64_Shdr *)(bytes + ehdr->e_shoff))->sh_size = 1ull << 60;
		break;
	case 2: ehdr->e_phnum = 0xfffe; break;
	case 3: ehdr->e_phoff = ~0ull - 8; break;
	case 4: size = 1; break;
	case 5: bytes[0] = '#'; break;
	}
	path = write_file("damaged", bytes, size);
	ck_assert_uint_eq(resolve(path)->why, MP_UNATTR_UNREADABLE);
	ck_assert_ptr_null(md_modcache_remark(mc));
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->failed, 0);
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->readers, 1);
}

TEST(many_files_leave_no_process_and_no_descriptor_behind)
{
	char name[32], text[32];
	unsigned int before = nr_open(), i;
	const struct md_file *file;

	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		snprintf(text, sizeof(text), "text %u", i);
		file = resolve(i % 3 ? write_program(name, text) : write_file(name, "!c\0\0", 4));
		ck_assert_uint_eq(file->why, i % 3 ? MD_MAPPED : MP_UNATTR_UNREADABLE);
	}
	ck_assert_uint_eq(md_modcache_nr_modules(mc), 200);
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->files, 300);
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->failed, 100);
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->readers, 1);
	ck_assert_uint_eq(nr_open(), before);
	ck_assert_uint_eq(children_of(md_sandbox_pid(sandbox), NULL), 0);
}

/* ---- what a worker cannot do -------------------------------------------------------------------- */

TEST_EACH(forbidden_call_ends_the_worker, 8)
{
	static const char ways[] = "sxokfjMr";

	if (SANITIZED && _i > 1)
		MORPH_SKIP("'%c': a sanitizer's runtime may do that itself", ways[_i]);
	ck_assert_int_eq(misbehave(ways[_i]), -EPROTO);
	ck_assert_msg(strstr(err.msg, "forbidden system call"), "'%c': %s", ways[_i], err.msg);
	ck_assert_uint_eq(reply.size, 0);
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->failed, 1);
	assert_works();
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->readers, 1);
}

TEST(memory_of_a_worker_is_bounded)
{
	uint64_t got = 2;

	if (SANITIZED)
		MORPH_SKIP("a sanitizer needs more address space than that");
	ck_assert_int_eq(misbehave('m'), 0);
	memcpy(&got, reply.data, sizeof(got));
	ck_assert_uint_eq(got, 0);
}

static void status_field(pid_t pid, const char *field, char *out)
{
	char name[64], line[256];
	size_t len = strlen(field);
	FILE *f;

	out[0] = 0;
	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	f = fopen(name, "re");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, field, len) && line[len] == ':')
			sscanf(line + len + 1, " %60[^\n]", out);
	fclose(f);
}

/*
 * Return: true if this process may become another user, that user exists, and we may kill its
 * processes.
 */
static bool may_be_nobody(void)
{
	const unsigned long long needed = 7 << 5; /* CAP_KILL, CAP_SETGID, CAP_SETUID */
	unsigned int inside, outside, nr;
	FILE *f = fopen("/proc/self/uid_map", "re");
	char value[64];
	bool all;

	all = f && fscanf(f, "%u %u %u", &inside, &outside, &nr) == 3 && nr > 65534;
	if (f)
		fclose(f);
	status_field(getpid(), "CapEff", value);
	return all && (strtoull(value, NULL, 16) & needed) == needed;
}

static void assert_no_rights(pid_t pid, const char *nr_filters)
{
	static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapAmb"};
	char value[64];
	size_t i;

	for (i = 0; i < 4; i++) {
		status_field(pid, sets[i], value);
		ck_assert_str_eq(value, "0000000000000000");
	}
	status_field(pid, "NoNewPrivs", value);
	ck_assert_str_eq(value, "1");
	status_field(pid, "Seccomp", value);
	ck_assert_str_eq(value, "2");
	status_field(pid, "Seccomp_filters", value);
	if (value[0])
		ck_assert_str_eq(value, nr_filters);
	if (may_be_nobody()) {
		status_field(pid, "Uid", value);
		ck_assert_str_eq(value, "65534\t65534\t65534\t65534");
		status_field(pid, "Gid", value);
		ck_assert_str_eq(value, "65534\t65534\t65534\t65534");
		status_field(pid, "Groups", value);
		ck_assert_str_eq(value, "");
	}
}

/* Lists the open files of @pid: "0 /dev/null\n1 ...". Return: how many. */
static unsigned int open_in(pid_t pid, char *out, size_t size)
{
	char name[300], target[200];
	unsigned int nr = 0, fd;
	ssize_t n;

	out[0] = 0;
	for (fd = 0; fd < 64; fd++) {
		snprintf(name, sizeof(name), "/proc/%d/fd/%u", pid, fd);
		n = readlink(name, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = 0;
		snprintf(out + strlen(out), size - strlen(out), "%u %s\n", fd, target);
		nr++;
	}
	return nr;
}

TEST(reader_has_no_rights_and_nothing_of_ours)
{
	char name[64], bytes[4096], text[1024];
	size_t n;
	FILE *f;

	/* The reader must not inherit this descriptor or this variable. */
	ck_assert_int_ge(open("/etc/passwd", O_RDONLY), 0);
	setenv("SECRET_OF_OURS", "1", 1);
	restart(60000, REPLY_MAX);
	assert_no_rights(md_sandbox_pid(sandbox), "1");
	if (geteuid())
		MORPH_SKIP("what a process has open that cannot be dumped, only root sees");
	ck_assert_msg(open_in(md_sandbox_pid(sandbox), text, sizeof(text)) == 4, "%s", text);
	ck_assert_msg(strstr(text, "3 socket:"), "%s", text);
	snprintf(name, sizeof(name), "/proc/%d/environ", md_sandbox_pid(sandbox));
	f = fopen(name, "re");
	ck_assert_ptr_nonnull(f);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	ck_assert_ptr_null(memmem(bytes, n, "SECRET", 6));
}

/* Waits until a worker of @reader is confined and reads its file. Return: its pid. */
static pid_t await_worker(pid_t reader)
{
	pid_t worker = 0;
	char text[64];

	while (!children_of(reader, &worker))
		;
	do {
		status_field(worker, "Seccomp_filters", text);
	} while (strcmp(text, "2"));
	return worker;
}

/* Checks the worker that reads @path, then lets it finish. Exit status: 0, or what was wrong. */
static void inspect_worker(pid_t reader, const char *path)
{
	char text[1024], flags[256], name[64];
	pid_t worker = await_worker(reader);
	FILE *f;
	int fd;

	assert_no_rights(worker, "2");
	if (geteuid() == 0) {
		ck_assert_msg(open_in(worker, text, sizeof(text)) == 5, "%s", text);
		ck_assert_msg(strstr(text, path) && strstr(text, " pipe:"), "%s", text);
		ck_assert_ptr_null(strstr(text, "socket"));
		snprintf(name, sizeof(name), "/proc/%d/fdinfo/%ld", worker,
			 strtol(strstr(text, path) - 2, NULL, 10));
		f = fopen(name, "re");
		ck_assert_ptr_nonnull(f);
		ck_assert(fscanf(f, "pos: %*d flags: %60s", flags) == 1);
		fclose(f);
		/* in octal: read only */
		ck_assert_int_eq(flags[strlen(flags) - 1], '0');
	}
	fd = open(path, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, "!.", 2, 0), 2);
	close(fd);
	exit(0);
}

TEST(worker_has_one_file_and_a_pipe)
{
	const char *path = write_file("wait", "!w......", 8);
	int status;
	pid_t pid;

	pid = fork();
	if (!pid)
		inspect_worker(md_sandbox_pid(sandbox), path);
	ck_assert_msg(!read_path(path), "%s", err.msg);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

/* ---- what it does to us ------------------------------------------------------------------------- */

TEST(worker_that_dies_costs_its_file_alone)
{
	pid_t reader = md_sandbox_pid(sandbox);

	ck_assert_int_eq(misbehave('c'), -EPROTO);
	ck_assert_int_eq(misbehave('e'), -EPROTO);
	ck_assert_ptr_nonnull(strstr(err.msg, "gave up"));
	assert_works();
	ck_assert_int_eq(md_sandbox_pid(sandbox), reader);
}

TEST(worker_that_hangs_is_ended)
{
	pid_t reader;

	restart(300, REPLY_MAX);
	reader = md_sandbox_pid(sandbox);
	ck_assert_int_eq(misbehave('l'), -ETIMEDOUT);
	ck_assert_str_eq(err.msg, "reading it took too long");
	/* The worker ends a moment after its reader. */
	while (children_of(reader, NULL))
		;
	while (!kill(reader, 0))
		waitpid(reader, NULL, WNOHANG);
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->failed, 1);
	restart(60000, REPLY_MAX);
	assert_works();
}

/* Return: turns of the worker's loop in a second of CPU time. */
static uint64_t turns_of_a_second(void)
{
	const uint64_t nr = 20000000;
	clock_t begun = clock();

	turn(nr);
	return nr * CLOCKS_PER_SEC / (uint64_t)(clock() - begun + 1);
}

/* A second of CPU time takes four seconds beside three others: more than the deadline. */
TEST(worker_that_gets_little_of_the_cpu_is_not_late)
{
	struct {
		char what[8];
		uint64_t nr;
	} file = {"!t", turns_of_a_second()};
	const char *path = write_file("slow", &file, sizeof(file));
	cpu_set_t was, one;
	pid_t others[3];
	size_t i;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(was), &was), 0);
	CPU_ZERO(&one);
	for (i = 0; !CPU_ISSET(i, &was); i++)
		;
	CPU_SET(i, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	restart(3000, REPLY_MAX);
	for (i = 0; i < 3; i++) {
		others[i] = fork();
		if (!others[i]) {
			setsid(); /* a session may have its share of the CPU for itself */
			prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		}
		while (!others[i])
			__asm__ volatile("" ::: "memory");
	}
	ck_assert_msg(!read_path(path), "%s", err.msg);
	for (i = 0; i < 3; i++) {
		kill(others[i], SIGKILL);
		waitpid(others[i], NULL, 0);
	}
	ck_assert_int_eq(sched_setaffinity(0, sizeof(was), &was), 0);
}

TEST(after_a_late_file_there_is_a_new_reader)
{
	const struct md_file *file;

	/* The next file has a quarter of this time. */
	restart(12000, REPLY_MAX);
	ck_assert_int_eq(kill(md_sandbox_pid(sandbox), SIGSTOP), 0);
	file = resolve(write_program("late", "late"));
	ck_assert_uint_eq(file->why, MP_UNATTR_UNREADABLE);
	ck_assert_ptr_nonnull(strstr(md_modcache_remark(mc), "/late: reading it took too long"));
	ck_assert_ptr_null(md_modcache_remark(mc));
	assert_works();
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->readers, 2);
}

TEST(reader_that_was_killed_is_replaced)
{
	ck_assert_int_eq(kill(md_sandbox_pid(sandbox), SIGKILL), 0);
	assert_works();
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->readers, 2);
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->failed, 0);
}

TEST(file_is_read_again_where_its_reader_was_killed)
{
	const char *path = write_file("wait", "!w......", 8);
	pid_t reader = md_sandbox_pid(sandbox), pid, worker;
	int status, fd;

	pid = fork();
	if (!pid) {
		worker = await_worker(reader);
		if (kill(reader, SIGKILL))
			_exit(1);
		/* The worker dies with it, although no message told it to stop. */
		for (;;) {
			char state[64];

			status_field(worker, "State", state);
			if (!state[0] || state[0] == 'Z')
				break;
		}
		fd = open(path, O_WRONLY);
		_exit(pwrite(fd, "!.", 2, 0) != 2);
	}
	ck_assert_msg(!read_path(path), "%s", err.msg);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->readers, 2);
}

TEST(file_is_looked_at_again_where_we_had_no_means_to_read_it)
{
	const char *path = write_program("prog", "prog");
	struct rlimit was, few;
	int fd = open("/dev/null", O_RDONLY);

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	/* Enough descriptors to find the file, too few for a pipe. */
	few.rlim_cur = (rlim_t)fd + 2;
	close(fd);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	ck_assert_uint_eq(resolve(path)->why, MP_UNATTR_UNREADABLE);
	ck_assert_ptr_nonnull(strstr(md_modcache_remark(mc), "/prog: pipe: Too many open files"));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
	ck_assert_uint_eq(resolve(path)->why, MD_MAPPED);
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->files, 2);
	/* A file that fails by its own fault is not read again. */
	path = write_file("odd", "!c\0\0", 4);
	ck_assert_uint_eq(resolve(path)->why, MP_UNATTR_UNREADABLE);
	ck_assert_uint_eq(resolve(path)->why, MP_UNATTR_UNREADABLE);
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->files, 3);
}

TEST(reply_without_end_is_cut_off)
{
	ck_assert_int_eq(misbehave('b'), -EFBIG);
	ck_assert_uint_eq(reply.size, 0);
	assert_works();
	ck_assert_uint_eq(md_sandbox_counts(sandbox)->readers, 1);
}

TEST_EACH(reader_goes_when_we_do, 2)
{
	int fds[2], status;
	pid_t pid, reader;

	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		restart(60000, REPLY_MAX);
		reader = md_sandbox_pid(sandbox);
		/* While stopped, it does not see that its socket was closed. */
		if (_i)
			kill(reader, SIGSTOP);
		if (write(fds[1], &reader, sizeof(reader)) != sizeof(reader))
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	close(fds[1]);
	ck_assert_int_eq(read(fds[0], &reader, sizeof(reader)), sizeof(reader));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	while (!kill(reader, 0)) {
		char state[64];

		status_field(reader, "State", state);
		if (state[0] == 'Z')
			break; /* its parent reaps it later */
		usleep(1000);
	}
}

/* ---- lies ------------------------------------------------------------------------------------- */

static struct morph_module *add_module(uint32_t nr_segments)
{
	struct morph_module *r = md_record_add(
		&lie, MORPH_REC_MODULE, sizeof(*r) + nr_segments * sizeof(r->segments[0]) + 8);
	uint32_t i;

	r->module = 1;
	r->nr_segments = nr_segments;
	for (i = 0; i < nr_segments; i++) {
		r->segments[i] = (struct morph_segment){0, 0x400000 + i * 0x1000, 0x100};
		r->text_size += 0x100;
	}
	return r;
}

static struct morph_module_map *add_map(uint32_t nr, uint64_t original_hash)
{
	struct morph_module_map *r =
		md_record_add(&lie, MORPH_REC_MODULE_MAP, sizeof(*r) + nr * sizeof(r->pieces[0]));
	uint32_t i;

	r->module = 1;
	r->text_hash = original_hash;
	for (i = 0; i < nr; i++)
		r->pieces[i] = (struct morph_piece){0x1000 + i * 16, 0x2000 + i * 16, 16, 16};
	return r;
}

/* Resolves a file of 64 KiB whose worker replies with @lie. */
static const struct md_file *resolve_lie(const char *name)
{
	AUTO_FREE uint8_t *bytes = calloc(1, 1 << 16);
	const struct md_file *file;
	uint32_t nr = (uint32_t)lie.size;

	ck_assert_uint_le(lie.size, (1 << 16) - PAYLOAD);
	memcpy(bytes, "!p", 2);
	memcpy(bytes + 4, &nr, sizeof(nr));
	memcpy(bytes + PAYLOAD, lie.data, lie.size);
	file = resolve(write_file(name, bytes, 1 << 16));
	return file;
}

/*
 * Makes a table with one block at @vaddr that is entered from outside. Return: its bytes;
 * *@size.
 */
static uint8_t *paths_of(uint64_t vaddr, size_t *size)
{
	struct mp_path_block block = {
		.vaddr = vaddr, .size = 16, .term_off = 16, .reg = MP_NO_REGISTER, .starts = true};
	struct mp_path_edge edge = {.from = MP_NONE, .kind = MP_PATH_EDGE_OUTSIDE};
	struct mp_path_func func = {.nr_blocks = 1, .nr_edges = 1};
	const struct mp_path_table table = {.funcs = &func,
					    .nr_funcs = 1,
					    .blocks = &block,
					    .nr_blocks = 1,
					    .edges = &edge,
					    .nr_edges = 1};
	uint8_t *bytes;

	ck_assert_int_eq(mp_path_table_encode(&table, &bytes, size, NULL), 0);
	return bytes;
}

#define NR_RUBBISH 31

TEST_EACH(rubbish_is_not_believed, NR_RUBBISH)
{
	struct morph_module_paths *paths;
	struct morph_module_ends *ends;
	struct morph_module *m;
	uint8_t *bytes;
	size_t size;

	m = add_module(1);
	switch (_i) {
	case 0: lie.size = 0; break;
	case 1: memset(lie.data, 0xa5, lie.size); break;
	case 2: lie.size -= 8; break;
	case 3: m->kind = MORPH_MODULE_KERNEL; break;
	case 4: m->module = 2; break;
	case 5: m->module = 0xfffff; break;
	case 6: m->status = MORPH_MODULE_DELETED; break;
	case 7: m->status = 77; break;
	case 8: m->segments[0].off = (1 << 16) - 8; break;
	case 9: m->segments[0].size = m->text_size = ~0ull; break;
	case 10: m->segments[0].vaddr = ~0ull - 0x80; break;
	case 11: m->text_size = 0x1000000; break;
	case 12: m->nr_segments = 0x10000000; break;
	case 13:
		lie.size = 0;
		add_module(0);
		break;
	case 14:
		lie.size = 0;
		add_module(65);
		break;
	case 15: m->build_id_len = 33; break;
	case 16:
		m->nr_pieces = 3;
		add_map(2, 7);
		break;
	case 17:
		m->nr_pieces = 1;
		add_map(2, 7);
		break;
	case 18: m->nr_pieces = 1 << 24; break;
	case 19:
		m->nr_pieces = 2;
		add_map(2, 7)->module = 2;
		break;
	case 20:
		m->nr_pieces = 2;
		add_map(2, 7)->pieces[1].new_vaddr = 0;
		break;
	case 21:
		m->nr_pieces = 2;
		add_map(2, 7)->pieces[0].old_vaddr = ~0ull;
		break;
	case 22: add_module(1); break;
	case 23: md_record_add(&lie, 999, 64); break;
	case 24:
		md_record_add_task(&lie, MORPH_REC_SAMPLES, sizeof(struct morph_samples) + 8, 1, 1,
				   1);
		break;
	case 25:
		m->nr_pieces = 2;
		add_map(2, 7);
		ends = md_record_add(&lie, MORPH_REC_MODULE_ENDS, sizeof(*ends) + 8);
		ends->module = 1;
		ends->first = 0xfffffffe;
		ends->nr = 2;
		break;
	case 27:
	case 28:
	case 29:
	case 30:
		/* Paths of another file, without a map, invalid, and incomplete. */
		if (_i != 28) {
			m->nr_pieces = 2;
			add_map(2, 7);
		}
		bytes = paths_of(0x2000, &size);
		paths = md_record_add(&lie, MORPH_REC_MODULE_PATHS, sizeof(*paths) + size);
		paths->module = _i == 27 ? 2 : 1;
		paths->table_size = size + (_i == 30);
		paths->nr = size;
		memcpy(paths->bytes, bytes, size);
		paths->bytes[3] ^= _i == 29;
		free(bytes);
		break;
	case 26:
		md_record_add_lost(&lie, 1, 1000000, MORPH_LOST_RING_FULL, MORPH_LOST_STATE);
		break;
	}
	ck_assert_uint_eq(resolve_lie("liar")->why, MP_UNATTR_UNREADABLE);
	ck_assert_ptr_nonnull(strstr(md_modcache_remark(mc), "make no sense"));
	ck_assert_uint_eq(md_modcache_nr_modules(mc), 0);
	ck_assert_ptr_null(md_modcache_kernel(mc));
	ck_assert_uint_eq(module_of(resolve(write_program("sound", "sound")))->index, 1);
}

/* A worker lies: its file has @victim's id, and a map that leads elsewhere. */
static const struct md_file *pretend(const struct mp_id *victim, uint64_t text_size)
{
	struct morph_module *m;

	lie.size = 0;
	m = add_module(1);
	m->text_hash = victim->text_hash;
	m->build_id_len = victim->build_id_len;
	memcpy(m->build_id, victim->build_id, sizeof(m->build_id));
	m->segments[0].size = m->text_size = text_size;
	m->nr_pieces = 2;
	add_map(2, 0xdead);
	return resolve_lie("liar");
}

TEST_EACH(lie_about_an_id_changes_no_other_file, 2)
{
	const struct md_file *victim, *liar;
	const struct md_module *v, *l;
	struct mp_id id = {0};

	/* Either file may come first. The liar needs the id in any case. */
	victim = resolve(write_program("victim", "victim"));
	id = module_of(victim)->id;
	if (_i) {
		md_modcache_free(mc);
		mc = md_modcache_new();
		md_modcache_set_sandbox(mc, sandbox);
		liar = pretend(&id, 0x1006);
		victim = resolve(write_program("victim", "victim"));
	} else {
		liar = pretend(&id, 0x1006);
	}
	v = module_of(victim);
	l = module_of(liar);
	ck_assert(mp_id_equal(&v->id, &l->id));
	ck_assert_ptr_ne(v, l);
	ck_assert_ptr_null(v->map);
	ck_assert_uint_eq(v->original, 0);
	ck_assert_uint_eq(v->text_size, 0x1006);
	ck_assert_ptr_nonnull(strstr(v->path, "/victim"));
	ck_assert_ptr_nonnull(l->map);
}

TEST(lie_about_a_size_changes_no_other_file)
{
	const struct md_module *v = module_of(resolve(write_program("victim", "victim")));
	struct morph_module *m = add_module(1);

	m->text_hash = v->id.text_hash;
	ck_assert_uint_eq(v->id.build_id_len, 0);
	ck_assert_ptr_ne(module_of(resolve_lie("liar")), v);
	ck_assert_uint_eq(v->text_size, 0x1006);
}

TEST(path_in_a_remark_cannot_write_to_a_terminal)
{
	const char *remark;

	resolve(write_file("a\033[2J\nb", "!c\0\0", 4));
	remark = md_modcache_remark(mc);
	ck_assert_ptr_nonnull(strstr(remark, "/a?[2J?b: the process that read it"));
}

TEST(remarks_come_to_an_end)
{
	unsigned int i, nr = 0;
	char name[32];

	for (i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		resolve(write_file(name, "!e\0\0", 4));
		nr += md_modcache_remark(mc) != NULL;
	}
	ck_assert_uint_eq(nr, 10);
}

/* ---- maps --------------------------------------------------------------------------------------- */

/* @paths: contents of .morph.paths; @paths_size 0: no such section. */
static const char *write_numbered(const char *name, uint32_t nr_pieces, bool hashed,
				  const void *paths, size_t paths_size)
{
	struct mp_map map = {.original.text_hash = 0xabc, .nr_pieces = nr_pieces};
	Elf64_Phdr code = {.p_type = PT_LOAD,
			   .p_flags = PF_R | PF_X,
			   .p_vaddr = UINT64_C(1) << 40,
			   .p_filesz = 0x100,
			   .p_memsz = 0x100};
	const struct tiny_section note = {
		.name = MP_MAP_SECTION, .type = SHT_NOTE, .flags = SHF_ALLOC, .vaddr = TEXT};
	struct tiny_section sections[] = {note,
					  {.name = MP_PATH_TABLE_SECTION,
					   .type = SHT_PROGBITS,
					   .data = paths,
					   .size = paths_size}};
	uint8_t *bytes, *data;
	const char *path;
	uint32_t i;
	size_t size;

	map.pieces = calloc(nr_pieces, sizeof(map.pieces[0]));
	for (i = 0; i < nr_pieces; i++)
		map.pieces[i] = (struct mp_map_piece){0x1000000 + i * UINT64_C(16), 16, 16,
						      0x2000 + i * UINT64_C(32)};
	ck_assert_int_eq(mp_map_encode(&map, &data, &size, NULL), 0);
	sections[0].data = data;
	sections[0].size = size;
	bytes = tiny_elf_build(sections, paths_size ? 2 : 1, hashed ? NULL : &code, !hashed, &size);
	if (!hashed)
		((Elf64_Phdr *)(bytes + sizeof(Elf64_Ehdr)))->p_flags = PF_R;
	path = write_file(name, bytes, size);
	free(bytes);
	free(data);
	free(map.pieces);
	return path;
}

static const char *write_optimised(const char *name, uint32_t nr_pieces, bool hashed)
{
	return write_numbered(name, nr_pieces, hashed, NULL, 0);
}

TEST(table_of_paths_is_read_with_the_map)
{
	const struct md_file *one, *copy, *other;
	uint8_t *bytes, *others;
	size_t size, others_size;

	bytes = paths_of(0x2000, &size);
	others = paths_of(0x2010, &others_size);
	one = resolve(write_numbered("one", 3, true, bytes, size));
	copy = resolve(write_numbered("copy", 3, true, bytes, size));
	other = resolve(write_numbered("other", 3, true, others, others_size));
	ck_assert_ptr_nonnull(module_of(one)->paths);
	ck_assert_uint_eq(module_of(one)->paths->blocks[0].vaddr, 0x2000);
	ck_assert_ptr_eq(module_of(one), module_of(copy));
	/* Text and map are equal, but the table is only used for this module's own samples. */
	ck_assert(mp_id_equal(&module_of(one)->id, &module_of(other)->id));
	ck_assert_ptr_ne(module_of(one), module_of(other));
	ck_assert_uint_eq(module_of(other)->paths->blocks[0].vaddr, 0x2010);
	ck_assert_uint_eq(module_of(one)->original, module_of(other)->original);
	/* If the table is damaged or far too large, the module is known without paths. */
	bytes[size / 2] ^= 1;
	other = resolve(write_numbered("damaged", 3, true, bytes, size));
	ck_assert_uint_eq(other->why, MD_MAPPED);
	ck_assert_ptr_null(module_of(other)->paths);
	ck_assert_uint_eq(module_of(other)->map->nr_pieces, 3);
	free(bytes);
	bytes = calloc(1, (8 << 20) + 1);
	other = resolve(write_numbered("huge", 3, true, bytes, (8 << 20) + 1));
	ck_assert_uint_eq(other->why, MD_MAPPED);
	ck_assert_ptr_null(module_of(other)->paths);
	free(bytes);
	free(others);
}

TEST(map_counts_only_where_the_hash_covers_it)
{
	const struct md_file *file = resolve(write_optimised("sound", 3, true));

	ck_assert_uint_eq(file->why, MD_MAPPED);
	ck_assert_uint_eq(module_of(file)->map->nr_pieces, 3);
	ck_assert_uint_ne(module_of(file)->original, 0);
	ck_assert_uint_eq(resolve(write_optimised("forged", 3, false))->why, MP_UNATTR_UNREADABLE);
}

TEST(largest_map_fits_and_all_together_have_a_bound)
{
	const struct md_file *file;
	char name[16];

	restart(120000, MD_MODREAD_REPLY_MAX);
	file = resolve(write_optimised("large", MD_MODREAD_PIECES_MAX, true));
	ck_assert_msg(file->why == MD_MAPPED, "%s", md_modcache_remark(mc));
	ck_assert_uint_eq(module_of(file)->map->nr_pieces, MD_MODREAD_PIECES_MAX);
	ck_assert_ptr_nonnull(module_of(file)->map->packed);
	ck_assert_uint_eq(mp_map_original(module_of(file)->map, 0x1000000 + 16000000 * 16 + 5),
			  0x2000 + 16000000 * UINT64_C(32) + 5);
	/* There is also a limit for all maps together. */
	for (uint32_t i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "more%u", i);
		file = resolve(write_optimised(name, MP_MAP_FLAT_MAX - i, true));
		ck_assert_uint_eq(file->why, MD_MAPPED);
	}
	file = resolve(write_optimised("last", MP_MAP_FLAT_MAX - 4, true));
	ck_assert_uint_eq(file->why, MP_UNATTR_UNREADABLE);
	ck_assert_ptr_nonnull(strstr(md_modcache_remark(mc), "/last: no room"));
}

/* A complete reply with random changes is either accepted or refused, without other effects. */
TEST(changed_reply_is_taken_as_a_file_s_or_refused)
{
	const uint64_t size = 1 << 20;
	AUTO(md_buf_fini) struct md_buf changed = {0};
	unsigned int seed = 1, i, k, nr_taken = 0;
	const struct md_file *file;
	struct md_modcache *into;
	size_t paths_size;
	uint8_t *bytes;
	int ret;

	bytes = paths_of(0x2000, &paths_size);
	ck_assert_msg(!read_path(write_numbered("sound", 500, true, bytes, paths_size)), "%s",
		      err.msg);
	free(bytes);
	for (i = 0; i < 20000; i++) {
		changed.size = 0;
		memcpy(md_buf_add(&changed, reply.size), reply.data, reply.size);
		for (k = 0; i && k < 1 + i % 3; k++) {
			seed = seed * 1103515245 + 12345;
			/* Change headers more often than other bytes. */
			changed.data[(seed >> 12) % (i % 2 ? 256 : reply.size)] ^=
				1u << (seed >> 8) % 8;
		}
		if (i % 7 == 6)
			changed.size = (seed >> 10) % reply.size;
		into = md_modcache_new();
		ret = md_modread_take(&changed, size, into);
		ck_assert(ret == 0 || ret == -EBADMSG);
		ck_assert(i || !ret);
		file = md_modcache_file(into, 1);
		if (!ret && file->why == MD_MAPPED) {
			nr_taken++;
			ck_assert_uint_le(file->segments[0].off + file->segments[0].size, size);
			ck_assert_uint_eq(md_modcache_nr_modules(into),
					  md_modcache_module(into, file->module)->map ? 2 : 1);
		}
		md_modcache_free(into);
	}
	ck_assert_uint_gt(nr_taken, 1000);
}

/* ---- where there is none ------------------------------------------------------------------------- */

/* From now on @nr fails with ENOSYS if its first argument is @arg; @arg -1: always. */
static void deny(int nr, int64_t arg)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)arg, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 6, .filter = filter};

	if (arg < 0)
		filter[1].jt = 2; /* whatever its arguments */
	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST_EACH(what_stands_in_the_way_of_a_sandbox_is_said, 6)
{
	static const struct {
		int nr;
		int64_t arg;
		const char *message;
	} ways[] = {
		{SYS_prctl, PR_SET_SECCOMP, "seccomp: Function not implemented"},
		{SYS_capset, -1, "capabilities: Function not implemented"},
		{SYS_execve, -1, "/proc/self/exe: Function not implemented"},
		{SYS_socketpair, -1, "socketpair: Function not implemented"},
		{SYS_clone, -1, "fork: Function not implemented"},
		{SYS_close_range, -1, "/dev/null: Function not implemented"},
	};
	const struct md_sandbox_config config = {60000, REPLY_MAX, NULL};
	struct md_sandbox *another;
	const char *preload = getenv("LD_PRELOAD");
	int status;
	pid_t pid;

	if (ways[_i].nr == SYS_execve && preload && strstr(preload, "valgrind"))
		MORPH_SKIP("valgrind has no answer to an execve() that fails");
	pid = fork();
	if (!pid) {
		deny(ways[_i].nr, ways[_i].arg);
		ck_assert_int_eq(md_sandbox_open(&config, &another, &err), -ENOSYS);
		ck_assert_ptr_null(another);
		ck_assert_str_eq(err.msg, ways[_i].message);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

int main(int argc, char **argv)
{
	(void)argc;
	md_sandbox_reader(argv, MD_SANDBOX_MODULES, work);
	return morph_suite_run();
}
