// SPDX-License-Identifier: Apache-2.0
/* contexts - from a stack of addresses to a path in a tree; see contexts.h. */
#include "daemon/context/contexts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/context/last_paths.h"
#include "libprof/base/grow.h"

#define KERNEL_BIT (UINT64_C(1) << 63)
/* A record's callers, the function and the node of truncated stacks. */
#define STEPS_MAX (MORPH_RECORD_SIZE_MAX / sizeof(uint64_t) + 2)

struct program {
	uint32_t module; /* index */
	struct mp_context_tree tree;
};

struct md_contexts {
	struct program *programs;
	size_t nr, max;
	uint64_t period_ns;
	uint32_t max_nodes;
	/* the sample that was noted last */
	uint32_t tgid, tid;
	uint64_t ip;
	bool has_sample;
	struct md_last_paths *last;
	uint64_t path[STEPS_MAX]; /* user addresses of the sample, innermost first */
	struct mp_context_step steps[STEPS_MAX];
	size_t nr_steps; /* of them, the last ones */
};

struct md_contexts *md_contexts_new(uint32_t max_nodes)
{
	struct md_contexts *contexts = calloc(1, sizeof(*contexts));

	if (!contexts)
		return NULL;
	contexts->max_nodes = max_nodes;
	contexts->last = md_last_paths_new();
	if (!contexts->last) {
		free(contexts);
		return NULL;
	}
	return contexts;
}

void md_contexts_clear(struct md_contexts *contexts)
{
	while (contexts->nr)
		mp_context_tree_fini(&contexts->programs[--contexts->nr].tree);
}

void md_contexts_free(struct md_contexts *contexts)
{
	if (!contexts)
		return;
	md_contexts_clear(contexts);
	md_last_paths_free(contexts->last);
	free(contexts->programs);
	free(contexts);
}

void md_contexts_set_period(struct md_contexts *contexts, uint64_t period_ns)
{
	contexts->period_ns = period_ns;
}

void md_contexts_note_sample(struct md_contexts *contexts, const struct morph_task *task,
			     uint64_t ip)
{
	contexts->tgid = task->tgid;
	contexts->tid = task->tid;
	contexts->ip = ip;
	contexts->has_sample = true;
}

/* ---- from an address to a step -------------------------------------------------------------- */

/* One address of a stack, and the module that it lies in. */
struct place {
	struct mp_context_key key;
	const struct md_module *module; /* NULL: no module */
	bool is_signal;			/* frame of a signal handler's return */
};

/* @ip: the code; @is_call: it is a return address. */
static struct place find_place(const struct md_space *space, const struct md_modcache *modcache,
			       uint64_t ip, bool is_call)
{
	/* A call that never returns may be the last instruction of its function. */
	uint64_t at = ip - is_call;
	const struct md_mapping *m = md_space_find(space, at);
	struct place place = {.key = {0, MP_CONTEXT_UNMAPPED, MP_CONTEXT_CALL}};

	if (ip & KERNEL_BIT)
		place.key.vaddr = MP_CONTEXT_KERNEL;
	else if (m && m->why != MD_MAPPED)
		place.key.vaddr = m->why;
	else if (m)
		place.module = md_modcache_module(modcache, m->module);
	if (place.module) {
		place.key.module = m->module;
		place.key.vaddr = ip + m->bias;
		if (place.module->rows.nr_rows)
			place.is_signal = mp_rows_find(&place.module->rows, at + m->bias)->flags &
					  MP_ROW_SIGNAL;
	}
	if (!is_call)
		place.key.kind = MP_CONTEXT_AT;
	return place;
}

/* Return: where the code begins that replaces a call and has the address @place; 0: there is none. */
static uint64_t inlined_start(const struct place *place)
{
	const struct md_module *module = place->module;
	const struct mp_map *map = module && module->map_belief != MD_MAP_REFUSED ? module->map
										  : NULL;
	const struct mp_map_call *call = map ? mp_map_call_at(map, place->key.vaddr) : NULL;

	return call ? mp_map_piece(map, call->first).new_vaddr : 0;
}

