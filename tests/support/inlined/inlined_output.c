// SPDX-License-Identifier: Apache-2.0
/* inlined_output - outputs with functions in place of calls; see inlined_output.h. inlined_mutant changes them. */
#include "tests/support/inlined/inlined_output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "editor/optimize/optimize.h"
#include "libprof/base/grow.h"
#include "libprof/note/map_calls.h"

enum {
	LOWERS = 1,   /* bytes of `push %rax`, which lowers the stack pointer */
	SECONDS = 10, /* of CPU; the time that a program waits for it is the machine's matter */
	SECONDS_IN_ALL = 300,
	OUTPUT_MAX = 1 << 16, /* bytes of a program's output that are compared */
};

static bool make_file(char path[256], const uint8_t *bytes, size_t size)
{
	const char *dir = getenv("TMPDIR");
	int fd;
	bool done;

	snprintf(path, 256, "%s/morph-inlined-XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		return false;
	done = write(fd, bytes, size) == (ssize_t)size && !fchmod(fd, 0700);
	close(fd);
	return done;
}

static bool read_output(const char *path, struct rewrite_bytes *out)
{
	struct mp_elf *elf;
	struct mp_err err;

	if (mp_elf_open(path, MP_ELF_ALL, &elf, &err))
		return false;
	*out = (struct rewrite_bytes){malloc(elf->size), elf->size};
	if (out->data)
		memcpy(out->data, elf->data, elf->size);
	mp_elf_close(elf);
	return out->data;
}

/* The whole editor works on files. */
static bool optimise(const struct rewrite_bytes *program, uint64_t seed, struct rewrite_bytes *out)
{
	char in[256], to[300];
	struct me_optimize_options options = {
		.input = in,
		.output = to,
		.all = true,
		.layout = {.slots = true, .inline_leaves = true},
		.stress_inline = true,
		.stress_inline_seed = seed,
	};
	struct me_optimize_report report;
	struct mp_err err = {""};
	bool done;

	if (!make_file(in, program->data, program->size))
		return false;
	snprintf(to, sizeof(to), "%s.out", in);
	done = !me_optimize(&options, &report, &err) && read_output(to, out);
	me_optimize_report_fini(&report);
	unlink(in);
	unlink(to);
	return done;
}

/* ---- what is changed -------------------------------------------------------------------------- */

static bool add_range(struct inlined_output *x, uint32_t *cap, uint64_t vaddr, uint64_t size)
{
	uint64_t off;

	if (!size || !mp_elf_vaddr_to_off(x->good, vaddr, &off))
		return true;
	if (mp_grow(x->ranges, *cap, x->nr_ranges + 1))
		return false;
	x->ranges[x->nr_ranges++] = (struct inlined_range){off, size};
	x->nr_bytes += size;
	return true;
}

static bool add_insns(struct inlined_output *x, uint32_t *cap, uint64_t vaddr, uint64_t size)
{
	const uint8_t *bytes = mp_elf_bytes(x->good, vaddr, size);
	struct mp_insn insn;

	for (uint64_t k = 0; bytes && k < size; k += insn.len) {
		if (mp_insn_decode(bytes + k, size - k, vaddr + k, &insn) ||
		    mp_grow(x->insns, *cap, x->nr_insns + 1))
			return false;
		x->insns[x->nr_insns++] = insn;
	}
	return bytes || !size;
}

/* Does the copy @p, whose original ends in a call, lower the stack pointer in place of the call? */
static bool lowers(const struct inlined_output *x, const struct mp_map_piece *p)
{
	const uint8_t *b =
		p->new_size < LOWERS
			? NULL
			: mp_elf_bytes(x->good, p->new_vaddr + p->new_size - LOWERS, LOWERS);

	return b && *b == 0x50;
}

static bool add_pieces(struct inlined_output *x, uint32_t *cap)
{
	uint32_t cap_insns = 0;

	for (uint32_t i = 0; i < x->map->nr_pieces; i++) {
		const struct mp_map_piece *p = &x->map->pieces[i];
		const struct mp_map_call *call = mp_map_call_of_piece(x->map, i);

		if (!call)
			continue;
		if (i && i == call->first && lowers(x, p - 1) &&
		    (!add_range(x, cap, p->new_vaddr - LOWERS, LOWERS) ||
		     !add_insns(x, &cap_insns, p->new_vaddr - LOWERS, LOWERS)))
			return false;
		if (!add_range(x, cap, p->new_vaddr, p->new_size) ||
		    !add_insns(x, &cap_insns, p->new_vaddr, p->new_size))
			return false;
	}
	return true;
}

/* The rows of copies, with their entries of the search table and their exception tables. */
static bool add_rows(struct inlined_output *x, uint32_t *cap)
{
	const struct mp_section *text = mp_elf_section(x->good, ".morph.text");
	const struct mp_section *lsda = mp_elf_section(x->good, ".gcc_except_table.morph");

	for (uint32_t i = 0; i < x->good->nr_fdes; i++) {
		const struct mp_fde *fde = &x->good->fdes[i];
		const uint8_t *length = mp_elf_bytes(x->good, fde->fde_vaddr, 4);
		uint32_t size;

		if (fde->start - text->vaddr >= text->size || !length)
			continue;
		memcpy(&size, length, sizeof(size));
		if (!add_range(x, cap, fde->fde_vaddr, size + 4))
			return false;
	}
	return !lsda || add_range(x, cap, lsda->vaddr, lsda->size);
}

/* ---- what it does ----------------------------------------------------------------------------- */

/* In the child: the output goes to @out, and neither it nor the time is without limit. */
static void start(const char *path, const char *argument, int out)
{
	const struct rlimit size = {OUTPUT_MAX, OUTPUT_MAX}, core = {0, 0},
			    cpu = {SECONDS, SECONDS};
	int null = open("/dev/null", O_RDWR);

	setrlimit(RLIMIT_FSIZE, &size);
	setrlimit(RLIMIT_CORE, &core);
	setrlimit(RLIMIT_CPU, &cpu);
	dup2(null, 0);
	dup2(out, 1);
	dup2(null, 2);
	signal(SIGTRAP, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
	alarm(SECONDS_IN_ALL);
	execl(path, "program", argument, (char *)NULL);
	_exit(127);
}

/* Return: bytes of the output in @out, and *@status; -1: it could not run. */
static ssize_t run(const uint8_t *bytes, size_t size, const char *argument, char out[OUTPUT_MAX],
		   int *status)
{
	char path[256], to[256];
	ssize_t nr = -1;
	int fd = -1;
	pid_t pid;

	if (!make_file(path, bytes, size))
		return -1;
	if (make_file(to, NULL, 0))
		fd = open(to, O_RDWR);
	pid = fd < 0 ? -1 : fork();
	if (!pid)
		start(path, argument, fd);
	while (pid > 0 && waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0)
		nr = pread(fd, out, OUTPUT_MAX, 0);
	if (fd >= 0)
		close(fd);
	unlink(to);
	unlink(path);
	return nr;
}

static bool run_original(struct inlined_output *x)
{
	ssize_t nr;

	x->want = malloc(OUTPUT_MAX);
	nr = x->want ? run(x->program.data, x->program.size, x->argument, x->want, &x->status) : -1;
	x->nr_want = nr > 0 ? (size_t)nr : 0;
	return nr > 0;
}

bool inlined_output_make(struct inlined_output *x, const char *command, const char *argument,
			 uint64_t seed)
{
	uint32_t cap = 0;
	struct mp_err err;

	*x = (struct inlined_output){.argument = argument};
	return rewrite_compile(command, &x->program) && run_original(x) &&
	       optimise(&x->program, seed, &x->output) &&
	       !mp_elf_open_memory("program", x->program.data, x->program.size, MP_ELF_ALL,
				   &x->original, &err) &&
	       !mp_elf_open_memory("output", x->output.data, x->output.size, MP_ELF_ALL, &x->good,
				   &err) &&
	       !mp_map_read(x->good, &x->map, &err) && x->map->nr_calls && add_pieces(x, &cap) &&
	       add_rows(x, &cap);
}

void inlined_output_fini(struct inlined_output *x)
{
	mp_map_free(x->map);
	mp_elf_close(x->good);
	mp_elf_close(x->original);
	free(x->insns);
	free(x->ranges);
	free(x->program.data);
	free(x->output.data);
	free(x->want);
	*x = (struct inlined_output){0};
}

bool inlined_runs_alike(const struct inlined_output *x, const uint8_t *bytes, size_t size)
{
	static char got[OUTPUT_MAX];
	int status = 0;
	ssize_t nr = run(bytes, size, x->argument, got, &status);

	return nr == (ssize_t)x->nr_want && status == x->status &&
	       !memcmp(x->want, got, x->nr_want);
}
