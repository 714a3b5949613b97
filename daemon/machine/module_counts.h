// SPDX-License-Identifier: Apache-2.0
/*
 * module_counts - the inferred counts of one module, from the store and its file. Called by machine
 * for estimates, and by the report for pictures.
 */
#ifndef MD_MODULE_COUNTS_H
#define MD_MODULE_COUNTS_H

#include "daemon/code/stats_code.h"
#include "libprof/infer/counts.h"
#include "libprof/infer/profile.h"

struct md_module_counts {
	struct md_code code;
	struct mp_ip_count *ips;
	struct mp_edge_count *edges;
	size_t nr_ips, nr_edges;
	struct mp_profile *profile;
	struct mp_counts counts;
};

/* Return: 0, -errno with a message. Ownership: md_module_counts_fini(@out), after an error too. */
int md_module_counts_read(struct mp_store *store, const struct mp_module *module, int64_t since_s,
			  struct md_module_counts *out, struct mp_err *err);
void md_module_counts_fini(struct md_module_counts *counts);

#endif
