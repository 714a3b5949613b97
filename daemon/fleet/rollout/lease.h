// SPDX-License-Identifier: Apache-2.0
/*
 * lease - which of the fleet's builds this host has, and until when it may have them. The file
 * fleet-leases.json in the worker's directory of state keeps this, so that a host without its server
 * knows when to undo a build. Only the owner of that directory can write it. Called by install and renew.
 */
#ifndef MD_LEASE_H
#define MD_LEASE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/fleet/module_key.h"
#include "daemon/fleet/pg.h"
#include "libprof/base/err.h"
#include "libprof/store/jobs/store_jobs.h"

#define MD_LEASE_OPTIONS_MAX 1000
#define MD_LEASE_VERSION_MAX 200

struct md_lease {
	char path[PATH_MAX];
	struct mp_id id;
	char options[MD_LEASE_OPTIONS_MAX + 1], version[MD_LEASE_VERSION_MAX + 1];
	int32_t release;
	char layout[MP_JOB_HASH_MAX]; /* hash of the build's bytes; "": not known */
	int64_t granted_s,
		expires_s; /* expires_s 0: it was released to all hosts, and has no end */
};

/* All leases of a host, with the file locked. Starts as zeros. */
struct md_leases {
	struct md_lease *list;
	size_t nr;
	int lock;
	char file[PATH_MAX];
};

/*
 * md_leases_open - reads the leases in @state_dir, and keeps other processes out until they are closed.
 * Return: 0; -EPERM: others can write in @state_dir; -EBADMSG: damaged; -errno.
 */
int md_leases_open(const char *state_dir, struct md_leases *out, struct mp_err *err);
void md_leases_close(struct md_leases *leases);
/* Adds @lease, or replaces that of its path, and writes the file. Return: 0, -errno. */
int md_leases_put(struct md_leases *leases, const struct md_lease *lease, struct mp_err *err);
/* Takes the lease of @path out, and writes the file. */
int md_leases_remove(struct md_leases *leases, const char *path, struct mp_err *err);
/*
 * Is the lease over at @now_s? A clock that stands before the time of the grant was set back, and tells
 * nothing: then it is over, too.
 */
bool md_lease_is_over(const struct md_lease *lease, int64_t now_s);

enum md_offer {
	MD_OFFER_LEASE,	    /* for a time */
	MD_OFFER_KEEP,	    /* for ever: the build is released to all hosts */
	MD_OFFER_WAIT,	    /* no new lease */
	MD_OFFER_NO,	    /* this host is not chosen */
	MD_OFFER_WITHDRAWN, /* no host may have it */
};

/*
 * md_lease_ask - asks about the build of @lease, and sets its times as the answer says. @cause: the server's
 * reason. Return: 0; -EPROTO: a damaged answer; as md_pg_run().
 */
int md_lease_ask(PGconn *conn, struct md_lease *lease, int64_t now_s, enum md_offer *answer,
		 char *cause, size_t size, struct mp_err *err);

#endif
