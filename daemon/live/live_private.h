// SPDX-License-Identifier: Apache-2.0
/* live_private - steps that adopt and undo share. */
#ifndef MD_LIVE_PRIVATE_H
#define MD_LIVE_PRIVATE_H

#include "daemon/live/live.h"
#include "daemon/live/stop.h"

/* Stops, and time, after which adopt gives up: a process may make each of them take long. */
#define MD_LIVE_ROUNDS	 200
#define MD_LIVE_LIMIT_NS ((uint64_t)120 * 1000000000)

/*
 * md_live_open_mem - the memory of the process, to be read and written. Return: a descriptor; -errno with a message.
 * Ownership: close().
 */
int md_live_open_mem(pid_t pid, struct mp_err *err);
/* Stops the process, and looks again at what may have changed until then. Return: 0; as md_stop_all(). */
int md_live_stop(const struct md_process *process, struct md_stop *stop, struct mp_err *err);
/* The process goes on; counts the round. */
void md_live_go_on(struct md_stop *stop, struct md_live_result *out);
/* md_live_write - writes the version's bytes to the pages that it changes. Return: 0, -EIO. */
int md_live_write(const struct md_version *version, int mem);
/* md_live_write_old - writes the original's. @skip: a flag for each page that is left out. Return: 0, -EIO. */
int md_live_write_old(const struct md_version *version, int mem, const bool *skip);
/* md_live_write_copies - writes the pages of copies with calls, from own or retired. Return: 0, -EIO. */
int md_live_write_copies(const struct md_version *version, int mem, const uint8_t *bytes);
/* Waits between two rounds. */
void md_live_wait(unsigned int round);

#endif
