// SPDX-License-Identifier: Apache-2.0
/*
 * store_fleet - what a fleet's server knows of this database, and which counts it lacks.
 *
 * An *epoch* is the history of one database, under a random name. All epochs of a host add up on
 * the server. A batch of rows continues the history: it names the token of the batch before, and
 * brings a new one. So a server that has another token has seen another copy of this database: it
 * was restored from a backup, or cloned. Such a copy begins an epoch of its own, which sends only
 * what is counted from then on (fleet_base).
 *
 * A row holds all counts of one chunk and one bucket of days, or the tree of a program and bucket: sending
 * it again changes nothing.
 * Sequence: collect a batch, send it, then confirm, or revert if the answer was lost. Then the server
 * tells which token it has. Called by morph-fleet push.
 */
#ifndef MP_STORE_FLEET_H
#define MP_STORE_FLEET_H

#include "libprof/base/machine_id.h"
#include "libprof/store/store.h"

/* Values are those of the database and of the server. */
enum mp_fleet_kind {
	MP_FLEET_COUNTS,
	MP_FLEET_EDGES,
	MP_FLEET_PATHS,
	MP_FLEET_CONTEXTS,
	MP_FLEET_CALLS,
	MP_NR_FLEET_KINDS
};
/* Kinds up to this one have entries of one size, by address. */
#define MP_NR_FLEET_SERIES (MP_FLEET_EDGES + 1)
/* When paths, contexts and calls are sent: they are large, and each change is sent as a whole. */
enum mp_fleet_when {
	MP_FLEET_DAILY,	 /* those of a day once the day is over */
	MP_FLEET_ALWAYS, /* with each push */
	MP_FLEET_NEVER
};

#define MP_FLEET_EPOCH_BYTES   16
#define MP_FLEET_MACHINE_BYTES MP_MACHINE_BYTES
/* The server's limits for one row and one call. */
#define MP_FLEET_ROW_BYTES_MAX	 (1 << 20)
#define MP_FLEET_BATCH_BYTES_MAX (1 << 20)
/*
 * A tree that is sent once a day is folded to so many bytes, a quarter of what the store keeps: the sum
 * over many hosts is folded to that anyway.
 */
#define MP_FLEET_TREE_BYTES (16 << 10)
/* Rows of a batch, which the server decodes and checks. A batch costs it as much as some twenty rows. */
#define MP_FLEET_BATCH_ROWS_MAX 512

struct mp_fleet_epoch {
	uint8_t name[MP_FLEET_EPOCH_BYTES];
	bool is_same_machine;  /* as when the epoch began, or the database was made */
	bool is_machine_known; /* where that was */
	int64_t seq, token;    /* of the last confirmed batch; 0: none */
};

/* The epoch of the database; without one, *@has is false. @machine: MP_FLEET_MACHINE_BYTES bytes. */
int mp_fleet_epoch_read(struct mp_store *store, const uint8_t *machine, bool *has,
			struct mp_fleet_epoch *out, struct mp_err *err);
/*
 * Begins an epoch. @fork: another epoch has sent, or will send, what the database holds now: leave
 * that out.
 */
int mp_fleet_epoch_begin(struct mp_store *store, const uint8_t *machine, bool fork,
			 struct mp_err *err);
/*
 * *@is: did this database send a batch with @token after the last confirmed one, and got no answer?
 */
int mp_fleet_is_pending(struct mp_store *store, int64_t token, bool *is, struct mp_err *err);
/* The server has less than was confirmed, as if from a backup: @seq and @token. Sends all again. */
int mp_fleet_epoch_send_again(struct mp_store *store, int64_t seq, int64_t token,
			      struct mp_err *err);

struct mp_fleet_row {
	uint32_t module; /* index in the batch */
	enum mp_fleet_kind kind;
	int64_t first_day, last_day;
	int64_t chunk; /* first address of its text >> MP_CHUNK_SHIFT; 0 for a tree */
	bool exact;
	uint64_t total; /* sum of its counts */
	size_t at,
		size; /* in the batch's bytes, as store_codec, fleet_paths and context_codec say */
};

struct mp_fleet_batch {
	int64_t from; /* key of the first module to look at; a new batch continues there */
	bool ended;   /* there are no more modules */
	bool alone;   /* set by the caller: rows of one module only */
	enum mp_fleet_when when; /* set by the caller, with @today */
	/*
	 * Set by the caller: @sparing leaves out counts of @today that can wait until the day is over,
	 * see store_fleet_collect.c. @today is a day of this machine's clock.
	 */
	bool sparing;
	int64_t today;
	int64_t seq, token, previous; /* @token 0: nothing to send */
	struct mp_module *modules;
	struct mp_fleet_row *rows;
	uint8_t *bytes;
	size_t nr_modules, max_modules, nr_rows, max_rows, nr_bytes, max_bytes;
	size_t nr_too_large; /* rows that no server would take, left out */
};

/*
 * mp_fleet_collect - fills @batch, whose arrays are reused, with rows that the server lacks, at most
 * @max_bytes of them; notes durably that its token is on its way. Tokens are never used twice: a copy
 * of the database that knows a token has all that the server got with it.
 * Return: 0, -EINVAL (there is no epoch), -errno.
 */
int mp_fleet_collect(struct mp_store *store, struct mp_fleet_batch *batch, size_t max_bytes,
		     struct mp_err *err);
void mp_fleet_batch_fini(struct mp_fleet_batch *batch);
/* The server has @token, which is the next one. */
int mp_fleet_confirm(struct mp_store *store, int64_t token, struct mp_err *err);
/* It is not known whether the server has the rows that were not confirmed. They will be sent again. */
int mp_fleet_revert(struct mp_store *store, struct mp_err *err);

#endif
