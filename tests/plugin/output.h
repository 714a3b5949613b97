// SPDX-License-Identifier: Apache-2.0
/*
 * output - computes counts per instruction and transfer from branches.c's counts per block, and
 * writes them.
 *
 * Decides the three output formats. Included in the middle of branches.c, whose tables it uses.
 */
#ifndef MORPH_TESTS_OUTPUT_H
#define MORPH_TESTS_OUTPUT_H

struct tally {
	uint64_t insns, transfers[NR_TRANSFERS], taken, lines, pages;
};

/* An executed instruction, and a transfer. */
struct insn_count {
	uint64_t vaddr, count;
	uint8_t size;
};

struct transfer_count {
	uint64_t from, to, count; /* NO_ADDRESS: in another file */
	const char *kind;
};

struct growing {
	void *v;
	size_t nr, size;
};

static void *growing_add(struct growing *a)
{
	a->v = grow(a->v, a->nr, a->size);
	return (char *)a->v + a->nr++ * a->size;
}

static int u64_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t count_distinct(struct growing *a)
{
	uint64_t *v = a->v, nr = 0;
	size_t i;

	if (!a->nr)
		return 0;
	qsort(v, a->nr, sizeof(*v), u64_compare);
	for (i = 0; i < a->nr; i++)
		nr += i == 0 || v[i] != v[i - 1];
	a->nr = 0;
	return nr;
}

static struct cell sum_cell(const struct vcpu *sum, uint32_t id)
{
	const struct cell *chunk = sum->chunks[id >> CHUNK_BITS];

	return chunk ? chunk[id & (CHUNK_SIZE - 1)] : (struct cell){0, 0};
}

/* Return: executions of @b that ended before its instruction @i. */
static uint64_t cut_before(const struct vcpu *sum, const struct block *b, uint32_t i)
{
	uint64_t nr = 0;
	uint32_t done;

	for (done = 0; b->was_cut && done <= i; done++)
		nr += edge_find(&sum->cuts, b->id, done);
	return nr;
}

static void tally_object(const struct vcpu *sum, const struct object *obj, bool moved_only,
			 struct tally *out)
{
	struct growing lines = {.size = sizeof(uint64_t)}, pages = {.size = sizeof(uint64_t)};
	size_t id;

	memset(out, 0, sizeof(*out));
	for (id = 1; id < g.nr_blocks; id++) {
		const struct block *b = g.blocks[id];
		struct cell cell = sum_cell(sum, b->id);
		uint64_t at;
		uint32_t i;

		if (!cell.runs || b->object != obj || (moved_only && !b->moved))
			continue;
		out->insns += cell.runs * b->nr_insns;
		for (i = 0; b->was_cut && i < b->nr_insns; i++)
			out->insns -= cut_before(sum, b, i);
		out->transfers[b->transfer] += cell.runs - cut_before(sum, b, b->nr_insns - 1);
		if (b->transfer == TRANSFER_COND)
			out->taken += cell.taken;
		for (at = (b->start - b->bias) >> 6; at <= (b->end - 1 - b->bias) >> 6; at++)
			*(uint64_t *)growing_add(&lines) = at;
		for (at = (b->start - b->bias) >> 12; at <= (b->end - 1 - b->bias) >> 12; at++)
			*(uint64_t *)growing_add(&pages) = at;
	}
	out->lines = count_distinct(&lines);
	out->pages = count_distinct(&pages);
	free(lines.v);
	free(pages.v);
}

static void json_string(FILE *out, const char *s)
{
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', out);
		if ((unsigned char)*s < 0x20)
			fprintf(out, "\\u%04x", *s);
		else
			putc(*s, out);
	}
	putc('"', out);
}

static void json_tally(FILE *out, const char *name, const struct tally *t)
{
	fprintf(out,
		"\"%s\": {\"instructions\": %" PRIu64 ", \"cond\": %" PRIu64
		", \"cond_taken\": %" PRIu64 ", \"jumps\": %" PRIu64 ", \"ind_jumps\": %" PRIu64
		", \"calls\": %" PRIu64 ", \"ind_calls\": %" PRIu64 ", \"returns\": %" PRIu64
		", \"lines\": %" PRIu64 ", \"pages\": %" PRIu64 "}",
		name, t->insns, t->transfers[TRANSFER_COND], t->taken, t->transfers[TRANSFER_JUMP],
		t->transfers[TRANSFER_IJUMP], t->transfers[TRANSFER_CALL],
		t->transfers[TRANSFER_ICALL], t->transfers[TRANSFER_RET], t->lines, t->pages);
}

