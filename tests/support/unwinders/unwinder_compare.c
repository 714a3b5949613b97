// SPDX-License-Identifier: Apache-2.0
/*
 * unwinder_compare - compares what unwinders find in two files: in an output and its original, at corresponding
 * instructions, or in two outputs at the same ones. Reads exception tables for that.
 */
#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libprof/note/map.h"
#include "tests/support/unwinders/unwinder_bytes.h"
#include "tests/support/unwinders/unwinders.h"

#define CHAIN_MAX 4096

static uint64_t digest(uint64_t h, uint64_t v)
{
	return (h ^ v) * 0x9e3779b97f4a7c15ull + (h >> 29);
}

/* The end of the types, from which they are numbered backwards. */
struct types {
	const struct unwinder_image *image;
	uint64_t vaddr;
	uint8_t enc;
};

static bool digest_type(const struct types *t, uint64_t nr, uint64_t *h)
{
	static const uint8_t sizes[16] = {8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8, 0, 0, 0};
	uint8_t size = sizes[t->enc & 0x0f];
	struct bytes b = unwinder_bytes_at(t->image, t->vaddr - nr * size);

	if (t->enc == 0xff || !size)
		return false;
	*h = digest(digest(*h, bytes_pointer(&b, t->enc & 0x7f)), t->enc & 0x80);
	return !b.bad;
}

static bool digest_filter(const struct types *t, int64_t filter, uint64_t *h)
{
	struct bytes b;
	uint64_t nr;

	*h = digest(*h, (uint64_t)filter);
	if (!filter)
		return true;
	if (filter > 0)
		return digest_type(t, (uint64_t)filter, h);
	b = unwinder_bytes_at(t->image, t->vaddr + (uint64_t)(-filter - 1));
	for (int i = 0; i < CHAIN_MAX; i++) {
		nr = bytes_uleb(&b);
		if (b.bad || !nr)
			return !b.bad;
		if (!digest_type(t, nr, h))
			return false;
	}
	return false;
}

static bool digest_actions(struct bytes actions, uint64_t action, const struct types *t,
			   uint64_t *h)
{
	for (int i = 0; action && i < CHAIN_MAX; i++) {
		struct bytes b = actions;
		uint64_t at;
		int64_t filter, next;

		bytes_skip(&b, action - 1);
		filter = bytes_sleb(&b);
		at = b.vaddr - actions.vaddr;
		next = bytes_sleb(&b);
		if (b.bad || !digest_filter(t, filter, h))
			return false;
		action = next ? at + (uint64_t)next + 1 : 0;
	}
	return !action;
}

bool found_landing_read(const struct unwinder_image *image, const struct found_frame *frame,
			uint64_t vaddr, struct found_landing *landing)
{
	struct bytes b = unwinder_bytes_at(image, frame->lsda), actions;
	struct types t = {.image = image};
	uint64_t base = frame->start, action = 0, size;
	uint8_t enc;

	*landing = (struct found_landing){.table = frame->lsda && frame->personality};
	if (!landing->table)
		return true;
	enc = bytes_u8(&b);
	if (enc != 0xff)
		base = (enc & 0x70) ? bytes_pointer_at(&b, enc, frame->start)
				    : bytes_pointer(&b, enc);
	t.enc = bytes_u8(&b);
	if (t.enc != 0xff) {
		t.vaddr = bytes_uleb(&b);
		t.vaddr += b.vaddr;
	}
	enc = bytes_u8(&b);
	size = bytes_uleb(&b);
	actions = b;
	bytes_skip(&actions, size);
	if (b.bad || actions.bad)
		return false;
	while (b.p < actions.p && !b.bad) {
		uint64_t start = bytes_pointer_at(&b, enc, 0), len = bytes_pointer_at(&b, enc, 0);
		uint64_t pad = bytes_pointer_at(&b, enc, 0);

		action = bytes_uleb(&b);
		if (vaddr < frame->start + start)
			break;
		if (vaddr - frame->start - start >= len)
			continue;
		landing->listed = true;
		landing->pad = pad ? base + pad : 0;
		break;
	}
	return !b.bad &&
	       (!landing->listed || digest_actions(actions, action, &t, &landing->catches));
}

