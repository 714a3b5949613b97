// SPDX-License-Identifier: Apache-2.0
/*
 * answerd PORT - a server on 127.0.0.1. A client sends a number of rounds in four bytes and gets four bytes
 * of result, as often as it likes; 0 ends the server.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "steps.h"

/* Return: whether the server goes on. */
static int answer(int client)
{
	uint32_t word;

	while (read(client, &word, sizeof(word)) == sizeof(word)) {
		if (!word)
			return 0;
		word = htonl(mix(1, (int)ntohl(word)));
		if (write(client, &word, sizeof(word)) != sizeof(word))
			break;
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	int on = 1, client, more = 1, s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	signal(SIGPIPE, SIG_IGN);
	address.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 7007));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(s, (struct sockaddr *)&address, sizeof(address)) || listen(s, 5)) {
		perror("answerd");
		return 1;
	}
	while (more && (client = accept(s, NULL, NULL)) >= 0) {
		more = answer(client);
		close(client);
	}
	return 0;
}
