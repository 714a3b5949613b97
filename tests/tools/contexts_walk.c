// SPDX-License-Identifier: Apache-2.0
/*
 * contexts_walk - compares exact stacks with those that elfutils unwinds.
 *
 * An independent check of tests/plugin/contexts.c, and the measure of what unwind tables allow:
 * reads DIR/contexts and DIR/samples of `scripts/bench/contexts run --singlestep --stack=BYTES`,
 * and unwinds each sample from its registers and its copy of the stack.
 *  contexts_walk [-v] DIR  ->  SAMPLES RIGHT SHORT WRONG FRAMES
 * RIGHT: all return addresses are the same; SHORT: unwinding ended early, without a wrong address.
 * -v prints samples that are not right. Exit status 1: one of the files cannot be read.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRAMES 100000
#define RED_ZONE   128 /* the copy begins so far below rsp */

enum kind {
	KIND_CALL,
	KIND_START,
	KIND_STACK,
	KIND_INTERRUPTED
};

struct site {
	uint64_t vaddr, size;
	size_t object;
	enum kind kind;
};

struct activation {
	uint64_t serial, parent;
	size_t site;
};

static struct {
	char **paths;
	uint64_t *bias; /* by object: where its first byte is mapped */
	size_t nr_objects;
	struct site *sites;
	size_t nr_sites;
	struct activation *activations; /* a table by serial number */
	size_t nr_activations, room;
	/* the current sample */
	uint64_t pc, regs[16];
	uint8_t *memory;
	size_t memory_size;
	uint64_t *found, *wanted; /* return addresses, the innermost first; 0: any */
	size_t nr_found, nr_wanted;
} g;

static void *need(void *memory)
{
	if (!memory) {
		fputs("contexts_walk: out of memory\n", stderr);
		exit(1);
	}
	return memory;
}

/* ---- what elfutils asks for ---- */

static pid_t thread_next(Dwfl *dwfl, void *arg, void **thread_arg)
{
	(void)dwfl, (void)arg;
	if (*thread_arg)
		return 0;
	*thread_arg = &g;
	return 1;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result, void *arg)
{
	uint64_t start = g.regs[7] - RED_ZONE;

	(void)dwfl, (void)arg;
	if (addr < start || g.memory_size < 8 || addr - start > g.memory_size - 8)
		return false;
	memcpy(result, g.memory + (addr - start), sizeof(*result));
	return true;
}

static bool registers_set(Dwfl_Thread *thread, void *arg)
{
	(void)arg;
	dwfl_thread_state_register_pc(thread, g.pc);
	/* 16 is rip: a PLT's rows compute with it */
	return dwfl_thread_state_registers(thread, 16, 1, &g.pc) &&
	       dwfl_thread_state_registers(thread, 0, 16, g.regs);
}

static int frame_add(Dwfl_Frame *frame, void *arg)
{
	Dwarf_Addr pc;

	(void)arg;
	if (!dwfl_frame_pc(frame, &pc, NULL) || g.nr_found == MAX_FRAMES)
		return DWARF_CB_ABORT;
	g.found[g.nr_found++] = pc;
	return DWARF_CB_OK;
}

static int no_debug_info(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			 const char *file, const char *link, GElf_Word crc, char **path)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc,
		(void)path;
	return -1;
}

static Dwfl *dwfl_open(void)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
						 .find_debuginfo = no_debug_info};
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = thread_next,
		.memory_read = memory_read,
		.set_initial_registers = registers_set,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);
	size_t i;

	if (!dwfl)
		return NULL;
	dwfl_report_begin(dwfl);
	for (i = 0; i < g.nr_objects; i++)
		if (g.paths[i] && g.bias[i])
			dwfl_report_elf(dwfl, g.paths[i], g.paths[i], -1, g.bias[i], false);
	dwfl_report_end(dwfl, NULL, NULL);
	if (!dwfl_attach_state(dwfl, NULL, 1, &threads, NULL)) {
		fprintf(stderr, "contexts_walk: %s\n", dwfl_errmsg(-1));
		return NULL;
	}
	return dwfl;
}

