// SPDX-License-Identifier: Apache-2.0
/* plan_file - writes and reads plans; see plan_file.h. The same code describes the bits for both. */
#include "editor/optimize/plan_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "editor/evidence/eligible.h"
#include "libprof/base/grow.h"
#include "libprof/base/range_coder.h"

#define MAGIC "MORPHPLN"
/* Besides the copy of a block, each zone may have one clone of it for each block. */
#define COPIES_MAX (1 + ME_NR_ZONES)

struct coder {
	struct mp_range_coder rc;
	const struct mp_cfg *cfg;
	uint64_t expected; /* the end of the block, or call, before */
	bool followed;	   /* the block before was the expected one */
	/* Models; [0]: of blocks of the hot zone, [1]: of others. */
	struct mp_bit_model settings, moved[2][2], clone[2], why[2][3], favour_fall[2];
	struct mp_bit_model aligned[2][2], new_line[2], run[2], loop[2], pad;
	struct mp_number_model number, distance[2], align, offset, length, gap, last;
};

static void coder_init(struct coder *c, const struct mp_cfg *cfg)
{
	memset(c, 0, sizeof(*c));
	c->cfg = cfg;
	/* All models, since they lie side by side. */
	mp_bit_models_init(&c->settings, (sizeof(*c) - offsetof(struct coder, settings)) /
						 sizeof(struct mp_bit_model));
}

static bool code_bit(struct coder *c, struct mp_bit_model *model, bool bit)
{
	return mp_range_bit(&c->rc, model, bit);
}

static uint64_t code_number(struct coder *c, struct mp_number_model *model, uint64_t number)
{
	return mp_range_number(&c->rc, model, number);
}