static void counts_write(FILE *out, const struct vcpu *sum)
{
	bool first = true;
	size_t i;

	fputs("{\"program\": ", out);
	json_string(out, g.main_path);
	fprintf(out, ",\n \"interrupted\": %" PRIu64 ",\n \"files\": [",
		sum->nr_pending + g.nr_lost_pending);
	for (i = 0; i < objs.nr_objects; i++) {
		const struct object *obj = objs.objects[i];
		struct tally all, moved;

		tally_object(sum, obj, false, &all);
		if (!all.insns)
			continue;
		tally_object(sum, obj, true, &moved);
		fprintf(out, "%s\n  {\"path\": ", first ? "" : ",");
		json_string(out, obj->path);
		fprintf(out, ", \"main\": %s,\n   ", obj->is_main ? "true" : "false");
		json_tally(out, "all", &all);
		fputs(",\n   ", out);
		json_tally(out, "moved", &moved);
		fputs("}", out);
		first = false;
	}
	fputs("\n ]}\n", out);
}

/* ---- edges= ---- */

static int insn_compare(const void *a, const void *b)
{
	return u64_compare(&((const struct insn_count *)a)->vaddr,
			   &((const struct insn_count *)b)->vaddr);
}

static int transfer_compare(const void *a, const void *b)
{
	const struct transfer_count *x = a, *y = b;
	int order = u64_compare(&x->from, &y->from);

	if (!order)
		order = u64_compare(&x->to, &y->to);
	return order ? order : strcmp(x->kind, y->kind);
}

/* Sorts, and adds up equal addresses. */
static void insns_combine(struct growing *insns)
{
	struct insn_count *v = insns->v;
	size_t i, nr = 0;

	if (!insns->nr)
		return;
	qsort(v, insns->nr, sizeof(*v), insn_compare);
	for (i = 0; i < insns->nr; i++) {
		if (!v[i].count)
			continue;
		if (nr && v[nr - 1].vaddr == v[i].vaddr)
			v[nr - 1].count += v[i].count;
		else
			v[nr++] = v[i];
	}
	insns->nr = nr;
}

/* Sorts, adds up equal transfers, and removes those that never happened. */
static void transfers_combine(struct growing *edges)
{
	struct transfer_count *v = edges->v;
	size_t i, nr = 0;

	if (!edges->nr)
		return;
	qsort(v, edges->nr, sizeof(*v), transfer_compare);
	for (i = 0; i < edges->nr; i++) {
		if (!v[i].count)
			continue;
		if (nr && !transfer_compare(&v[nr - 1], &v[i]))
			v[nr - 1].count += v[i].count;
		else
			v[nr++] = v[i];
	}
	edges->nr = nr;
}

static void edges_write_insns(FILE *out, const struct growing *insns)
{
	const struct insn_count *v = insns->v;
	size_t i, j;

	for (i = 0; i < insns->nr; i = j) {
		uint64_t end = v[i].vaddr + v[i].size;

		for (j = i + 1; j < insns->nr && v[j].vaddr == end && v[j].count == v[i].count; j++)
			end += v[j].size;
		fprintf(out, "block %#" PRIx64 " %" PRIu64 " %zu %" PRIu64 "\n", v[i].vaddr,
			end - v[i].vaddr, j - i, v[i].count);
	}
}

static void address_write(FILE *out, uint64_t vaddr)
{
	if (vaddr == NO_ADDRESS)
		fputs(" -", out);
	else
		fprintf(out, " %#" PRIx64, vaddr);
}

static void edges_write_transfers(FILE *out, const struct growing *edges)
{
	const struct transfer_count *v = edges->v;
	size_t i;

	for (i = 0; i < edges->nr; i++) {
		fputs("edge", out);
		address_write(out, v[i].from);
		address_write(out, v[i].to);
		fprintf(out, " %" PRIu64 " %s\n", v[i].count, v[i].kind);
	}
}

static void edge_count(struct growing *edges, uint64_t from, uint64_t to, uint64_t count,
		       const char *kind)
{
	*(struct transfer_count *)growing_add(edges) =
		(struct transfer_count){from, to, count, kind};
}

/* Adds the transfers of a block whose targets are in its code. */
static void edges_of_block(struct growing *edges, const struct vcpu *sum, const struct block *b)
{
	struct cell cell = sum_cell(sum, b->id);
	uint64_t runs = cell.runs - cut_before(sum, b, b->nr_insns - 1);
	uint64_t from = b->last - b->bias;

	switch (b->transfer) {
	case TRANSFER_COND:
		edge_count(edges, from, b->target - b->bias, cell.taken, "taken");
		edge_count(edges, from, b->next - b->bias, runs - cell.taken, "fall");
		break;
	case TRANSFER_JUMP: edge_count(edges, from, b->target - b->bias, runs, "jump"); break;
	case TRANSFER_CALL: edge_count(edges, from, b->target - b->bias, runs, "call"); break;
	default: break;
	}
}

/* Counts of the file for edges= and callgrind=. */
struct exact {
	struct growing insns, edges;
	const struct object *obj; /* NULL: it is not mapped */
};

