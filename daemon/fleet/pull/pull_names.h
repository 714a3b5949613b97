// SPDX-License-Identifier: Apache-2.0
/*
 * pull_names - finds the modules that pulled trees of calling contexts name by hashes, so that functions of
 * libraries have names. Decides where to look: in the database itself, then in this machine's store, which
 * knows paths, then on the server. Called by pull_command.
 */
#ifndef MD_FLEET_PULL_NAMES_H
#define MD_FLEET_PULL_NAMES_H

#include <libpq-fe.h>

#include "libprof/context/context_tree.h"
#include "libprof/store/store.h"

/* Starts as zeros. */
struct md_pull_names {
	uint64_t *hashes; /* after md_pull_names_find(): those of modules that nobody knows */
	size_t nr, max;
};

void md_pull_names_fini(struct md_pull_names *names);
/* Notes the modules of @tree, which may be zeros. Return: 0, -ENOMEM. */
int md_pull_names_want(struct md_pull_names *names, const struct mp_context_tree *tree);
/*
 * Adds the modules to @store that it does not have. @local: this machine's store, or NULL. Return: 0, -errno;
 * as md_fleet_fail().
 */
int md_pull_names_find(struct md_pull_names *names, PGconn *conn, struct mp_store *local,
		       struct mp_store *store, struct mp_err *err);

#endif
