// SPDX-License-Identifier: Apache-2.0
/*
 * probe FILE OFFSET [PID [entry]] - while it runs, a uprobe lies at this offset of the file in all processes,
 * as those of bpftrace and perf do; PID: in this process alone, and where the function there returns; entry:
 * only at the offset. Prints "set", and when SIGTERM ends it, "hits" with their number. Status 77: the kernel
 * permits none.
 */
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .config = argc == 4};
	FILE *type = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	uint64_t hits = 0;
	sigset_t end;
	int fd, sig;

	if (argc < 3 || !type || fscanf(type, "%u", &attr.type) != 1)
		return 77;
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	attr.config1 = (unsigned long)argv[1];
	attr.config2 = strtoul(argv[2], NULL, 0);
	fd = (int)syscall(SYS_perf_event_open, &attr, argc > 3 ? atoi(argv[3]) : -1,
			  argc > 3 ? -1 : 0, -1, 0);
	if (fd < 0) {
		perror("perf_event_open");
		return 77;
	}
	puts("set");
	fflush(stdout);
	sigwait(&end, &sig);
	if (read(fd, &hits, sizeof(hits)) == sizeof(hits))
		printf("hits %llu\n", (unsigned long long)hits);
	return 0;
}
