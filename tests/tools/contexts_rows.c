// SPDX-License-Identifier: Apache-2.0
/*
 * contexts_rows - compares exact stacks with Morph's walks over its unwind rows.
 *
 *  contexts_rows [-v] [--perf=BYTES] DIR
 *
 * Reads what `scripts/bench/contexts run --stack=BYTES` left in DIR, walks each sample from its
 * registers and its copy of the stack, and prints counts as JSON:
 *  right: all return addresses are the same, and the walk says that the stack is complete
 *  short: the walk ended early and said why, without a wrong address; by reason
 *  wrong: another address, or fewer or more frames in a stack that the walk calls complete
 *  other: as wrong, but exactly another stack of the program, which rsp already points to while
 *    the thread is still in the function that changes stacks
 *  changed: as wrong, while an unwinder has put a handler in the place of a return address
 * --perf: the walk sees at most BYTES of the stack, and nothing below rsp, as with perf.
 * -v prints samples that are not right. Exit status 1: there is a wrong sample, more than one in a
 * hundred is `other' or `changed', or there is none.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/unwind/walk.h"
#include "tests/support/exact_stacks.h"
#include "tests/support/rows_compare.h"

#define MAX_FRAMES 100000

struct module {
	bool is_read;
	void *bytes;
	struct mp_rows rows;
};

struct comparison {
	struct exact_stacks *stacks;
	const struct exact_object *objects;
	size_t nr_objects;
	struct module *modules; /* by object */
	size_t perf;		/* 0: the whole copy, with the red zone */
	bool verbose;
	struct exact_sample sample;
	uint64_t *ips;
	uint64_t nr, nr_right, nr_wrong, nr_other, nr_changed, nr_frames, nr_by_rbp,
		stops[MP_NR_WALK_STOP];
};

