// SPDX-License-Identifier: Apache-2.0
/*
 * ring - maps and fills the file in which the reader finds windows (libprof/note/audit_file.h).
 * Several processes may use one file. Called by attach.c and audit.c.
 */
#include "editor/runtime/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "editor/runtime/shared_file.h"
#include "editor/runtime/system.h"

#define NR_WORDS 5

_Static_assert(offsetof(struct mp_audit_file_header, next) == 8 * (NR_WORDS - 1),
	       "the words before it describe the file");

static uint64_t functions_bytes(const struct me_runtime_params *params)
{
	uint64_t bytes = params->nr_audited * sizeof(struct mp_audit_function);

	return (bytes + ME_RUNTIME_PAGE - 1) / ME_RUNTIME_PAGE * ME_RUNTIME_PAGE;
}

static uint64_t file_bytes(const struct me_runtime_params *params)
{
	return MP_AUDIT_FILE_HEADER_BYTES + functions_bytes(params) +
	       MP_AUDIT_NR_RECORDS * sizeof(struct mp_audit_record);
}

/*
 * Fill in the header, perhaps while other processes do the same. The hash goes first: if two
 * programs use one path, only one of them gets the file.
 */
static bool claim(uint64_t *header, const struct me_runtime_params *params)
{
	uint64_t want[NR_WORDS - 1];

	want[0] = 0x4455414850524f4dull; /* MP_AUDIT_FILE_MAGIC */
	want[1] = MP_AUDIT_FILE_VERSION | (uint64_t)MP_AUDIT_FILE_HEADER_BYTES << 32;
	want[2] = params->table_hash;
	want[3] = params->nr_audited | (uint64_t)MP_AUDIT_NR_RECORDS << 32;
	for (uint64_t i = 0; i < MP_AUDIT_FILE_HEADER_BYTES / 8; i++)
		if (i != NR_WORDS - 1 && header[i] && (i >= NR_WORDS || header[i] != want[i]))
			return false;
	for (int i = NR_WORDS - 2; i >= 0; i--) {
		int k = i == 3 ? 2 : i == 2 ? 3 : i; /* 2, 3, 1, 0 */

		if (!claim_word(&header[k], want[k]))
			return false;
	}
	return true;
}

uint64_t me_ring_map(const struct me_runtime_params *params, int fd)
{
	uint64_t bytes = file_bytes(params);
	long ret;

	if (!has_size(fd, bytes))
		return 0;
	ret = call6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (failed(ret))
		return 0;
	if (claim((uint64_t *)ret, params))
		return (uint64_t)ret;
	call4(SYS_munmap, ret, (long)bytes, 0, 0);
	return 0;
}

void me_ring_put(const struct me_runtime_params *params, uint64_t ring,
		 const struct mp_audit_record *record)
{
	struct mp_audit_file_header *header = (struct mp_audit_file_header *)ring;
	const uint64_t *from = (const uint64_t *)record;
	uint64_t number = __atomic_fetch_add(&header->next, 1, __ATOMIC_SEQ_CST);
	uint64_t *to = (uint64_t *)(ring + MP_AUDIT_FILE_HEADER_BYTES + functions_bytes(params) +
				    number % MP_AUDIT_NR_RECORDS * sizeof(*record));

	__atomic_store_n(&to[0], 0, __ATOMIC_SEQ_CST);
	for (unsigned int i = 1; i < sizeof(*record) / 8; i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
	__atomic_store_n(&to[0], number + 1, __ATOMIC_RELEASE);
}
