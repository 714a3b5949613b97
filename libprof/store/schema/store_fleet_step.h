// SPDX-License-Identifier: Apache-2.0
/*
 * store_fleet_step - the tables of fleet/, as a step of the schema. Included by store_schema.
 *
 * fleet_epoch has at most one row: the history of this database of which the fleet's server knows.
 * fleet_pending has the tokens of batches that were sent after token, and of which no fate is known.
 * fleet_bucket and fleet_chunk say what the server has of it: the sum of the counts of some days,
 * and XXH3-64 of the bytes that were sent for a chunk. seq is the batch that sent it. Losing rows
 * of these two only means that counts are sent again. fleet_base holds counts in this database
 * that are not its own: they are never sent. origin is enum mp_fleet_origin. A span of days in
 * fleet_base lies within one bucket, since buckets are folded together and never divided.
 */
#ifndef MP_STORE_FLEET_STEP_H
#define MP_STORE_FLEET_STEP_H

/* clang-format off */
#define MP_STORE_STEP_FLEET                                                                        \
	"CREATE TABLE fleet_epoch(key INTEGER PRIMARY KEY, epoch BLOB NOT NULL,"                   \
	" machine BLOB NOT NULL, seq INTEGER NOT NULL, token INTEGER NOT NULL);"                   \
	"CREATE TABLE fleet_pending(key INTEGER PRIMARY KEY, token INTEGER NOT NULL);"             \
	"CREATE TABLE fleet_bucket(kind INTEGER NOT NULL, module INTEGER NOT NULL,"                \
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, total INTEGER NOT NULL,"          \
	" seq INTEGER NOT NULL, PRIMARY KEY(module, kind, first_day)) WITHOUT ROWID;"              \
	"CREATE TABLE fleet_chunk(kind INTEGER NOT NULL, module INTEGER NOT NULL,"                 \
	" first_day INTEGER NOT NULL, chunk INTEGER NOT NULL, hash INTEGER NOT NULL,"              \
	" seq INTEGER NOT NULL, PRIMARY KEY(module, kind, first_day, chunk)) WITHOUT ROWID;"       \
	"CREATE TABLE fleet_base(key INTEGER PRIMARY KEY, kind INTEGER NOT NULL,"                  \
	" module INTEGER NOT NULL, origin INTEGER NOT NULL, first_day INTEGER NOT NULL,"           \
	" last_day INTEGER NOT NULL, chunk INTEGER NOT NULL, session INTEGER NOT NULL,"            \
	" total INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL,"                  \
	" UNIQUE(module, kind, origin, first_day, chunk));"
/* clang-format on */

#endif
