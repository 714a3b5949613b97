// SPDX-License-Identifier: Apache-2.0
/* packed_counts - see packed_counts.h. */
#include "daemon/fleet/packed_counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	free(p->digits);
	free(p->padded);
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
	if (!p->digits)
		p->digits = malloc(MP_CHUNK_SIZE);
	if (!p->left)
		p->left = malloc(MP_CHUNK_SIZE * sizeof(*p->left));
	return p->entries && p->numbers && p->order && p->digits && p->left ? 0 : -ENOMEM;
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
	uint8_t *room;
	size_t nr;
	int r = reserve(p);

	if (r || size < PACKED_FROM)
		return r;
	room = realloc(p->bytes, size + NR_BYTES_MAX + 1);
	if (!room)
		return -ENOMEM;
	p->bytes = room;
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

/* Bytes that a reader may look at behind the last one. */
#define PADDING 8
/* Bits of a word that are there wherever it begins inside a byte. */
#define WORD_BITS 56

struct reader {
	const uint8_t *bytes; /* with PADDING zeros behind them */
	uint64_t next, end;   /* in bits */
};

/* The bits from @at on, at the top: WORD_BITS of them, then others. */
static uint64_t word_at(const struct reader *r, uint64_t at)
{
	uint64_t word;

	memcpy(&word, r->bytes + (at >> 3), sizeof(word));
	return __builtin_bswap64(word) << (at & 7);
}

/* The eight bits from @at on. */
static uint64_t byte_at(const struct reader *r, uint64_t at)
{
	uint16_t two;

	memcpy(&two, r->bytes + (at >> 3), sizeof(two));
	return (uint32_t)__builtin_bswap16(two) >> (8 - (at & 7)) & 255;
}

/* One byte of a word for each bit of @bits, the highest bit first in memory: 1 or 0. */
static uint64_t spread(uint64_t bits)
{
	const uint64_t each = 0x0101010101010101;
	/* All eight bits in each byte, of which byte i keeps bit 7 - i. */
	uint64_t kept = (bits * each) & 0x0102040810204080;

	return (kept + 0x7f * each) >> 7 & each;
}

/*
 * Moves those of the @nr places in @left whose bit is 1 to @ended. Return: how many; the caller checked that there
 * are as many bits.
 */
static uint32_t get_ended(struct reader *r, uint16_t *left, uint32_t nr, uint16_t *ended)
{
	uint32_t nr_ended = 0;

	for (uint32_t i = 0; i < nr;) {
		uint64_t bits = word_at(r, r->next + i);
		const uint32_t end = nr - i < WORD_BITS ? nr : i + WORD_BITS;

		/* Both are written, and one of them counts: no branch depends on the bit. */
		for (; i < end; i++, bits <<= 1) {
			uint16_t place = left[i];

			ended[nr_ended] = place;
			left[i - nr_ended] = place;
			nr_ended += (uint32_t)(bits >> 63);
		}
	}
	r->next += nr;
	return nr_ended;
}

/*
 * Reads the classes of @nr numbers. @p->order then has their places, class by class, and @ends where each
 * class ends. Return: the number of classes; 0: no valid data.
 */
static unsigned int get_classes(struct md_packer *p, struct reader *r, uint32_t nr,
				unsigned int nr_max, uint32_t *ends)
{
	unsigned int nr_classes = 0;
	uint32_t done = 0;

	for (uint32_t i = 0; i < nr; i++)
		p->left[i] = (uint16_t)i;
	while (done < nr) {
		if (nr_classes == nr_max || r->end - r->next < nr - done)
			return 0;
		done += get_ended(r, p->left, nr - done, &p->order[done]);
		ends[nr_classes++] = done;
	}
	return nr_classes;
}

/*
 * Reads @digits, at most eight, of each of @n numbers into @p->digits. The first digits of all of them come first, then
 * the second ones, ...
 */
static void get_digits(struct md_packer *p, struct reader *r, uint32_t n, unsigned int digits)
{
	for (uint32_t i = 0; i < n; i += 8) {
		uint64_t at = r->next + i, eight = 0;

		for (unsigned int digit = 0; digit < digits; digit++, at += n)
			eight = eight << 1 | spread(byte_at(r, at));
		memcpy(&p->digits[i], &eight, sizeof(eight));
	}
	r->next += (uint64_t)n * digits;
}

