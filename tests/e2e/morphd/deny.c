// SPDX-License-Identifier: Apache-2.0
/*
 * deny - runs a command for which perf_event_open fails with EACCES, as on Debian's kernels.
 *
 *	deny [-NUMBER] COMMAND...	the system call NUMBER fails instead
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = filter};

	if (argc > 1 && argv[1][0] == '-') {
		filter[1].k = (unsigned int)atoi(argv[1] + 1);
		argv++;
		argc--;
	}
	if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("deny");
		return 125;
	}
	execvp(argv[1], argv + 1);
	return 127;
}
