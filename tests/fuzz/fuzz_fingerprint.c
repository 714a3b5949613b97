// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_fingerprint - any bytes as a fingerprint: refused, or read and written back identically.
 * Also matched as the old build of a small new one: the counts carried over must not exceed the
 * old ones.
 */
#include "libprof/stale/stale.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Encoding twice must give the same bytes. */
static void check_written(const struct mp_fingerprint *print)
{
	struct mp_fingerprint again;
	uint8_t *first, *second;
	size_t size_first, size_second;

	if (mp_fingerprint_encode(print, &first, &size_first, NULL) ||
	    mp_fingerprint_decode(first, size_first, &again, NULL) ||
	    mp_fingerprint_encode(&again, &second, &size_second, NULL) ||
	    size_first != size_second || memcmp(first, second, size_first) != 0)
		abort();
	mp_fingerprint_fini(&again);
	free(first);
	free(second);
}

/* Uses the blocks that the fingerprint keeps as the new build. */
static void check_match(const struct mp_fingerprint *print)
{
	struct mp_stale_match match;
	struct mp_stale_counts carried;
	struct mp_ip_count counts[64];
	struct mp_edge_count edges[64];
	size_t nr = 0, nr_edges = 0;
	uint64_t before = 0;

	for (uint32_t b = 0; b < print->nr_blocks && nr < 64; b++) {
		const struct mp_print_block *block = &print->blocks[b];

		if (nr && block->vaddr <= counts[nr - 1].vaddr)
			continue;
		counts[nr++] = (struct mp_ip_count){block->vaddr, b + 1};
		/* In a damaged fingerprint a block may end behind the next one's end. */
		if (!nr_edges || block->vaddr + block->term_off > edges[nr_edges - 1].from)
			edges[nr_edges++] = (struct mp_edge_count){block->vaddr + block->term_off,
								   print->blocks[0].vaddr, 2, 0};
	}
	if (mp_stale_match(print, print, &match, NULL))
		abort();
	for (uint32_t b = 0; b < print->nr_blocks; b++)
		if (match.block_to[b] != MP_NONE && match.block_of[match.block_to[b]] != b)
			abort();
	if (mp_stale_carry(&match, counts, nr, edges, nr_edges, &carried, NULL) ||
	    carried.stats.samples_matched > carried.stats.samples ||
	    carried.stats.transfers_matched > carried.stats.transfers)
		abort();
	for (size_t i = 0; i < carried.nr_counts; i++) {
		if (i && carried.counts[i].vaddr < before)
			abort();
		before = carried.counts[i].vaddr;
	}
	mp_stale_counts_fini(&carried);
	mp_stale_match_fini(&match);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mp_fingerprint print;

	if (mp_fingerprint_decode(data, size, &print, NULL))
		return 0;
	check_written(&print);
	check_match(&print);
	mp_fingerprint_fini(&print);
	return 0;
}
