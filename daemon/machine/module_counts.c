// SPDX-License-Identifier: Apache-2.0
/* module_counts - reads a module's file and counts; see module_counts.h. */
#include "daemon/machine/module_counts.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/code/way_evidence.h"

void md_module_counts_fini(struct md_module_counts *c)
{
	mp_counts_fini(&c->counts);
	mp_profile_free(c->profile);
	free(c->edges);
	free(c->ips);
	md_code_close(&c->code);
}

int md_module_counts_read(struct mp_store *store, const struct mp_module *module, int64_t since_s,
			  struct md_module_counts *c, struct mp_err *err)
{
	bool exact = false;
	int r;

	memset(c, 0, sizeof(*c));
	r = md_code_open(module, NULL, true, &c->code, err);
	if (!r)
		r = mp_store_read_ip_counts(store, module->key, since_s, &c->ips, &c->nr_ips, err);
	if (!r)
		r = mp_store_read_edges(store, module->key, since_s, &c->edges, &c->nr_edges, err);
	if (!r)
		r = mp_store_is_exact(store, module->key, since_s, &exact, err);
	if (!r)
		r = mp_profile_build(c->code.cfg, c->ips, c->nr_ips, &c->profile, err);
	if (!r && c->nr_edges)
		r = mp_profile_add_edges(c->profile, c->code.cfg, c->edges, c->nr_edges, err);
	if (!r)
		r = md_way_evidence_add(store, module->key, since_s, c->code.cfg, c->profile, err);
	if (r)
		return r;
	c->profile->exact = exact;
	return mp_counts_build(c->code.cfg, c->profile, NULL, &c->counts, NULL, err);
}
