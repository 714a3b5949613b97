// SPDX-License-Identifier: Apache-2.0
/*
 * arrivals - runs a program one instruction at a time and checks its file's control-flow graph:
 * every taken branch must arrive at the start of a block, and along an edge if it stays in its
 * function. A call that is said not to return must not return.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/cfg/cfg.h"

struct run {
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	uint64_t bias; /* run-time minus link-time address */
	bool mapped;
	uint64_t steps, inside, branches, indirect, complaints;
	uint8_t *seen; /* blocks that were entered */
};

/* Finds the load address: the lowest mapping of the file. */
static bool find_bias(struct run *r, pid_t pid, const char *path)
{
	char name[64], line[PATH_MAX + 128], real[PATH_MAX];
	uint64_t lowest = UINT64_MAX, start, off;
	bool found = false;
	FILE *maps;

	if (!realpath(path, real))
		return false;
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "r");
	if (!maps)
		return false;
	for (uint32_t i = 0; i < r->elf->nr_phdrs; i++)
		if (r->elf->phdrs[i].p_type == PT_LOAD && r->elf->phdrs[i].p_vaddr < lowest)
			lowest = r->elf->phdrs[i].p_vaddr;
	while (!found && fgets(line, sizeof(line), maps)) {
		char *p = strchr(line, '/');

		if (!p || strncmp(p, real, strlen(real)) || p[strlen(real)] != '\n')
			continue;
		if (sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64, &start, &off) != 2 || off)
			continue;
		r->bias = start - (lowest & ~0xfffull);
		found = true;
	}
	fclose(maps);
	return found;
}

static void complain(struct run *r, const char *what, uint64_t from, uint64_t to)
{
	if (r->complaints++ < 20)
		printf("0x%" PRIx64 " -> 0x%" PRIx64 ": %s\n", from, to, what);
}

static bool has_edge(const struct mp_cfg *cfg, uint32_t from, uint32_t to)
{
	const struct mp_block *block = &cfg->blocks[from];

	for (uint32_t i = 0; i < block->nr_edges; i++)
		if (cfg->edges[block->first_edge + i].to == to)
			return true;
	return false;
}

static void check_arrival(struct run *r, const struct mp_insn *insn, uint64_t to)
{
	const struct mp_cfg *cfg = r->cfg;
	uint32_t block = mp_cfg_block_starting(cfg, to), from;
	bool jump = insn->kind != MP_INSN_CALL && insn->kind != MP_INSN_ICALL;

	r->branches++;
	if (!mp_cfg_is_target(cfg, to))
		complain(r, "not a known target", insn->vaddr, to);
	if (mp_cfg_func_at(cfg, to) != MP_NONE && block == MP_NONE)
		complain(r, "no block starts there", insn->vaddr, to);
	from = mp_cfg_block_at(cfg, insn->vaddr);
	if (from == MP_NONE || block == MP_NONE || !jump)
		return;
	if (insn->kind == MP_INSN_IJUMP)
		r->indirect++;
	if (cfg->blocks[from].vaddr + cfg->blocks[from].size != insn->vaddr + insn->len)
		complain(r, "a branch in the middle of a block", insn->vaddr, to);
	if (cfg->blocks[from].term == MP_TERM_INDIRECT_TAIL &&
	    cfg->blocks[from].func == cfg->blocks[block].func &&
	    !(cfg->blocks[block].flags & MP_BLOCK_ENTRY))
		complain(r, "a tail call that stays in its function", insn->vaddr, to);
	if (cfg->blocks[from].func != cfg->blocks[block].func ||
	    cfg->blocks[from].term == MP_TERM_UNRESOLVED ||
	    cfg->blocks[from].term == MP_TERM_INDIRECT_TAIL)
		return;
	if (!has_edge(cfg, from, block))
		complain(r, "no edge", insn->vaddr, to);
}

