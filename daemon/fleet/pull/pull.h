// SPDX-License-Identifier: Apache-2.0
/*
 * pull - reads the fleet's profile of a module. The server has a row for each host; pull_sum adds them
 * up. Decides what is asked for. Called by the commands.
 */
#ifndef MD_FLEET_PULL_H
#define MD_FLEET_PULL_H

#include <libpq-fe.h>
#include <stdbool.h>

#include "daemon/fleet/pull/pull_sum.h"
#include "libprof/store/fleet/fleet_base.h"

/* A module that the fleet knows, as the server says. */
struct md_pull_module {
	struct mp_id id;
	enum mp_module_kind kind;
	uint64_t text_size;
	char *name; /* hashed or plain; "": none */
};

struct md_pull_request {
	int32_t until_day;	  /* counts of later days are left out */
	double quantile;	  /* of the hosts' totals: no host counts with more; 1: no cap */
	bool without_self;	  /* leave out what this host sent */
	bool counts_only;	  /* leave out paths, contexts and calls */
	const struct mp_elf *elf; /* the module's file, or NULL */
};

struct md_pull_stats {
	uint64_t samples, transfers, paths, contexts, calls;
	int64_t nr_hosts; /* with samples, or else with transfers */
	uint64_t nr_rows, nr_bad, outside;
	uint64_t left_out; /* counts for which there was no room */
};

/*
 * Finds modules whose build-id begins with the @size bytes @build_id. Ownership: free each name,
 * free(*@out). Return: 0; -ENOENT: there is none; as md_pg_run().
 */
int md_pull_find(PGconn *conn, const uint8_t *build_id, size_t size, struct md_pull_module **out,
		 size_t *nr, struct mp_err *err);
/* The modules with the most samples, at most @limit. */
int md_pull_top(PGconn *conn, int32_t until_day, int limit, struct md_pull_module **out, size_t *nr,
		struct mp_err *err);
void md_pull_free_modules(struct md_pull_module *modules, size_t nr);

/*
 * md_pull_profile - reads the profile of @out->id: its counts, edges, paths, trees and day. Ownership:
 * md_pull_free_profile(@out), after a success. Return: 0; -ENOENT: the fleet has no counts of it; -EPROTO, -EOVERFLOW:
 * what the server says is impossible; as md_pg_run().
 */
int md_pull_profile(PGconn *conn, const struct md_pull_request *request,
		    struct mp_fleet_profile *out, struct md_pull_stats *stats, struct mp_err *err);
/* Frees what was read. */
void md_pull_free_profile(struct mp_fleet_profile *profile);

#endif
