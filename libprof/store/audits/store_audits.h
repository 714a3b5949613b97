// SPDX-License-Identifier: Apache-2.0
/*
 * store_audits - audits inside running programs: which version of each function was faster, and
 * by how much.
 *
 * An audit is kept under the hash of the table of audited functions (audit_table), under the
 * identities of the file that ran and of its original, as far as the collector found that file,
 * and under the processor. Functions have addresses in the original and no names, as counts do. Of each
 * table, the newest MP_AUDITS_KEPT audits are kept.
 */
#ifndef MP_STORE_AUDITS_H
#define MP_STORE_AUDITS_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/audit/program_audit.h"
#include "libprof/store/store.h"

#define MP_AUDITS_KEPT 16

struct mp_stored_effect {
	uint64_t vaddr; /* of the function, in the original; 0: not known */
	struct mp_audit_effect effect;
};

struct mp_stored_audit {
	int64_t key; /* 0: not stored yet */
	uint64_t table_hash;
	struct mp_id id, original; /* all zero: not known */
	char *path;		   /* of the file that ran; "": not known */
	char machine[96];	   /* model of the processor */
	double alpha;		   /* permitted error of the whole audit */
	int64_t start_s, last_s;
	uint64_t lost, torn;		  /* windows, see audit_ring.h */
	uint64_t nr_foreign;		  /* windows of functions that there are not */
	struct mp_stored_effect *effects; /* of each function, in the order of the table */
	uint32_t nr_functions;
};

/*
 * mp_store_put_audit - stores @audit, or replaces its earlier state; sets @audit->key.
 * Return: 0, -EINVAL (no function, or too many), -errno of the store.
 */
int mp_store_put_audit(struct mp_store *store, struct mp_stored_audit *audit, struct mp_err *err);
/* All audits, newest first. Ownership: mp_store_free_audits(). Return: 0, -errno. */
int mp_store_list_audits(struct mp_store *store, struct mp_stored_audit **out, size_t *nr,
			 struct mp_err *err);
void mp_store_free_audits(struct mp_stored_audit *audits, size_t nr);

/* For mp_store_merge(): adds the audits of @in that @out does not have. */
int mp_store_merge_audits(struct mp_store *out, struct mp_store *in, struct mp_err *err);
/* For mp_store_check(): reads all audits, and finds rows without an audit. Return: 0, -EBADMSG. */
int mp_store_check_audits(struct mp_store *store, struct mp_err *err);

#endif