static void exact_collect(const struct vcpu *sum, struct exact *out)
{
	static const char *const kinds[NR_TRANSFERS] = {
		[TRANSFER_IJUMP] = "ijump", [TRANSFER_ICALL] = "icall", [TRANSFER_RET] = "ret"};
	const struct object *obj = NULL;
	size_t id, i;

	for (i = 0; i < objs.nr_objects; i++)
		if (g.edges_object ? object_is(objs.objects[i], g.edges_object)
				   : objs.objects[i]->is_main)
			obj = objs.objects[i];
	*out = (struct exact){.insns = {.size = sizeof(struct insn_count)},
			      .edges = {.size = sizeof(struct transfer_count)},
			      .obj = obj};
	for (id = 1; id < g.nr_blocks; id++) {
		const struct block *b = g.blocks[id];
		struct cell cell = sum_cell(sum, b->id);
		uint64_t at = b->start - b->bias;

		if (!cell.runs || b->object != obj)
			continue;
		for (i = 0; i < b->nr_insns; i++) {
			*(struct insn_count *)growing_add(&out->insns) = (struct insn_count){
				at,
				cell.runs - cut_before(sum, b, (uint32_t)i),
				b->sizes[i],
			};
			at += b->sizes[i];
		}
		edges_of_block(&out->edges, sum, b);
	}
	for (i = 0; i < sum->edges.nr_alloc; i++) {
		const struct edge *e = &sum->edges.v[i];
		const struct block *from, *to;

		if (!e->from)
			continue;
		from = g.blocks[e->from];
		to = g.blocks[e->to];
		if (from->object == obj || to->object == obj)
			edge_count(&out->edges,
				   from->object == obj ? from->last - from->bias : NO_ADDRESS,
				   to->object == obj ? to->start - to->bias : NO_ADDRESS, e->count,
				   kinds[from->transfer]);
	}
	insns_combine(&out->insns);
	transfers_combine(&out->edges);
}

static void exact_free(struct exact *exact)
{
	free(exact->insns.v);
	free(exact->edges.v);
}

/*
 * edges_write - write exact counts of one file, for comparison with estimates, as text by
 * ascending link-time address:
 *   block ADDRESS BYTES INSTRUCTIONS COUNT  a run of instructions, each executed COUNT times
 *   edge FROM TO COUNT KIND                 FROM: the transferring instruction
 * KIND: taken, fall (a conditional branch not taken), jump, call, ijump, icall, ret. An indirect
 * transfer from or to another file has `-` for the address there.
 */
static void edges_write(FILE *out, const struct vcpu *sum)
{
	struct exact exact;

	exact_collect(sum, &exact);
	fprintf(out, "# exact counts of %s\n", exact.obj ? exact.obj->path : "nothing: not mapped");
	edges_write_insns(out, &exact.insns);
	edges_write_transfers(out, &exact.edges);
	exact_free(&exact);
}

/*
 * callgrind_write - write the same counts as a callgrind.out file, for morph-stats import.
 * Omits returns, transfers out of the file, and conditional branches that were not taken.
 */
static void callgrind_write(FILE *out, const struct vcpu *sum)
{
	const struct insn_count *insn;
	const struct transfer_count *t;
	struct exact exact;
	uint64_t total = 0;
	size_t i;

	exact_collect(sum, &exact);
	insn = exact.insns.v;
	t = exact.edges.v;
	fputs("positions: instr\nevents: Ir\n", out);
	if (exact.obj)
		fprintf(out, "ob=%s\n", exact.obj->path);
	for (i = 0; i < exact.insns.nr; i++) {
		fprintf(out, "%#" PRIx64 " %" PRIu64 "\n", insn[i].vaddr, insn[i].count);
		total += insn[i].count;
	}
	for (i = 0; i < exact.edges.nr; i++) {
		bool call = !strcmp(t[i].kind, "call") || !strcmp(t[i].kind, "icall");

		if (t[i].from == NO_ADDRESS || t[i].to == NO_ADDRESS ||
		    !strcmp(t[i].kind, "fall") || !strcmp(t[i].kind, "ret"))
			continue;
		fprintf(out, "%s=%" PRIu64 " %#" PRIx64 "\n%#" PRIx64 "\n", call ? "calls" : "jump",
			t[i].count, t[i].to, t[i].from);
	}
	fprintf(out, "totals: %" PRIu64 "\n", total);
	exact_free(&exact);
}

static void file_write(const char *path, void (*write)(FILE *, const struct vcpu *),
		       const struct vcpu *sum)
{
	char name[4352];
	bool failed;
	FILE *out;

	if (g.is_child)
		snprintf(name, sizeof(name), "%s.%d", path, (int)g.pid);
	else
		snprintf(name, sizeof(name), "%s", path);
	out = fopen(name, "we");
	if (out) {
		write(out, sum);
		failed = ferror(out);
		if (!fclose(out) && !failed)
			return;
	}
	fprintf(stderr, "branches: %s: %s\n", name, strerror(errno));
}

static void output_write(const struct vcpu *sum)
{
	size_t i;

	for (i = 0; i < sum->cuts.nr_alloc; i++)
		if (sum->cuts.v[i].from)
			g.blocks[sum->cuts.v[i].from]->was_cut = true;
	file_write(g.out, counts_write, sum);
	if (g.edges)
		file_write(g.edges, edges_write, sum);
	if (g.callgrind)
		file_write(g.callgrind, callgrind_write, sum);
}

#endif
