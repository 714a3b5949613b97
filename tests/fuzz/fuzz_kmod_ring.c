// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_kmod_ring - any bytes as the contents of a kernel module's ring, with any movement of
 * its head: a refusal or records; never a read outside of the ring, and always an end.
 *
 * The first 16 bytes are two positions of the head; the rest fills the ring, repeated.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/source/kmod_ring.h"

enum {
	RING_BYTES = 4096,
	MAX_RECORDS = RING_BYTES
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct md_kmod_ring *ring, struct md_buf *out)
{
	struct mp_err err;

	if (md_kmod_ring_refresh(ring, &err))
		return;
	for (int i = 0; ring->next.time_ns != UINT64_MAX; i++) {
		/* The ring cannot hold more records than this. */
		if (i == MAX_RECORDS)
			abort();
		if (md_kmod_ring_take(ring, out, &err))
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct morph_tail tail = {0};
	struct morph_head head = {0};
	struct md_kmod_ring ring;
	struct md_buf out = {0};
	struct mp_err err;
	uint64_t pos[2];
	uint8_t *bytes;

	if (size <= sizeof(pos))
		return 0;
	/* Exactly as large as the ring, so that a read beyond it is detected. */
	bytes = malloc(RING_BYTES);
	if (!bytes)
		return 0;
	memcpy(pos, data, sizeof(pos));
	for (size_t i = 0; i < RING_BYTES; i++)
		bytes[i] = data[sizeof(pos) + i % (size - sizeof(pos))];
	head.ring_bytes = RING_BYTES;
	if (!md_kmod_ring_init(&ring, &tail, &head, bytes, RING_BYTES, &err)) {
		for (int i = 0; i < 2; i++) {
			head.head = pos[i];
			read_all(&ring, &out);
		}
	}
	md_buf_fini(&out);
	free(bytes);
	return 0;
}
