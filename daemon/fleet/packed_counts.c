// SPDX-License-Identifier: Apache-2.0
/* packed_counts - see packed_counts.h. */
#include "daemon/fleet/packed_counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"

#define DISTANCE_K_MAX 15
#define COUNT_K_MAX    7
/* Class and further bits of a number: a distance is below 2^16, a count below 2^46. */
#define DISTANCE_WIDTH_MAX 16
#define COUNT_WIDTH_MAX	   46
#define NR_CLASSES	   (COUNT_WIDTH_MAX + 1)
#define NR_BYTES_MAX	   3 /* of the number of entries */
/* The server checks shorter rows faster as they are. */
#define PACKED_FROM 64

void md_packer_fini(struct md_packer *p)
{
	free(p->entries);
	free(p->numbers);
	free(p->order);
	free(p->left);
	free(p->bytes);
	memset(p, 0, sizeof(*p));
}

static int reserve(struct md_packer *p)
{
	if (!p->entries)
		p->entries = malloc(MP_CHUNK_SIZE * sizeof(*p->entries));
	if (!p->numbers)
		p->numbers = malloc(MP_CHUNK_SIZE * sizeof(*p->numbers));
	if (!p->order)
		p->order = malloc(MP_CHUNK_SIZE * sizeof(*p->order));
	if (!p->left)
		p->left = malloc(MP_CHUNK_SIZE * sizeof(*p->left));
	return p->entries && p->numbers && p->order && p->left ? 0 : -ENOMEM;
}

static unsigned int class_of(uint64_t number, unsigned int k)
{
	return 63 - (unsigned int)__builtin_clzll((number >> k) + 1);
}

/* The first number of a class. */
static uint64_t least_of(unsigned int class, unsigned int k)
{
	return ((1ull << class) - 1) << k;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* @end: there is no room. The bytes before are complete. */
struct bits {
	uint8_t *p, *end;
	unsigned int filled; /* bits of *@p */
	bool full;
};

static void put_bit(struct bits *b, unsigned int bit)
{
	if (b->p == b->end) {
		b->full = true;
		return;
	}
	if (!b->filled)
		*b->p = 0;
	*b->p |= (uint8_t)(bit << (7 - b->filled));
	b->filled = (b->filled + 1) & 7;
	b->p += !b->filled;
}

static uint64_t bits_of(const uint64_t *numbers, size_t nr, unsigned int k)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < nr; i++)
		bits += 2 * class_of(numbers[i], k) + k + 1;
	return bits;
}

static unsigned int best_k(const uint64_t *numbers, size_t nr, unsigned int max)
{
	unsigned int best = 0;
	uint64_t least = bits_of(numbers, nr, 0);

	for (unsigned int k = 1; k <= max; k++) {
		uint64_t bits = bits_of(numbers, nr, k);

		if (bits < least) {
			least = bits;
			best = k;
		}
	}
	return best;
}

static void put_list(struct bits *b, const uint64_t *numbers, size_t nr, unsigned int k)
{
	size_t members[NR_CLASSES + 1] = {0};
	unsigned int nr_classes = 0;

	for (size_t left = nr; left && !b->full; nr_classes++) {
		for (size_t i = 0; i < nr; i++) {
			unsigned int class = class_of(numbers[i], k);

			if (class >= nr_classes)
				put_bit(b, class == nr_classes);
			members[nr_classes] += class == nr_classes;
		}
		left -= members[nr_classes];
	}
	for (unsigned int class = 0; class < nr_classes; class ++)
		for (unsigned int bit = class + k; bit-- > 0 && members[class] && !b->full;)
			for (size_t i = 0; i < nr; i++)
				if (class_of(numbers[i], k) == class)
					put_bit(b, (numbers[i] - least_of(class, k)) >> bit & 1);
}

static uint8_t *put_nr(uint8_t *p, size_t nr)
{
	for (; nr > 127; nr >>= 7)
		*p++ = (uint8_t)(nr & 127) | 128;
	*p++ = (uint8_t)nr;
	return p;
}

long md_counts_pack(struct md_packer *p, const uint8_t *data, size_t size)
{
	unsigned int distance_k, count_k;
	uint64_t next = 0;
	struct bits b;
	size_t nr;
	int r = reserve(p);

	if (r || size < PACKED_FROM)
		return r;
	if (mp_resize(p->bytes, size + NR_BYTES_MAX + 1))
		return -ENOMEM;
	r = mp_chunk_decode(0, data, size, p->entries, &nr);
	if (r || !nr)
		return r;
	/* A row that would not become an eighth smaller stays: packed, it would cost the server more. */
	b = (struct bits){.p = put_nr(p->bytes, nr), .end = p->bytes + size - size / 8 - 1};
	if (b.p >= b.end)
		return 0;
	for (size_t i = 0; i < nr; i++) {
		p->numbers[i] = p->entries[i].vaddr - next;
		next = p->entries[i].vaddr + 1;
	}
	distance_k = best_k(p->numbers, nr, DISTANCE_K_MAX);
	put_list(&b, p->numbers, nr, distance_k);
	for (size_t i = 0; i < nr; i++) {
		p->numbers[i] = p->entries[i].count - 1;
		if ((p->numbers[i] + 1) >> COUNT_WIDTH_MAX)
			return 0;
	}
	count_k = best_k(p->numbers, nr, COUNT_K_MAX);
	put_list(&b, p->numbers, nr, count_k);
	if (b.filled)
		b.p++;
	if (b.full || b.p >= b.end)
		return 0;
	*b.p++ = (uint8_t)(128 | distance_k << 3 | count_k);
	return b.p - p->bytes;
}

