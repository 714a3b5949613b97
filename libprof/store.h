// SPDX-License-Identifier: Apache-2.0
/*
 * store - the SQLite database: all that daemon and editor share.
 *
 * Counts per (build-id, text hash, ip) and day; activity per program (application, library,
 * kernel; Table 3 of Morph, 1997); a ledger of samples emitted, attributed, unattributed by
 * reason, and lost. WAL mode; everything between mp_store_begin() and mp_store_commit() appears
 * at once or not at all, so after a crash the ledger still equals the counts.
 *
 * Time is kept in days (UTC). A module's last seven days are apart; what is older is one bucket,
 * and so is everything where the days would not fit in 64 KiB and a tenth of the module's text.
 * A bucket counts for @since_s when any of its days does: never too little, at times too much.
 *
 * A call outside of mp_store_begin() is a transaction of its own. A call that fails inside one
 * leaves it half done: roll back. One connection per thread.
 */
#ifndef MP_STORE_H
#define MP_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/err.h"
#include "libprof/id.h"
#include "libprof/ip_count.h"

struct mp_store;

enum mp_store_mode {
	MP_STORE_READ,	/* must exist; never written, works on a read-only file system */
	MP_STORE_WRITE, /* created and migrated as needed */
};

/*
 * mp_store_default_path - where the store is when no --db is given. Search order: $MORPH_DB, then
 * /var/lib/morph/morph.db as root, else $XDG_STATE_HOME/morph/morph.db, else
 * ~/.local/state/morph/morph.db. @make: create the directory (0755 root, 0700 user).
 */
int mp_store_default_path(char *buf, size_t size, bool make, struct mp_err *err);

/* Where the service has its database, and root's programs have theirs. */
#define MP_STORE_SERVICE_PATH "/var/lib/morph/morph.db"
/* The same for root as for an ordinary user: below $XDG_STATE_HOME or ~/.local/state. */
int mp_store_own_path(char *buf, size_t size, bool make, struct mp_err *err);

/*
 * mp_store_make_file - an empty file, where there is none yet: 0640 where we are a system's user, else
 * 0600. If we are root it belongs to whom the directory belongs, so that a service with a user of its
 * own finds no database there that it cannot write. Return: 0; -EPERM: another user's link leads there;
 * -errno.
 */
int mp_store_make_file(const char *path, struct mp_err *err);

/*
 * Return: 0, -ENOENT, -EACCES, -EBADMSG corrupt or not a store, -EPROTO newer schema, -ENOSPC, -EIO.
 */
int mp_store_open(const char *path, enum mp_store_mode mode, struct mp_store **out,
		  struct mp_err *err);
void mp_store_close(struct mp_store *store);

/* On a store for reading: one snapshot until commit or rollback. */
int mp_store_begin(struct mp_store *store, struct mp_err *err);
int mp_store_commit(struct mp_store *store, struct mp_err *err);
void mp_store_rollback(struct mp_store *store);

enum mp_module_kind {
	MP_MODULE_FILE,
	MP_MODULE_KERNEL,
	MP_MODULE_VDSO
};

struct mp_module {
	int64_t key; /* row id */
	struct mp_id id;
	enum mp_module_kind kind;
	char *path;		 /* last path seen: for people, never for identity */
	uint64_t text_size;	 /* bytes */
	uint64_t nr_samples;	 /* attributed in all, in the asked period */
	uint64_t nr_transfers;	 /* of control, counted by mp_store_add_edges(), likewise */
	int64_t first_s, last_s; /* unix seconds */
};

/* Find or add a module; sets *@key. */
int mp_store_put_module(struct mp_store *store, const struct mp_id *id, enum mp_module_kind kind,
			const char *path, uint64_t text_size, int64_t now_s, int64_t *key,
			struct mp_err *err);

/* Add @counts (strictly ascending vaddr) to the module's counts of the day that holds @when_s. */
int mp_store_add_counts(struct mp_store *store, int64_t module, int64_t when_s,
			const struct mp_ip_count *counts, size_t nr, struct mp_err *err);

/* Counts of a module since @since_s (0: all), ascending vaddr. Ownership: free(*@out).
 * Return: 0, -ENOENT no such module. */
int mp_store_read_counts(struct mp_store *store, int64_t module, int64_t since_s,
			 struct mp_ip_count **out, size_t *nr, struct mp_err *err);

/*
 * mp_store_is_exact - *@exact: whether what is kept of a module since @since_s (0: all) are
 * executions that were counted, one by one, and not samples of time (callgrind's, or those of an
 * instrumented copy; added by mp_store_add_count_span()). Direct combining adds them all alike, and
 * a sum is as good as the worst in it: counts and samples are samples, so are exact counts beside
 * sampled edges, and days that were folded together with sampled ones. A schema before the fourth
 * did not say: its counts are samples. False where there is nothing but edges, too.
 */
int mp_store_is_exact(struct mp_store *store, int64_t module, int64_t since_s, bool *exact,
		      struct mp_err *err);

/*
 * Edges are evidence beside the samples and not in the ledger. They have days of their own, folded
 * by the same rule as the counts and within a share of the database of the same size.
 * Add @edges (strictly ascending (from, to)) to the module's of the day of @when_s. Return: 0,
 * -ENOENT no such module, -EINVAL not ascending, or more mispredicted than counted.
 */
