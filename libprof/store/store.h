// SPDX-License-Identifier: Apache-2.0
/*
 * store - the SQLite database that daemon and editor share.
 *
 * It holds counts per (build-id, text hash, ip) and day; activity per program (application,
 * library, kernel; Table 3 of Morph, 1997); and a ledger of samples: emitted, attributed,
 * unattributed by reason, and lost. WAL mode. All changes between mp_store_begin() and
 * mp_store_commit() appear at once or not at all, so after a crash the ledger still equals the
 * counts.
 *
 * Time is kept in days (UTC). A module's last seven days are kept apart; older ones are one bucket.
 * More days are folded if they would exceed 64 KiB and a tenth of the module's text. A period that
 * begins at @since_s includes a bucket if it includes any of the bucket's days, so it may have too
 * many samples, and never too few.
 *
 * A call outside of mp_store_begin() is a transaction of its own. A call that fails inside a
 * transaction leaves it half done: roll back. One connection per thread.
 */
#ifndef MP_STORE_H
#define MP_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/defaults.h"
#include "libprof/base/err.h"
#include "libprof/elf/id.h"
#include "libprof/base/ip_count.h"
#include "libprof/unwind/walk_stop.h"

/* Times are unix times; a day is a day of UTC. */

struct mp_store;

enum mp_store_mode {
	MP_STORE_READ,	/* must exist; never written, works on a read-only file system */
	MP_STORE_WRITE, /* created and migrated as needed */
};

/*
 * mp_store_default_path - the path of the store without --db. Search order: $MORPH_DB, then
 * /var/lib/morph/morph.db as root, else $XDG_STATE_HOME/morph/morph.db, else
 * ~/.local/state/morph/morph.db. @make: create the directory (0755 root, 0700 user).
 */
int mp_store_default_path(char *buf, size_t size, bool make, struct mp_err *err);

/* The database of the service, and of programs that root runs. */
#define MP_STORE_SERVICE_PATH "/var/lib/morph/morph.db"
/* The path of a user's own database, for root, too: below $XDG_STATE_HOME or ~/.local/state. */
int mp_store_own_path(char *buf, size_t size, bool make, struct mp_err *err);

/*
 * mp_store_make_file - makes an empty file if there is none: 0640 for a system user, else
 * 0600. Root gives it to the owner of the directory, so that a service with a user of its
 * own can write it.
 * Return: 0; -EPERM: another user's link leads there; -errno.
 */
int mp_store_make_file(const char *path, struct mp_err *err);
/*
 * mp_store_file_open - as open(), for a database and the files beside it, in a directory of any user: follows no
 * symbolic link of another user, and opens no pipe or device, nor a file with a second name that the directory's
 * owner may have given it.
 */
int mp_store_file_open(const char *path, int flags, int mode);

/*
 * mp_store_check_place - could a database be opened or made at @path for writing? Before anything is
 * made beside @path, such as a lock file. Return: 0; as mp_store_open(). No database at @path may be
 * open in this process.
 */
int mp_store_check_place(const char *path, struct mp_err *err);
/*
 * mp_store_open - opens the database at @path. Return: 0, -ENOENT, -EACCES, -EBADMSG
 * (corrupt or not a store), -EPROTO (newer schema), -ENOSPC, -EIO.
 */
int mp_store_open(const char *path, enum mp_store_mode mode, struct mp_store **out,
		  struct mp_err *err);
void mp_store_close(struct mp_store *store);

/* In a store opened for reading: one snapshot until commit or rollback. */
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
	char *path;	     /* last path seen: for people, never for identity */
	uint64_t text_size;  /* bytes */
	uint64_t nr_samples; /* all attributed samples of the requested period */
	/* transfers of control, counted by mp_store_add_edges(), of the same period */
	uint64_t nr_transfers;
	int64_t first_s, last_s; /* unix seconds */
};

/* Finds or adds a module; sets *@key. */
int mp_store_put_module(struct mp_store *store, const struct mp_id *id, enum mp_module_kind kind,
			const char *path, uint64_t text_size, int64_t now_s, int64_t *key,
			struct mp_err *err);

/* Adds @counts (strictly ascending vaddr) to the module's counts of the day that holds @when_s. */
int mp_store_add_ip_counts(struct mp_store *store, int64_t module, int64_t when_s,
			   const struct mp_ip_count *counts, size_t nr, struct mp_err *err);

/*
 * Counts of a module since @since_s (0: all), ascending vaddr. Ownership: free(*@out).
 * Return: 0, -ENOENT (no such module).
 */
int mp_store_read_ip_counts(struct mp_store *store, int64_t module, int64_t since_s,
			    struct mp_ip_count **out, size_t *nr, struct mp_err *err);

/*
 * mp_store_is_exact - *@exact: true if the counts of a module since @since_s (0: all) are
 * executions that were counted one by one (by callgrind or an instrumented copy, and added
 * by mp_store_add_ip_count_span()), and not samples of time.
 *
 * Direct combining adds both kinds, and one inexact part makes the sum inexact: counts with
 * samples, exact counts with sampled edges, or exact days folded with sampled ones. Counts
 * from a schema before the fourth are samples, since those schemas did not record it. False
 * if there are only edges.
 */