/*
 * Makes the address of a sample that of its function, as far as unwind rows tell. Rows of code that replaces a call
 * are those of the calling function; translate() makes two functions of it.
 */
static void make_function(struct place *place)
{
	const struct mp_rows *rows = place->module ? &place->module->rows : NULL;
	uint64_t start = inlined_start(place);

	place->key.kind = MP_CONTEXT_FUNCTION;
	if (start)
		place->key.vaddr = start;
	if (start || !rows || !rows->nr_rows)
		return;
	/* One FDE covers all entries of a PLT. */
	if (mp_rows_find(rows, place->key.vaddr)->cfa == MP_ROW_PLT)
		place->key.vaddr &= ~UINT64_C(15);
	else if (mp_rows_entry(rows, place->key.vaddr, &start))
		place->key.vaddr = start;
}

/* ---- what is certainly new ------------------------------------------------------------------ */

/* Finds the start of the function that runs at @ip. Return: false if rows do not tell. */
static bool find_function(const struct md_space *space, const struct md_modcache *modcache,
			  uint64_t ip, bool is_call, struct mp_context_key *function)
{
	struct place place = find_place(space, modcache, ip, is_call);
	const struct mp_rows *rows = place.module ? &place.module->rows : NULL;
	const struct mp_row_rule *entry;
	uint64_t at = place.key.vaddr - is_call, start;

	if (!rows || !rows->nr_rows || mp_rows_find(rows, at)->cfa == MP_ROW_PLT ||
	    !mp_rows_entry(rows, at, &start))
		return false;
	/* A part of a function begins with the frame that the function has made. */
	entry = mp_rows_find(rows, start);
	*function = (struct mp_context_key){place.key.module, start, MP_CONTEXT_FUNCTION};
	return entry->cfa_reg == MORPH_REG_RSP && entry->cfa_off == 8;
}

/*
 * A call through a pointer may enter another function each time. Return: true if the call that returns
 * to the innermost of @nr_old addresses that look old runs another function than at the last sample.
 */
static bool is_other_function(const struct md_contexts *c, const struct md_space *space,
			      const struct md_modcache *modcache, const struct morph_task *task,
			      size_t nr, size_t nr_old)
{
	struct mp_context_key now, then;
	bool was_sample;
	uint64_t ip;

	if (!nr_old || nr_old >= nr)
		return false;
	ip = md_last_paths_inner(c->last, task, c->path, nr, nr_old, &was_sample);
	return ip &&
	       find_function(space, modcache, c->path[nr - nr_old - 1], nr - nr_old > 1, &now) &&
	       find_function(space, modcache, ip, !was_sample, &then) &&
	       (now.module != then.module || now.vaddr != then.vaddr);
}

/* Return: how many of the callers, the innermost ones, are not known to look old. */
static size_t count_new(struct md_contexts *c, const struct md_space *space,
			const struct md_modcache *modcache, const struct morph_stack *stack)
{
	const struct morph_task *task = &stack->task;
	size_t nr = (task->record.size - sizeof(*stack)) / sizeof(stack->ips[0]), nr_path = 0;
	size_t nr_old = MORPH_STACK_OLD(task->flags), nr_new = 0;
	bool is_complete = (task->flags & MORPH_STACK_STOP) == MORPH_STACK_BOTTOM;

	if (!(task->flags & MORPH_STACK_USER_IP))
		c->path[nr_path++] = c->ip;
	memcpy(c->path + nr_path, stack->ips, nr * sizeof(stack->ips[0]));
	nr_path += nr;
	if (task->flags & MORPH_STACK_AGED && nr_old <= nr) {
		nr_new = nr - nr_old;
		if (is_complete && is_other_function(c, space, modcache, task, nr_path, nr_old))
			nr_new++;
	}
	md_last_paths_put(c->last, task, c->path, is_complete ? nr_path : 0);
	return nr_new;
}

