// SPDX-License-Identifier: Apache-2.0
/*
 * read_files - measures the cost of reading untrusted files in other processes: in this
 * process, in one process for all files, or in the sandbox with a process per file.
 *
 *	read_files here|one|sandbox ROUNDS FILE...
 *
 * Prints CPU time per file, of this process and of the readers, and the time from request to
 * reply.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "daemon/module/modread.h"
#include "daemon/module/sandbox.h"

static struct md_sandbox *sandbox;
static int one_sock;

static double cpu_us(void)
{
	static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
	struct rusage usage;
	double sum = 0;

	for (int i = 0; i < 2; i++) {
		getrusage(whose[i], &usage);
		sum += usage.ru_utime.tv_sec * 1e6 + usage.ru_utime.tv_usec +
		       usage.ru_stime.tv_sec * 1e6 + usage.ru_stime.tv_usec;
	}
	return sum;
}

/* ---- one process for all: not safe, since one file can compromise it for all later files ---- */

static void pass(int sock, int fd, uint64_t size)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {&size, sizeof(size)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(sock, &msg, 0) < 0)
		exit(1);
}

static void serve_all(int sock)
{
	struct md_buf reply = {0};
	uint64_t size;

	for (;;) {
		char bytes[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
		struct iovec iov = {&size, sizeof(size)};
		struct msghdr msg = {.msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = bytes,
				     .msg_controllen = sizeof(bytes)};
		int fd;

		if (recvmsg(sock, &msg, 0) != sizeof(size))
			_exit(0);
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
		reply.size = 0;
		if (md_modread_file(fd, size, &reply) ||
		    write(sock, reply.data, reply.size) != (ssize_t)reply.size)
			_exit(1);
		close(fd);
	}
}

static void start_one(void)
{
	int socks[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		exit(1);
	pid = fork();
	if (!pid) {
		close(socks[0]);
		serve_all(socks[1]);
	}
	close(socks[1]);
	one_sock = socks[0];
}

/* ---- reading ---------------------------------------------------------------------------------- */

static int read_file(char how, int fd, uint64_t size, struct md_buf *reply, struct mp_err *err)
{
	static uint8_t bytes[1 << 16];

	switch (how) {
	case 'h': return md_modread_file(fd, size, reply);
	case 's': return md_sandbox_read(sandbox, fd, size, reply, err);
	default: pass(one_sock, fd, size); return recv(one_sock, bytes, sizeof(bytes), 0) <= 0;
	}
}

int main(int argc, char **argv)
{
	const struct md_sandbox_config config = {60000, MD_MODREAD_REPLY_MAX, NULL};
	struct md_buf reply = {0};
	struct mp_err err = {{0}};
	double cpu, wall, start_us = 0;
	unsigned int rounds, nr = 0;
	struct stat st;
	int i, fd, ret;
	char how;

	md_sandbox_reader(argv, MD_SANDBOX_MODULES, md_modread_file);
	if (argc < 4 || !strchr("hos", argv[1][0])) {
		fprintf(stderr, "usage: read_files here|one|sandbox ROUNDS FILE...\n");
		return 2;
	}
	how = argv[1][0];
	rounds = (unsigned int)atoi(argv[2]);
	cpu = cpu_us();
	wall = mp_now_ns() / 1e3;
	if (how == 's' && md_sandbox_open(&config, &sandbox, &err)) {
		fprintf(stderr, "read_files: %s\n", err.msg);
		return 1;
	}
	if (how == 'o')
		start_one();
	start_us = mp_now_ns() / 1e3 - wall;
	wall = mp_now_ns() / 1e3;
	for (; rounds; rounds--)
		for (i = 3; i < argc; i++, nr++) {
			fd = open(argv[i], O_RDONLY | O_CLOEXEC);
			if (fd < 0 || fstat(fd, &st)) {
				perror(argv[i]);
				return 1;
			}
			reply.size = 0;
			ret = read_file(how, fd, (uint64_t)st.st_size, &reply, &err);
			close(fd);
			if (ret) {
				fprintf(stderr, "read_files: %s: %s\n", argv[i], err.msg);
				return 1;
			}
		}
	wall = mp_now_ns() / 1e3 - wall;
	if (how == 'o')
		close(one_sock);
	while (how == 'o' && wait(NULL) < 0 && errno == EINTR)
		;
	md_sandbox_close(sandbox);
	md_buf_fini(&reply);
	printf("%s: %u files, %.0f us of CPU each, %.0f us each, start %.0f us\n", argv[1], nr,
	       (cpu_us() - cpu) / nr, wall / nr, start_us);
	return 0;
}
