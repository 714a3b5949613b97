// SPDX-License-Identifier: Apache-2.0
/* counting - windows of exact counts; see counting.h. */
#include "daemon/everyday/counting.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/note/counts_file.h"
#include "libprof/note/edge_place.h"
#include "libprof/note/edge_solve.h"
#include "libprof/trial/enough.h"

/* A process often runs in several windows that follow each other. They go to the same half. */
#define HALF_WINDOWS 4

struct md_counting {
	char dir[PATH_MAX];
	struct mp_edge_table *table;
	struct mp_meter_windows *windows;
	uint64_t *last;	   /* all counters, at the end of the last window */
	uint64_t *now;	   /* scratch */
	uint64_t *half[2]; /* sums over every second window */
	uint64_t *usable;  /* bits of counters that the meter may have; NULL: all */
	double cpu_s;
	size_t nr;
	uint64_t read_ns,
		read_at_ns; /* how long the last look at the files took, and when it ended */
};

/*
 * Files of many threads, or of a user who fills them, take as long as the disk is fast. Looks at them take a twentieth
 * of the worker's time at most.
 */
#define REST 20

void md_counting_free(struct md_counting *c)
{
	if (!c)
		return;
	mp_meter_free(c->windows);
	mp_edge_table_free(c->table);
	free(c->last);
	free(c->now);
	free(c->half[0]);
	free(c->half[1]);
	free(c->usable);
	free(c);
}

static uint64_t *new_counters(const struct md_counting *c)
{
	return calloc((size_t)c->table->nr_counters + 1, sizeof(uint64_t));
}

static int read_table(const char *file, struct mp_edge_table **out, struct mp_err *err)
{
	struct mp_elf *elf = NULL;
	int ret = mp_elf_open(file, MP_ELF_SYMBOLS, &elf, err);

	if (!ret)
		ret = mp_edge_table_read(elf, out, err);
	mp_elf_close(elf);
	return ret == -ENOENT ? mp_err_set(err, EBADMSG, "%s: it does not count", file) : ret;
}

static int read_counters(struct md_counting *c, uint64_t *to, struct mp_err *err)
{
	uint64_t begin = mp_now_ns();
	int ret = md_count_dir_read(c->dir, c->table->hash, to, c->table->nr_counters, err);

	c->read_at_ns = mp_now_ns();
	c->read_ns = c->read_at_ns - begin;
	return ret;
}

bool md_counting_is_due(const struct md_counting *c)
{
	return mp_now_ns() - c->read_at_ns >= REST * c->read_ns;
}

int md_counting_new(const char *file, const char *dir, struct md_counting **out, struct mp_err *err)
{
	struct md_counting *c = calloc(1, sizeof(*c));
	int ret;

	*out = NULL;
	if (!c)
		return mp_err_code(err, ENOMEM);
	snprintf(c->dir, sizeof(c->dir), "%s", dir);
	ret = read_table(file, &c->table, err);
	if (!ret) {
		c->windows = mp_meter_new(c->table->nr_counters);
		c->last = new_counters(c);
		c->now = new_counters(c);
		c->half[0] = new_counters(c);
		c->half[1] = new_counters(c);
		if (!c->windows || !c->last || !c->now || !c->half[0] || !c->half[1])
			ret = mp_err_set(err, ENOMEM, "no memory for %u counters",
					 c->table->nr_counters);
	}
	if (!ret)
		ret = read_counters(c, c->last, err);
	if (ret)
		md_counting_free(c);
	else
		*out = c;
	return ret;
}

int md_counting_window(struct md_counting *c, double cpu_s, struct mp_err *err)
{
	uint64_t *half = c->half[c->nr / HALF_WINDOWS & 1], sum = 0;
	int ret = read_counters(c, c->now, err);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < c->table->nr_counters; i++) {
		uint64_t delta = c->now[i] > c->last[i] ? c->now[i] - c->last[i] : 0;

		c->last[i] = c->now[i];
		c->now[i] = delta;
		half[i] += delta;
		sum += delta;
	}
	if (!sum || !(cpu_s > 0))
		return 0;
	c->cpu_s += cpu_s;
	c->nr++;
	ret = mp_meter_add_window(c->windows, cpu_s, c->now);
	return ret ? mp_err_set(err, -ret, "a window of counts: %s", strerror(-ret)) : 0;
}

int md_counting_exclude(struct md_counting *c, bool first, struct mp_err *err)
{
	size_t nr_words = c->table->nr_counters / 64 + 1;
	int ret = read_counters(c, c->now, err);

	if (!ret && !c->usable) {
		c->usable = malloc(nr_words * sizeof(*c->usable));
		if (!c->usable)
			return mp_err_code(err, ENOMEM);
		memset(c->usable, 0xff, nr_words * sizeof(*c->usable));
	}
	for (uint32_t i = 0; !ret && i < c->table->nr_counters; i++) {
		if (!first && c->now[i] > c->last[i])
			c->usable[i / 64] &= ~(UINT64_C(1) << i % 64);
		c->last[i] = c->now[i];
	}
	return ret;
}

const uint64_t *md_counting_last(const struct md_counting *c, uint32_t *nr)
{
	*nr = c->table->nr_counters;
	return c->now;
}

double md_counting_cpu_s(const struct md_counting *c)
{
	return c->cpu_s;
}

