// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_audit_ring - any bytes as the file of an audited program: refused, or read without an error of
 * memory; records of any content go through the tests of an audit. The first byte says what is
 * made right, since little would get past the checks else: bit 0: the header is the input's; bit 1:
 * each record has the number that it should have, and few pairs and versions there are. Then follow 8
 * bytes of the number of records written, and the records.
 */
#include "libprof/note/audit_ring.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/audit/program_audit.h"

#define NR 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Makes @nr records those that the program wrote last, in few pairs. */
static void number_records(int fd, off_t records, uint64_t nr)
{
	struct mp_audit_record r;

	for (uint64_t i = 0; i < nr; i++) {
		off_t off = records + (off_t)(i * sizeof(r));

		if (pread(fd, &r, sizeof(r), off) != sizeof(r))
			abort();
		r.number = i + 1;
		r.pair %= 4;
		r.function %= 3;
		r.version %= 3;
		r.second %= 2;
		r.fate %= 2;
		if (pwrite(fd, &r, sizeof(r), off) != sizeof(r))
			abort();
	}
	if (pwrite(fd, &nr, sizeof(nr), offsetof(struct mp_audit_file_header, next)) != sizeof(nr))
		abort();
}

/* Writes a file of the size that the header promises. */
static void write_file(int fd, const uint8_t *data, size_t size)
{
	struct mp_audit_file_header h = {.version = MP_AUDIT_FILE_VERSION,
					 .header_bytes = MP_AUDIT_FILE_HEADER_BYTES,
					 .nr_functions = 2,
					 .nr_records = MP_AUDIT_NR_RECORDS};
	off_t records = 2 * MP_AUDIT_FILE_HEADER_BYTES;

	memcpy(h.magic, MP_AUDIT_FILE_MAGIC, sizeof(h.magic));
	if (size && data[0] & 1 && size > sizeof(h))
		memcpy(&h, data + 1, sizeof(h));
	else if (size > 9)
		memcpy(&h.next, data + 1, 8);
	if (ftruncate(fd, records + MP_AUDIT_NR_RECORDS * (off_t)sizeof(struct mp_audit_record)) ||
	    pwrite(fd, &h, sizeof(h), 0) != sizeof(h))
		abort();
	if (size > 9 && pwrite(fd, data + 9, size - 9, records) != (ssize_t)(size - 9))
		abort();
	if (size && data[0] & 2)
		number_records(fd, records, size / sizeof(struct mp_audit_record));
}

/* Each reading must end, and each record is read, lost or torn. */
static void read_file(struct mp_audit_ring *ring)
{
	struct mp_program_audit *audit = mp_program_audit_new(ring->nr_functions, 0.01);
	struct mp_audit_record records[NR];
	struct mp_audit_effect effect;
	uint64_t first = ring->position, nr_read = 0;
	uint32_t function;
	size_t nr = NR;

	for (int64_t now = 1; now < 40 && nr; now++) {
		if (mp_audit_ring_read(ring, now * MP_AUDIT_RING_PATIENCE_NS, records, NR, &nr,
				       NULL))
			break;
		for (size_t i = 0; i < nr; i++)
			if (mp_program_audit_add(audit, &records[i], &function))
				abort();
		nr_read += nr;
	}
	if (ring->position - first != nr_read + ring->lost + ring->torn)
		abort();
	for (uint32_t f = 0; f < ring->nr_functions; f++)
		mp_program_audit_effect(audit, f, true, &effect);
	mp_program_audit_free(audit);
}

static char path[64];

static void remove_file(void)
{
	unlink(path);
}

/* Return: a descriptor of the file, which all inputs share; -1: there is none. */
static int make_file(void)
{
	static int fd = -2;

	if (fd == -2) {
		strcpy(path, "/tmp/morph-fuzz-ring-XXXXXX");
		fd = mkstemp(path);
		if (fd >= 0)
			atexit(remove_file);
	}
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mp_audit_ring ring;
	int fd = make_file();

	/* Records of the input before must not stay. */
	if (fd < 0 || ftruncate(fd, 0))
		return 0;
	write_file(fd, data, size < (1 << 20) ? size : 1 << 20);
	if (!mp_audit_ring_open(&ring, path, MP_AUDIT_RING_ALL, NULL))
		read_file(&ring);
	mp_audit_ring_close(&ring);
	return 0;
}