static const uint8_t dwarf_number[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

static const struct mp_rows *rows_of(struct comparison *c, size_t object)
{
	struct module *m = &c->modules[object];
	size_t size;

	if (!m->is_read) {
		m->is_read = true;
		if (rows_of_elf(c->objects[object].elf, &m->bytes, &size, &m->rows, NULL))
			m->rows.nr_rows = 0;
	}
	return m->rows.nr_rows ? &m->rows : NULL;
}

static enum mp_walk_code find(void *arg, uint64_t ip, const struct mp_rows **rows, uint64_t *vaddr)
{
	struct comparison *c = arg;
	const struct exact_map *map = exact_stacks_map(c->stacks, ip);
	const struct exact_object *object = map ? &c->objects[map->object] : NULL;

	if (!object)
		return MP_WALK_NOTHING;
	if (!object->elf)
		return MP_WALK_BARE;
	*vaddr = ip - object->bias;
	if (!mp_elf_is_code(object->elf, *vaddr))
		return MP_WALK_NOTHING;
	*rows = rows_of(c, map->object);
	return *rows ? MP_WALK_ROWS : MP_WALK_BARE;
}

static bool read_word(void *arg, uint64_t address, uint64_t *word)
{
	struct comparison *c = arg;

	if (c->perf && (address < c->sample.regs[7] || address - c->sample.regs[7] > c->perf - 8))
		return false;
	return exact_sample_word(&c->sample, address, word);
}

static bool is_same(const struct exact_frame *frame, uint64_t ip)
{
	return frame->any || frame->address == ip;
}

static void print_place(const struct comparison *c, uint64_t ip)
{
	const struct exact_map *map = exact_stacks_map(c->stacks, ip);
	const char *name = map ? c->objects[map->object].path : "?";
	const char *slash = strrchr(name, '/');

	printf(" %s+0x%" PRIx64, slash ? slash + 1 : name,
	       map ? ip - c->objects[map->object].bias : ip);
}

static void print_sample(const struct comparison *c, const char *what, size_t nr, size_t same)
{
	const struct exact_sample *s = &c->sample;

	printf("%s: line %" PRIu64 ", %zu of %zu frames found, %zu right; at", what, s->number, nr,
	       s->nr_frames, same);
	print_place(c, s->pc);
	printf("\n  found");
	for (size_t i = same ? same - 1 : 0; i < nr && i < same + 3; i++)
		print_place(c, c->ips[i]);
	printf("\n  exact");
	for (size_t i = same ? same - 1 : 0; i < s->nr_frames && i < same + 3; i++)
		print_place(c, s->frames[i].address);
	printf("\n");
}

/*
 * At the instructions behind a signal handler, which return to what it interrupted, the plugin
 * still has the handler's activation, but its return address was used.
 */
static void skip_returned_handler(struct comparison *c)
{
	struct exact_sample *s = &c->sample;
	const struct mp_rows *rows;
	uint64_t vaddr;

	if (s->nr_frames && s->frames[0].any && find(c, s->pc, &rows, &vaddr) == MP_WALK_ROWS &&
	    mp_rows_find(rows, vaddr)->flags & MP_ROW_SIGNAL) {
		s->frames++;
		s->nr_frames--;
	}
}

static void count_wrong(struct comparison *c, size_t nr, size_t same)
{
	const char *what = "wrong";

	if (c->sample.is_changed) {
		what = "changed";
		c->nr_changed++;
	} else if (!same && exact_stacks_know(c->stacks, &c->sample, c->ips, nr)) {
		what = "other";
		c->nr_other++;
	} else {
		c->nr_wrong++;
	}
	if (c->verbose)
		print_sample(c, what, nr, same);
}

static void compare_sample(struct comparison *c)
{
	const struct mp_walk_ops ops = {.find = find, .read = read_word, .arg = c};
	struct exact_sample *s = &c->sample;
	struct mp_walk_start start = {.ip = s->pc};
	struct mp_walk_result result;
	size_t same = 0;

	skip_returned_handler(c);
	for (int i = 0; i < 16; i++)
		start.regs[i] = s->regs[dwarf_number[i]];
	mp_walk(&ops, &start, c->ips, MAX_FRAMES, &result);
	while (same < result.nr && same < s->nr_frames && is_same(&s->frames[same], c->ips[same]))
		same++;
	c->nr++;
	c->nr_frames += s->nr_frames;
	c->nr_by_rbp += result.nr_by_rbp;
	if (same < result.nr || (result.stop == MP_WALK_BOTTOM && same < s->nr_frames)) {
		count_wrong(c, result.nr, same);
	} else if (result.stop == MP_WALK_BOTTOM) {
		c->nr_right++;
	} else {
		c->stops[result.stop]++;
		if (c->verbose)
			print_sample(c, mp_walk_stop_name(result.stop), result.nr, same);
	}
}

static void print_figures(const struct comparison *c)
{
	const char *comma = "";

	printf("{\"samples\": %" PRIu64 ", \"right\": %" PRIu64 ", \"wrong\": %" PRIu64
	       ", \"other\": %" PRIu64 ", \"changed\": %" PRIu64 ", \"frames\": %" PRIu64
	       ", \"by_rbp\": %" PRIu64 ", \"skipped\": %" PRIu64 ", \"short\": {",
	       c->nr, c->nr_right, c->nr_wrong, c->nr_other, c->nr_changed, c->nr_frames,
	       c->nr_by_rbp, exact_stacks_skipped(c->stacks));
	for (int i = 0; i < MP_NR_WALK_STOP; i++) {
		if (c->stops[i]) {
			printf("%s\"%s\": %" PRIu64, comma, mp_walk_stop_name(i), c->stops[i]);
			comma = ", ";
		}
	}
	printf("}}\n");
}

static int compare_all(struct comparison *c, const char *dir)
{
	int ret = exact_stacks_open(dir, &c->stacks);

	if (ret) {
		fprintf(stderr, "contexts-rows: %s: %s\n", dir, strerror(-ret));
		return 1;
	}
	c->objects = exact_stacks_objects(c->stacks, &c->nr_objects);
	c->modules = calloc(c->nr_objects, sizeof(*c->modules));
	c->ips = calloc(MAX_FRAMES, sizeof(*c->ips));
	if (c->modules && c->ips)
		while (exact_stacks_next(c->stacks, &c->sample))
			compare_sample(c);
	print_figures(c);
	for (size_t i = 0; c->modules && i < c->nr_objects; i++)
		free(c->modules[i].bytes);
	free(c->modules);
	free(c->ips);
	exact_stacks_close(c->stacks);
	return c->nr_wrong || (c->nr_other + c->nr_changed) * 100 > c->nr || !c->nr;
}

int main(int argc, char **argv)
{
	struct comparison c = {0};
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "-v"))
			c.verbose = true;
		else if (sscanf(argv[i], "--perf=%zu", &c.perf) != 1 || c.perf < 8)
			break;
	}
	if (i + 1 != argc) {
		fputs("usage: contexts-rows [-v] [--perf=BYTES] DIR\n", stderr);
		return 2;
	}
	return compare_all(&c, argv[i]);
}
