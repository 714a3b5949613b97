// SPDX-License-Identifier: Apache-2.0
/* entry_samples - looks at the last call of each calling context; see entry_samples.h. */
#include "libprof/callgraph/entry_samples.h"

#include <errno.h>
#include <stdlib.h>

/* Bytes of a direct call. One with prefixes calls __tls_get_addr, which is no function of the file. */
#define CALL_BYTES 5

static int begin(struct mp_entry_samples *samples, const struct mp_cfg *cfg)
{
	size_t nr = (size_t)cfg->nr_funcs + 1;

	samples->direct = calloc(nr, sizeof(*samples->direct));
	samples->other = calloc(nr, sizeof(*samples->other));
	samples->jumped_to = calloc(nr, sizeof(*samples->jumped_to));
	if (!samples->direct || !samples->other || !samples->jumped_to)
		return -ENOMEM;
	for (uint32_t i = 0; i < cfg->nr_calls; i++)
		if (cfg->calls[i].tail && cfg->calls[i].callee != MP_NONE)
			samples->jumped_to[cfg->calls[i].callee] = true;
	return 0;
}

void mp_entry_samples_fini(struct mp_entry_samples *samples)
{
	free(samples->direct);
	free(samples->other);
	free(samples->jumped_to);
	*samples = (struct mp_entry_samples){0};
}

/* Return: the direct call that returns to @next, or NULL. */
static const struct mp_call *call_before(const struct mp_cfg *cfg, uint64_t next)
{
	uint32_t block = mp_cfg_block_at(cfg, next - 1), c;

	if (block == MP_NONE)
		return NULL;
	c = mp_cfg_call_from(cfg, 0, cfg->nr_calls, block);
	for (; c < cfg->nr_calls && cfg->calls[c].block == block; c++)
		if (!cfg->calls[c].tail && mp_call_insn(cfg, &cfg->calls[c]) + CALL_BYTES == next)
			return &cfg->calls[c];
	return NULL;
}

/*
 * A stack does not have a function that ended with a jump. If the call led to another function, that one,
 * or a further one, jumped to @f: directly, if any function does.
 */
static bool is_direct(const struct mp_entry_samples *samples, const struct mp_cfg *cfg,
		      uint64_t next, uint32_t f)
{
	const struct mp_call *call = call_before(cfg, next);

	return call && call->callee != MP_NONE && (call->callee == f || samples->jumped_to[f]);
}

static void add_node(struct mp_entry_samples *samples, const struct mp_cfg *cfg, uint64_t module,
		     const struct mp_context_tree *tree, uint32_t node)
{
	const struct mp_context_node *n = &tree->nodes[node];
	const struct mp_context_node *above = &tree->nodes[n->parent];
	uint32_t f;

	if (n->kind != MP_CONTEXT_FUNCTION || !n->self || tree->modules[n->module] != module)
		return;
	/* An interrupted place and a truncated stack do not show the caller. */
	if (n->parent && above->kind != MP_CONTEXT_CALL)
		return;
	f = mp_cfg_func_at(cfg, n->vaddr);
	if (f == MP_NONE)
		return;
	if (n->parent && tree->modules[above->module] == module &&
	    is_direct(samples, cfg, above->vaddr, f))
		samples->direct[f] += (double)n->self;
	else
		samples->other[f] += (double)n->self;
}

int mp_entry_samples_add(struct mp_entry_samples *samples, const struct mp_cfg *cfg,
			 uint64_t module, const struct mp_context_tree *tree)
{
	if (!samples->direct && begin(samples, cfg))
		return -ENOMEM;
	for (uint32_t i = 1; i < tree->nr_nodes; i++)
		add_node(samples, cfg, module, tree, i);
	return 0;
}
