// SPDX-License-Identifier: Apache-2.0
/* graph_modules - opens and infers modules; see graph_modules.h. */
#include "daemon/calls/graph_modules.h"
#include "daemon/code/way_evidence.h"
#include "libprof/base/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int md_graph_module_open(struct md_graph_module *m, const char *binary,
			 void (*note)(void *arg, const char *message), void *arg,
			 struct mp_err *err)
{
	struct mp_err why = {0};
	size_t nr;
	int r = md_code_open(m->module, binary, true, &m->code, &why);

	if (r && binary && !mp_err_is_failure(r))
		r = md_code_open(m->module, NULL, true, &m->code, &why);
	if (mp_err_is_failure(r)) {
		*err = why;
		return r;
	}
	if (r) {
		if (m->module->kind == MP_MODULE_FILE)
			note(arg, why.msg);
		return 0;
	}
	m->is_open = true;
	nr = (size_t)m->code.cfg->nr_funcs + 1;
	m->has_samples = calloc(nr, sizeof(*m->has_samples));
	m->self = calloc(nr, sizeof(*m->self));
	m->self_of_all = calloc(nr, sizeof(*m->self_of_all));
	m->scale = calloc(nr, sizeof(*m->scale));
	m->function_ids = malloc(nr * sizeof(*m->function_ids));
	if (!m->has_samples || !m->self || !m->self_of_all || !m->scale || !m->function_ids)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < nr; i++)
		m->function_ids[i] = MP_NONE;
	return 0;
}

void md_graph_module_fini(struct md_graph_module *m)
{
	mp_counts_fini(&m->counts);
	if (m->is_open)
		md_code_close(&m->code);
	free(m->sites.sites);
	free(m->pointed);
	free(m->targets);
	free(m->site_ids);
	free(m->function_ids);
	free(m->scale);
	free(m->self_of_all);
	free(m->self);
	free(m->has_samples);
	*m = (struct md_graph_module){0};
}

static int infer(struct md_graph_module *m, struct mp_store *store, int64_t since_s,
		 struct mp_err *err)
{
	struct mp_profile *profile = NULL;
	struct mp_edge_count *edges = NULL;
	struct mp_ip_count *ips = NULL;
	size_t nr_ips = 0, nr_edges = 0;
	bool exact = false;
	int r = mp_store_read_ip_counts(store, m->module->key, since_s, &ips, &nr_ips, err);

	if (!r)
		r = mp_store_read_edges(store, m->module->key, since_s, &edges, &nr_edges, err);
	if (!r)
		r = mp_store_is_exact(store, m->module->key, since_s, &exact, err);
	if (!r)
		r = mp_profile_build(m->code.cfg, ips, nr_ips, &profile, err);
	if (!r && nr_edges)
		r = mp_profile_add_edges(profile, m->code.cfg, edges, nr_edges, err);
	if (!r)
		r = md_way_evidence_add(store, m->module->key, since_s, m->code.cfg, profile, err);
	if (!r) {
		profile->exact = exact;
		r = mp_counts_build(m->code.cfg, profile, NULL, &m->counts, NULL, err);
	}
	m->has_counts = !r && (nr_ips || nr_edges);
	mp_profile_free(profile);
	free(edges);
	free(ips);
	return r;
}

void md_graph_module_add_executed(const struct md_graph_module *m, double *samples, double *insns)
{
	const struct mp_cfg *cfg = m->code.cfg;

	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct mp_func *func = &cfg->funcs[f];

		*samples += m->self_of_all[f];
		for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
			*insns += m->counts.block[b] * cfg->blocks[b].nr_insns;
	}
}

/* The part of a module's counts that is the graph's programs', as the trees have it. */
void md_graph_module_scale(struct md_graph_module *m, double unit)
{
	const struct mp_cfg *cfg = m->code.cfg;
	double self = 0, all = 0;

	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		self += m->self[f];
		all += m->self_of_all[f];
	}
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		double part = m->self_of_all[f] > 0 ? m->self[f] / m->self_of_all[f]
						    : (all > 0 ? self / all : 1);

		m->scale[f] = unit * part;
	}
}

static void find_samples(struct md_graph_module *m)
{
	const struct mp_cfg *cfg = m->code.cfg;

	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		for (uint32_t b = cfg->funcs[f].first_block;
		     b < cfg->funcs[f].first_block + cfg->funcs[f].nr_blocks; b++)
			m->has_samples[f] = m->has_samples[f] || m->counts.block[b] > 0;
}

int md_graph_module_count(struct md_graph_module *m, struct mp_store *store, int64_t since_s,
			  struct mp_err *err)
{
	const struct mp_cfg *cfg = m->code.cfg;
	int r = infer(m, store, since_s, err);

	if (r)
		return r;
	find_samples(m);
	r = mp_call_sites_find(cfg, &m->sites);
	if (!r) {
		m->site_ids = malloc((m->sites.nr + 1) * sizeof(*m->site_ids));
		m->targets = calloc(m->sites.nr + (size_t)1, sizeof(*m->targets));
		r = m->site_ids && m->targets ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; !r && i < m->sites.nr; i++)
		m->site_ids[i] = MP_NONE;
	return r ? mp_err_code(err, -r) : 0;
}

uint32_t md_graph_function_at(const struct md_graph_module *m, uint64_t vaddr)
{
	uint32_t f = m->is_open ? mp_cfg_func_at(m->code.cfg, vaddr) : MP_NONE;

	return f != MP_NONE && m->code.cfg->funcs[f].problem != MP_PROBLEM_SPECIAL ? f : MP_NONE;
}

uint32_t md_graph_first_site(const struct md_graph_module *m, uint64_t vaddr)
{
	return mp_search(i, 0, m->sites.nr, m->sites.sites[i].vaddr < vaddr);
}

uint32_t md_graph_site_before(const struct md_graph_module *m, uint64_t next)
{
	uint32_t i = md_graph_first_site(m, next);

	return i && m->sites.sites[i - 1].next == next &&
			       m->sites.sites[i - 1].kind <= MP_CALL_INDIRECT
		       ? i - 1
		       : MP_NONE;
}
