// SPDX-License-Identifier: Apache-2.0
/* outputs - the queue of files to confirm; see outputs.h. */
#include "daemon/module/outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "daemon/module/ask_confirm.h"
#include "daemon/module/outputs_find.h"

#define QUEUE_MAX 32
/*
 * Any user can create files that must be verified. Limit the time spent: this much at once, and
 * a twentieth of the time that passes.
 */
#define ALLOWANCE_NS	UINT64_C(120000000000)
#define ALLOWANCE_SHARE 20

struct question {
	struct mp_output output;
	uint32_t module; /* index; it may have been reused for another module */
	uint64_t since_ns;
	char *path;
	int fd;
};

struct md_outputs {
	struct mp_store *const *store;
	struct question queue[QUEUE_MAX]; /* [0] is being asked if confirm has a process */
	size_t nr;
	struct md_confirm confirm;
	uint64_t began_ns, spent_ns;
	struct mp_output *confirmed; /* not in the list yet */
	size_t nr_confirmed;
};

struct md_outputs *md_outputs_new(struct mp_store *const *store)
{
	struct md_outputs *outputs = calloc(1, sizeof(*outputs));

	if (!outputs)
		return NULL;
	outputs->store = store;
	outputs->began_ns = mp_now_ns();
	return outputs;
}

static void end_question(struct md_outputs *outputs, size_t i)
{
	close(outputs->queue[i].fd);
	free(outputs->queue[i].path);
	outputs->nr--;
	memmove(&outputs->queue[i], &outputs->queue[i + 1],
		(outputs->nr - i) * sizeof(outputs->queue[0]));
}

void md_outputs_free(struct md_outputs *outputs)
{
	if (!outputs)
		return;
	md_confirm_stop(&outputs->confirm);
	while (outputs->nr)
		end_question(outputs, outputs->nr - 1);
	free(outputs->confirmed);
	free(outputs);
}

static struct mp_output output_of(const struct md_module *module)
{
	return (struct mp_output){.id = module->id,
				  .original = module->map->original,
				  .paths_hash = module->paths ? module->paths->hash : 0};
}

static bool is_listed(struct mp_store *store, const struct mp_output *output)
{
	bool has = false;

	return store && !mp_store_has_output(store, output, &has, NULL) && has;
}

/* ---- questions ----------------------------------------------------------------------------- */

static bool has_allowance(const struct md_outputs *outputs)
{
	uint64_t passed = mp_now_ns() - outputs->began_ns;

	return outputs->spent_ns < ALLOWANCE_NS + passed / ALLOWANCE_SHARE;
}

/* Return: false: no candidate for the original is here, or no process can be started. */
static bool ask(struct md_outputs *outputs, const struct question *q)
{
	int fds[MP_CONFIRM_MAX], ret = -1;
	size_t nr =
		md_outputs_find(*outputs->store, &q->output.original, q->path, fds, MP_CONFIRM_MAX);

	if (nr)
		ret = md_confirm_start(&outputs->confirm, q->fd, fds, nr);
	while (nr)
		close(fds[--nr]);
	return !ret;
}

void md_outputs_check_module(struct md_outputs *outputs, struct md_module *module)
{
	struct question *q = &outputs->queue[outputs->nr];
	struct mp_output output;

	if (!module->map || module->fd < 0)
		return;
	output = output_of(module);
	if (module->map_belief == MD_MAP_UNDECIDED && is_listed(*outputs->store, &output))
		module->map_belief = MD_MAP_BELIEVED;
	if (module->map_belief == MD_MAP_UNDECIDED && outputs->nr < QUEUE_MAX &&
	    has_allowance(outputs)) {
		*q = (struct question){.output = output,
				       .module = module->index,
				       .since_ns = mp_now_ns(),
				       .path = strdup(module->path),
				       .fd = module->fd};
		module->fd = -1;
		outputs->nr++;
		if (!q->path)
			end_question(outputs, outputs->nr - 1);
		return;
	}
	if (module->map_belief == MD_MAP_UNDECIDED)
		module->map_belief = MD_MAP_REFUSED;
	close(module->fd);
	module->fd = -1;
}

