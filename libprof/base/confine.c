// SPDX-License-Identifier: Apache-2.0
/* confine - drops capabilities and forbids system calls; see confine.h. */
#include "libprof/base/confine.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libprof/base/sanitized.h"

#define NOBODY 65534

static bool has(const struct __user_cap_data_struct *caps, int cap)
{
	return caps[cap / 32].effective & (1u << cap % 32);
}

/*
 * Become another user only if this process may change users and its parent may then still
 * end it. A service with fewer capabilities stays root by name, without any of root's
 * rights.
 */
int mp_confine_privileges(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &header, caps))
		return -errno;
	if (has(caps, CAP_SETUID) && has(caps, CAP_SETGID) && has(caps, CAP_KILL) &&
	    !setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
	    setresuid(NOBODY, NOBODY, NOBODY))
		return -errno;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		return -errno;
	header.pid = 0;
	memset(caps, 0, sizeof(caps));
	return syscall(SYS_capset, &header, caps) ? -errno : 0;
}

#define LOAD(offset)   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset))
#define ARGUMENT(n)    (offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t))
#define RETURN(what)   BPF_STMT(BPF_RET | BPF_K, (what))
#define ALLOW_CALL(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), RETURN(SECCOMP_RET_ALLOW)

int mp_confine_calls(void)
{
	struct sock_filter code[] = {
		LOAD(offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(offsetof(struct seccomp_data, nr)),
		ALLOW_CALL(SYS_pread64),
		ALLOW_CALL(SYS_write),
		ALLOW_CALL(SYS_munmap),
		ALLOW_CALL(SYS_mremap),
		ALLOW_CALL(SYS_madvise),
		ALLOW_CALL(SYS_brk),
		ALLOW_CALL(SYS_exit_group),
		ALLOW_CALL(SYS_exit),
		ALLOW_CALL(SYS_getrandom), /* first call of malloc() */
		ALLOW_CALL(SYS_sysinfo),   /* qsort() asks for the size of memory */
		ALLOW_CALL(SYS_rt_sigreturn),
		ALLOW_CALL(SYS_rt_sigprocmask), /* parallel.c, even with one thread */
		/* mmap() only of anonymous memory that is not executable. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(ARGUMENT(2)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(ARGUMENT(3)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	/* A sanitizer's runtime makes other calls, too. */
	if (MP_IS_SANITIZED)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) ? -errno : 0;
}