int mp_store_is_exact(struct mp_store *store, int64_t module, int64_t since_s, bool *exact,
		      struct mp_err *err);

/*
 * mp_store_add_edges - adds @edges (strictly ascending (from, to)) to the module's edges of
 * the day of @when_s.
 * Edges are evidence beside the samples and not in the ledger. They have days of their own,
 * folded by the same rule as the counts, within a share of the database of the same size.
 * Return: 0, -ENOENT (no such module), -EINVAL (not ascending, or more mispredicted than
 * counted).
 */
int mp_store_add_edges(struct mp_store *store, int64_t module, int64_t when_s,
		       const struct mp_edge_count *edges, size_t nr, struct mp_err *err);
/*
 * Edges of a module since @since_s (0: all), ascending. Having none is no error: *@nr 0,
 * *@out NULL.
 * Ownership: free(*@out). Return: 0, -ENOENT (no such module).
 */
int mp_store_read_edges(struct mp_store *store, int64_t module, int64_t since_s,
			struct mp_edge_count **out, size_t *nr, struct mp_err *err);

int mp_store_find_module(struct mp_store *store, const struct mp_id *id, struct mp_module *out,
			 struct mp_err *err);
/* All modules, most samples first, then most transfers. Ownership: mp_store_free_modules(). */
int mp_store_list_modules(struct mp_store *store, int64_t since_s, struct mp_module **out,
			  size_t *nr, struct mp_err *err);
/* *@start_s: real start of the counts for @since_s (see above); 0: there are no counts. */
int mp_store_period_start(struct mp_store *store, int64_t since_s, int64_t *start_s,
			  struct mp_err *err);
void mp_store_free_modules(struct mp_module *modules, size_t nr);

/*
 * Reasons why a sample could not be attributed. Such samples are counted, never dropped
 * silently.
 */
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
 * Fates of samples with registers, in modules that number their paths. Each of them also
 * counts as attributed.
 */
enum mp_path_fate {
	MP_PATH_DECODED,     /* counted by mp_store_add_paths() */
	MP_PATH_UNDECODABLE, /* no path has the number in the register */
	MP_PATH_STUB,	     /* in added code, between two blocks */
	MP_PATH_OUTSIDE,     /* in code without numbers */
	MP_PATH_NO_MEMORY,
	MP_NR_PATH_FATES
};
const char *mp_path_fate_name(enum mp_path_fate fate);

/* emitted = attributed + sum(unattributed) + sum(lost), always. */
struct mp_ledger {
	uint64_t emitted;
	uint64_t attributed; /* includes kernel samples */
	uint64_t unattributed[MP_NR_UNATTR];
	uint64_t lost[MP_NR_LOST];
	uint64_t paths[MP_NR_PATH_FATES]; /* not part of the sum */
	/* stacks of samples, by why their walks ended; not part of the sum */
	uint64_t stacks[MP_NR_WALK_STOP];
	uint64_t contexts; /* stacks that the trees of store_contexts hold; not part of the sum */
	uint64_t calls;	   /* sampled calls that its other trees hold; not part of the sum */
};

/* Samples of a program by kind of code: Table 3 of the paper. */
struct mp_activity {
	uint64_t app, lib, kernel, other; /* samples; other: unattributed user samples */
};

/* One run of a collector. `status` shows what collected, how, and why that collector. */
struct mp_session {
	int64_t key;
	int64_t start_s, last_s;
	char collector[16]; /* "perf", "replay", "bpf", "kmod", "import" */
	char why[320];	    /* reason for this collector */
	char event[32];	    /* "cpu-clock", "cycles", ... */
	uint32_t rate_hz;
	struct mp_ledger ledger;
};

int mp_store_start_session(struct mp_store *store, struct mp_session *session, struct mp_err *err);
/*
 * Adds @delta to the session's ledger, in the same transaction as its counts.
 * Return: 0, -EINVAL if @delta does not balance.
 */
int mp_store_add_ledger(struct mp_store *store, int64_t session, int64_t now_s,
			const struct mp_ledger *delta, struct mp_err *err);
/* Ownership: free(*@out). Newest first. */
int mp_store_list_sessions(struct mp_store *store, struct mp_session **out, size_t *nr,
			   struct mp_err *err);

/*
 * mp_store_was_changed - did another connection change the database since the last call? The first call
 * says yes. Call it in a transaction: then nobody changes it until its end.
 */
bool mp_store_was_changed(struct mp_store *store);

int mp_store_add_activity(struct mp_store *store, int64_t program_module, int64_t when_s,
			  const struct mp_activity *delta, struct mp_err *err);
struct mp_program_activity {
	int64_t module;
	struct mp_activity activity;
};
int mp_store_list_activity(struct mp_store *store, int64_t since_s,
			   struct mp_program_activity **out, size_t *nr, struct mp_err *err);

/*
 * Checks that every chunk is sound, and that the sum of all stored counts equals the
 * ledgers' attributed samples.
 * Return: 0, or -EBADMSG with a message.
 */
int mp_store_check(struct mp_store *store, struct mp_err *err);
uint64_t mp_store_size_bytes(struct mp_store *store);

#endif
