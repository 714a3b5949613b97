// SPDX-License-Identifier: Apache-2.0
/*
 * registers - checks the register values in samples against the real ones.
 *
 * The child runs a loop whose registers hold unique values. Each of its samples in user code
 * must have an entry, samples in the kernel none, and samples of other processes none unless
 * they were requested.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/programs/reader.h"

#define VALUE(reg) (0x1234567800000000ULL | ((reg)*0x1010101))

/*
 * From loop to loop_end, every register but rsp and the counter rcx holds its value. Outside
 * the loop, a system call (for samples in the kernel) changes rax, rcx and r11.
 */
__asm__(".text\n"
	"run:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	mov $0x1234567802020202, %rdx\n"
	"	mov $0x1234567803030303, %rbx\n"
	"	mov $0x1234567805050505, %rbp\n"
	"	mov $0x1234567806060606, %rsi\n"
	"	mov $0x1234567807070707, %rdi\n"
	"	mov $0x1234567808080808, %r8\n"
	"	mov $0x1234567809090909, %r9\n"
	"	mov $0x123456780a0a0a0a, %r10\n"
	"	mov $0x123456780c0c0c0c, %r12\n"
	"	mov $0x123456780d0d0d0d, %r13\n"
	"	mov $0x123456780e0e0e0e, %r14\n"
	"	mov $0x123456780f0f0f0f, %r15\n"
	"1:	mov $39, %eax\n" /* getpid */
	"	syscall\n"
	"	mov $0x123456780b0b0b0b, %r11\n"
	"	mov $0x1234567800000000, %rax\n"
	"	mov $20000, %ecx\n"
	"loop:	dec %ecx\n"
	"	jnz loop\n"
	"loop_end:\n"
	"	jmp 1b\n");
void run(void);
extern const char loop[], loop_end[];

#define RCX MORPH_REG_RCX

static bool in_loop(uint64_t ip)
{
	return ip >= (uint64_t)loop && ip < (uint64_t)loop_end;
}

#define FLAGS_ALWAYS 0x202 /* interrupts are on; bit 1 is always set */
#define FLAGS_ZERO   0x40

/* At the jump, the zero flag is that of rcx. @rcx: its value, UINT64_MAX: not known. */
static void check_flags(uint64_t ip, uint64_t rcx, uint64_t flags)
{
	EXPECT((flags & FLAGS_ALWAYS) == FLAGS_ALWAYS && !(flags >> 32), "flags: %#llx",
	       (unsigned long long)flags);
	if (ip != (uint64_t)loop && rcx != UINT64_MAX)
		EXPECT(!(flags & FLAGS_ZERO) == (rcx != 0), "flags %#llx, rcx %#llx",
		       (unsigned long long)flags, (unsigned long long)rcx);
}

static void check_entry(const struct morph_registers *r, const __u64 *entry)
{
	const __u64 *value = entry + 1;
	unsigned int reg;

	for (reg = 0; reg <= MORPH_REG_FLAGS; reg++) {
		if (!(r->registers >> reg & 1))
			continue;
		if (reg == MORPH_REG_FLAGS)
			check_flags(entry[0], r->registers >> RCX & 1 ? entry[1 + 1] : UINT64_MAX,
				    *value);
		else if (reg == RCX)
			EXPECT(*value <= 20000, "rcx: %#llx", *value);
		else
			EXPECT(*value == VALUE(reg), "register %u: %#llx", reg, *value);
		value++;
	}
}

