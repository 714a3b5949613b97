// SPDX-License-Identifier: Apache-2.0
/*
 * audit_table - describes the audited functions of a file: each function's address in the
 * original, and where its versions lie. Function number n of the ring (audit_file) is
 * function number n of this table. The editor writes the table; verify and the reader of the
 * ring use it. It lies in section .morph.audit, which is not loaded. The format is in
 * Documentation/abi.md.
 */
#ifndef MP_AUDIT_TABLE_H
#define MP_AUDIT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/elf/elf.h"
#include "libprof/note/audit_file.h"

#define MP_AUDIT_TABLE_SECTION ".morph.audit"

/* Versions in the program's code: those of enum mp_audit_version, and the same without stubs,
 * which run after a verdict. */
enum mp_audit_code {
	MP_AUDIT_UNTIMED_A = MP_AUDIT_NR_VERSIONS,
	MP_AUDIT_UNTIMED_B,
	MP_AUDIT_NR_CODES
};

/* Code of one version of one function. */
struct mp_audited_range {
	uint64_t vaddr;	 /* in the output */
	uint64_t size;	 /* not 0 */
	uint8_t version; /* enum mp_audit_version or mp_audit_code */
};

/* A timing point of a loop. Timing point 0, from entry to exit, is not listed. */
struct mp_audited_point {
	uint64_t vaddr;	 /* in the original */
	uint32_t rounds; /* of the loop in each timing; at least 1 */
};

struct mp_audited_func {
	uint64_t vaddr; /* entry in the original */
	uint32_t first_range, nr_ranges;
	uint32_t first_point, nr_points;
};

/*
 * Functions ascend by address. Each begins in @ranges and @points where the one before ends. A
 * function has ranges of all versions, which ascend. No two ranges overlap.
 */
struct mp_audit_table {
	struct mp_audited_func *funcs;
	uint32_t nr_funcs; /* 1 to MP_AUDIT_MAX_FUNCTIONS */
	struct mp_audited_range *ranges;
	uint32_t nr_ranges;
	struct mp_audited_point *points;
	uint32_t nr_points;
	uint64_t hash; /* mp_audit_table_hash() of the section; set by mp_audit_table_read() */
};

/*
 * mp_audit_table_encode - the whole section as bytes.
 * Return: 0, -ENOMEM, -EINVAL (not as described above). Ownership: free(*@bytes).
 */
int mp_audit_table_encode(const struct mp_audit_table *table, uint8_t **bytes, size_t *size,
			  struct mp_err *err);
/* Hash of the section's bytes. The ring's header names its table by this hash. */
uint64_t mp_audit_table_hash(const void *bytes, size_t size);
/*
 * mp_audit_table_read - reads the table of @elf, which must not be opened with MP_ELF_ID alone.
 * Return: 0, -ENOENT (not audited), -EBADMSG (damaged), -ENOMEM.
 * Ownership: mp_audit_table_free(*@out), which takes NULL.
 */
int mp_audit_table_read(const struct mp_elf *elf, struct mp_audit_table **out, struct mp_err *err);
/* The same for the section's bytes, for a reader that may only call pread(). @path: for messages. */
int mp_audit_table_decode(const char *path, const uint8_t *bytes, size_t size,
			  struct mp_audit_table **out, struct mp_err *err);
void mp_audit_table_free(struct mp_audit_table *table);

#endif
