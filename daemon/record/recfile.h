// SPDX-License-Identifier: Apache-2.0
/*
 * recfile - the file format of a recorded stream: a header, then chunks of records with
 * checksums.
 *
 * Each chunk gives the number of samples before it. So a reader that skips damage knows exactly
 * how many samples are lost. Written by morphd --record, read by source_replay; see
 * Documentation/abi.md.
 */
#ifndef MD_RECFILE_H
#define MD_RECFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/record/record.h"
#include "libprof/base/err.h"

#define MD_RECFILE_MAGIC  "MORPHREC"
#define MD_CHUNK_MAGIC	  0x4b484352u /* "RCHK" */
#define MD_CHUNK_SIZE_MAX (256u << 10)

struct md_recfile_header {
	char magic[8];
	uint16_t abi_major, abi_minor;
	uint32_t size;	   /* of this header */
	uint64_t start_ns; /* the stream's clock at the start */
	int64_t start_s;   /* the same moment as unix time */
	uint32_t rate_hz;
	uint32_t clock;	    /* CLOCK_* */
	char collector[16]; /* for instance "perf" */
	char event[32];
	char why[160]; /* why this collector and event */
	uint64_t sum;  /* XXH3-64 of all before */
};
_Static_assert(sizeof(struct md_recfile_header) == 256, "size of the recording's header");

struct md_chunk_header {
	uint32_t magic;
	uint32_t size;	    /* bytes of records that follow; 0: end of the recording */
	uint64_t nr_before; /* samples, present or lost, in all earlier chunks */
	uint64_t nr;	    /* samples in this chunk */
	uint64_t sum;	    /* XXH3-64 of the records */
	uint64_t head_sum;  /* XXH3-64 of the fields above */
};
_Static_assert(sizeof(struct md_chunk_header) == 40, "size of a chunk's header");

struct md_recfile_info {
	uint64_t start_ns;
	int64_t start_s;
	uint32_t rate_hz;
	char collector[16], event[32];
	char why[320]; /* a recording keeps as much as fits */
};

struct md_recwriter;

/* Creates or empties @path. Return: 0 or -errno. Ownership: md_recwriter_close(). */
int md_recwriter_open(const char *path, const struct md_recfile_info *info,
		      struct md_recwriter **out, struct mp_err *err);
/* Return: 0, or -errno of the first failed write, now or earlier. */
int md_recwriter_add(struct md_recwriter *writer, const struct morph_record *record,
		     struct mp_err *err);
/* Writes all that was added to the file. */
int md_recwriter_flush(struct md_recwriter *writer, struct mp_err *err);
uint64_t md_recwriter_size_bytes(const struct md_recwriter *writer);
/*
 * Writes the end mark. Accepts NULL. Return: 0, or the -errno because of which the file is
 * incomplete.
 */
int md_recwriter_close(struct md_recwriter *writer, struct mp_err *err);

struct md_recreader;

/* Return: 0, -errno, -EBADMSG not a recording, -EPROTO another major version. */
int md_recreader_open(const char *path, struct md_recreader **out, struct mp_err *err);
const struct md_recfile_info *md_recreader_info(const struct md_recreader *reader);
/*
 * md_recreader_next - give the records of the next good chunk, valid and writable until the
 * next call. @torn: samples in damaged bytes before it; @damaged: there were such bytes.
 * Return: 0; -ENODATA at the end (@torn, @damaged set, *@size 0); -errno of a read.
 */
int md_recreader_next(struct md_recreader *reader, uint8_t **data, size_t *size, uint64_t *torn,
		      bool *damaged, struct mp_err *err);
/* Return: true once the end mark was read: the writer was not killed. */
bool md_recreader_is_whole(const struct md_recreader *reader);
void md_recreader_rewind(struct md_recreader *reader);
void md_recreader_close(struct md_recreader *reader);

#endif
