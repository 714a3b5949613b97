// SPDX-License-Identifier: Apache-2.0
/*
 * export_calls_pprof - writes pprof's profile.proto with stacks: a location for each function, without
 * addresses, since contexts are added up by function.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/export/export_calls.h"
#include "daemon/export/pprof_fields.h"
#include "daemon/export/protobuf.h"

/* The first strings of the table. */
enum {
	STRING_NONE,
	STRING_SAMPLES,
	STRING_COUNT,
	STRING_CPU,
	STRING_NANOSECONDS,
	NR_STRINGS,
};
static const char *const strings[NR_STRINGS] = {"", "samples", "count", "cpu", "nanoseconds"};

struct pprof {
	struct md_export *e;
	const struct md_calls *calls;
	struct md_gzip *gz;
	struct md_pb top, inner, line;
	uint64_t nr_strings, nr_locations;
	uint64_t *location_of; /* by node; 0: none yet */
	uint64_t *stack;
	bool failed;
};

static void write_top(struct pprof *p)
{
	p->failed = p->failed || p->top.failed || md_gzip_write(p->gz, p->top.bytes, p->top.nr);
	md_pb_reset(&p->top);
}

/* Writes @p->inner as a field of the profile. */
static void put_field(struct pprof *p, uint32_t field)
{
	md_pb_message(&p->top, field, &p->inner);
	p->failed = p->failed || p->inner.failed;
	write_top(p);
	md_pb_reset(&p->inner);
}

static uint64_t put_string(struct pprof *p, const char *text)
{
	md_pb_bytes(&p->top, PROFILE_STRING, text, strlen(text));
	write_top(p);
	return p->nr_strings++;
}

static void put_type(struct pprof *p, uint32_t field, uint64_t type, uint64_t unit)
{
	md_pb_uint(&p->inner, VALUE_TYPE, type);
	md_pb_uint(&p->inner, VALUE_UNIT, unit);
	put_field(p, field);
}

/* Return: the location of @node, which is written now if there is none. */
static uint64_t location_of(struct pprof *p, uint32_t node)
{
	const struct mp_module *module = md_calls_module(p->calls, node);
	uint64_t name, file, id;

	if (p->location_of[node])
		return p->location_of[node];
	name = put_string(p, md_export_calls_name(p->calls, node));
	file = module ? put_string(p, module->path) : STRING_NONE;
	id = ++p->nr_locations;
	md_pb_uint(&p->inner, FUNCTION_ID, id);
	md_pb_uint(&p->inner, FUNCTION_NAME, name);
	md_pb_uint(&p->inner, FUNCTION_SYSTEM_NAME, name);
	md_pb_uint(&p->inner, FUNCTION_FILE, file);
	put_field(p, PROFILE_FUNCTION);
	md_pb_uint(&p->line, LINE_FUNCTION, id);
	md_pb_uint(&p->inner, LOCATION_ID, id);
	md_pb_message(&p->inner, LOCATION_LINE, &p->line);
	put_field(p, PROFILE_LOCATION);
	md_pb_reset(&p->line);
	p->location_of[node] = id;
	return id;
}

static int put_path(void *arg, const uint32_t *path, size_t nr)
{
	struct pprof *p = arg;
	const struct mp_context_node *node = &p->calls->tree.nodes[path[nr - 1]];
	const uint64_t values[2] = {node->self, node->self_ns};

	/* The innermost frame first. */
	for (size_t i = 0; i < nr; i++)
		p->stack[i] = location_of(p, path[nr - 1 - i]);
	md_pb_packed(&p->inner, SAMPLE_LOCATION, p->stack, nr);
	md_pb_packed(&p->inner, SAMPLE_VALUE, values, 2);
	put_field(p, PROFILE_SAMPLE);
	p->e->nr_written += node->self;
	return p->failed ? -EIO : 0;
}

/* Gives all nodes of one function the same location: the first node's, which is made here. */
static int share_locations(struct pprof *p)
{
	const struct mp_context_tree *tree = &p->calls->tree;
	uint32_t nr_slots = 16, i, k;
	uint32_t *slots;

	while (nr_slots < 2 * tree->nr_nodes)
		nr_slots *= 2;
	slots = calloc(nr_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (i = 1; i < tree->nr_nodes; i++) {
		const struct mp_context_node *a = &tree->nodes[i], *b;

		k = (uint32_t)((a->vaddr + a->module * 77u + a->kind) * 0x9e3779b97f4a7c15u >> 32) &
		    (nr_slots - 1);
		for (; slots[k]; k = (k + 1) & (nr_slots - 1)) {
			b = &tree->nodes[slots[k]];
			if (a->vaddr == b->vaddr && a->module == b->module && a->kind == b->kind)
				break;
		}
		if (!slots[k])
			slots[k] = i;
		p->location_of[i] = location_of(p, slots[k]);
	}
	free(slots);
	return 0;
}

static int write_all(struct pprof *p)
{
	uint64_t period_ns = p->calls->tree.nodes[0].total ? p->calls->tree.nodes[0].total_ns /
								     p->calls->tree.nodes[0].total
							   : 0;
	int r;

	for (size_t i = 0; i < NR_STRINGS; i++)
		put_string(p, strings[i]);
	put_type(p, PROFILE_SAMPLE_TYPE, STRING_SAMPLES, STRING_COUNT);
	put_type(p, PROFILE_SAMPLE_TYPE, STRING_CPU, STRING_NANOSECONDS);
	put_type(p, PROFILE_PERIOD_TYPE, STRING_CPU, STRING_NANOSECONDS);
	md_pb_uint(&p->top, PROFILE_PERIOD, period_ns);
	write_top(p);
	r = share_locations(p);
	if (!r)
		r = md_calls_each_path(p->calls, put_path, p);
	p->failed = p->failed || md_gzip_finish(p->gz);
	return r == -ENOMEM ? r : 0;
}

int md_export_calls_pprof(struct md_export *e, const struct md_calls *calls, struct mp_err *err)
{
	struct pprof p = {
		.e = e,
		.calls = calls,
		.location_of = calloc(calls->tree.nr_nodes, sizeof(*p.location_of)),
		.stack = calloc(calls->tree.nr_nodes, sizeof(*p.stack)),
	};
	int r = p.location_of && p.stack && !md_gzip_open(e->out, &p.gz) ? 0 : -ENOMEM;

	if (!r)
		r = write_all(&p);
	/* The function that closes @e->out reports write errors. */
	if (!r && p.failed && !ferror(e->out))
		r = -ENOMEM;
	md_pb_fini(&p.top);
	md_pb_fini(&p.inner);
	md_pb_fini(&p.line);
	md_gzip_free(p.gz);
	free(p.location_of);
	free(p.stack);
	return r ? mp_err_code(err, -r) : 0;
}