/* Checks the entries of the child's samples for @mask. */
static void collect(uint32_t mask)
{
	uint64_t nr_user = 0, nr_kernel = 0, nr_entries = 0, nr_in_loop = 0, i, ip = 0;
	const struct morph_record *record;
	struct reader r;
	unsigned int words = 1 + __builtin_popcount(mask);
	pid_t pid;

	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run();
	}
	reader_open(&r);
	EXPECT(r.hello.abi_minor >= 12, "abi_minor %u", r.hello.abi_minor);
	if (mask && ioctl(r.fd, MORPH_IOC_REGISTERS, &mask))
		die("REGISTERS");
	reader_start(&r, 2000, -1, 0);
	reader_map(&r);
	/* Wait as long as it takes. */
	do {
		sleep_ms(20);
		reader_take(&r);
	} while (reader_user_samples(&r, pid) < 200);
	reader_stop(&r);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	reader_take(&r);

	for (record = reader_next(&r, NULL); record; record = reader_next(&r, record)) {
		const struct morph_samples *samples = (const void *)record;
		const struct morph_registers *regs = (const void *)record;

		if (record->type == MORPH_REC_SAMPLES && samples->task.tgid == (uint32_t)pid) {
			for (i = 0; i < reader_nr_ips(record); i++) {
				ip = samples->ips[i];
				nr_user += (int64_t)ip >= 0;
				nr_kernel += (int64_t)ip < 0;
			}
		}
		if (record->type != MORPH_REC_REGISTERS || regs->task.tgid != (uint32_t)pid)
			continue;
		EXPECT(regs->registers == mask, "registers %#x", regs->registers);
		EXPECT(record->size == sizeof(*regs) + 8 * words, "%u bytes", record->size);
		EXPECT(regs->entries[0] == ip, "an entry of %#llx behind a sample of %#llx",
		       regs->entries[0], (unsigned long long)ip);
		nr_entries++;
		if (!in_loop(ip))
			continue;
		nr_in_loop++;
		check_entry(regs, regs->entries);
	}
	printf("registers %#x: %llu samples in user code, %llu in the kernel, %llu entries, %llu in "
	       "the loop\n",
	       mask, (unsigned long long)nr_user, (unsigned long long)nr_kernel,
	       (unsigned long long)nr_entries, (unsigned long long)nr_in_loop);
	EXPECT(nr_user >= 50, "too few samples");
	EXPECT(nr_entries == (mask ? nr_user : 0), "an entry for each of them, and no other");
	if (mask)
		EXPECT(nr_in_loop * 10 >= nr_user * 9, "the loop is where it runs");
	EXPECT(reader_counts(&r).samples == r.nr_samples + r.lost, "samples do not add up");
	reader_close(&r);
}

static void requests(void)
{
	uint32_t mask = 1 << MORPH_REG_RSP;
	struct reader r;
	int status = 0;
	pid_t pid;

	reader_open(&r);
	EXPECT_ERRNO(ioctl(r.fd, MORPH_IOC_REGISTERS, &mask), EINVAL);
	mask = 1 << (MORPH_REG_FLAGS + 1);
	EXPECT_ERRNO(ioctl(r.fd, MORPH_IOC_REGISTERS, &mask), EINVAL);
	EXPECT_ERRNO(ioctl(r.fd, MORPH_IOC_REGISTERS, NULL), EFAULT);
	mask = MORPH_REGS_PATHS;
	EXPECT_ERRNO(ioctl(r.fd, MORPH_IOC_REGISTERS, &mask), 0);
	/* Having the device open is not enough. */
	pid = fork();
	if (!pid) {
		if (setuid(65534))
			_exit(2);
		if (ioctl(r.fd, MORPH_IOC_REGISTERS, &mask) != -1 || errno != EPERM)
			_exit(1);
		mask = 0;
		_exit(ioctl(r.fd, MORPH_IOC_REGISTERS, &mask) ? 3 : 0);
	}
	waitpid(pid, &status, 0);
	EXPECT(!status, "without rights: %#x", status);
	reader_close(&r);
}

int main(void)
{
	requests();
	/* The registers that an earlier reader requested are forgotten. */
	collect(0);
	collect(MORPH_REGS_PATHS);
	collect(MORPH_REGS_BRANCHES);
	collect(1 << MORPH_REG_FLAGS);
	collect(1 << 11);
	collect(1 << MORPH_REG_RAX | 1 << MORPH_REG_RDI | 1 << 15);
	return finish();
}
