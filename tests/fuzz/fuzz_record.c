// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_record - any bytes as a recording: no crash, no hang, and samples that add up.
 *
 * The first byte chooses: use the bytes as the whole file, or as records of a chunk with valid
 * checksums, so that they reach attribution.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/attribute/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[64];
static int fd = -1;

/* One file in memory for all inputs. */
static void open_file(void)
{
	fd = memfd_create("fuzz", 0);
	if (fd < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
}

static void put(const void *data, size_t size)
{
	if (write(fd, data, size) != (ssize_t)size)
		abort();
}

static void put_chunk(const uint8_t *data, size_t size)
{
	struct md_recfile_info info = {.start_ns = 1};
	struct md_recwriter *writer;
	struct morph_record *record;
	struct md_buf buf = {0};
	size_t pos = 0;
	void *room;

	if (md_recwriter_open(path, &info, &writer, NULL))
		abort();
	/* A malformed record is written unchanged and ends its chunk. */
	room = md_buf_add(&buf, size + sizeof(*record));
	if (!room)
		abort();
	memcpy(room, data, size);
	while (!md_record_next(buf.data, size, &pos, &record))
		md_recwriter_add(writer, record, NULL);
	if (size - pos >= sizeof(*record)) {
		record = (void *)(buf.data + pos);
		if (record->size >= sizeof(*record) && record->size <= size - pos)
			md_recwriter_add(writer, record, NULL);
	}
	md_recwriter_close(writer, NULL);
	md_buf_fini(&buf);
}

static void replay(bool store)
{
	struct md_source_config config = {.input = path, .nr_repeats = 2};
	static struct md_pipeline pl;
	struct mp_err err;

	memset(&pl, 0, sizeof(pl));
	if (md_source_replay.open(&config, &pl.source, &err))
		return;
	pl.interval_s = 1000;
	/* Use a database without a name, and only sometimes, because creating one takes time. */
	if (store && mp_store_open("", MP_STORE_WRITE, &pl.store, &err))
		abort();
	if (!md_pipeline_init(&pl, &err) && !md_pipeline_run(&pl, &err) &&
	    pl.total.emitted != pl.total.attributed + md_ledger_unattributed(&pl.total) +
					md_ledger_lost(&pl.total))
		abort();
	if (store && mp_store_check(pl.store, &err))
		abort();
	mp_store_close(pl.store);
	pl.source->ops->close(pl.source);
	md_pipeline_fini(&pl);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size || size > 1 << 16)
		return 0;
	if (fd < 0)
		open_file();
	if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET))
		abort();
	if (data[0] & 1)
		put(data + 1, size - 1);
	else
		put_chunk(data + 1, size - 1);
	replay(data[0] & 2);
	return 0;
}