/* ---- the two files ---- */

static void *grow(void *array, size_t *nr, size_t index, size_t size)
{
	if (index >= *nr) {
		array = need(realloc(array, 2 * (index + 1) * size));
		memset((char *)array + *nr * size, 0, (2 * (index + 1) - *nr) * size);
		*nr = 2 * (index + 1);
	}
	return array;
}

static void object_add(size_t index, const char *path)
{
	size_t nr = g.nr_objects;

	g.paths = grow(g.paths, &nr, index, sizeof(*g.paths));
	g.bias = grow(g.bias, &g.nr_objects, index, sizeof(*g.bias));
	g.paths[index] = need(strdup(path));
}

static void site_add(size_t index, const struct site *site, const char *kind)
{
	g.sites = grow(g.sites, &g.nr_sites, index, sizeof(*g.sites));
	g.sites[index] = *site;
	if (!strcmp(kind, "interrupted"))
		g.sites[index].kind = KIND_INTERRUPTED;
	else if (!strcmp(kind, "stack"))
		g.sites[index].kind = KIND_STACK;
}

static bool contexts_read(const char *path)
{
	FILE *in = fopen(path, "re");
	uint64_t start, offset;
	struct site site = {0};
	char kind[32], *line = NULL;
	size_t size = 0, index;
	int at;

	if (!in)
		return false;
	while (getline(&line, &size, in) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "object %zu %n", &index, &at) == 1)
			object_add(index, line + at);
		else if (sscanf(line, "map %" SCNx64 " %*x %" SCNx64 " %zu", &start, &offset,
				&index) == 3 &&
			 !offset && index < g.nr_objects && !g.bias[index])
			g.bias[index] = start;
		else if (sscanf(line, "site %zu %zu %" SCNx64 " %" SCNu64 " %31s", &index,
				&site.object, &site.vaddr, &site.size, kind) == 5)
			site_add(index, &site, kind);
	}
	free(line);
	fclose(in);
	if (g.nr_sites)
		g.sites[0].kind = KIND_START;
	return g.nr_objects && g.nr_sites;
}

static struct activation *activation_slot(uint64_t serial)
{
	size_t i = (serial * 0x9e3779b97f4a7c15) >> 20;

	for (i &= g.room - 1; g.activations[i].serial; i = (i + 1) & (g.room - 1))
		if (g.activations[i].serial == serial)
			break;
	return &g.activations[i];
}

static void activation_add(const struct activation *a)
{
	struct activation *old = g.activations, *slot;
	size_t i, room = g.room;

	if (2 * g.nr_activations >= room) {
		g.room = room ? 2 * room : 65536;
		g.activations = need(calloc(g.room, sizeof(*old)));
		for (i = 0; i < room; i++)
			if (old[i].serial)
				*activation_slot(old[i].serial) = old[i];
		free(old);
	}
	slot = activation_slot(a->serial);
	g.nr_activations += !slot->serial;
	*slot = *a;
}

/* Collects the return addresses from the activation @serial outwards. */
static void stack_want(uint64_t serial)
{
	g.nr_wanted = 0;
	while (serial && g.nr_wanted + 2 < MAX_FRAMES) {
		const struct activation *a = activation_slot(serial);
		const struct site *s = &g.sites[a->site < g.nr_sites ? a->site : 0];

		if (s->kind == KIND_START)
			break;
		if (s->kind == KIND_INTERRUPTED)
			g.wanted[g.nr_wanted++] = 0;
		g.wanted[g.nr_wanted++] = g.bias[s->object] + s->vaddr + s->size;
		serial = a->parent;
	}
}

