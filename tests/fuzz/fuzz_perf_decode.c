// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_perf_decode - any bytes as records of a perf ring: the decoder writes whole records, reads
 * nothing outside of a record, and emits each sample at most once.
 *
 * The first byte chooses what samples carry: branches, registers, stacks; whether mappings alone
 * are wanted; and times that are dropped. The rest is records, one after the other: two bytes of
 * size, a byte of type, a byte of misc, and the body.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/source/perf_decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Gives the decoder one record in memory of exactly its size. Return: bytes taken; 0: the end. */
static size_t decode_one(struct md_perf_decoder *d, const uint8_t *data, size_t size)
{
	struct perf_event_header *record;
	uint16_t body;

	if (size < 4)
		return 0;
	memcpy(&body, data, sizeof(body));
	if (body > size - 4)
		body = (uint16_t)(size - 4 < 60000 ? size - 4 : 60000);
	record = malloc(sizeof(*record) + body);
	if (!record)
		return 0;
	*record = (struct perf_event_header){
		.type = data[2] % (PERF_RECORD_MAX + 1),
		.misc = (uint16_t)(data[3] << 8),
		.size = (uint16_t)(sizeof(*record) + body),
	};
	memcpy(record + 1, data + 4, body);
	md_perf_record_time(record);
	md_perf_decode(d, data[3] & 1, record);
	free(record);
	return 4 + (size_t)body;
}

static void check(struct md_perf_decoder *d, uint64_t nr_records)
{
	struct morph_record *record;
	uint64_t nr_stacks = 0;
	size_t pos = 0;
	int ret;

	while (!(ret = md_record_next(d->out.data, d->out.size, &pos, &record)))
		nr_stacks += record->type == MORPH_REC_USER_STACK;
	if (ret != -ENODATA || nr_stacks > nr_records || (nr_stacks && !d->stacks))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct md_perf_decoder d;
	uint64_t nr_records = 0;
	size_t pos = 1, taken;

	if (!size || md_perf_decoder_init(&d, 2, 4000, data[0] & 1))
		return 0;
	if (data[0] & 2)
		md_perf_decoder_want_stacks(&d);
	if (data[0] & 4 && md_perf_decoder_want_registers(&d, data[0] & 32 ? MORPH_REGS_BRANCHES
									   : MORPH_REGS_PATHS)) {
		md_perf_decoder_fini(&d);
		return 0;
	}
	d.mappings_only = data[0] & 8;
	if (data[0] & 16) {
		d.start_ns = 100;
		d.scan_begin_ns = 200;
		d.scan_end_ns = 300;
	}
	while ((taken = decode_one(&d, data + pos, size - pos))) {
		pos += taken;
		nr_records++;
	}
	md_perf_decoder_flush(&d);
	check(&d, nr_records);
	md_perf_decoder_fini(&d);
	return 0;
}
