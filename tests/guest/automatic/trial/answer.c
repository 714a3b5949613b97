// SPDX-License-Identifier: Apache-2.0
/* answer PORT ROUNDS TIMES [end] - asks answerd, waits up to a minute for it, and ends it if told so. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int reach(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 3000; i++) {
		int s = socket(AF_INET, SOCK_STREAM, 0);

		if (!connect(s, (struct sockaddr *)&address, sizeof(address)))
			return s;
		close(s);
		nanosleep(&(struct timespec){0, 20000000}, NULL);
	}
	return -1;
}

int main(int argc, char **argv)
{
	uint32_t word, sum = 0;
	int s;

	if (argc < 4 || (s = reach(atoi(argv[1]))) < 0)
		return 1;
	for (int i = 0; i < atoi(argv[3]); i++) {
		word = htonl((uint32_t)atoi(argv[2]));
		if (write(s, &word, sizeof(word)) != sizeof(word) ||
		    read(s, &word, sizeof(word)) != sizeof(word))
			return 1;
		sum += ntohl(word);
	}
	word = 0;
	if (argc > 4 && write(s, &word, sizeof(word)) != sizeof(word))
		return 1;
	printf("%u\n", sum);
	return 0;
}