/* Numbers above @most are none of this field: they become one that no check accepts. */
static uint8_t code_small(struct coder *c, struct mp_number_model *model, uint8_t number)
{
	uint64_t read = code_number(c, model, number);

	return read < UINT8_MAX ? (uint8_t)read : UINT8_MAX;
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* Small distances in either direction are small numbers; 0 is not written. */
static uint64_t code_address(struct coder *c, bool warm, uint64_t vaddr)
{
	uint64_t distance = vaddr - c->expected;
	bool moved = code_bit(c, &c->moved[warm][c->followed], distance != 0);

	c->followed = !moved;
	if (!moved)
		return c->expected;
	distance = distance >> 63 ? ~distance << 1 | 1 : distance << 1;
	distance = code_number(c, &c->distance[warm], distance);
	return c->expected + (distance & 1 ? ~(distance >> 1) : distance >> 1);
}

static uint8_t code_why(struct coder *c, bool warm, uint8_t why)
{
	bool high = code_bit(c, &c->why[warm][0], why >> 1 & 1);

	return (uint8_t)(high << 1 | code_bit(c, &c->why[warm][1 + high], why & 1));
}

static float code_heat(struct coder *c, float heat)
{
	uint32_t bits;

	memcpy(&bits, &heat, sizeof(bits));
	bits = (uint32_t)mp_range_bits(&c->rc, 32, bits);
	memcpy(&heat, &bits, sizeof(heat));
	return heat;
}

/* Return: false: no block begins where the plan has one; @c->expected says where. */
static bool code_block(struct coder *c, struct me_plan_block *b)
{
	bool warm = b->zone == ME_ZONE_WARM, entry, has;
	const struct mp_block *block;
	uint64_t vaddr;

	vaddr = code_address(c, warm, c->rc.reading ? 0 : c->cfg->blocks[b->block].vaddr);
	if (c->rc.reading)
		b->block = mp_cfg_block_starting(c->cfg, vaddr);
	c->expected = vaddr;
	if (b->block == MP_NONE)
		return false;
	block = &c->cfg->blocks[b->block];
	c->expected = vaddr + block->size;
	b->clone = code_bit(c, &c->clone[warm], b->clone);
	b->why = code_why(c, warm, b->why);
	b->favour_fall = code_bit(c, &c->favour_fall[warm], b->favour_fall);
	entry = block->flags & MP_BLOCK_ENTRY;
	if (code_bit(c, &c->aligned[warm][entry], b->align_log2 || b->align_offset)) {
		b->align_log2 = code_small(c, &c->align, b->align_log2);
		b->align_offset = code_small(c, &c->offset, b->align_offset);
	}
	b->new_line = code_bit(c, &c->new_line[warm], b->new_line);
	if (code_bit(c, &c->run[warm], b->run))
		b->run = code_small(c, &c->length, b->run);
	has = code_bit(c, &c->loop[warm], b->loop);
	if (has) {
		b->loop = code_small(c, &c->length, b->loop);
		b->pad = code_bit(c, &c->pad, b->pad);
	}
	if (has || b->run)
		b->heat = code_heat(c, b->heat);
	return true;
}

/* What layout promises of a plan, and the writer of bytes relies on. */
struct checker {
	const struct mp_cfg *cfg;
	const uint8_t *movable;
	const struct me_plan *plan;
	uint8_t *copied; /* per block: there is a copy that is no clone */
	uint8_t *seen;	 /* per function: 1 << zone; ENTRY_SEEN */
	uint64_t room;	 /* bytes that further clones may have */
};

enum {
	ENTRY_SEEN = 1 << ME_NR_ZONES,
};

/* May a clone of @block stand behind a copy of @before? Control must come to it from there. */
static bool is_successor(const struct mp_cfg *cfg, const struct mp_block *before, uint32_t block)
{
	if (before->term != MP_TERM_COND && before->term != MP_TERM_JUMP &&
	    before->term != MP_TERM_FALL)
		return false;
	for (uint32_t e = 0; e < before->nr_edges; e++)
		if (cfg->edges[before->first_edge + e].to == block)
			return true;
	return false;
}

/* Return: why the plan may not have its block @i there; NULL: it may. */
static const char *check_block(struct checker *x, uint32_t i)
{
	const struct me_plan_block *b = &x->plan->blocks[i], *before = i ? b - 1 : NULL;
	const struct mp_block *block = &x->cfg->blocks[b->block];
	bool begins = !before || before->zone != b->zone ||
		      x->cfg->blocks[before->block].func != block->func;

	if (b->stub || b->version != ME_VERSION_NEW || b->left_out || b->via_slot || b->inlined ||
	    b->apart)
		return "it is instrumented, or lacks instructions";
	if (block->func == MP_NONE || !x->movable[block->func] || me_block_stays(block))
		return "this code may not be copied";
	if (b->align_log2 > ME_LINE_LOG2 || b->align_offset >> b->align_log2 || !(b->heat >= 0) ||
	    isinf(b->heat))
		return "its place or heat is out of range";
	if (begins && x->seen[block->func] >> b->zone & 1)
		return "its function is in two places";
	x->seen[block->func] |= (uint8_t)(1 << b->zone);
	if (b->clone && block->size > x->room)
		return "its clones are more than twice as large as the program's code";
	x->room -= b->clone ? block->size : 0;
	if (b->clone)
		return begins || block->flags & (MP_BLOCK_ENTRY | MP_BLOCK_LANDING_PAD) ||
				       !is_successor(x->cfg, &x->cfg->blocks[before->block],
						     b->block)
			       ? "no block falls into this clone"
			       : NULL;
	if (x->copied[b->block])
		return "it is there twice";
	x->copied[b->block] = 1;
	if (!(block->flags & MP_BLOCK_ENTRY))
		return NULL;
	x->seen[block->func] |= ENTRY_SEEN;
	return begins ? NULL : "an entry is not the first block of its function";
}

int me_plan_check(const struct mp_cfg *cfg, const uint8_t *movable, const struct me_plan *plan,
		  struct mp_err *err)
{
	struct checker x = {.cfg = cfg,
			    .movable = movable,
			    .plan = plan,
			    .copied = calloc((size_t)cfg->nr_blocks + 1, 1),
			    .seen = calloc((size_t)cfg->nr_funcs + 1, 1)};
	const char *why = NULL;
	uint32_t i = 0;
	int rc = 0;

	if (!x.copied || !x.seen) {
		rc = mp_err_set(err, ENOMEM, "out of memory");
		goto out;
	}
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		x.room += ME_NR_ZONES * (uint64_t)cfg->blocks[b].size;
	while (i < plan->nr_blocks && !(why = check_block(&x, i)))
		i++;
	if (!why)
		for (i = 0; i < plan->nr_blocks && !why; i += !why) {
			const struct me_plan_block *b = &plan->blocks[i];

			if (!(x.seen[cfg->blocks[b->block].func] & ENTRY_SEEN))
				why = "its function's entry is missing";
			else if (!x.copied[b->block])
				why = "there is a clone only";
		}
	if (why)
		rc = mp_err_set(err, EBADMSG, "block 0x%" PRIx64 ": %s",
				cfg->blocks[plan->blocks[i].block].vaddr, why);
out:
	free(x.copied);
	free(x.seen);
	return rc;
}

/* Settings, and the number of blocks of each zone. */
static void code_head(struct coder *c, struct me_plan_file *file, uint64_t nr[ME_NR_ZONES])
{
	file->slots = code_bit(c, &c->settings, file->slots);
	file->inlines = code_bit(c, &c->settings, file->inlines);
	file->huge_pages = code_bit(c, &c->settings, file->huge_pages);
	file->arranges = code_bit(c, &c->settings, file->arranges);
	file->plan.line_log2 = code_small(c, &c->number, file->plan.line_log2);
	for (int zone = 0; zone < ME_NR_ZONES; zone++)
		nr[zone] = code_number(c, &c->number, nr[zone]);
}

/* ---- calls --------------------------------------------------------------------------------- */

static void code_call(struct coder *c, struct me_plan_call *call)
{
	c->expected += code_number(c, &c->gap, call->end - c->expected);
	call->end = c->expected;
	call->last = code_small(c, &c->last, call->last);
}

static int compare_calls(const void *a, const void *b)
{
	const struct me_plan_call *x = a, *y = b;

	return (x->end > y->end) - (x->end < y->end);
}

/* ---- writing ------------------------------------------------------------------------------- */

struct me_plan_writer {
	struct coder coder;
	struct mp_varint_writer out;
};

static void put_identity(struct mp_varint_writer *out, const struct mp_id *id)
{
	uint8_t head[sizeof(MAGIC) - 1 + 10] = MAGIC, *at = head + sizeof(MAGIC) - 1;

	*at++ = ME_PLAN_FORMAT;
	for (int i = 0; i < 8; i++)
		*at++ = (uint8_t)(id->text_hash >> 8 * i);
	*at++ = id->build_id_len;
	mp_varint_put_bytes(out, head, sizeof(head));
	mp_varint_put_bytes(out, id->build_id, id->build_id_len);
}

int me_plan_writer_new(const struct mp_cfg *cfg, const struct me_plan_file *file,
		       struct me_plan_writer **out, struct mp_err *err)
{
	struct me_plan_writer *w = malloc(sizeof(*w));
	struct me_plan_file copy = *file;
	uint64_t nr[ME_NR_ZONES] = {0};

	if (!w)
		return mp_err_set(err, ENOMEM, "out of memory");
	coder_init(&w->coder, cfg);
	w->out = (struct mp_varint_writer){0};
	put_identity(&w->out, &cfg->elf->id);
	mp_range_write(&w->coder.rc, &w->out);
	for (uint32_t i = 0; i < file->plan.nr_blocks; i++)
		nr[file->plan.blocks[i].zone]++;
	code_head(&w->coder, &copy, nr);
	for (uint32_t i = 0; i < file->plan.nr_blocks; i++) {
		struct me_plan_block block = file->plan.blocks[i];

		code_block(&w->coder, &block);
	}
	*out = w;
	return 0;
}

int me_plan_writer_end(struct me_plan_writer *w, struct me_plan_call *calls, uint32_t nr_calls,
		       struct mp_varint_writer *out, struct mp_err *err)
{
	if (nr_calls)
		qsort(calls, nr_calls, sizeof(*calls), compare_calls);
	code_number(&w->coder, &w->coder.number, nr_calls);
	w->coder.expected = 0;
	for (uint32_t i = 0; i < nr_calls; i++)
		code_call(&w->coder, &calls[i]);
	mp_range_finish(&w->coder.rc);
	*out = w->out;
	w->out = (struct mp_varint_writer){0};
	if (!out->failed)
		return 0;
	free(out->bytes);
	*out = (struct mp_varint_writer){0};
	return mp_err_set(err, ENOMEM, "out of memory");
}

void me_plan_writer_free(struct me_plan_writer *w)
{
	if (w)
		free(w->out.bytes);
	free(w);
}

/* ---- reading ------------------------------------------------------------------------------- */

static bool is_of(struct mp_varint_reader *r, const struct mp_id *id)
{
	const uint8_t *hash = mp_varint_get_bytes(r, 9), *build_id;
	struct mp_id read = {0};

	if (!hash || hash[8] > MP_BUILD_ID_MAX)
		return false;
	for (int i = 0; i < 8; i++)
		read.text_hash |= (uint64_t)hash[i] << 8 * i;
	read.build_id_len = hash[8];
	build_id = mp_varint_get_bytes(r, read.build_id_len);
	if (!build_id)
		return false;
	memcpy(read.build_id, build_id, read.build_id_len);
	return mp_id_equal(&read, id);
}

static int read_blocks(struct coder *c, struct me_plan_file *out, struct mp_err *err)
{
	struct me_plan *plan = &out->plan;
	uint64_t nr[ME_NR_ZONES] = {0}, most = COPIES_MAX * (uint64_t)c->cfg->nr_blocks;

	code_head(c, out, nr);
	if (plan->line_log2 && plan->line_log2 != 5 && plan->line_log2 != 6)
		return mp_err_set(err, EBADMSG, "lines of another size");
	if (nr[0] > most || nr[1] > most - nr[0])
		return mp_err_set(err, EBADMSG, "more blocks than the program has");
	/* Many blocks need bytes: what is allocated grows with what is read. */
	for (uint64_t i = 0, room = 0; i < nr[0] + nr[1]; i++) {
		struct me_plan_block *b;

		if (mp_grow(plan->blocks, room, i + 1))
			return mp_err_set(err, ENOMEM, "out of memory");
		b = &plan->blocks[i];
		*b = (struct me_plan_block){.zone = i < nr[0] ? ME_ZONE_HOT : ME_ZONE_WARM};
		if (!code_block(c, b))
			return mp_err_set(
				err, EBADMSG,
				"no block begins at 0x%" PRIx64
				"; a plan that was saved with --live-at has other blocks than one "
				"without",
				c->expected);
		if (c->rc.failed)
			return mp_err_set(err, EBADMSG, "the plan is cut off");
		plan->nr_blocks++;
	}
	return 0;
}

static int read_calls(struct coder *c, struct me_plan_file *out, struct mp_err *err)
{
	uint64_t nr = code_number(c, &c->number, 0), before = 0;

	if (nr > c->cfg->nr_calls || (nr && !out->inlines))
		return mp_err_set(err, EBADMSG, "more calls are replaced than the program has");
	out->calls = calloc(nr + 1, sizeof(*out->calls));
	if (!out->calls)
		return mp_err_set(err, ENOMEM, "out of memory");
	c->expected = 0;
	for (uint64_t i = 0; i < nr && !c->rc.failed; i++) {
		code_call(c, &out->calls[i]);
		if (out->calls[i].end <= before)
			return mp_err_set(err, EBADMSG, "calls are not in their order");
		before = out->calls[i].end;
		out->nr_calls++;
	}
	return mp_range_finish(&c->rc)
		       ? 0
		       : mp_err_set(err, EBADMSG, "the plan is cut off, or too long");
}

int me_plan_file_read(const struct mp_cfg *cfg, const uint8_t *movable, const uint8_t *data,
		      size_t size, struct me_plan_file *out, struct mp_err *err)
{
	struct mp_varint_reader r = {data, data + size, false};
	const uint8_t *head = mp_varint_get_bytes(&r, sizeof(MAGIC));
	struct coder *c;
	int rc;

	*out = (struct me_plan_file){0};
	if (!head || memcmp(head, MAGIC, sizeof(MAGIC) - 1) || size > ME_PLAN_SIZE_MAX)
		return mp_err_set(err, EBADMSG, "is no plan");
	if (head[sizeof(MAGIC) - 1] != ME_PLAN_FORMAT)
		return mp_err_set(err, EBADMSG,
				  "is a plan of another version of Morph, in format %d",
				  head[sizeof(MAGIC) - 1]);
	if (!is_of(&r, &cfg->elf->id))
		return mp_err_set(err, EBADMSG, "is the plan of another file");
	c = malloc(sizeof(*c));
	if (!c)
		return mp_err_set(err, ENOMEM, "out of memory");
	coder_init(c, cfg);
	mp_range_read(&c->rc, r.p, (size_t)(r.end - r.p));
	rc = read_blocks(c, out, err);
	if (!rc)
		rc = read_calls(c, out, err);
	if (!rc)
		rc = me_plan_check(cfg, movable, &out->plan, err);
	free(c);
	if (rc)
		me_plan_file_fini(out);
	return rc;
}

void me_plan_file_fini(struct me_plan_file *file)
{
	me_plan_fini(&file->plan);
	free(file->calls);
	*file = (struct me_plan_file){0};
}
