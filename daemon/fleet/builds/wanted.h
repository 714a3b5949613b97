// SPDX-License-Identifier: Apache-2.0
/*
 * wanted - a host's side of builds in the database: asks which builds the host should have, makes the output of a plan,
 * reports what became of it. Checks all that the server says. Called by install.
 */
#ifndef MD_FLEET_WANTED_H
#define MD_FLEET_WANTED_H

#include <stdbool.h>

#include "daemon/fleet/module_key.h"
#include "daemon/fleet/pg.h"
#include "daemon/fleet/whole_file.h"
#include "libprof/base/err.h"

/* More than any plan (editor/optimize/plan_file.h): the server's own limit is lower. */
#define MD_PLAN_SIZE_MAX (UINT64_C(64) << 20)

/* The build of a module that the server wants this host to install or to undo. */
struct md_wanted {
	bool undo; /* else install */
	struct mp_id id;
	char options[1001], version[201];
	int32_t release;
	uint64_t plan_size;
	uint8_t output_hash[MD_SHA256_SIZE]; /* of the builder's output */
};

/*
 * md_wanted_ask - what to do with the @nr modules, at most 1000. Modules with nothing to do are left out.
 * Ownership: free(*@out). Return: 0; -EPROTO: the server gives a damaged answer; as md_pg_run().
 */
int md_wanted_ask(PGconn *conn, const struct mp_id *modules, size_t nr, struct md_wanted **out,
		  size_t *nr_out, struct mp_err *err);
/*
 * md_wanted_make - fetches the plan, and has this host's own morph-optimize make the output from @original and verify it.
 * Writes it to @path, which is nobody else's, and its hash to @hash. Return: 0; -EPERM: the output does not verify; -ENOEXEC:
 * the plan is damaged, or does not fit this file; -ESTALE: the build was withdrawn meanwhile; -EPROTO: its size is not the
 * one that was told; else the server is gone, or this host has a fault.
 */
int md_wanted_make(PGconn *conn, const struct md_wanted *wanted, const char *original,
		   const char *path, uint8_t hash[MD_SHA256_SIZE], struct mp_err *err);
/* @state: as in fleet.build_host. @hash: of the output that this host has made; NULL: none. */
int md_wanted_report(PGconn *conn, const struct md_wanted *wanted, const char *state,
		     const char *detail, const uint8_t *hash, struct mp_err *err);

#endif
