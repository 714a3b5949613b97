// SPDX-License-Identifier: Apache-2.0
/*
 * requests - tests the device's answers to valid and invalid requests.
 *
 *  requests    all tests
 *  requests hold    open, collect, and wait to be killed
 *  requests open    open, and exit with errno
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/guest/programs/reader.h"

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void check_hello(int fd)
{
	struct morph_hello h = {.abi_major = MORPH_ABI_MAJOR + 1};

	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_HELLO, &h), EPROTO);
	EXPECT(h.abi_major == MORPH_ABI_MAJOR, "abi_major %u", h.abi_major);
	EXPECT(h.abi_minor >= 2, "abi_minor %u", h.abi_minor);
	memset(&h, 0xff, sizeof(h));
	h.abi_major = MORPH_ABI_MAJOR;
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_HELLO, &h), 0);
	EXPECT(h.nr_cpu_ids >= 1 && h.nr_cpu_ids < 8192, "nr_cpu_ids %u", h.nr_cpu_ids);
	EXPECT(h.nr_rings == 0, "%u rings before START", h.nr_rings);
	EXPECT(h.rate_hz == 1024 && h.mode == MORPH_MODE_HRTIMER, "rate %u, mode %u", h.rate_hz,
	       h.mode);
	EXPECT(h.ring_bytes == 256 << 10, "%llu bytes", h.ring_bytes);
	EXPECT(h.tick_hz == 250, "tick_hz %u", h.tick_hz);
	EXPECT(h.has_kernel == 1, "has_kernel %u", h.has_kernel);
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_HELLO, NULL), EFAULT);
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_HELLO, (void *)0xffffffff81000000), EFAULT);
}

static void check_start(int fd)
{
	struct morph_start s = {};
	struct morph_hello h = {.abi_major = MORPH_ABI_MAJOR};
	struct morph_counts c;
	uint32_t rate;

	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_STOP), 0);
	rate = 100;
	EXPECT(ioctl(fd, MORPH_IOC_RATE, &rate), "a rate though nothing is collected");
	s.flags = 1U << 31;
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_START, &s), EINVAL);
	s = (struct morph_start){.mode = 2, .flags = MORPH_START_MODE};
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_START, &s), EINVAL);
	s = (struct morph_start){.mode = 0xffffffff, .flags = MORPH_START_MODE};
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_START, &s), EINVAL);
	s = (struct morph_start){.rate_hz = 20001};
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_START, &s), EINVAL);
	s.rate_hz = 0xffffffff;
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_START, &s), EINVAL);
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_START, NULL), EFAULT);
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_COUNTS, &c), 0);
	EXPECT(!c.samples && !c.events, "%llu samples, %llu events before START", c.samples,
	       c.events);

	s = (struct morph_start){.wake_bytes = 0xffffffff};
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_START, &s), 0);
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_START, &s), EALREADY);
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_HELLO, &h), 0);
	EXPECT(h.nr_rings == (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), "%u rings", h.nr_rings);
	for (rate = 1; rate <= 20000; rate = rate * 3 + 1)
		EXPECT_ERRNO(ioctl(fd, MORPH_IOC_RATE, &rate), 0);
	rate = 20001;
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_RATE, &rate), EINVAL);
	rate = 0;
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_RATE, &rate), EINVAL);
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_RATE, NULL), EFAULT);
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_STOP), 0);
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_STOP), 0);

	s = (struct morph_start){.mode = MORPH_MODE_TICK, .flags = MORPH_START_MODE};
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_START, &s), 0);
	rate = 100;
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_RATE, &rate), EOPNOTSUPP);
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_STOP), 0);
}

/* Beside the reader, who may only look asks for totals, and changes nothing. */
static void check_look(void)
{
	static const unsigned long changing[] = {
		MORPH_IOC_START, MORPH_IOC_STOP, MORPH_IOC_RATE,   MORPH_IOC_EXEC_ID,
		MORPH_IOC_SYNC,	 MORPH_IOC_ROWS, MORPH_IOC_STACKS, MORPH_IOC_REGISTERS,
	};
	struct morph_hello h = {.abi_major = MORPH_ABI_MAJOR};
	int fd[64], all = sizeof(fd) / sizeof(fd[0]);
	struct morph_counts c;
	struct morph_walks w;
	uint64_t zeros[32] = {0};
	char byte;

	for (int i = 0; i < all; i++) {
		fd[i] = open(MORPH_DEV_PATH, O_RDONLY);
		EXPECT(fd[i] >= 0, "cannot look beside the reader: %s", strerror(errno));
	}
	EXPECT_ERRNO(ioctl(fd[0], MORPH_IOC_HELLO, &h), 0);
	EXPECT_ERRNO(ioctl(fd[0], MORPH_IOC_COUNTS, &c), 0);
	EXPECT_ERRNO(ioctl(fd[0], MORPH_IOC_WALKS, &w), 0);
	for (size_t i = 0; i < sizeof(changing) / sizeof(changing[0]); i++)
		EXPECT_ERRNO(ioctl(fd[0], changing[i], zeros), EBADF);
	EXPECT_ERRNO((int)read(fd[0], &byte, 1), EBADF);
	for (int i = 0; i < all; i++)
		close(fd[i]);
}

