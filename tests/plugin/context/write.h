// SPDX-License-Identifier: Apache-2.0
/*
 * write - writes the tree and the call graph of the whole process (out=).
 *
 * Documentation/lab/contexts.md has the format. Included by contexts.c.
 */
#ifndef MORPH_TESTS_WRITE_H
#define MORPH_TESTS_WRITE_H

static const char *const site_kinds[NR_SITE_KINDS] = {
	[SITE_START] = "start",
	[SITE_SIGNAL] = "signal",
	[SITE_STACK] = "stack",
	[SITE_DIRECT] = "direct",
	[SITE_INDIRECT] = "indirect",
	[SITE_JUMP] = "jump",
	[SITE_INTERRUPTED] = "interrupted",
};

/* Sums over all threads. */
struct sum {
	struct tree tree;
	struct jumps jumps, calls;
	uint64_t *totals; /* by node: instructions with those of its children */
	uint64_t nr_insns, nr_calls, nr_resolved, nr_samples, nr_frames, nr_bad;
	uint32_t nr_threads;
};

static void sum_add(struct sum *sum, const struct vcpu *v)
{
	tree_fold(&sum->tree, &v->tree, &g.functions);
	jumps_fold(&sum->jumps, &v->jumps, &g.functions);
	sum->nr_insns += v->nr_insns;
	sum->nr_calls += v->nr_calls;
	sum->nr_resolved += v->nr_resolved;
	sum->nr_samples += v->nr_samples;
	sum->nr_frames += v->nr_frames;
	sum->nr_bad += v->nr_bad;
	sum->nr_threads++;
}

/*
 * A part of a function may be found after its nodes were added, by another thread: fold the sum
 * once more. A node's number is above its parent's, so one pass from the last node adds up totals.
 */
static void sum_finish(struct sum *sum)
{
	struct sum folded = *sum;
	uint32_t i;

	folded.tree = (struct tree){0};
	folded.jumps = (struct jumps){0};
	tree_fold(&folded.tree, &sum->tree, &g.functions);
	jumps_fold(&folded.jumps, &sum->jumps, &g.functions);
	tree_free(&sum->tree);
	free(sum->jumps.v);
	*sum = folded;
	sum->totals = need(calloc((size_t)sum->tree.nr + 1, sizeof(*sum->totals)));
	for (i = sum->tree.nr; i-- > 1;) {
		const struct node *node = tree_node(&sum->tree, i);
		uint64_t calls = node->activations - node->tails;

		sum->totals[i] += node->self;
		sum->totals[node->parent] += sum->totals[i];
		if (node->site == SITE_START || node->site == SITE_SIGNAL || !calls)
			continue;
		if (node->plt)
			jump_add(&sum->calls, node->site, node->function, 1,
				 node->plt < calls ? node->plt : calls);
		if (calls > node->plt)
			jump_add(&sum->calls, node->site, node->function, 0, calls - node->plt);
	}
}

static void places_write(FILE *out, const char *name, const struct places *places, bool kinds)
{
	uint32_t i;

	for (i = 1; i < places->nr; i++) {
		const struct place *p = &places->v[i];

		fprintf(out, "%s %u %zu %#" PRIx64, name, i, p->object ? p->object->index : 0,
			p->vaddr);
		if (kinds)
			fprintf(out, " %u %s", p->size, site_kinds[p->kind]);
		else if (p->owner)
			fprintf(out, " %u", function_whole(places, i));
		fputs("\n", out);
	}
}

static void edges_write(FILE *out, const struct jumps *jumps, bool tail)
{
	uint32_t i;

	for (i = 0; i < jumps->nr_slots; i++) {
		const struct jump *j = &jumps->v[i];

		if (j->site)
			fprintf(out, "edge %u %u %" PRIu64 "%s%s\n", j->site, j->function, j->count,
				tail ? " tail" : "", j->plt ? " plt" : "");
	}
}

static void totals_write(FILE *out, const struct sum *sum)
{
	const struct {
		const char *name;
		uint64_t value;
	} totals[] = {
		{"instructions", sum->nr_insns},
		{"calls", sum->nr_calls},
		{"resolved", sum->nr_resolved},
		{"threads", sum->nr_threads},
		{"signals", g.nr_signals},
		{"stacks", stacks.nr_made},
		{"dropped", stacks.nr_dropped},
		{"odd", g.nr_odd},
		{"samples", sum->nr_samples},
		{"frames", sum->nr_frames},
		{"bad", sum->nr_bad},
	};
	size_t i;

	for (i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
		fprintf(out, "total %s %" PRIu64 "\n", totals[i].name, totals[i].value);
}

static void sum_write(FILE *out, const struct sum *sum)
{
	size_t i;
	uint32_t id;

	fprintf(out, "contexts 1 %s\n", g.main_path);
	totals_write(out, sum);
	for (i = 0; i < objs.nr_objects; i++)
		fprintf(out, "object %zu %s\n", i, objs.objects[i]->path);
	mappings_read(g.main_path);
	for (i = 0; i < objs.nr_mappings; i++) {
		const struct mapping *m = &objs.mappings[i];

		if (m->start >= g.guest_base)
			fprintf(out, "map %#" PRIx64 " %#" PRIx64 " %#" PRIx64 " %zu\n",
				m->start - g.guest_base, m->end - g.guest_base, m->offset,
				m->object->index);
	}
	places_write(out, "site", &g.sites, true);
	places_write(out, "function", &g.functions, false);
	for (id = 1; id < sum->tree.nr; id++) {
		const struct node *node = tree_node(&sum->tree, id);

		fprintf(out,
			"node %u %u %u %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			"\n",
			id, node->parent, node->site, node->function, node->activations,
			node->tails, node->plt, node->self, sum->totals[id]);
	}
	edges_write(out, &sum->calls, false);
	edges_write(out, &sum->jumps, true);
	fputs("end\n", out);
}

#endif