/* Reads the @n numbers of a class into the @places of @p->numbers. Return: false: too few bits. */
static bool get_class(struct md_packer *p, struct reader *r, const uint16_t *places, uint32_t n,
		      unsigned int class, unsigned int k)
{
	unsigned int now = class + k < 8 ? class + k : 8, left = class + k - now;
	const uint64_t top = (uint64_t)1 << now;

	if (r->end - r->next < (uint64_t)n * (class + k))
		return false;
	get_digits(p, r, n, now);
	/* A one before the digits of a number, less 1 << k, is least_of() and the digits. */
	for (uint32_t i = 0; i < n; i++)
		p->numbers[places[i]] = (top | p->digits[i]) - (left ? 0 : (uint64_t)1 << k);
	while (left) {
		now = left < 8 ? left : 8;
		left -= now;
		get_digits(p, r, n, now);
		for (uint32_t i = 0; i < n; i++)
			p->numbers[places[i]] = (p->numbers[places[i]] << now | p->digits[i]) -
						(left ? 0 : (uint64_t)1 << k);
	}
	return true;
}

/* Reads @nr numbers with at most @width_max bits into @p->numbers. Return: false: no valid data. */
static bool get_list(struct md_packer *p, struct reader *r, uint32_t nr, unsigned int k,
		     unsigned int width_max)
{
	uint32_t ends[NR_CLASSES], first = 0;
	unsigned int nr_classes = get_classes(p, r, nr, width_max - k + 1, ends);

	for (unsigned int class = 0; class < nr_classes; class ++) {
		if (!get_class(p, r, &p->order[first], ends[class] - first, class, k))
			return false;
		first = ends[class];
	}
	return nr_classes > 0;
}

/* The number of entries. Return: 0: no valid one. */
static uint32_t get_nr(struct reader *r)
{
	uint32_t nr = 0;

	for (unsigned int shift = 0; shift < 7 * NR_BYTES_MAX && r->next < r->end; shift += 7) {
		uint8_t byte = r->bytes[r->next >> 3];

		r->next += 8;
		nr |= (uint32_t)(byte & 127) << shift;
		if (byte < 128)
			return nr <= MP_CHUNK_SIZE ? nr : 0;
	}
	return 0;
}

/* A copy with zeros behind it. Return: NULL: out of memory. */
static const uint8_t *pad(struct md_packer *p, const uint8_t *data, size_t size)
{
	if (size + PADDING > p->padded_size) {
		uint8_t *room = realloc(p->padded, 2 * size + PADDING);

		if (!room)
			return NULL;
		p->padded = room;
		p->padded_size = 2 * size + PADDING;
	}
	memcpy(p->padded, data, size);
	memset(p->padded + size, 0, PADDING);
	return p->padded;
}

int md_counts_unpack(struct md_packer *p, uint64_t base, const uint8_t *data, size_t size,
		     size_t *nr)
{
	struct reader r = {.end = size ? 8 * ((uint64_t)size - 1) : 0};
	unsigned int ks = size ? data[size - 1] : 0;
	uint64_t next = 0;
	uint32_t n;

	if (ks < 128)
		return -EBADMSG;
	r.bytes = pad(p, data, size - 1);
	if (!r.bytes || reserve(p))
		return -ENOMEM;
	n = get_nr(&r);
	if (!n || !get_list(p, &r, n, ks >> 3 & 15, DISTANCE_WIDTH_MAX))
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++) {
		next += p->numbers[i];
		if (next >= MP_CHUNK_SIZE)
			return -EBADMSG;
		p->entries[i].vaddr = base + next++;
	}
	if (!get_list(p, &r, n, ks & 7, COUNT_WIDTH_MAX) || r.end - r.next > 7)
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++) {
		if ((p->numbers[i] + 1) >> COUNT_WIDTH_MAX)
			return -EBADMSG;
		p->entries[i].count = p->numbers[i] + 1;
	}
	*nr = n;
	return 0;
}
