// SPDX-License-Identifier: Apache-2.0
/* pull_sum - sums of one kind of a module's rows; see pull_sum.h. */
#include "daemon/fleet/pull/pull_sum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fleet/packed_counts.h"
#include "libprof/store/store_codec.h"

/* Addresses and transfers of one module: far more than any program has, and 64 MiB of memory. */
#define COUNTS_MAX (1u << 22)
#define EDGES_MAX  (1u << 21)
/* Different transfers of one chunk. */
#define SLOTS_MAX (1u << 20)

/* Sums of weighted counts: 63 bits of a count, 16 of a weight, and as many hosts as there may be. */
typedef unsigned __int128 wide;

/* Sums of one address or transfer. All zeros: there are no counts of it. */
struct place {
	wide sum;	   /* of the hosts before @host */
	wide most, second; /* from one of them, and from the host with the next most */
	wide own;	   /* from @host */
	int32_t host;
};

struct slot {
	uint64_t from, to;
	struct place count;
	wide mispredicted;
};

struct md_pull_sum {
	enum mp_fleet_kind kind;
	const struct mp_elf *elf;
	bool confirmed;
	int64_t chunk;	      /* that is being added up; -1: none yet */
	int32_t host;	      /* of its last row */
	struct place *places; /* counts: one for each address of the chunk */
	struct slot *slots;   /* edges: a hash table */
	size_t nr_slots, nr_used;
	const void *entries; /* of the row that is being added */
	void *decoded;	     /* room for them */
	size_t decoded_size;
	struct md_packer packer;
	struct md_pull_result result;
	size_t max;
};

int md_pull_sum_new(enum mp_fleet_kind kind, const struct mp_elf *elf, bool confirmed,
		    struct md_pull_sum **out, struct mp_err *err)
{
	struct md_pull_sum *sum = calloc(1, sizeof(*sum));

