// SPDX-License-Identifier: Apache-2.0
/* pull_sum - sums of one kind of a module's rows; see pull_sum.h. */
#include "daemon/fleet/pull/pull_sum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "daemon/fleet/packed_counts.h"
#include "libprof/base/varint.h"
#include "libprof/store/fleet/fleet_paths.h"
#include "libprof/store/store_codec.h"

/* Most sums of one module, by kind: far more than any program has. */
static const size_t results_max[] = {1u << 22, 1u << 21, 1u << 21};
static const size_t sizes[] = {sizeof(struct mp_ip_count), sizeof(struct mp_edge_count),
			       sizeof(struct mp_path_count)};
/* Different transfers or paths of one chunk, and bytes of keys. */
#define SLOTS_MAX (1u << 20)
#define KEYS_MAX  (32u << 20)

/* Sums of weighted counts: 63 bits of a count, 16 of a weight, and as many hosts as there may be. */
typedef unsigned __int128 wide;

/* Sums of one address, transfer or path. All zeros: there are no counts of it. */
struct place {
	wide sum;	   /* of the hosts before @host */
	wide most, second; /* from one of them, and from the host with the next most */
	wide own;	   /* from @host */
	int32_t host;
};

struct slot {
	size_t key; /* in the keys of the chunk: a path's key, or both addresses of a transfer */
	uint32_t key_size;
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
	struct slot *slots;   /* others: a hash table of the chunk */
	size_t nr_slots, nr_used;
	struct mp_varint_writer keys; /* of the slots */
	const void *entries;	      /* of the row that is being added */
	void *decoded;		      /* room for them */
	size_t decoded_size;
	struct md_packer packer;
	struct md_pull_result result;
	struct mp_varint_writer list;	   /* results */
	struct mp_varint_writer path_keys; /* of the results */
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
	free(sum->keys.bytes);
	free(sum->decoded);
	md_packer_fini(&sum->packer);
	free(sum->list.bytes);
	free(sum->path_keys.bytes);
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

/* Appends a result, unless its count is 0 or there is no room. */
static int finish_entry(struct md_pull_sum *sum, const void *entry, uint64_t count,
			struct mp_err *err)
{
	struct md_pull_result *r = &sum->result;

