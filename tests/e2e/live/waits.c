// SPDX-License-Identifier: Apache-2.0
/*
 * waits - threads that wait in the kernel in many ways, without any signal. None may notice that it was stopped. Prints
 * "WRONG what" and ends with status 1 if one does. A byte on its input ends it: "done N".
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static volatile int end;
static unsigned long rounds;

static void wrong(const char *what)
{
	printf("WRONG %s: errno %d\n", what, errno);
	fflush(stdout);
	_exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int epoll, pipes[2], sems, empty[2], full[2], server, ring, halves[2];

static int by_epoll(void)
{
	struct epoll_event e;

	return epoll_wait(epoll, &e, 1, 20);
}

static int by_epoll_mask(void)
{
	struct epoll_event e;
	sigset_t none;

	sigemptyset(&none);
	return epoll_pwait(epoll, &e, 1, 20, &none);
}

static int by_poll(void)
{
	struct pollfd p = {pipes[0], POLLIN, 0};

	return poll(&p, 1, 20);
}

static int by_select(void)
{
	struct timeval t = {0, 20000};

	return select(0, NULL, NULL, NULL, &t);
}

static int by_nanosleep(void)
{
	const struct timespec t = {.tv_nsec = 20000000};

	return nanosleep(&t, NULL);
}

static int by_clock(void)
{
	const struct timespec t = {.tv_nsec = 20000000};

	return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static int by_signal(void)
{
	const struct timespec t = {.tv_nsec = 20000000};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &t) < 0 && errno == EAGAIN ? 0 : -1;
}

static int by_futex(void)
{
	struct timespec t;
	sem_t sem;

	sem_init(&sem, 0, 0);
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 20000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return sem_timedwait(&sem, &t) < 0 && errno == ETIMEDOUT ? 0 : -1;
}

static int by_semop(void)
{
	struct timespec t = {.tv_nsec = 20000000};
	struct sembuf op = {0, -1, 0};

	return semtimedop(sems, &op, 1, &t) < 0 && errno == EAGAIN ? 0 : -1;
}

/* Sockets with a time limit of their own */
static int by_recv(void)
{
	char c;

	return recv(empty[0], &c, 1, 0) < 0 && errno == EAGAIN ? 0 : -1;
}

static int by_read(void)
{
	char c;

	return read(empty[1], &c, 1) < 0 && errno == EAGAIN ? 0 : -1;
}

static int by_send(void)
{
	return send(full[0], "x", 1, 0) < 0 && errno == EAGAIN ? 0 : -1;
}

static int by_accept(void)
{
	return accept(server, NULL, NULL) < 0 && errno == EAGAIN ? 0 : -1;
}

static int by_ring(void)
{
	struct __kernel_timespec t = {.tv_nsec = 20000000};
	struct io_uring_getevents_arg arg = {.ts = (unsigned long)&t};

	/* Not each kernel permits it. */
	if (ring < 0)
		return by_nanosleep();
	return syscall(SYS_io_uring_enter, ring, 0, 1,
		       IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof(arg)) < 0 &&
			       errno == ETIME
		       ? 0
		       : -1;
}

#define HALF 4096

/* The half that has no room in the pipe waits for read_halves(). Then come other waits, so that the thread can be stopped. */
static int by_write(void)
{
	static char bytes[2 * HALF];
	const struct timespec t = {.tv_nsec = 100000000};

	return write(halves[1], bytes, sizeof(bytes)) == sizeof(bytes) ? nanosleep(&t, NULL) : -1;
}

static void *read_halves(void *arg)
{
	const struct timespec t = {.tv_nsec = 50000000};
	char bytes[HALF];

	while (read(halves[0], bytes, 1) == 1) {
		nanosleep(&t, NULL);
		for (ssize_t n, left = 2 * HALF - 1; left; left -= n) {
			n = read(halves[0], bytes, left < HALF ? (size_t)left : HALF);
			if (n <= 0)
				wrong("read of a pipe");
		}
	}
	return arg;
}

static int open_sockets(void)
{
	const struct timeval limit = {0, 20000};
	struct sockaddr_un any = {.sun_family = AF_UNIX};
	struct io_uring_params params = {0};
	char bytes[4096] = "";
	int all[5];

	server = socket(AF_UNIX, SOCK_STREAM, 0);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, empty) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, full) || server < 0 ||
	    bind(server, (struct sockaddr *)&any, sizeof(any.sun_family)) || listen(server, 1))
		return -1;
	while (send(full[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0 ||
	       send(full[0], bytes, 1, MSG_DONTWAIT) > 0)
		;
	memcpy(all, (int[]){empty[0], empty[1], full[0], full[1], server}, sizeof(all));
	for (int i = 0; i < 5; i++)
		if (setsockopt(all[i], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
		    setsockopt(all[i], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)))
			return -1;
	ring = (int)syscall(SYS_io_uring_setup, 4, &params);
	return 0;
}

static const struct {
	const char *name;
	int (*wait)(void);
} ways[] = {
	{"epoll_wait", by_epoll},    {"epoll_pwait", by_epoll_mask}, {"poll", by_poll},
	{"select", by_select},	     {"nanosleep", by_nanosleep},    {"clock_nanosleep", by_clock},
	{"sigtimedwait", by_signal}, {"sem_timedwait", by_futex},    {"semtimedop", by_semop},
	{"recv", by_recv},	     {"read of a socket", by_read},  {"send", by_send},
	{"accept", by_accept},	     {"io_uring_enter", by_ring},    {"write", by_write}};

static void *run(void *arg)
{
	size_t i = (size_t)arg;

	while (!end) {
		double start = now();

		if (ways[i].wait() != 0)
			wrong(ways[i].name);
		/*
		 * 20 milliseconds; timeouts of sockets are counted in ticks of the kernel, which a virtual machine may be
		 * late with. A wait that a stop ends is of any length.
		 */
		if (now() - start < 0.015)
			wrong("a wait that was too short");
		__atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[sizeof(ways) / sizeof(*ways)], reader;
	char c;

	epoll = epoll_create1(EPOLL_CLOEXEC);
	sems = semget(IPC_PRIVATE, 1, 0600);
	if (pipe(pipes) || pipe(halves) || fcntl(halves[1], F_SETPIPE_SZ, HALF) != HALF ||
	    sems < 0 || open_sockets() || pthread_create(&reader, NULL, read_halves, NULL))
		return 77;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (pthread_create(&threads[i], NULL, run, (void *)i))
			return 77;
	puts("ready");
	fflush(stdout);
	if (read(0, &c, 1) != 1)
		wrong("read");
	end = 1;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		pthread_join(threads[i], NULL);
	close(halves[1]);
	pthread_join(reader, NULL);
	semctl(sems, 0, IPC_RMID);
	printf("done %lu\n", rounds);
	return 0;
}
