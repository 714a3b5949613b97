// SPDX-License-Identifier: Apache-2.0
/*
 * store_audits_step - the step of the schema that adds audits inside running programs. Hashes
 * have the bits of the unsigned values. Estimates and bounds are logarithms; a bound may be
 * infinite. vaddr is 0 if it is not known. Included by store_schema only.
 */
#ifndef MP_STORE_AUDITS_STEP_H
#define MP_STORE_AUDITS_STEP_H

/* clang-format off */
#define MP_STORE_STEP_AUDITS                                                                       \
	"CREATE TABLE program_audit(key INTEGER PRIMARY KEY, table_hash INTEGER NOT NULL,"         \
	" build_id BLOB NOT NULL, text_hash INTEGER NOT NULL, original_build_id BLOB NOT NULL,"    \
	" original_text_hash INTEGER NOT NULL, path TEXT NOT NULL, machine TEXT NOT NULL,"         \
	" alpha REAL NOT NULL, start_s INTEGER NOT NULL, last_s INTEGER NOT NULL,"                 \
	" nr_functions INTEGER NOT NULL, nr_lost INTEGER NOT NULL, nr_torn INTEGER NOT NULL,"      \
	" nr_foreign INTEGER NOT NULL);"                                                           \
	"CREATE TABLE program_audit_effect(audit INTEGER NOT NULL, function INTEGER NOT NULL,"     \
	" vaddr INTEGER NOT NULL, verdict INTEGER NOT NULL, earlier INTEGER NOT NULL,"             \
	" pairs INTEGER NOT NULL, decided_at INTEGER NOT NULL, preempted INTEGER NOT NULL,"        \
	" abandoned INTEGER NOT NULL, signalled INTEGER NOT NULL, empty INTEGER NOT NULL,"         \
	" alone INTEGER NOT NULL, wrong INTEGER NOT NULL, estimate REAL NOT NULL,"                 \
	" lowest REAL NOT NULL, highest REAL NOT NULL, PRIMARY KEY(audit, function))"              \
	" WITHOUT ROWID;"                                                                          \
	"CREATE TABLE program_audit_point(audit INTEGER NOT NULL, function INTEGER NOT NULL,"      \
	" point INTEGER NOT NULL, pairs INTEGER NOT NULL, ticks_a INTEGER NOT NULL,"               \
	" rounds_a INTEGER NOT NULL, ticks_b INTEGER NOT NULL, rounds_b INTEGER NOT NULL,"         \
	" PRIMARY KEY(audit, function, point)) WITHOUT ROWID;"
/* clang-format on */

#endif
