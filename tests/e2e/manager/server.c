// SPDX-License-Identifier: Apache-2.0
/*
 * A server for the tests of morph-worker: answers each connection to a Unix socket after some work, in a
 * function of jumps that a better layout does without. `server SOCKET [REQUESTS]': ends after so many
 * requests; `server work N': does the work of N requests, without a socket, and prints the sum; `server other N':
 * works in another function.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SIZE 32768

static unsigned char data[SIZE];

/* A layout that keeps the order of execution needs none of these jumps. */
#define JUMPS                                                                                      \
	__asm__ volatile("jmp 101f\n"                                                              \
			 "107: jmp 108f\n"                                                         \
			 "103: jmp 104f\n"                                                         \
			 "110: jmp 111f\n"                                                         \
			 "105: jmp 106f\n"                                                         \
			 "101: jmp 102f\n"                                                         \
			 "108: jmp 109f\n"                                                         \
			 "112: jmp 199f\n"                                                         \
			 "102: jmp 103b\n"                                                         \
			 "111: jmp 112b\n"                                                         \
			 "106: jmp 107b\n"                                                         \
			 "104: jmp 105b\n"                                                         \
			 "109: jmp 110b\n"                                                         \
			 "199:\n")

#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

unsigned int work(const unsigned char *p, unsigned int n);
unsigned int other(const unsigned char *p, unsigned int n);

APART unsigned int work(const unsigned char *p, unsigned int n)
{
	unsigned int h = 1;

	for (unsigned int i = 0; i < n; i++) {
		h += p[i] & 0x3f;
		JUMPS;
	}
	return h;
}

/* Another use of the program. */
APART unsigned int other(const unsigned char *p, unsigned int n)
{
	unsigned int h = 2;

	for (unsigned int i = 0; i < n; i++) {
		h ^= p[i] + i;
		JUMPS;
	}
	return h;
}

static unsigned int request(unsigned int h)
{
	for (int i = 0; i < 3; i++)
		h = h * 31 + work(data, SIZE - (h & 7));
	return h;
}

static int serve(const char *path, long requests)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	unsigned int h = 0;

	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	unlink(path);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 16))
		return 1;
	for (long i = 0; i != requests; i++) {
		int fd = accept(listener, NULL, NULL);
		char text[32];

		if (fd < 0)
			continue;
		h = request(h);
		snprintf(text, sizeof(text), "%u\n", request(0));
		(void)!write(fd, text, strlen(text));
		close(fd);
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int x = 1, h = 0;

	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < SIZE; i++, x = x * 1664525 + 1013904223)
		data[i] = (unsigned char)(x >> 24);
	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "work") && strcmp(argv[1], "other"))
		return serve(argv[1], argc > 2 ? atol(argv[2]) : -1);
	for (long i = argc > 2 ? atol(argv[2]) : 1; i > 0; i--)
		h = strcmp(argv[1], "other") ? request(h) : h * 31 + other(data, SIZE - (h & 7));
	printf("%u\n", h);
	return 0;
}