static void check_others(int fd)
{
	struct morph_exec_id e = {.tgid = getpid()}, of_one = {.tgid = 1};
	uint64_t before = now_ns(), t = 0;
	char c = 0;

	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_EXEC_ID, &e), 0);
	EXPECT(e.tgid == (uint32_t)getpid() && e.exec_id, "exec_id %u of %u", e.exec_id, e.tgid);
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_EXEC_ID, &of_one), 0);
	e.tgid = 0x7ffffffe;
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_EXEC_ID, &e), ESRCH);
	e.tgid = 0xffffffff;
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_EXEC_ID, &e), ESRCH);
	e.tgid = 0;
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_EXEC_ID, &e), ESRCH);
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_EXEC_ID, NULL), EFAULT);
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_SYNC, &t), 0);
	EXPECT(t >= before && t <= now_ns(), "SYNC says %llu, between %llu and %llu",
	       (unsigned long long)t, (unsigned long long)before, (unsigned long long)now_ns());
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_SYNC, NULL), EFAULT);
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_COUNTS, NULL), EFAULT);
	EXPECT_ERRNO(ioctl(fd, _IO('M', 7)), ENOTTY);
	EXPECT_ERRNO(ioctl(fd, _IOWR('M', 0, char)), ENOTTY);
	EXPECT_ERRNO(ioctl(fd, 0), ENOTTY);
	EXPECT_ERRNO(ioctl(fd, 0xffffffff), ENOTTY);
	EXPECT_ERRNO(lseek(fd, 0, SEEK_SET), ESPIPE);
	EXPECT_ERRNO(write(fd, &c, 1), EINVAL);
	EXPECT_ERRNO(open(MORPH_DEV_PATH, O_RDWR), EBUSY);
	check_look();
}

/*
 * A fork shares the file: the device stays open and collecting until both processes have closed
 * it.
 */
static void check_fork(int fd)
{
	struct morph_start s = {};
	int go[2], status;
	char c;
	pid_t pid;

	if (pipe(go))
		die("pipe");
	EXPECT_ERRNO(ioctl(fd, MORPH_IOC_START, &s), 0);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		struct morph_counts a, b;

		close(go[1]);
		if (read(go[0], &c, 1) != 0)
			_exit(1);
		/* The parent has closed it by now. */
		if (ioctl(fd, MORPH_IOC_COUNTS, &a))
			_exit(2);
		do {
			if (ioctl(fd, MORPH_IOC_COUNTS, &b))
				_exit(3);
		} while (b.samples < a.samples + 20);
		_exit(open(MORPH_DEV_PATH, O_RDWR) == -1 && errno == EBUSY ? 0 : 4);
	}
	close(fd);
	close(go[0]);
	close(go[1]);
	waitpid(pid, &status, 0);
	EXPECT(!status, "the child of a fork: status %#x", status);
	fd = open(MORPH_DEV_PATH, O_RDWR);
	EXPECT(fd >= 0, "cannot open once both are gone: %s", strerror(errno));
	close(fd);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct reader r;
	int fd, look;

	if (!strcmp(what, "open")) {
		fd = open(MORPH_DEV_PATH, O_RDWR);
		return fd < 0 ? errno : 0;
	}
	if (!strcmp(what, "hold")) {
		reader_open(&r);
		reader_start(&r, 4000, -1, 0);
		reader_map(&r);
		puts("collecting");
		fflush(stdout);
		for (;;)
			pause();
	}
	/* Who looks keeps no reader out. */
	look = open(MORPH_DEV_PATH, O_RDONLY);
	EXPECT(look >= 0, "cannot look: %s", strerror(errno));
	fd = open(MORPH_DEV_PATH, O_RDWR);
	if (fd < 0)
		die("open");
	close(look);
	check_hello(fd);
	check_start(fd);
	check_others(fd);
	check_fork(fd);
	return finish();
}