static bool same_frame(const struct found_frame *a, const struct found_frame *b)
{
	return a->personality == b->personality && a->indirect == b->indirect &&
	       a->signal == b->signal && a->ra == b->ra && !a->lsda == !b->lsda;
}

static bool say(bool print, const char *what, enum unwinder who, uint64_t vaddr, const char *more)
{
	if (print)
		printf("%#" PRIx64 ": %s: %s%s%s\n", vaddr, unwinder_names[who], what,
		       more ? ": " : "", more ? more : "");
	return true;
}

/* Compares rows and call sites at all addresses of @a's FDE. In @y, it may be divided. */
static bool frames_differ(const struct unwinder_image *x, const struct unwinder_image *y,
			  enum unwinder who, const struct found_frame *a, struct found_frame *b,
			  bool print)
{
	uint64_t end = a->start + a->size;

	for (uint64_t at = a->start; at < end; at++) {
		const struct found_row *r = found_row_at(a, at), *s;
		struct found_landing l, m;

		if ((at == a->start || at - b->start >= b->size) && !unwinder_find(y, who, at, b))
			return say(print, "no FDE", who, at, NULL);
		if (b->dies || !same_frame(a, b))
			return say(print, "another FDE", who, at, b->dies);
		s = found_row_at(b, at);
		if (!r || !s || !found_rows_equal(r, s))
			return say(print, "another row", who, at, NULL);
		if (!a->lsda || who != UNWINDER_LIBGCC || a->lsda == b->lsda)
			continue;
		if (!found_landing_read(x, a, at, &l) || !found_landing_read(y, b, at, &m) ||
		    l.table != m.table || l.listed != m.listed || l.pad != m.pad ||
		    l.catches != m.catches)
			return say(print, "another landing pad", who, at, NULL);
	}
	return false;
}

bool unwinders_differ(const struct unwinder_image *a, const struct unwinder_image *b, bool print)
{
	struct found_frame x = {0}, y = {0};
	bool differ = false;

	for (uint32_t i = 0; i < a->nr_entries && !differ; i++) {
		for (enum unwinder who = 0; who < NR_UNWINDERS && !differ; who++) {
			if (!unwinder_find(a, who, image_entry_start(a, i), &x) || x.dies)
				continue;
			differ = frames_differ(a, b, who, &x, &y, print);
		}
	}
	found_frame_fini(&x);
	found_frame_fini(&y);
	return differ;
}

/* ---- an output and its original ------------------------------------------------------------ */

struct check {
	const struct unwinder_image *old_image, *new_image;
	const struct mp_map *map;
	struct found_frame old[NR_UNWINDERS], new[NR_UNWINDERS];
	struct unwinders_report *report;
	ZydisDecoder decoder;
};

static bool load(const struct unwinder_image *image, struct found_frame *frames, uint64_t vaddr)
{
	if (frames[0].nr && vaddr - frames[0].start < frames[0].size)
		return true;
	for (enum unwinder who = 0; who < NR_UNWINDERS; who++)
		if (!unwinder_find(image, who, vaddr, &frames[who])) {
			frames[0].nr = 0;
			return false;
		}
	return true;
}

/* Is @new the copy of @old? A copy may be empty, where it was only a jump to what follows. */
static bool is_copy(const struct mp_map *map, uint64_t old, uint64_t new)
{
	uint32_t lo = 0, hi = map->nr_pieces;

	if (old == new)
		return true;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (map->pieces[mid].new_vaddr < new)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < map->nr_pieces && map->pieces[lo].new_vaddr == new; lo++)
		if (map->pieces[lo].old_vaddr == old)
			return true;
	return false;
}