	if (!count)
		return 0;
	if (r->nr == results_max[sum->kind] || sum->path_keys.size > KEYS_MAX) {
		r->left_out += count;
		return 0;
	}
	if (__builtin_add_overflow(r->total, count, &r->total) || r->total > INT64_MAX)
		return mp_err_set(err, EOVERFLOW, "the fleet has more than 2^63 counts");
	if (sum->kind == MP_FLEET_PATHS)
		mp_varint_put_bytes(&sum->path_keys, ((const struct mp_path_count *)entry)->key,
				    ((const struct mp_path_count *)entry)->key_size);
	mp_varint_put_bytes(&sum->list, entry, sizes[sum->kind]);
	r->nr++;
	return 0;
}

static int finish_counts(struct md_pull_sum *sum, struct mp_err *err)
{
	uint64_t base = (uint64_t)sum->chunk << MP_CHUNK_SHIFT;
	int r = 0;

	for (uint32_t i = 0; i < MP_CHUNK_SIZE && !r; i++) {
		struct mp_ip_count entry = {.vaddr = base + i};

		if (!is_used(&sum->places[i]))
			continue;
		if (!round_sum(sum_of(sum, &sum->places[i]), &entry.count))
			return mp_err_set(err, EOVERFLOW, "the fleet has more than 2^63 counts");
		sum->places[i] = (struct place){0};
		r = finish_entry(sum, &entry, entry.count, err);
	}
	return r;
}

static int compare_edges(const void *a, const void *b)
{
	const struct mp_edge_count *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static int finish_slot(struct md_pull_sum *sum, struct slot *slot, struct mp_err *err)
{
	const uint8_t *key = sum->keys.bytes + slot->key;
	struct mp_path_count path = {key, slot->key_size, 0};
	struct mp_edge_count edge;
	uint64_t count, mispredicted;

	if (!round_sum(sum_of(sum, &slot->count), &count) ||
	    !round_sum(slot->mispredicted, &mispredicted))
		return mp_err_set(err, EOVERFLOW, "the fleet has more than 2^63 counts");
	path.count = count;
	if (sum->kind == MP_FLEET_PATHS)
		return finish_entry(sum, &path, count, err);
	edge = (struct mp_edge_count){.count = count,
				      .mispredicted = mispredicted < count ? mispredicted : count};
	memcpy(&edge.from, key, 8);
	memcpy(&edge.to, key + 8, 8);
	return finish_entry(sum, &edge, count, err);
}

static int finish_slots(struct md_pull_sum *sum, struct mp_err *err)
{
	size_t first = sum->result.nr;
	int r = 0;

	for (size_t i = 0; i < sum->nr_slots && !r; i++)
		if (is_used(&sum->slots[i].count))
			r = finish_slot(sum, &sum->slots[i], err);
	memset(sum->slots, 0, sum->nr_slots * sizeof(*sum->slots));
	sum->nr_used = 0;
	sum->keys.size = 0;
	if (sum->kind == MP_FLEET_EDGES && sum->result.nr > first)
		qsort(sum->list.bytes + first * sizes[MP_FLEET_EDGES], sum->result.nr - first,
		      sizes[MP_FLEET_EDGES], compare_edges);
	return r;
}

static int finish_chunk(struct md_pull_sum *sum, struct mp_err *err)
{
	if (sum->chunk < 0)
		return 0;
	return sum->places ? finish_counts(sum, err) : finish_slots(sum, err);
}

int md_pull_sum_finish(struct md_pull_sum *sum, struct md_pull_result *out, struct mp_err *err)
{
	struct mp_path_count *paths;
	const uint8_t *key;
	size_t size;
	int r = finish_chunk(sum, err);

	if (r)
		return r;
	size = sum->list.size;
	mp_varint_put_bytes(&sum->list, sum->path_keys.bytes, sum->path_keys.size);
	if (sum->list.failed || sum->path_keys.failed)
		return mp_err_set(err, ENOMEM, "out of memory");
	paths = (struct mp_path_count *)(void *)sum->list.bytes;
	key = sum->list.bytes + size;
	for (size_t i = 0; i < sum->result.nr && sum->kind == MP_FLEET_PATHS; i++) {
		paths[i].key = key;
		key += paths[i].key_size;
	}
	sum->result.exact &= sum->result.nr_rows > 0;
	*out = sum->result;
	out->entries = sum->list.bytes;
	sum->list.bytes = NULL;
	return 0;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static struct slot *find_slot(const struct md_pull_sum *sum, struct slot *slots, size_t nr,
			      const uint8_t *key, uint32_t size)
{
	size_t i = (size_t)XXH3_64bits(key, size) & (nr - 1);

	while (is_used(&slots[i].count) && (slots[i].key_size != size ||
					    memcmp(sum->keys.bytes + slots[i].key, key, size) != 0))
		i = (i + 1) & (nr - 1);
	return &slots[i];
}

static int grow_slots(struct md_pull_sum *sum)
{
	size_t nr = 2 * sum->nr_slots;
	struct slot *bigger;

	if (sum->nr_used < sum->nr_slots / 2 || nr > SLOTS_MAX)
		return 0;
	bigger = calloc(nr, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	for (size_t i = 0; i < sum->nr_slots; i++) {
		const struct slot *s = &sum->slots[i];

		if (is_used(&s->count))
			*find_slot(sum, bigger, nr, sum->keys.bytes + s->key, s->key_size) = *s;
	}
	free(sum->slots);
	sum->slots = bigger;
	sum->nr_slots = nr;
	return 0;
}

static int add_by_key(struct md_pull_sum *sum, const void *key, uint32_t size, uint64_t count,
		      uint64_t mispredicted, int32_t weight)
{
	struct slot *slot;

	if (grow_slots(sum))
		return -ENOMEM;
	slot = find_slot(sum, sum->slots, sum->nr_slots, key, size);
	if (!is_used(&slot->count)) {
		if (sum->nr_used == sum->nr_slots / 2 || sum->keys.size + size > KEYS_MAX) {
			sum->result.left_out += count;
			return 0;
		}
		slot->key = sum->keys.size;
		slot->key_size = size;
		mp_varint_put_bytes(&sum->keys, key, size);
		if (sum->keys.failed)
			return -ENOMEM;
		sum->nr_used++;
	}
	add_to(&slot->count, sum->host, (wide)count * (wide)weight);
	slot->mispredicted += (wide)mispredicted * (wide)weight;
	return 0;
}

static bool is_outside(const struct md_pull_sum *sum, uint64_t vaddr)
{
	return sum->elf && !mp_elf_is_code(sum->elf, vaddr);
}

static bool is_path_outside(const struct md_pull_sum *sum, const struct mp_path_count *path)
{
	uint64_t vaddrs[MP_PATH_MAX_BLOCKS];
	uint32_t nr = sum->elf ? mp_path_key_decode(path->key, path->key_size, vaddrs, NULL) : 0;

	/* The first address is 0 where control came from outside of the function. */
	for (uint32_t i = 0; i < nr; i++)
		if ((i || vaddrs[i]) && is_outside(sum, vaddrs[i]))
			return true;
	return false;
}

static uint64_t count_of(const struct md_pull_sum *sum, size_t i)
{
	switch (sum->kind) {
	case MP_FLEET_COUNTS: return ((const struct mp_ip_count *)sum->entries)[i].count;
	case MP_FLEET_EDGES: return ((const struct mp_edge_count *)sum->entries)[i].count;
	default: return ((const struct mp_path_count *)sum->entries)[i].count;
	}
}

/* Adds the entry @i, unless it is not in the file's code. */
static int add_entry(struct md_pull_sum *sum, size_t i, int32_t weight)
{
	const struct mp_ip_count *ip = (const struct mp_ip_count *)sum->entries + i;
	const struct mp_edge_count *edge = (const struct mp_edge_count *)sum->entries + i;
	const struct mp_path_count *path = (const struct mp_path_count *)sum->entries + i;

	uint64_t transfer[2];

	switch (sum->kind) {
	case MP_FLEET_COUNTS:
		if (is_outside(sum, ip->vaddr))
			break;
		add_to(&sum->places[ip->vaddr & (MP_CHUNK_SIZE - 1)], sum->host,
		       (wide)ip->count * (wide)weight);
		return 0;
	case MP_FLEET_EDGES:
		if (is_outside(sum, edge->from) || is_outside(sum, edge->to))
			break;
		transfer[0] = edge->from;
		transfer[1] = edge->to;
		return add_by_key(sum, transfer, sizeof(transfer), edge->count, edge->mispredicted,
				  weight);
	default:
		if (is_path_outside(sum, path))
			break;
		return add_by_key(sum, path->key, path->key_size, path->count, 0, weight);
	}
	sum->result.outside += count_of(sum, i);
	return 0;
}

/* Return: whether the @nr entries have the sum that the row says. The server caps hosts by it. */
static bool adds_up(const struct md_pull_sum *sum, size_t nr, int64_t total)
{
	uint64_t all = 0;

	for (size_t i = 0; i < nr; i++)
		if (__builtin_add_overflow(all, count_of(sum, i), &all))
			return false;
	return all == (uint64_t)total;
}

/* Decodes the row's entries. Return: 1: sound, 0: not, -ENOMEM. */
static int decode(struct md_pull_sum *sum, const struct md_pull_row *row, size_t *nr)
{
	static const size_t least[] = {1, MP_EDGE_ENTRY_MIN, MP_FLEET_PATH_MIN};
	uint64_t base = (uint64_t)row->chunk << MP_CHUNK_SHIFT;
	size_t size = sum->kind == MP_FLEET_COUNTS ? MP_CHUNK_SIZE
						   : row->size / least[sum->kind] + 1;
	void *bigger;
	int r;

	if (!md_pull_row_is_sound(row, MP_FLEET_ROW_BYTES_MAX))
		return 0;
	if (size * sizes[sum->kind] > sum->decoded_size) {
		bigger = realloc(sum->decoded, size * sizes[sum->kind]);
		if (!bigger)
			return -ENOMEM;
		sum->decoded = bigger;
		sum->decoded_size = size * sizes[sum->kind];
	}
	sum->entries = sum->decoded;
	if (sum->kind == MP_FLEET_PATHS) {
		r = mp_fleet_paths_decode(row->chunk, row->data, row->size, sum->decoded, nr);
	} else if (sum->kind == MP_FLEET_EDGES) {
		r = mp_edge_decode(base, row->data, row->size, sum->decoded, nr);
	} else if (md_counts_are_packed(row->data, row->size)) {
		r = md_counts_unpack(&sum->packer, base, row->data, row->size, nr);
		sum->entries = sum->packer.entries;
	} else {
		r = mp_chunk_decode(base, row->data, row->size, sum->decoded, nr);
	}
	return r == -ENOMEM ? r : !r && adds_up(sum, *nr, row->total);
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
	r = decode(sum, row, &nr);
	result->nr_bad += !r;
	if (r > 0) {
		result->exact &= row->exact && row->weight == MD_PULL_WHOLE;
		if (row->last_day > result->last_day)
			result->last_day = row->last_day;
		r = 0;
		for (size_t i = 0; i < nr && !r; i++)
			r = add_entry(sum, i, row->weight);
	}
	return r < 0 ? mp_err_set(err, ENOMEM, "out of memory") : 0;
}