static void remember(struct md_outputs *outputs, const struct mp_output *output)
{
	void *bigger = realloc(outputs->confirmed,
			       (outputs->nr_confirmed + 1) * sizeof(*outputs->confirmed));

	if (!bigger)
		return; /* it is confirmed again later */
	outputs->confirmed = bigger;
	outputs->confirmed[outputs->nr_confirmed++] = *output;
}

static bool is_answer(const struct mp_confirm_answer *got, const struct mp_output *asked)
{
	return mp_id_equal(&got->output, &asked->id) &&
	       mp_id_equal(&got->original, &asked->original) &&
	       got->paths_hash == asked->paths_hash;
}

struct md_module *md_outputs_next_decision(struct md_outputs *outputs, struct md_modcache *mc,
					   int timeout_ms)
{
	while (outputs->nr) {
		const struct question *q = &outputs->queue[0];
		struct mp_output output = q->output, now;
		struct md_module *module;
		bool yes = false;

		if (!outputs->confirm.pid) {
			if (ask(outputs, q))
				continue;
		} else if (!md_confirm_poll(&outputs->confirm, timeout_ms, &yes)) {
			return NULL;
		} else {
			outputs->spent_ns += mp_now_ns() - outputs->confirm.began_ns;
			yes = yes && is_answer(&outputs->confirm.got, &output);
		}
		module = md_modcache_module(mc, q->module);
		end_question(outputs, 0);
		if (yes)
			remember(outputs, &output);
		if (!module || !module->map)
			continue;
		now = output_of(module);
		if (!mp_id_equal(&now.id, &output.id) ||
		    !mp_id_equal(&now.original, &output.original) ||
		    now.paths_hash != output.paths_hash || module->map_belief != MD_MAP_UNDECIDED)
			continue;
		module->map_belief = yes ? MD_MAP_BELIEVED : MD_MAP_REFUSED;
		return module;
	}
	return NULL;
}

int md_outputs_wait_ms(const struct md_outputs *outputs)
{
	uint64_t waited, ms = 0, left;
	size_t i;

	for (i = 0; i < outputs->nr; i++) {
		waited = (mp_now_ns() - outputs->queue[i].since_ns) / 1000000;
		left = waited < MD_OUTPUTS_WAIT_MS ? MD_OUTPUTS_WAIT_MS - waited : 0;
		ms = left > ms ? left : ms;
	}
	return (int)ms;
}

void md_outputs_check_list(struct md_outputs *outputs, struct md_modcache *mc)
{
	uint32_t i;

	for (i = 1; *outputs->store && i < md_modcache_end(mc); i++) {
		struct md_module *module = md_modcache_module(mc, i);
		struct mp_output output;

		if (!module || !module->map || module->map_belief != MD_MAP_UNDECIDED)
			continue;
		output = output_of(module);
		if (is_listed(*outputs->store, &output))
			module->map_belief = MD_MAP_BELIEVED;
	}
}

void md_outputs_save(struct md_outputs *outputs)
{
	size_t i;

	for (i = 0; *outputs->store && i < outputs->nr_confirmed; i++)
		if (mp_store_put_output(*outputs->store, &outputs->confirmed[i], NULL))
			return;
	outputs->nr_confirmed = 0;
}

bool md_outputs_confirm(struct mp_store *store, int fd, const char *path,
			const struct mp_output *output)
{
	struct md_outputs outputs = {.store = &store};
	struct question q = {.output = *output, .path = (char *)path, .fd = fd};
	bool yes = false;

	if (is_listed(store, output))
		return true;
	if (!ask(&outputs, &q))
		return false;
	while (!md_confirm_poll(&outputs.confirm, 1000, &yes))
		;
	return yes && is_answer(&outputs.confirm.got, output);
}