static bool check_landing(struct check *c, uint64_t old, uint64_t new)
{
	struct found_landing a, b;

	if (!c->old[0].lsda && !c->new[0].lsda)
		return true;
	c->report->nr_landings++;
	return found_landing_read(c->old_image, &c->old[0], old, &a) &&
	       found_landing_read(c->new_image, &c->new[0], new, &b) && a.table == b.table &&
	       a.listed == b.listed && a.catches == b.catches && !a.pad == !b.pad &&
	       is_copy(c->map, a.pad, b.pad);
}

/* @old 0: the row has no original of its own, so only the unwinders' agreement is checked. */
static bool check_insn(struct check *c, uint64_t old, uint64_t new)
{
	for (enum unwinder who = 0; who < NR_UNWINDERS; who++) {
		const struct found_row *row = found_row_at(&c->new[who], new);

		c->report->nr_rows++;
		if (!row)
			return !say(true, "no row", who, new, c->new[who].dies);
		if (!found_rows_agree(row, found_row_at(&c->new[0], new)))
			return !say(true, "not the row that libgcc finds", who, new, NULL);
		if (!old)
			continue;
		if (!same_frame(&c->old[who], &c->new[who]))
			return !say(true, "another frame than the original's", who, new, NULL);
		if (!found_row_at(&c->old[who], old) ||
		    !found_rows_equal(row, found_row_at(&c->old[who], old)))
			return !say(true, "another row than the original's", who, new, NULL);
	}
	return !old || check_landing(c, old, new) ||
	       !say(true, "another landing pad than the original's", UNWINDER_LIBGCC, new, NULL);
}

static bool decode(const struct check *c, const struct mp_elf *elf, uint64_t at, uint64_t end,
		   ZydisDecodedInstruction *insn)
{
	const uint8_t *p = mp_elf_bytes(elf, at, end - at);

	return p &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&c->decoder, NULL, p, end - at, insn));
}

/* Instruction by instruction, as far as the copy has the original's instructions. Branches may differ. */
static bool check_piece(struct check *c, const struct mp_map_piece *p, bool inlined)
{
	uint64_t old = p->old_vaddr, new = p->new_vaddr;
	uint64_t old_end = old + p->old_size, new_end = new + p->new_size;
	bool same = !inlined && p->old_size;
	ZydisDecodedInstruction a, b;

	if (!p->new_size)
		return true;
	if (!load(c->new_image, c->new, new))
		return true; /* a function without unwind information */
	if (same && !load(c->old_image, c->old, old))
		return !say(true, "unwind information that the original lacks", 0, new, NULL);
	for (; new < new_end; new += b.length) {
		if (!decode(c, c->new_image->elf, new, new_end, &b))
			return !say(true, "no instruction", 0, new, NULL);
		same = same && old < old_end && decode(c, c->old_image->elf, old, old_end, &a) &&
		       a.mnemonic == b.mnemonic && a.length == b.length;
		c->report->nr_insns += same;
		c->report->nr_inlined += inlined;
		if (!check_insn(c, same ? old : 0, new))
			return false;
		if (same)
			old += a.length;
	}
	return true;
}

bool unwinders_check(const struct unwinder_image *original, const struct unwinder_image *output,
		     const struct mp_map *map, struct unwinders_report *report)
{
	struct check c = {.old_image = original, .new_image = output, .map = map, .report = report};
	uint32_t call = 0;
	bool good = true;

	*report = (struct unwinders_report){0};
	ZydisDecoderInit(&c.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint32_t i = 0; good && i < map->nr_pieces; i++) {
		while (call < map->nr_calls && map->calls[call].first + map->calls[call].nr <= i)
			call++;
		good = check_piece(&c, &map->pieces[i],
				   call < map->nr_calls && map->calls[call].first <= i);
	}
	for (enum unwinder who = 0; who < NR_UNWINDERS; who++) {
		found_frame_fini(&c.old[who]);
		found_frame_fini(&c.new[who]);
	}
	return good;
}
