// SPDX-License-Identifier: Apache-2.0
/*
 * store_jobs_step - the step of the schema that adds what morph-worker does: jobs, history,
 * rejected layouts (the table is called shunned up to schema 12), and what work has cost a day.
 * text_hash has the bits of the unsigned value. lowest, ratio and highest are times as fast, 0
 * where they are not known; predicted is taken branches after / before, 0 where it is not known.
 * A round has each step once. Included by store_schema only.
 */
#ifndef MP_STORE_JOBS_STEP_H
#define MP_STORE_JOBS_STEP_H

/* clang-format off */
#define MP_STORE_STEP_JOBS                                                                         \
	"CREATE TABLE job(key INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE,"                     \
	" build_id BLOB NOT NULL, text_hash INTEGER NOT NULL, file_hash TEXT NOT NULL,"            \
	" state TEXT NOT NULL, since_s INTEGER NOT NULL, asked TEXT NOT NULL,"                     \
	" uid INTEGER NOT NULL, round INTEGER NOT NULL, not_before_s INTEGER NOT NULL,"            \
	" detail TEXT NOT NULL, output TEXT NOT NULL, layout TEXT NOT NULL,"                       \
	" ratio REAL NOT NULL, lowest REAL NOT NULL, highest REAL NOT NULL,"                       \
	" predicted REAL NOT NULL, adopted_s INTEGER NOT NULL, before_samples INTEGER NOT NULL,"   \
	" before_all INTEGER NOT NULL, before_crashes INTEGER NOT NULL);"                          \
	"CREATE TABLE history(key INTEGER PRIMARY KEY, when_s INTEGER NOT NULL,"                   \
	" path TEXT NOT NULL, build_id BLOB NOT NULL, text_hash INTEGER NOT NULL,"                 \
	" round INTEGER NOT NULL, step TEXT NOT NULL, state TEXT NOT NULL,"                        \
	" verdict TEXT NOT NULL, reason TEXT NOT NULL, ratio REAL NOT NULL, lowest REAL NOT NULL," \
	" highest REAL NOT NULL, predicted REAL NOT NULL, layout TEXT NOT NULL,"                   \
	" UNIQUE(path, round, step));"                                                             \
	"CREATE TABLE shunned(build_id BLOB NOT NULL, text_hash INTEGER NOT NULL,"                 \
	" layout TEXT NOT NULL, when_s INTEGER NOT NULL, reason TEXT NOT NULL,"                    \
	" PRIMARY KEY(build_id, text_hash, layout)) WITHOUT ROWID;"                                \
	"CREATE TABLE spent(day INTEGER PRIMARY KEY, cpu_ms INTEGER NOT NULL,"                     \
	" disk_bytes INTEGER NOT NULL);"
/* clang-format on */

#endif
