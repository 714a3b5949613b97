// SPDX-License-Identifier: Apache-2.0
/*
 * probe FILE OFFSET [PID] - while it runs, a uprobe lies at this offset of the file in all processes, as those of bpftrace and
 * perf do; PID: in this process alone, and where the function there returns. Prints "set". Status 77: the kernel permits none.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .config = argc > 3};
	FILE *type = fopen("/sys/bus/event_source/devices/uprobe/type", "re");

	if (argc < 3 || !type || fscanf(type, "%u", &attr.type) != 1)
		return 77;
	attr.config1 = (unsigned long)argv[1];
	attr.config2 = strtoul(argv[2], NULL, 0);
	if (syscall(SYS_perf_event_open, &attr, argc > 3 ? atoi(argv[3]) : -1, argc > 3 ? -1 : 0,
		    -1, 0) < 0) {
		perror("perf_event_open");
		return 77;
	}
	puts("set");
	fflush(stdout);
	for (;;)
		pause();
}