/* ---- reading ------------------------------------------------------------------------------- */

struct reader {
	const uint8_t *p, *end;
	uint64_t word; /* bits that were taken from the bytes, at the top */
	unsigned int filled;
};

/* The next bit; zeros behind the end, which the caller checks by the number of bits that are left. */
static inline unsigned int get_bit(struct reader *r)
{
	unsigned int bit;

	if (!r->filled) {
		for (r->word = 0; r->filled < 64 && r->p < r->end; r->filled += 8)
			r->word |= (uint64_t)*r->p++ << (56 - r->filled);
		if (!r->filled)
			return 0;
	}
	bit = (unsigned int)(r->word >> 63);
	r->word <<= 1;
	r->filled--;
	return bit;
}

static uint64_t bits_left(const struct reader *r)
{
	return 8 * (uint64_t)(r->end - r->p) + r->filled;
}

/*
 * Reads the classes of @nr numbers. @p->order then has their places, class by class, and @ends where each
 * class ends. Return: the number of classes; 0: no valid data.
 */
static unsigned int get_classes(struct md_packer *p, struct reader *r, uint32_t nr,
				unsigned int nr_max, uint32_t *ends)
{
	unsigned int nr_classes = 0;
	uint32_t done = 0, nr_left = nr;

	for (uint32_t i = 0; i < nr; i++)
		p->left[i] = (uint16_t)i;
	while (nr_left) {
		uint32_t kept = 0;

		if (nr_classes == nr_max || bits_left(r) < nr_left)
			return 0;
		/* Both are written, and one of them counts: no branch depends on the bit. */
		for (uint32_t i = 0; i < nr_left; i++) {
			unsigned int ends_here = get_bit(r);

			p->order[done] = p->left[i];
			p->left[kept] = p->left[i];
			done += ends_here;
			kept += !ends_here;
		}
		nr_left = kept;
		ends[nr_classes++] = done;
	}
	return nr_classes;
}

/* Reads @nr numbers with at most @width_max bits into @p->numbers. Return: false: no valid data. */
static bool get_list(struct md_packer *p, struct reader *r, uint32_t nr, unsigned int k,
		     unsigned int width_max)
{
	uint32_t ends[NR_CLASSES], first = 0;
	unsigned int nr_classes = get_classes(p, r, nr, width_max - k + 1, ends);

	for (unsigned int class = 0; class < nr_classes; first = ends[class ++]) {
		const uint32_t end = ends[class];

		if (bits_left(r) < (uint64_t)(end - first) * (class + k))
			return false;
		for (uint32_t i = first; i < end; i++)
			p->numbers[p->order[i]] = 0;
		for (unsigned int digit = 0; digit < class + k; digit++)
			for (uint32_t i = first; i < end; i++) {
				uint64_t *number = &p->numbers[p->order[i]];

				*number = *number << 1 | get_bit(r);
			}
		for (uint32_t i = first; i < end; i++)
			p->numbers[p->order[i]] += least_of(class, k);
	}
	return nr_classes > 0;
}

int md_counts_unpack(struct md_packer *p, uint64_t base, const uint8_t *data, size_t size,
		     size_t *nr)
{
	struct reader r = {.p = data, .end = data};
	unsigned int ks = size ? data[size - 1] : 0, b = 128;
	uint64_t next = 0;
	uint32_t n = 0;

	if (ks < 128)
		return -EBADMSG;
	r.end += size - 1;
	for (unsigned int shift = 0; b > 127 && shift < 7 * NR_BYTES_MAX && r.p < r.end;
	     shift += 7) {
		b = *r.p++;
		n |= (b & 127) << shift;
	}
	if (b > 127 || !n || n > MP_CHUNK_SIZE)
		return -EBADMSG;
	if (reserve(p))
		return -ENOMEM;
	if (!get_list(p, &r, n, ks >> 3 & 15, DISTANCE_WIDTH_MAX))
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++) {
		next += p->numbers[i];
		if (next >= MP_CHUNK_SIZE)
			return -EBADMSG;
		p->entries[i].vaddr = base + next++;
	}
	if (!get_list(p, &r, n, ks & 7, COUNT_WIDTH_MAX) || bits_left(&r) > 7)
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++) {
		if ((p->numbers[i] + 1) >> COUNT_WIDTH_MAX)
			return -EBADMSG;
		p->entries[i].count = p->numbers[i] + 1;
	}
	*nr = n;
	return 0;
}
