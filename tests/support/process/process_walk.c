// SPDX-License-Identifier: Apache-2.0
/* process_walk - reads a stopped process; see process_walk.h. */
#include "tests/support/process/process_walk.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "tests/support/kmod_walk.h"
#include "tests/support/rows_compare.h"

#define MAPS_MAX 512

struct map {
	uint64_t start, end, off;
	char path[256];
	struct mp_elf *elf; /* NULL: none */
	void *memory;	    /* of the vDSO */
	void *bytes;
	struct mp_rows rows;
	bool has_rows;
	bool is_shared; /* @elf and @bytes belong to an earlier mapping */
};

struct process_walk {
	pid_t pid;
	size_t copy, nr_maps;
	struct map maps[MAPS_MAX];
	char *text; /* of /proc/PID/maps */
	Dwfl *dwfl;
	struct kmod_walk *kmod;
	uint64_t copy_start, copy_size;
	uint8_t *copied;
};

/* ---- mappings ------------------------------------------------------------------------------- */

static bool read_memory(pid_t pid, uint64_t address, void *to, size_t size)
{
	struct iovec local = {to, size}, remote = {(void *)(uintptr_t)address, size};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static void open_rows(struct process_walk *pw, struct map *map)
{
	size_t size = map->end - map->start;
	int ret;

	for (struct map *m = pw->maps; m < map; m++) {
		if (m->elf && !strcmp(m->path, map->path)) {
			*map = (struct map){map->start,	      map->end,
					    map->off,	      .elf = m->elf,
					    .rows = m->rows,  .has_rows = m->has_rows,
					    .is_shared = true};
			return;
		}
	}
	if (!strcmp(map->path, "[vdso]")) {
		map->memory = malloc(size);
		ret = !map->memory || !read_memory(pw->pid, map->start, map->memory, size) ||
		      mp_elf_open_memory("vdso", map->memory, size, MP_ELF_FDES, &map->elf, NULL);
	} else {
		ret = map->path[0] != '/' || mp_elf_open(map->path, MP_ELF_FDES, &map->elf, NULL);
	}
	if (!ret) {
		map->has_rows = !rows_of_elf(map->elf, &map->bytes, &size, &map->rows, NULL) &&
				map->rows.nr_rows;
	}
}

static void free_maps(struct process_walk *pw)
{
	for (size_t i = 0; i < pw->nr_maps; i++) {
		if (pw->maps[i].is_shared)
			continue;
		mp_elf_close(pw->maps[i].elf);
		free(pw->maps[i].bytes);
		free(pw->maps[i].memory);
	}
	pw->nr_maps = 0;
}

static char *read_maps(pid_t pid)
{
	size_t size = 0, room = 1 << 18;
	char *text = malloc(room), path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (f && text)
		size = fread(text, 1, room - 1, f);
	if (f)
		fclose(f);
	if (text)
		text[size] = 0;
	return text;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
};

/* Reads the mappings again if they have changed. */
static int follow_maps(struct process_walk *pw)
{
	char *text = read_maps(pw->pid), *line, *save = NULL;
	int at;

	if (!text)
		return -ENOMEM;
	if (pw->text && !strcmp(pw->text, text)) {
		free(text);
		return 0;
	}
	kmod_walk_forget_rows(pw->kmod);
	free(pw->text);
	pw->text = strdup(text);
	free_maps(pw);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct map *map = &pw->maps[pw->nr_maps];
		char rights[8];

		*map = (struct map){0};
		at = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &map->start,
			   &map->end, rights, &map->off, &at) < 4 ||
		    rights[2] != 'x' || pw->nr_maps == MAPS_MAX)
			continue;
		snprintf(map->path, sizeof(map->path), "%s", at ? line + at : "");
		open_rows(pw, map);
		pw->nr_maps++;
	}
	free(text);
	dwfl_end(pw->dwfl);
	pw->dwfl = dwfl_begin(&callbacks);
	if (!pw->dwfl || dwfl_linux_proc_report(pw->dwfl, pw->pid) ||
	    dwfl_report_end(pw->dwfl, NULL, NULL) ||
	    dwfl_linux_proc_attach(pw->dwfl, pw->pid, true))
		return -EIO;
	return 0;
}

struct process_walk *process_walk_new(pid_t pid, size_t copy)
{
	struct process_walk *pw = calloc(1, sizeof(*pw));

	if (!pw)
		return NULL;
	pw->pid = pid;
	pw->copy = copy;
	pw->copied = copy ? malloc(copy) : NULL;
	pw->kmod = kmod_walk_new();
	if (pw->kmod)
		return pw;
	process_walk_free(pw);
	return NULL;
}