size_t md_counting_nr(const struct md_counting *c)
{
	return c->nr;
}

/* ---- enough ---------------------------------------------------------------------------------- */

/* The edges that leave a block, in the order of the blocks. */
struct flow {
	struct mp_flow flow;
	uint32_t *group, *edge; /* of each: the block that it leaves; its number in the table */
	bool *taken;
	uint64_t *half[2];
};

static void free_flow(struct flow *f)
{
	free(f->group);
	free(f->edge);
	free(f->taken);
	free(f->half[0]);
	free(f->half[1]);
}

/* Sorts the edges by the blocks that they leave: counts, then places them. */
static int make_flow(const struct mp_edge_table *table, struct flow *f)
{
	size_t nr = table->nr_edges, used = 0;
	uint32_t *first = calloc((size_t)table->nr_blocks + 1, sizeof(*first));

	f->group = malloc((nr + 1) * sizeof(*f->group));
	f->edge = malloc((nr + 1) * sizeof(*f->edge));
	f->taken = malloc((nr + 1) * sizeof(*f->taken));
	f->half[0] = malloc((nr + 1) * sizeof(uint64_t));
	f->half[1] = malloc((nr + 1) * sizeof(uint64_t));
	if (!first || !f->group || !f->edge || !f->taken || !f->half[0] || !f->half[1]) {
		free(first);
		return -ENOMEM;
	}
	for (size_t e = 0; e < nr; e++)
		if (table->edges[e].from != MP_NONE)
			first[table->edges[e].from + 1]++, used++;
	for (uint32_t b = 0; b < table->nr_blocks; b++)
		first[b + 1] += first[b];
	for (size_t e = 0; e < nr; e++) {
		const struct mp_counted_edge *edge = &table->edges[e];
		uint32_t at;

		if (edge->from == MP_NONE)
			continue;
		at = first[edge->from]++;
		f->group[at] = edge->from;
		f->edge[at] = (uint32_t)e;
		f->taken[at] = edge->kind != MP_EDGE_FALL;
	}
	free(first);
	f->flow = (struct mp_flow){used, f->group, f->taken};
	return 0;
}

static int fill(const struct md_counting *c, struct flow *f, int half, struct mp_err *err)
{
	struct mp_edge_counts counts = {0};
	int ret = mp_edge_solve(c->table, c->half[half], &counts, err);

	for (size_t i = 0; !ret && i < f->flow.nr_edges; i++)
		f->half[half][i] = counts.edge[f->edge[i]];
	mp_edge_counts_fini(&counts);
	return ret;
}

int md_counting_is_enough(const struct md_counting *c, double *more, struct mp_err *err)
{
	struct mp_enough enough = {.more = NAN};
	struct flow f = {0};
	int ret = 0;

	*more = NAN;
	if (c->nr < MP_METER_LEAST_WINDOWS)
		return 0;
	if (make_flow(c->table, &f))
		ret = mp_err_code(err, ENOMEM);
	for (int half = 0; !ret && half < 2; half++)
		ret = fill(c, &f, half, err);
	if (!ret)
		ret = mp_enough_counts(&f.flow, f.half[0], f.half[1], &enough);
	free_flow(&f);
	if (ret == -EAGAIN)
		return 0;
	if (ret)
		return ret;
	*more = enough.more;
	return enough.more < MP_ENOUGH_MORE;
}

/* ---- results --------------------------------------------------------------------------------- */

static bool write_all(int fd, const void *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, (const char *)bytes + done, size - done);

		if (n < 0 && errno != EINTR)
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

int md_counting_save(const struct md_counting *c, const char *path, struct mp_err *err)
{
	size_t size = (size_t)c->table->nr_counters * sizeof(uint64_t),
	       padded = (size + 4095) / 4096 * 4096;
	char page[MP_COUNTS_FILE_HEADER_BYTES] = {0};
	struct mp_counts_file_header header = {.version = MP_COUNTS_FILE_VERSION,
					       .header_bytes = sizeof(page),
					       .counters_bytes = padded,
					       .table_hash = c->table->hash};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), ret = 0;

	memcpy(header.magic, MP_COUNTS_FILE_MAGIC, sizeof(header.magic));
	memcpy(page, &header, sizeof(header));
	if (fd < 0 || !write_all(fd, page, sizeof(page)) || !write_all(fd, c->last, size) ||
	    ftruncate(fd, (off_t)(sizeof(page) + padded)))
		ret = mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (fd >= 0 && close(fd) && !ret)
		ret = mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	return ret;
}

int md_counting_meter(const struct md_counting *c, const char *path, struct mp_meter *out,
		      struct mp_err *err)
{
	int ret = mp_meter_choose(c->windows, c->usable, out);
	FILE *f;

	if (ret || !out->nr)
		return ret;
	if (!path)
		return 0;
	f = fopen(path, "we");
	if (!f)
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	for (size_t i = 0; i < out->nr && !ret; i++) {
		struct mp_edge_place place;
		char text[MP_EDGE_PLACE_TEXT];

		if (!mp_edge_place_of(c->table, out->index[i], &place)) {
			ret = -EBADMSG;
			break;
		}
		mp_edge_place_format(&place, text);
		fprintf(f, "%s\n", text);
	}
	if (fclose(f) || ret)
		return mp_err_set(err, ret ? -ret : errno, "%s: cannot be written", path);
	return 0;
}