int mp_store_add_edges(struct mp_store *store, int64_t module, int64_t when_s,
		       const struct mp_edge_count *edges, size_t nr, struct mp_err *err);
/* Edges of a module since @since_s (0: all), ascending. None is no error: *@nr 0, *@out NULL.
 * Ownership: free(*@out). Return: 0, -ENOENT no such module. */
int mp_store_read_edges(struct mp_store *store, int64_t module, int64_t since_s,
			struct mp_edge_count **out, size_t *nr, struct mp_err *err);

int mp_store_find_module(struct mp_store *store, const struct mp_id *id, struct mp_module *out,
			 struct mp_err *err);
/* All modules, most samples first, then most transfers. Ownership: mp_store_free_modules(). */
int mp_store_list_modules(struct mp_store *store, int64_t since_s, struct mp_module **out,
			  size_t *nr, struct mp_err *err);
/* When the counts that @since_s asks for really begin (see above); 0: there are none. */
int mp_store_period_start(struct mp_store *store, int64_t since_s, int64_t *start_s,
			  struct mp_err *err);
void mp_store_free_modules(struct mp_module *modules, size_t nr);

/* Why a sample could not be attributed: counted, never dropped silently. */
enum mp_unattributed {
	MP_UNATTR_NO_PROCESS, /* sample of a process whose maps were never seen */
	MP_UNATTR_NO_MAPPING, /* no executable mapping holds the address */
	MP_UNATTR_ANONYMOUS,  /* JIT or other anonymous executable memory */
	MP_UNATTR_DELETED,    /* the file is gone and could not be read */
	MP_UNATTR_REPLACED,   /* the path now holds another file */
	MP_UNATTR_NAMESPACE,  /* the path is in another mount namespace and could not be reached */
	MP_UNATTR_UNREADABLE, /* the file could not be opened or parsed */
	MP_UNATTR_VDSO,
	MP_NR_UNATTR
};
const char *mp_unattributed_name(enum mp_unattributed why);

enum mp_lost {
	MP_LOST_RING_FULL, /* the kernel overwrote or refused records */
	MP_LOST_THROTTLED,
	MP_LOST_TORN, /* damaged part of a recorded stream */
	MP_LOST_NO_MEMORY,
	MP_NR_LOST
};
const char *mp_lost_name(enum mp_lost why);

/*
 * What became of samples that came with registers, in modules that number their paths. Each of
 * them is among the attributed as well.
 */
enum mp_path_fate {
	MP_PATH_DECODED,     /* counted by mp_store_add_paths() */
	MP_PATH_UNDECODABLE, /* no path has the number that was in the register */
	MP_PATH_STUB,	     /* in added code, between two blocks */
	MP_PATH_OUTSIDE,     /* in code without numbers */
	MP_PATH_NO_MEMORY,
	MP_NR_PATH_FATES
};
const char *mp_path_fate_name(enum mp_path_fate fate);

/* emitted = attributed + sum(unattributed) + sum(lost), always. */
struct mp_ledger {
	uint64_t emitted;
	uint64_t attributed; /* kernel samples included */
	uint64_t unattributed[MP_NR_UNATTR];
	uint64_t lost[MP_NR_LOST];
	uint64_t paths[MP_NR_PATH_FATES]; /* beside the sum */
};

/* Where a program's time goes: Table 3 of the paper. */
struct mp_activity {
	uint64_t app, lib, kernel, other; /* samples; other: unattributed user samples */
};

/* One collector's run, so that `status` can say what collected, how, and why that one. */
struct mp_session {
	int64_t key;
	int64_t start_s, last_s;
	char collector[16]; /* "perf", "replay", "bpf", "kmod", "import" */
	char why[320];	    /* why this one */
	char event[32];	    /* "cpu-clock", "cycles", ... */
	uint32_t rate_hz;
	struct mp_ledger ledger;
};

int mp_store_start_session(struct mp_store *store, struct mp_session *session, struct mp_err *err);
/* Add @delta to the session's ledger (same transaction as the counts it speaks of).
 * Return: 0, -EINVAL where @delta does not balance. */
int mp_store_add_ledger(struct mp_store *store, int64_t session, int64_t now_s,
			const struct mp_ledger *delta, struct mp_err *err);
/* Ownership: free(*@out). Newest first. */
int mp_store_list_sessions(struct mp_store *store, struct mp_session **out, size_t *nr,
			   struct mp_err *err);

int mp_store_add_activity(struct mp_store *store, int64_t program_module, int64_t when_s,
			  const struct mp_activity *delta, struct mp_err *err);
struct mp_program_activity {
	int64_t module;
	struct mp_activity activity;
};
int mp_store_list_activity(struct mp_store *store, int64_t since_s,
			   struct mp_program_activity **out, size_t *nr, struct mp_err *err);

/* Every chunk is sound, and the sum of all stored counts equals the ledgers' attributed.
 * Return: 0 or -EBADMSG with a message. */
int mp_store_check(struct mp_store *store, struct mp_err *err);
uint64_t mp_store_size_bytes(struct mp_store *store);

#endif
