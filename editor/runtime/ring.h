/* SPDX-License-Identifier: Apache-2.0 */
/* ring - the file in which the reader finds windows. Called by attach.c and audit.c. */
#ifndef ME_RUNTIME_RING_H
#define ME_RUNTIME_RING_H

#include "editor/base/runtime.h"
#include "libprof/note/audit_file.h"

/*
 * me_ring_map - maps the open file @fd, which may be empty. Return: its address; 0: it cannot be
 * used, because it is another program's or damaged, or the disk is full.
 */
uint64_t me_ring_map(const struct me_runtime_params *params, int fd);
/* me_ring_put - adds a record to the ring. @record: @number is filled in. */
void me_ring_put(const struct me_runtime_params *params, uint64_t ring,
		 const struct mp_audit_record *record);

static inline struct mp_audit_function *me_ring_function(uint64_t ring, uint64_t function)
{
	return (struct mp_audit_function *)(ring + MP_AUDIT_FILE_HEADER_BYTES) + function;
}

#endif
