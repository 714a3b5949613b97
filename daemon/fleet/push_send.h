// SPDX-License-Identifier: Apache-2.0
/* push_send - the statements of a push, on one connection. Called by push. */
#ifndef MD_FLEET_PUSH_SEND_H
#define MD_FLEET_PUSH_SEND_H

#include <libpq-fe.h>
#include <stdbool.h>

#include "daemon/fleet/file_names.h"
#include "daemon/fleet/packed_counts.h"
#include "libprof/base/varint.h"
#include "libprof/store/fleet/store_fleet.h"

#define MD_PUSH_COLUMNS 12 /* numbers of rows and modules */

/* Memory that is kept from batch to batch. Starts as zeros. */
struct md_push_sender {
	PGconn *conn;
	int today; /* the server's day */
	struct mp_varint_writer columns[MD_PUSH_COLUMNS], keys, names, data;
	struct md_packer packer;
	int64_t *sizes; /* of the rows' data; room for MP_FLEET_BATCH_ROWS_MAX */
};

void md_push_sender_fini(struct md_push_sender *sender);
/* Asks for the server's day. */
int md_push_today(struct md_push_sender *sender, struct mp_err *err);
/* *@has is false if the server does not know the epoch. */
int md_push_ask_epoch(struct md_push_sender *sender, const uint8_t *name, bool *has, int64_t *seq,
		      int64_t *token, struct mp_err *err);
/*
 * md_push_send - sends the batch in one transaction. *@nr_bytes: of the counts, as they were sent. Return: 0: the server
 * has it; -ENOTCONN: unknown; otherwise the server does not have it: -EEXIST (another token is the newest), -EAGAIN, -EDQUOT (no
 * more today), -EACCES, -EPROTO (its schema is older than this program), -errno.
 */
int md_push_send(struct md_push_sender *sender, const uint8_t *epoch,
		 const struct mp_fleet_batch *batch, const struct md_file_names *names,
		 size_t *nr_bytes, struct mp_err *err);

#endif
