// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_space - maps the loaded bytes of a file to one dense space of 32-bit indexes, with
 * bitmaps on it.
 * It decides which bytes the other passes see at all. Called by cfg and table.
 */
#include <errno.h>
#include <inttypes.h>

#include "libprof/base/search.h"
#include "libprof/cfg/cfg_private.h"

#define MAX_SPANS 64u

static int compare_spans(const void *a, const void *b)
{
	const struct mp_span *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int compare_text(const void *a, const void *b)
{
	const struct mp_text *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int find_text(const struct mp_elf *elf, struct mp_cfg_index *index)
{
	uint32_t nr = 0, out = 0;

	index->text = calloc(elf->nr_sections + index->nr_spans + 1, sizeof(*index->text));
	if (!index->text)
		return -ENOMEM;
	for (uint32_t i = 0; i < elf->nr_sections; i++) {
		const struct mp_section *sec = &elf->sections[i];
		const struct mp_span *span;
		uint32_t at;

		if (!(sec->flags & SHF_ALLOC) || !(sec->flags & SHF_EXECINSTR) ||
		    sec->type == SHT_NOBITS || !sec->size)
			continue;
		at = mp_space_at(index, sec->vaddr);
		if (at == MP_NONE)
			continue;
		span = mp_space_span(index, at);
		if (span->size - (at - span->at) < sec->size)
			continue;
		index->text[nr++] = (struct mp_text){at, at + (uint32_t)sec->size};
	}
	if (!nr)
		for (uint32_t i = 0; i < index->nr_spans; i++)
			if (index->spans[i].code)
				index->text[nr++] = (struct mp_text){
					index->spans[i].at,
					index->spans[i].at + (uint32_t)index->spans[i].size};
	qsort(index->text, nr, sizeof(*index->text), compare_text);
	/* Overlapping sections become one text. A text never crosses a segment's end. */
	for (uint32_t i = 0; i < nr; i++) {
		struct mp_text *last = out ? &index->text[out - 1] : NULL;

		if (last && index->text[i].at < last->end) {
			if (index->text[i].end > last->end)
				last->end = index->text[i].end;
			continue;
		}
		index->text[out++] = index->text[i];
	}
	index->nr_text = out;
	for (uint32_t i = 0; i < out; i++)
		if (index->text[i].end - index->text[i].at >
		    index->main_text.end - index->main_text.at)
			index->main_text = index->text[i];
	return 0;
}

int mp_space_init(const struct mp_elf *elf, struct mp_cfg_index *index, struct mp_err *err)
{
	uint64_t total = 0;

	index->spans = calloc(elf->nr_phdrs + 1, sizeof(*index->spans));
	if (!index->spans)
		return mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &elf->phdrs[i];
		const uint8_t *bytes;

		/* Lookups walk all spans; real files have up to six. */
		if (index->nr_spans == MAX_SPANS)
			return mp_err_set(err, EBADMSG, "%s: more than %u segments with content",
					  elf->path, MAX_SPANS);

		if (ph->p_type != PT_LOAD || !ph->p_filesz)
			continue;
		if (ph->p_vaddr + ph->p_filesz < ph->p_vaddr)
			continue;
		bytes = mp_elf_bytes(elf, ph->p_vaddr, ph->p_filesz);
		if (!bytes)
			continue;
		index->spans[index->nr_spans++] = (struct mp_span){
			.vaddr = ph->p_vaddr,
			.size = ph->p_filesz,
			.code = ph->p_flags & PF_X,
			.bytes = bytes,
		};
	}
	qsort(index->spans, index->nr_spans, sizeof(*index->spans), compare_spans);
	for (uint32_t i = 0; i < index->nr_spans; i++) {
		struct mp_span *span = &index->spans[i];

		if (i && span[-1].vaddr + span[-1].size > span->vaddr)
			return mp_err_set(err, EBADMSG, "%s: segments overlap at 0x%" PRIx64,
					  elf->path, span->vaddr);
		/* Segments may share pages of the file, but not map it many times. */
		if (total + span->size > 2 * (uint64_t)elf->size + 65536 ||
		    total + span->size >= UINT32_MAX - 64)
			return mp_err_set(err, EBADMSG, "%s: segments hold more than the file",
					  elf->path);
		span->at = (uint32_t)total;
		total += span->size;
		if (span->size > index->main_span.size)
			index->main_span = *span;
	}
	index->nr_bytes = (uint32_t)total;
	if (find_text(elf, index))
		return mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
	return 0;
}

bool mp_space_is_text(const struct mp_cfg_index *index, uint32_t at)
{
	uint32_t lo;

	if (at >= index->main_text.at && at < index->main_text.end)
		return true;
	lo = mp_search(i, 0, index->nr_text, index->text[i].at <= at);
	return lo && at < index->text[lo - 1].end;
}

const struct mp_span *mp_space_span_of(const struct mp_cfg_index *index, uint64_t vaddr)
{
	for (uint32_t i = 0; i < index->nr_spans; i++)
		if (vaddr - index->spans[i].vaddr < index->spans[i].size)
			return &index->spans[i];
	return NULL;
}

const struct mp_span *mp_space_span(const struct mp_cfg_index *index, uint32_t at)
{
	for (uint32_t i = 0; i < index->nr_spans; i++) {
		const struct mp_span *span = &index->spans[i];

		if (at - span->at < span->size)
			return span;
	}
	return NULL;
}

const uint8_t *mp_space_bytes(const struct mp_cfg_index *index, uint32_t at, uint32_t len)
{
	const struct mp_span *span = mp_space_span(index, at);

	if (!span || span->size - (at - span->at) < len)
		return NULL;
	return span->bytes + (at - span->at);
}

mp_bits mp_space_bitmap(const struct mp_cfg_index *index)
{
	return calloc(index->nr_bytes / 64 + 2, sizeof(uint64_t));
}

uint32_t mp_part_at(const struct mp_cfg_index *index, uint32_t at)
{
	uint32_t part;

	if (at >= index->nr_bytes || !index->nr_parts)
		return MP_NONE;
	part = index->part_hint[at >> MP_HINT_SHIFT];
	while (part < index->nr_parts && index->parts[part].end <= at)
		part++;
	return part < index->nr_parts && index->parts[part].at <= at ? part : MP_NONE;
}

static uint32_t first_from(const struct mp_ref *refs, uint32_t nr, uint32_t at)
{
	return mp_search(i, 0, nr, refs[i].at < at);
}

uint32_t mp_ref_first(const struct mp_cfg_build *b, uint32_t at)
{
	return first_from(b->ref_list, b->nr_refs, at);
}

uint32_t mp_text_ref_first(const struct mp_cfg_build *b, uint32_t at)
{
	return first_from(b->text_refs, b->nr_text_refs, at);
}

uint32_t mp_bits_next(const uint64_t *bits, uint32_t from, uint32_t to)
{
	uint32_t word = from >> 6;
	uint64_t w;

	if (from >= to)
		return to;
	w = bits[word] & ~0ull << (from & 63);
	while (!w) {
		if ((uint64_t)++word << 6 >= to)
			return to;
		w = bits[word];
	}
	from = (word << 6) + (uint32_t)__builtin_ctzll(w);
	return from < to ? from : to;
}

uint32_t mp_bits_count(const uint64_t *bits, uint32_t from, uint32_t to)
{
	uint32_t nr = 0;

	while (from < to) {
		uint32_t step = 64 - (from & 63);
		uint64_t w = bits[from >> 6] >> (from & 63);

		if (step > to - from) {
			step = to - from;
			w &= (1ull << step) - 1;
		}
		for (; w; w &= w - 1) /* few bits of a word are set */
			nr++;
		from += step;
	}
	return nr;
}

void mp_bits_clear_all(uint64_t *bits, uint32_t nr_words)
{
	for (uint32_t i = 0; i < nr_words; i++)
		if (bits[i])
			bits[i] = 0;
}

void mp_bits_or(uint64_t *bits, const uint64_t *other, uint32_t nr_words)
{
	for (uint32_t i = 0; i < nr_words; i++)
		if (other[i] & ~bits[i])
			bits[i] |= other[i];
}

void mp_bits_or_common(uint64_t *bits, const uint64_t *x, const uint64_t *y, uint32_t nr_words)
{
	for (uint32_t i = 0; i < nr_words; i++)
		if (x[i] & y[i] & ~bits[i])
			bits[i] |= x[i] & y[i];
}