	if (!sum)
		return mp_err_set(err, ENOMEM, "out of memory");
	sum->kind = kind;
	sum->elf = elf;
	sum->confirmed = confirmed;
	sum->chunk = -1;
	sum->result.exact = true;
	sum->result.last_day = -1;
	sum->nr_slots = 1024;
	if (kind == MP_FLEET_COUNTS)
		sum->places = calloc(MP_CHUNK_SIZE, sizeof(*sum->places));
	else
		sum->slots = calloc(sum->nr_slots, sizeof(*sum->slots));
	if (!sum->places && !sum->slots) {
		md_pull_sum_free(sum);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	*out = sum;
	return 0;
}

void md_pull_sum_free(struct md_pull_sum *sum)
{
	if (!sum)
		return;
	free(sum->places);
	free(sum->slots);
	free(sum->decoded);
	md_packer_fini(&sum->packer);
	free(sum->result.counts);
	free(sum->result.edges);
	free(sum);
}

/* ---- places -------------------------------------------------------------------------------- */

static bool is_used(const struct place *p)
{
	return p->own || p->sum;
}

static void end_host(struct place *p)
{
	p->sum += p->own;
	if (p->own > p->most) {
		p->second = p->most;
		p->most = p->own;
	} else if (p->own > p->second) {
		p->second = p->own;
	}
	p->own = 0;
}

/* The rows of a host come one after the other. */
static void add_to(struct place *p, int32_t host, wide count)
{
	if (p->host != host)
		end_host(p);
	p->host = host;
	p->own += count;
}

static wide sum_of(struct md_pull_sum *sum, struct place *p)
{
	end_host(p);
	if (!sum->confirmed)
		return p->sum;
	sum->result.exact &= p->most == p->second;
	return p->sum - p->most + p->second;
}

/* ---- results ------------------------------------------------------------------------------- */

/* Rounds to the nearest. Return: false if it does not fit. */
static bool round_sum(wide sum, uint64_t *out)
{
	wide rounded = (sum + MD_PULL_WHOLE / 2) / MD_PULL_WHOLE;

	*out = (uint64_t)rounded;
	return rounded <= INT64_MAX;
}

static int add_total(struct md_pull_sum *sum, uint64_t count, struct mp_err *err)
{
	struct md_pull_result *r = &sum->result;

	if (__builtin_add_overflow(r->total, count, &r->total) || r->total > INT64_MAX)
		return mp_err_set(err, EOVERFLOW, "the fleet has more than 2^63 counts");
	return 0;
}

/* Room for one more result of @size bytes. */
static int grow(struct md_pull_sum *sum, void **list, size_t size, size_t limit, struct mp_err *err)
{
	size_t max = sum->max ? 2 * sum->max : 4096;
	void *bigger;

	if (sum->result.nr < sum->max)
		return 0;
	if (sum->result.nr >= limit)
		return mp_err_set(err, EFBIG,
				  "the fleet has counts of more places than a program has");
	bigger = reallocarray(*list, max, size);
	if (!bigger)
		return mp_err_set(err, ENOMEM, "out of memory");
	*list = bigger;
	sum->max = max;
	return 0;
}

static int finish_counts(struct md_pull_sum *sum, struct mp_err *err)
{
	struct md_pull_result *r = &sum->result;
	uint64_t base = (uint64_t)sum->chunk << MP_CHUNK_SHIFT, count;
	void *list;
	int ret;

	for (uint32_t i = 0; i < MP_CHUNK_SIZE; i++) {
		if (!is_used(&sum->places[i]))
			continue;
		if (!round_sum(sum_of(sum, &sum->places[i]), &count))
			return mp_err_set(err, EOVERFLOW, "the fleet has more than 2^63 counts");
		sum->places[i] = (struct place){0};
		if (!count)
			continue;
		list = r->counts;
		ret = grow(sum, &list, sizeof(*r->counts), COUNTS_MAX, err);
		r->counts = list;
		if (!ret)
			ret = add_total(sum, count, err);
		if (ret)
			return ret;
		r->counts[r->nr++] = (struct mp_ip_count){base + i, count};
	}
	return 0;
}

static int compare_edges(const void *a, const void *b)
{
	const struct mp_edge_count *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static int finish_edges(struct md_pull_sum *sum, struct mp_err *err)
{
	struct md_pull_result *r = &sum->result;
	size_t first = r->nr;
	void *list;
	int ret;

	for (size_t i = 0; i < sum->nr_slots; i++) {
		struct slot *slot = &sum->slots[i];
		struct mp_edge_count edge = {.from = slot->from, .to = slot->to};

		if (!is_used(&slot->count))
			continue;
		if (!round_sum(sum_of(sum, &slot->count), &edge.count) ||
		    !round_sum(slot->mispredicted, &edge.mispredicted))
			return mp_err_set(err, EOVERFLOW, "the fleet has more than 2^63 counts");
		if (edge.mispredicted > edge.count)
			edge.mispredicted = edge.count;
		if (!edge.count)
			continue;
		list = r->edges;
		ret = grow(sum, &list, sizeof(*r->edges), EDGES_MAX, err);
		r->edges = list;
		if (!ret)
			ret = add_total(sum, edge.count, err);
		if (ret)
			return ret;
		r->edges[r->nr++] = edge;
	}
	memset(sum->slots, 0, sum->nr_slots * sizeof(*sum->slots));
	sum->nr_used = 0;
	if (r->nr > first)
		qsort(&r->edges[first], r->nr - first, sizeof(*r->edges), compare_edges);
	return 0;
}

static int finish_chunk(struct md_pull_sum *sum, struct mp_err *err)
{
	if (sum->chunk < 0)
		return 0;
	return sum->kind == MP_FLEET_COUNTS ? finish_counts(sum, err) : finish_edges(sum, err);
}

int md_pull_sum_finish(struct md_pull_sum *sum, struct md_pull_result *out, struct mp_err *err)
{
	int r = finish_chunk(sum, err);

	if (r)
		return r;
	sum->result.exact &= sum->result.nr_rows > 0;
	*out = sum->result;
	sum->result.counts = NULL;
	sum->result.edges = NULL;
	return 0;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static struct slot *find_slot(struct slot *slots, size_t nr, uint64_t from, uint64_t to)
{
	uint64_t hash = (from * 0x9e3779b97f4a7c15u) ^ (to * 0xc2b2ae3d27d4eb4fu);
	size_t i = (size_t)(hash ^ hash >> 32) & (nr - 1);

	while (is_used(&slots[i].count) && (slots[i].from != from || slots[i].to != to))
		i = (i + 1) & (nr - 1);
	return &slots[i];
}

static int grow_slots(struct md_pull_sum *sum, struct mp_err *err)
{
	size_t nr = 2 * sum->nr_slots;
	struct slot *bigger;

	if (sum->nr_used < sum->nr_slots / 2)
		return 0;
	if (nr > SLOTS_MAX)
		return mp_err_set(err, EFBIG,
				  "the fleet has counts of more places than a program has");
	bigger = calloc(nr, sizeof(*bigger));
	if (!bigger)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < sum->nr_slots; i++)
		if (is_used(&sum->slots[i].count))
			*find_slot(bigger, nr, sum->slots[i].from, sum->slots[i].to) =
				sum->slots[i];
	free(sum->slots);
	sum->slots = bigger;
	sum->nr_slots = nr;
	return 0;
}

static bool is_outside(const struct md_pull_sum *sum, uint64_t vaddr)
{
	return sum->elf && !mp_elf_is_code(sum->elf, vaddr);
}

static void add_counts(struct md_pull_sum *sum, size_t nr, int32_t weight)
{
	const struct mp_ip_count *counts = sum->entries;

	for (size_t i = 0; i < nr; i++) {
		if (is_outside(sum, counts[i].vaddr))
			sum->result.outside += counts[i].count;
		else
			add_to(&sum->places[counts[i].vaddr & (MP_CHUNK_SIZE - 1)], sum->host,
			       (wide)counts[i].count * (wide)weight);
	}
}

static int add_edges(struct md_pull_sum *sum, size_t nr, int32_t weight, struct mp_err *err)
{
	const struct mp_edge_count *edges = sum->entries;

	for (size_t i = 0; i < nr; i++) {
		struct slot *slot;
		int r;

		if (is_outside(sum, edges[i].from) || is_outside(sum, edges[i].to)) {
			sum->result.outside += edges[i].count;
			continue;
		}
		r = grow_slots(sum, err);
		if (r)
			return r;
		slot = find_slot(sum->slots, sum->nr_slots, edges[i].from, edges[i].to);
		sum->nr_used += !is_used(&slot->count);
		slot->from = edges[i].from;
		slot->to = edges[i].to;
		add_to(&slot->count, sum->host, (wide)edges[i].count * (wide)weight);
		slot->mispredicted += (wide)edges[i].mispredicted * (wide)weight;
	}
	return 0;
}

/* Return: whether the @nr entries have the sum that the row says. The server caps hosts by it. */
static bool adds_up(const struct md_pull_sum *sum, size_t nr, int64_t total)
{
	const struct mp_edge_count *edges = sum->entries;
	const struct mp_ip_count *counts = sum->entries;
	uint64_t all = 0;

	for (size_t i = 0; i < nr; i++) {
		uint64_t count = sum->kind == MP_FLEET_COUNTS ? counts[i].count : edges[i].count;

		if (__builtin_add_overflow(all, count, &all))
			return false;
	}
	return all == (uint64_t)total;
}

/* Packed counts. Return: 0, -EBADMSG, -ENOMEM. */
static int unpack(struct md_pull_sum *sum, const struct md_pull_row *row, size_t *nr,
		  struct mp_err *err)
{
	int r = md_counts_unpack(&sum->packer, (uint64_t)row->chunk << MP_CHUNK_SHIFT, row->data,
				 row->size, nr);

	sum->entries = sum->packer.entries;
	return r == -ENOMEM ? mp_err_set(err, ENOMEM, "out of memory") : r;
}

/* Decodes the row's entries. Return: 1: sound, 0: not, -ENOMEM. */
static int decode(struct md_pull_sum *sum, const struct md_pull_row *row, size_t *nr,
		  struct mp_err *err)
{
	uint64_t base = (uint64_t)row->chunk << MP_CHUNK_SHIFT;
	size_t size = sum->kind == MP_FLEET_COUNTS
			      ? MP_CHUNK_SIZE * sizeof(struct mp_ip_count)
			      : (row->size / MP_EDGE_ENTRY_MIN + 1) * sizeof(struct mp_edge_count);
	void *bigger;
	int r;

	if (!row->data || !row->size || row->size > MP_FLEET_ROW_BYTES_MAX || row->total <= 0 ||
	    row->weight <= 0 || row->weight > MD_PULL_WHOLE || row->last_day < 0)
		return 0;
	if (sum->kind == MP_FLEET_COUNTS && md_counts_are_packed(row->data, row->size)) {
		r = unpack(sum, row, nr, err);
		return r == -ENOMEM ? r : !r && adds_up(sum, *nr, row->total);
	}
	if (size > sum->decoded_size) {
		bigger = realloc(sum->decoded, size);
		if (!bigger)
			return mp_err_set(err, ENOMEM, "out of memory");
		sum->decoded = bigger;
		sum->decoded_size = size;
	}
	sum->entries = sum->decoded;
	r = sum->kind == MP_FLEET_COUNTS
		    ? mp_chunk_decode(base, row->data, row->size, sum->decoded, nr)
		    : mp_edge_decode(base, row->data, row->size, sum->decoded, nr);
	return !r && adds_up(sum, *nr, row->total);
}

int md_pull_sum_add(struct md_pull_sum *sum, const struct md_pull_row *row, struct mp_err *err)
{
	struct md_pull_result *result = &sum->result;
	size_t nr;
	int r;

	if (row->chunk < sum->chunk || row->chunk < 0 ||
	    (row->chunk == sum->chunk && row->host < sum->host) ||
	    (uint64_t)row->chunk > UINT64_MAX >> MP_CHUNK_SHIFT)
		return mp_err_set(err, EPROTO, "the server's rows are out of order");
	if (row->chunk != sum->chunk) {
		r = finish_chunk(sum, err);
		if (r)
			return r;
		sum->chunk = row->chunk;
	}
	sum->host = row->host;
	result->nr_rows++;
	r = decode(sum, row, &nr, err);
	if (r <= 0) {
		result->nr_bad += !r;
		return r;
	}
	result->exact &= row->exact && row->weight == MD_PULL_WHOLE;
	if (row->last_day > result->last_day)
		result->last_day = row->last_day;
	if (sum->kind == MP_FLEET_EDGES)
		return add_edges(sum, nr, row->weight, err);
	add_counts(sum, nr, row->weight);
	return 0;
}
