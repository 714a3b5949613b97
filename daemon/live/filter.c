// SPDX-License-Identifier: Apache-2.0
/* filter - executes seccomp filters; see filter.h. */
#include "daemon/live/filter.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "daemon/live/process.h"

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif

/* ---- the machine -------------------------------------------------------------------------------- */

struct machine {
	uint32_t a, x, memory[BPF_MEMWORDS];
	const struct md_filter_call *call;
	bool failed; /* the program needs what is not known, or does what no filter may */
};

static uint32_t load(struct machine *m, uint32_t off)
{
	const size_t args = offsetof(struct seccomp_data, args),
		     ip = offsetof(struct seccomp_data, instruction_pointer);
	uint32_t value;

	if (off % 4 || off > sizeof(m->call->data) - sizeof(value) ||
	    (off >= args && m->call->unknown >> (off - args) / 8 & 1) ||
	    (off >= ip && off < args && (m->call->unknown & MD_FILTER_NO_IP))) {
		m->failed = true;
		return 0;
	}
	memcpy(&value, (const uint8_t *)&m->call->data + off, sizeof(value));
	return value;
}

static uint32_t *cell(struct machine *m, uint32_t k)
{
	if (k < BPF_MEMWORDS)
		return &m->memory[k];
	m->failed = true;
	return &m->memory[0];
}

static uint32_t compute(struct machine *m, uint16_t code, uint32_t by)
{
	switch (BPF_OP(code)) {
	case BPF_ADD: return m->a + by;
	case BPF_SUB: return m->a - by;
	case BPF_MUL: return m->a * by;
	case BPF_OR: return m->a | by;
	case BPF_AND: return m->a & by;
	case BPF_XOR: return m->a ^ by;
	case BPF_NEG: return -m->a;
	case BPF_LSH:
		if (by < 32)
			return m->a << by;
		break;
	case BPF_RSH:
		if (by < 32)
			return m->a >> by;
		break;
	case BPF_DIV:
		if (by)
			return m->a / by;
		break;
	}
	m->failed = true;
	return 0;
}

static bool compare(struct machine *m, uint16_t code, uint32_t with)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ: return m->a == with;
	case BPF_JGT: return m->a > with;
	case BPF_JGE: return m->a >= with;
	case BPF_JSET: return m->a & with;
	}
	m->failed = true;
	return false;
}

/* Everything but jumps and returns. */
static void step(struct machine *m, const struct sock_filter *f)
{
	switch (f->code) {
	case BPF_LD | BPF_W | BPF_ABS: m->a = load(m, f->k); return;
	case BPF_LD | BPF_W | BPF_LEN: m->a = sizeof(struct seccomp_data); return;
	case BPF_LDX | BPF_W | BPF_LEN: m->x = sizeof(struct seccomp_data); return;
	case BPF_LD | BPF_IMM: m->a = f->k; return;
	case BPF_LDX | BPF_IMM: m->x = f->k; return;
	case BPF_LD | BPF_MEM: m->a = *cell(m, f->k); return;
	case BPF_LDX | BPF_MEM: m->x = *cell(m, f->k); return;
	case BPF_ST: *cell(m, f->k) = m->a; return;
	case BPF_STX: *cell(m, f->k) = m->x; return;
	case BPF_MISC | BPF_TAX: m->x = m->a; return;
	case BPF_MISC | BPF_TXA: m->a = m->x; return;
	}
	if (BPF_CLASS(f->code) == BPF_ALU)
		m->a = compute(m, f->code, BPF_SRC(f->code) == BPF_X ? m->x : f->k);
	else
		m->failed = true;
}

bool md_filter_allows(const struct sock_filter *program, size_t nr,
		      const struct md_filter_call *call)
{
	struct machine m = {.call = call};

	/* Jumps lead forwards only. */
	for (size_t at = 0; at < nr && !m.failed; at++) {
		const struct sock_filter *f = &program[at];

		if (BPF_CLASS(f->code) == BPF_RET)
			return (BPF_RVAL(f->code) == BPF_A ? m.a : f->k) == SECCOMP_RET_ALLOW;
		if (BPF_CLASS(f->code) != BPF_JMP)
			step(&m, f);
		else if (BPF_OP(f->code) == BPF_JA)
			at += f->k;
		else
			at += compare(&m, f->code, BPF_SRC(f->code) == BPF_X ? m.x : f->k) ? f->jt
											   : f->jf;
	}
	return false;
}

/* ---- the thread's filters ----------------------------------------------------------------------- */

static int check_program(const struct sock_filter *program, size_t nr, pid_t tid,
			 const struct md_filter_call *calls, size_t nr_calls, struct mp_err *err)
{
	for (size_t i = 0; i < nr_calls; i++)
		if (!md_filter_allows(program, nr, &calls[i]))
			return mp_err_set(
				err, EPERM,
				"thread %d: its seccomp filter does not allow system call %d, by "
				"which the new code is mapped",
				(int)tid, calls[i].data.nr);
	return 0;
}

bool md_filter_is_there(pid_t tid)
{
	char mode[16];

	return md_process_status(tid, "Seccomp", mode, sizeof(mode)) && strcmp(mode, "0");
}

int md_filter_check(pid_t tid, const struct md_filter_call *calls, size_t nr_calls,
		    struct mp_err *err)
{
	struct sock_filter *program = malloc(BPF_MAXINSNS * sizeof(*program));
	int r = program ? 0 : mp_err_code(err, ENOMEM);

	for (unsigned long i = 0; !r; i++) {
		long nr = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, i, NULL);

		/* The thread has @i filters, and no more. */
		if (nr < 0 && errno == ENOENT && i)
			break;
		if (nr > 0 && nr <= BPF_MAXINSNS)
			nr = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, i, program);
		if (nr <= 0 || nr > BPF_MAXINSNS)
			r = mp_err_set(
				err, EPERM,
				"thread %d: it has a seccomp filter that cannot be read, which may "
				"forbid the system calls that map the new code: %s",
				(int)tid, strerror(errno));
		else
			r = check_program(program, (size_t)nr, tid, calls, nr_calls, err);
	}
	free(program);
	return r;
}