static void check_step(struct run *r, uint64_t from, uint64_t to)
{
	const uint8_t *bytes = mp_elf_bytes(r->elf, from, 1);
	struct mp_insn insn;
	uint32_t before;
	size_t avail = 15;

	if (!bytes || !mp_elf_is_code(r->elf, from))
		return;
	r->inside++;
	while (avail && !(bytes = mp_elf_bytes(r->elf, from, avail)))
		avail--;
	if (mp_insn_decode(bytes, avail, from, &insn)) {
		complain(r, "an undecodable instruction was executed", from, to);
		return;
	}
	if (mp_elf_is_code(r->elf, to) && insn.kind == MP_INSN_RET) {
		before = mp_cfg_block_at(r->cfg, to - 1);
		if (before != MP_NONE && r->cfg->blocks[before].term == MP_TERM_NORETURN &&
		    r->cfg->blocks[before].vaddr + r->cfg->blocks[before].size == to)
			complain(r, "a call that does not come back came back", from, to);
		return;
	}
	/* rep-prefixed instructions repeat at the same address. */
	if (to == from || to == from + insn.len || !mp_elf_is_code(r->elf, to))
		return;
	if (!mp_insn_ends_block(&insn) && insn.kind != MP_INSN_CALL && insn.kind != MP_INSN_ICALL)
		return; /* a signal was delivered */
	check_arrival(r, &insn, to);
}

static int trace(struct run *r, const char *path, char **argv, uint64_t max)
{
	struct user_regs_struct regs;
	uint64_t last = 0;
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		personality(ADDR_NO_RANDOMIZE);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	if (!WIFSTOPPED(status)) {
		fprintf(stderr, "arrivals: %s: does not start\n", argv[0]);
		return -ECHILD;
	}
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL);
	while (WIFSTOPPED(status) && r->steps < max) {
		int sig = WSTOPSIG(status);

		if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
			break;
		if (!r->mapped && (r->steps & 0xfff) == 0)
			r->mapped = find_bias(r, pid, path);
		if (r->mapped && last)
			check_step(r, last - r->bias, regs.rip - r->bias);
		if (r->mapped) {
			uint32_t block = mp_cfg_block_starting(r->cfg, regs.rip - r->bias);

			if (block != MP_NONE)
				r->seen[block] = 1;
		}
		last = regs.rip;
		r->steps++;
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(long)(sig == SIGTRAP ? 0 : sig)))
			break;
		waitpid(pid, &status, 0);
	}
	if (WIFSTOPPED(status)) {
		ptrace(PTRACE_KILL, pid, NULL, NULL);
		waitpid(pid, &status, 0);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct run r = {.elf = NULL};
	uint64_t max = 2000000, blocks = 0;
	struct mp_err err = {""};
	int opt;

	while ((opt = getopt(argc, argv, "+n:")) != -1) {
		if (opt != 'n')
			goto usage;
		max = strtoull(optarg, NULL, 0);
	}
	if (argc - optind < 2)
		goto usage;
	if (mp_elf_open(argv[optind], MP_ELF_ALL, &r.elf, &err) ||
	    mp_cfg_build(r.elf, NULL, &r.cfg, &err)) {
		fprintf(stderr, "arrivals: %s\n", err.msg);
		return 1;
	}
	r.seen = calloc(r.cfg->nr_blocks + 1, 1);
	if (!r.seen || trace(&r, argv[optind], argv + optind + 1, max))
		return 1;
	for (uint32_t i = 0; i < r.cfg->nr_blocks; i++)
		blocks += r.seen[i];
	printf("%" PRIu64 " steps, %" PRIu64 " in the file, %" PRIu64 " branches (%" PRIu64
	       " indirect jumps), %" PRIu64 " blocks entered, %" PRIu64 " complaints\n",
	       r.steps, r.inside, r.branches, r.indirect, blocks, r.complaints);
	mp_cfg_free(r.cfg);
	mp_elf_close(r.elf);
	free(r.seen);
	return r.complaints ? 1 : r.inside ? 0 : 3;
usage:
	fprintf(stderr, "usage: arrivals [-n STEPS] FILE CMD [ARGS]\n"
			"FILE is the program or one of its libraries; CMD needs its full path\n");
	return 2;
}