/* Reads a sample with registers. Return: false: it has none. */
static bool sample_read(char *line, uint64_t *serial)
{
	size_t object, i, size;
	uint64_t vaddr;
	int at;

	if (sscanf(line, "s %*u %*u %zu %" SCNx64 " %" SCNu64 "%n", &object, &vaddr, serial, &at) !=
		    3 ||
	    object >= g.nr_objects)
		return false;
	line += at;
	for (i = 0; i < 16; i++) {
		char *end;

		g.regs[i] = strtoull(line, &end, 16);
		if (end == line)
			return false;
		line = end;
	}
	line += strspn(line, " ");
	size = strspn(line, "0123456789abcdef") / 2;
	g.memory = need(realloc(g.memory, size + 1));
	g.memory_size = size;
	for (i = 0; i < size; i++) {
		char byte[3] = {line[2 * i], line[2 * i + 1], 0};

		g.memory[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
	g.pc = g.bias[object] + vaddr;
	return true;
}

/* ---- comparison ---- */

static void addresses_print(const char *what, const uint64_t *v, size_t nr, size_t from)
{
	size_t i;

	printf("  %s", what);
	for (i = from > 2 ? from - 2 : 0; i < nr && i < from + 4; i++)
		printf(" %zu:%#" PRIx64, i, v[i]);
	puts("");
}

enum result {
	RIGHT,
	SHORT,
	WRONG,
	NR_RESULTS
};

static enum result sample_compare(bool verbose)
{
	/* the first one found is the sampled instruction */
	size_t nr = g.nr_found ? g.nr_found - 1 : 0, i = 0;
	enum result result;

	while (i < nr && i < g.nr_wanted && (!g.wanted[i] || g.found[i + 1] == g.wanted[i]))
		i++;
	result = i == g.nr_wanted && i == nr ? RIGHT : i == nr ? SHORT : WRONG;
	if (verbose && result != RIGHT) {
		printf("%s at %#" PRIx64 ", %zu of %zu frames agree\n",
		       result == SHORT ? "short" : "wrong", g.pc, i, g.nr_wanted);
		addresses_print("unwound", g.found + 1, nr, i);
		addresses_print("exact  ", g.wanted, g.nr_wanted, i);
	}
	return result;
}

static bool samples_compare(const char *path, bool verbose)
{
	uint64_t nr[NR_RESULTS] = {0}, nr_frames = 0, serial;
	FILE *in = fopen(path, "re");
	Dwfl *dwfl = in ? dwfl_open() : NULL;
	struct activation a;
	char *line = NULL;
	size_t size = 0;

	if (!dwfl) {
		if (in)
			fclose(in);
		return false;
	}
	while (getline(&line, &size, in) > 0) {
		if (sscanf(line, "a %" SCNu64 " %*u %" SCNu64 " %zu", &a.serial, &a.parent,
			   &a.site) == 3) {
			activation_add(&a);
		} else if (sample_read(line, &serial)) {
			g.nr_found = 0;
			dwfl_getthread_frames(dwfl, 1, frame_add, NULL);
			stack_want(serial);
			nr[sample_compare(verbose)]++;
			nr_frames += g.nr_wanted;
		}
	}
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
	       nr[RIGHT] + nr[SHORT] + nr[WRONG], nr[RIGHT], nr[SHORT], nr[WRONG], nr_frames);
	free(line);
	fclose(in);
	dwfl_end(dwfl);
	return true;
}

int main(int argc, char **argv)
{
	bool verbose = argc == 3 && !strcmp(argv[1], "-v");
	char path[4096];

	if (argc != 2 + verbose) {
		fputs("usage: contexts_walk [-v] DIR\n", stderr);
		return 2;
	}
	g.found = need(calloc(MAX_FRAMES, sizeof(*g.found)));
	g.wanted = need(calloc(MAX_FRAMES, sizeof(*g.wanted)));
	snprintf(path, sizeof(path), "%s/contexts", argv[1 + verbose]);
	if (contexts_read(path)) {
		snprintf(path, sizeof(path), "%s/samples", argv[1 + verbose]);
		if (samples_compare(path, verbose))
			return 0;
	}
	fprintf(stderr, "contexts_walk: %s: %s\n", path, errno ? strerror(errno) : "not contexts");
	return 1;
}
