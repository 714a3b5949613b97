// SPDX-License-Identifier: Apache-2.0
/* marker - finds the variables of code markers by their symbols. Called by slice and cli_markers. */
#include "editor/marker/marker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/search.h"

static int by_vaddr(const void *a, const void *b)
{
	const struct me_marker *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static bool is_marker(const struct mp_symbol *sym)
{
	return !sym->dynamic && sym->name && sym->type == STT_OBJECT && sym->bind == STB_LOCAL &&
	       sym->shndx != SHN_UNDEF && sym->shndx < SHN_LORESERVE &&
	       sym->size == ME_MARKER_BYTES &&
	       !strncmp(sym->name, ME_MARKER_PREFIX, strlen(ME_MARKER_PREFIX));
}

int me_markers_find(const struct mp_elf *elf, struct me_markers *out, struct mp_err *err)
{
	uint32_t nr = 0;

	*out = (struct me_markers){0};
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		nr += is_marker(&elf->symbols[i]);
	out->list = calloc((size_t)nr + 1, sizeof(*out->list));
	if (!out->list)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (is_marker(&elf->symbols[i]))
			out->list[out->nr++] =
				(struct me_marker){elf->symbols[i].vaddr, elf->symbols[i].name};
	qsort(out->list, out->nr, sizeof(*out->list), by_vaddr);
	return 0;
}

void me_markers_fini(struct me_markers *markers)
{
	free(markers->list);
	*markers = (struct me_markers){0};
}

/* The first marker that ends behind @vaddr. */
static uint32_t first_behind(const struct me_markers *markers, uint64_t vaddr)
{
	return mp_search(i, 0, markers->nr, markers->list[i].vaddr + ME_MARKER_BYTES <= vaddr);
}

uint32_t me_marker_at(const struct me_markers *markers, uint64_t vaddr, uint64_t size)
{
	uint32_t i = first_behind(markers, vaddr);

	if (i == markers->nr || markers->list[i].vaddr > vaddr || size > ME_MARKER_BYTES ||
	    vaddr - markers->list[i].vaddr > ME_MARKER_BYTES - size)
		return UINT32_MAX;
	return i;
}

bool me_marker_touches(const struct me_markers *markers, uint64_t vaddr, uint64_t size)
{
	uint32_t i = first_behind(markers, vaddr);

	return i < markers->nr && markers->list[i].vaddr < vaddr + size;
}

/* Split [@p, @end), a line, at tabs into five fields. */
static bool split(const char *p, const char *end, const char *field[6])
{
	int n = 0;

	field[n++] = p;
	for (; p < end; p++)
		if (*p == '\t') {
			if (n == 5)
				return false;
			field[n++] = p + 1;
		}
	field[n] = end + 1;
	return n == 5;
}

bool me_marker_find_place(const struct mp_elf *elf, const char *name, struct me_marker_place *out)
{
	const struct mp_section *s = mp_elf_section(elf, ME_MARKER_SECTION);
	const char *p, *end, *field[6];
	size_t len;

	name += strlen(ME_MARKER_PREFIX);
	len = strcspn(name, "."); /* link-time optimisation appends .lto_priv.0 */
	if (!s || s->type == SHT_NOBITS)
		return false;
	p = (const char *)elf->data + s->off;
	for (end = p + s->size; p < end;) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));

		if (!eol)
			return false;
		while (p < eol && !*p) /* ends of strings */
			p++;
		if ((size_t)(eol - p) > len && p[len] == '\t' && !memcmp(p, name, len) &&
		    split(p, eol, field)) {
			*out = (struct me_marker_place){.file = field[1],
							.function = field[3],
							.kind = field[4],
							.file_len = (int)(field[2] - field[1] - 1),
							.function_len =
								(int)(field[4] - field[3] - 1),
							.kind_len = (int)(eol - field[4])};
			for (const char *c = field[2]; c < eol && *c >= '0' && *c <= '9'; c++)
				out->line = out->line > 99999999 ? out->line
								 : 10 * out->line + (*c - '0');
			return true;
		}
		p = eol + 1;
	}
	return false;
}