/*
 * Makes the path of the sample, from its end to its beginning, in the last steps. Return: its
 * length.
 */
static size_t make_path(struct md_contexts *c, const struct md_space *space,
			const struct md_modcache *modcache, const struct morph_stack *stack)
{
	uint32_t flags = stack->task.flags, stop = flags & MORPH_STACK_STOP;
	size_t nr = (stack->task.record.size - sizeof(*stack)) / sizeof(stack->ips[0]);
	size_t from = STEPS_MAX;
	/* the calls that return to ips[0] to ips[nr_new - 1] are certainly new */
	size_t nr_new = count_new(c, space, modcache, stack);
	bool is_kernel = flags & MORPH_STACK_USER_IP, is_exact;
	struct place place = find_place(space, modcache, c->ip, false);

	is_exact = is_kernel || place.is_signal;
	make_function(&place);
	/* An activation is new if the call that will return to its caller is. */
	c->steps[--from] =
		(struct mp_context_step){.key = place.key, .is_new = nr_new && !is_kernel};
	for (size_t i = 0; i < nr; i++) {
		place = find_place(space, modcache, stack->ips[i], !is_exact);
		c->steps[--from] = (struct mp_context_step){place.key, i + 1 < nr_new};
		is_exact = place.is_signal;
	}
	if (stop != MORPH_STACK_BOTTOM)
		c->steps[--from].key = (struct mp_context_key){0, stop, MP_CONTEXT_TRUNCATED};
	return STEPS_MAX - from;
}

/* ---- trees ---------------------------------------------------------------------------------- */

static struct mp_context_tree *tree_of(struct md_contexts *c, uint32_t module)
{
	for (size_t i = c->nr; i--;)
		if (c->programs[i].module == module)
			return &c->programs[i].tree;
	if (mp_grow(c->programs, c->max, c->nr + 1))
		return NULL;
	if (mp_context_tree_init(&c->programs[c->nr].tree))
		return NULL;
	c->programs[c->nr].module = module;
	return &c->programs[c->nr++].tree;
}

/* Folds an eighth of the largest tree if all together have too many nodes. */
static void stay_within(struct md_contexts *c)
{
	struct mp_context_tree *largest = NULL;
	uint64_t nr = 0;

	for (size_t i = 0; i < c->nr; i++) {
		struct mp_context_tree *tree = &c->programs[i].tree;

		nr += tree->nr_nodes;
		if (!largest || tree->nr_nodes > largest->nr_nodes)
			largest = tree;
	}
	/* Without memory for folding, the next sample tries again. */
	if (nr > c->max_nodes)
		(void)mp_context_fold(largest, largest->nr_nodes / 8 * 7);
}

bool md_contexts_add(struct md_contexts *c, struct md_procmap *procmap,
		     const struct md_modcache *modcache, const struct morph_stack *stack)
{
	const struct morph_task *task = &stack->task;
	struct md_space *space = md_procmap_find(procmap, task->tgid, task->exec_id);
	uint32_t program = space ? md_space_program(space) : 0;
	struct mp_context_tree *tree;
	size_t nr;

	if (!program || !c->has_sample || c->tgid != task->tgid || c->tid != task->tid)
		return false;
	c->has_sample = false;
	tree = tree_of(c, program);
	if (!tree)
		return false;
	nr = make_path(c, space, modcache, stack);
	c->nr_steps = nr;
	if (mp_context_add(tree, c->steps + STEPS_MAX - nr, nr, 1, c->period_ns))
		return false;
	stay_within(c);
	return true;
}

/* Is the address in a stub, of an output whose map is believed? */
static bool is_stub(const struct place *place)
{
	const struct mp_map *map = place->module ? md_module_map(place->module) : NULL;
	uint32_t piece = map ? mp_map_piece_at(map, place->key.vaddr) : 0;

	return map && piece != map->nr_pieces && !mp_map_piece(map, piece).old_size;
}