void process_walk_free(struct process_walk *pw)
{
	if (!pw)
		return;
	free_maps(pw);
	dwfl_end(pw->dwfl);
	kmod_walk_free(pw->kmod);
	free(pw->text);
	free(pw->copied);
	free(pw);
}

/* ---- our walk ------------------------------------------------------------------------------- */

static enum mp_walk_code find(void *arg, uint64_t ip, const struct mp_rows **rows, uint64_t *vaddr)
{
	struct process_walk *pw = arg;

	for (size_t i = 0; i < pw->nr_maps; i++) {
		const struct map *map = &pw->maps[i];

		if (ip < map->start || ip >= map->end)
			continue;
		if (!map->has_rows ||
		    !mp_elf_off_to_vaddr(map->elf, ip - map->start + map->off, vaddr))
			return MP_WALK_BARE;
		*rows = &map->rows;
		return MP_WALK_ROWS;
	}
	return MP_WALK_NOTHING;
}

static bool read_word(void *arg, uint64_t address, uint64_t *word)
{
	struct process_walk *pw = arg;

	if (!pw->copy)
		return read_memory(pw->pid, address, word, sizeof(*word));
	if (address < pw->copy_start || address - pw->copy_start > pw->copy_size ||
	    pw->copy_size - (address - pw->copy_start) < sizeof(*word))
		return false;
	memcpy(word, pw->copied + (address - pw->copy_start), sizeof(*word));
	return true;
}

static void copy_stack(struct process_walk *pw, uint64_t rsp)
{
	pw->copy_start = rsp;
	pw->copy_size = pw->copy;
	while (pw->copy_size && !read_memory(pw->pid, rsp, pw->copied, pw->copy_size))
		pw->copy_size -= pw->copy_size > 256 ? 256 : pw->copy_size;
}

/* ---- theirs --------------------------------------------------------------------------------- */

static int add_frame(Dwfl_Frame *frame, void *arg)
{
	struct walk_comparison *c = arg;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, NULL) || c->nr_theirs == PROCESS_WALK_MAX)
		return DWARF_CB_ABORT;
	c->theirs[c->nr_theirs++] = pc;
	return DWARF_CB_OK;
}

/* ---- the kernel module's ---------------------------------------------------------------------- */

static void compare_kmod(struct process_walk *pw, const struct mp_walk_ops *ops,
			 const struct mp_walk_start *start, struct walk_comparison *c)
{
	static struct kmod_walk_result kmod;
	size_t nr = c->result.nr < KMOD_WALK_MAX ? c->result.nr : KMOD_WALK_MAX;
	int stop = nr < c->result.nr ? (int)MORPH_STACK_DEPTH : (int)c->result.stop;

	kmod_walk_run(pw->kmod, ops, start, KMOD_WALK_MAX, &kmod);
	c->nr_kmod = kmod.nr;
	c->nr_kmod_read = kmod.nr_read;
	c->is_kmod_same = (int)kmod.stop == stop && kmod.nr == nr &&
			  !memcmp(kmod.ips, c->ips, nr * sizeof(c->ips[0]));
}

int process_walk_compare(struct process_walk *pw, struct walk_comparison *out)
{
	const struct mp_walk_ops ops = {.find = find, .read = read_word, .arg = pw};
	struct user_regs_struct r;
	int ret = follow_maps(pw);

	if (ret)
		return ret;
	if (ptrace(PTRACE_GETREGS, pw->pid, NULL, &r))
		return -errno;
	const struct mp_walk_start start = {
		.ip = r.rip,
		.regs = {r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10,
			 r.r11, r.r12, r.r13, r.r14, r.r15},
	};
	if (pw->copy)
		copy_stack(pw, r.rsp);
	out->nr_theirs = out->nr_same = 0;
	mp_walk(&ops, &start, out->ips, PROCESS_WALK_MAX, &out->result);
	compare_kmod(pw, &ops, &start, out);
	dwfl_getthread_frames(pw->dwfl, pw->pid, add_frame, out);
	if (out->nr_theirs)
		memmove(out->theirs, out->theirs + 1, --out->nr_theirs * sizeof(out->theirs[0]));
	while (out->nr_same < out->result.nr && out->nr_same < out->nr_theirs &&
	       out->ips[out->nr_same] == out->theirs[out->nr_same])
		out->nr_same++;
	out->is_wrong = out->nr_same < out->result.nr;
	out->is_perfect = !out->is_wrong && out->nr_same == out->nr_theirs &&
			  out->result.stop == MP_WALK_BOTTOM;
	return 0;
}