/*
 * Only an output with a known original says which function a stub belongs to. The stub's address stays
 * until then, since unwind rows of an output do not tell its functions apart.
 */
int md_contexts_add_call(struct md_contexts *c, const struct md_space *space,
			 const struct md_modcache *modcache, uint64_t caller, uint64_t function,
			 uint64_t nr, uint64_t period)
{
	struct place to = find_place(space, modcache, function - 1, false);
	struct mp_context_step steps[2] = {{.key = find_place(space, modcache, caller, true).key},
					   {.key = to.key}};
	struct mp_context_tree *tree;

	steps[1].key.kind = MP_CONTEXT_FUNCTION;
	if (!is_stub(&to) || period > UINT64_MAX / nr)
		return -ENOENT;
	tree = tree_of(c, md_space_program(space));
	if (!tree || mp_context_add(tree, steps, 2, nr, nr * period))
		return -ENOMEM;
	stay_within(c);
	return 0;
}

const struct mp_context_step *md_contexts_last_path(const struct md_contexts *c, size_t *nr)
{
	*nr = c->nr_steps;
	return c->steps + STEPS_MAX - c->nr_steps;
}

uint64_t md_contexts_nr(const struct md_contexts *contexts)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < contexts->nr; i++)
		nr += contexts->programs[i].tree.nodes[0].total;
	return nr;
}

bool md_contexts_is_nearly_full(const struct md_contexts *contexts)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < contexts->nr; i++)
		nr += contexts->programs[i].tree.nr_nodes;
	return nr > contexts->max_nodes / 8 * 7;
}

/* ---- for the store -------------------------------------------------------------------------- */

size_t md_contexts_nr_programs(const struct md_contexts *contexts)
{
	return contexts->nr;
}

struct translation {
	const struct md_modcache *modcache;
	bool *is_named;
	bool failed;
};

/*
 * Code in place of a call has the frame of the calling function alone. The original has a frame more there: the called
 * function's, which would return behind the call.
 */
static bool translate(void *arg, struct mp_context_key *key, struct mp_context_key *above)
{
	struct translation *t = arg;
	uint32_t index = (uint32_t)key->module;
	const struct mp_map_call *call = NULL;
	const struct md_module *module;
	const struct mp_map *map;

	if (!index)
		return false;
	module = md_modcache_module(t->modcache, index);
	map = module ? md_module_map(module) : NULL;
	if (map) {
		/* The code behind a call may lie elsewhere in the original. The call itself says where. */
		uint64_t behind = key->kind == MP_CONTEXT_CALL, at = key->vaddr - behind;

		index = module->original;
		module = md_modcache_module(t->modcache, index);
		call = mp_map_call_at(map, at);
		key->vaddr = call && key->kind == MP_CONTEXT_FUNCTION
				     ? call->callee
				     : mp_map_original(map, at) + behind;
	}
	t->failed = t->failed || !module;
	if (module && t->is_named)
		t->is_named[index] = true;
	key->module = module ? mp_context_module_of(&module->id) : 0;
	if (call)
		*above = (struct mp_context_key){key->module, call->back, MP_CONTEXT_CALL};
	return call;
}

int md_contexts_tree(const struct md_contexts *contexts, size_t i,
		     const struct md_modcache *modcache, uint32_t *program, bool *is_named,
		     struct mp_context_tree *out)
{
	struct translation t = {.modcache = modcache, .is_named = is_named};
	int ret = mp_context_tree_init(out);

	if (ret)
		return ret;
	*program = contexts->programs[i].module;
	ret = mp_context_add_tree(out, 0, &contexts->programs[i].tree, translate, &t);
	if (!ret && t.failed)
		ret = -EBADMSG;
	if (ret)
		mp_context_tree_fini(out);
	return ret;
}
