// SPDX-License-Identifier: Apache-2.0
/* exact_stacks - reads DIR/contexts and DIR/samples; see exact_stacks.h. */
#include "tests/support/exact_stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE UINT64_C(4096)

enum site_kind {
	SITE_CALL,
	SITE_START,
	SITE_STACK,
	SITE_INTERRUPTED,
};

struct site {
	uint64_t vaddr, size;
	size_t object;
	enum site_kind kind;
};

struct activation {
	uint64_t serial, parent, slot;
	size_t site;
};

struct frames {
	struct exact_frame *v;
	size_t max;
};

struct exact_stacks {
	struct exact_object *objects;
	size_t nr_objects;
	struct exact_map *maps;
	size_t nr_maps, max_maps;
	struct site *sites;
	size_t nr_sites;
	struct activation *activations; /* a table by serial number */
	size_t nr_activations, room;
	FILE *samples;
	char *line;
	size_t line_size;
	uint64_t number, nr_skipped;
	uint8_t *memory;
	struct frames frames, known; /* of the sample, and of an activation looked at */
};

static void *need(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

/* Makes room for @index in an array of *@nr zeroed elements. */
static void *grow(void *array, size_t *nr, size_t index, size_t size)
{
	size_t max = 2 * (index + 1);

	if (index < *nr)
		return array;
	array = need(realloc(array, max * size));
	memset((char *)array + *nr * size, 0, (max - *nr) * size);
	*nr = max;
	return array;
}

/* ---- DIR/contexts --------------------------------------------------------------------------- */

static void add_map(struct exact_stacks *s, uint64_t start, uint64_t end, size_t object)
{
	if (s->nr_maps == s->max_maps) {
		s->max_maps = s->max_maps * 2 + 64;
		s->maps = need(reallocarray(s->maps, s->max_maps, sizeof(*s->maps)));
	}
	s->maps[s->nr_maps++] = (struct exact_map){start, end, object};
}

/* The lowest mapping of a file is that of its first segment. QEMU's own ones lie higher. */
static void note_bias(struct exact_object *object, uint64_t start)
{
	if (object->is_mapped || !object->path || object->path[0] != '/')
		return;
	object->is_mapped = true;
	object->bias = start;
	if (mp_elf_open(object->path, MP_ELF_FDES, &object->elf, NULL))
		return;
	for (uint32_t i = 0; i < object->elf->nr_phdrs; i++) {
		if (object->elf->phdrs[i].p_type == PT_LOAD) {
			object->bias -= object->elf->phdrs[i].p_vaddr & ~(PAGE - 1);
			break;
		}
	}
}

static void add_site(struct exact_stacks *s, size_t index, const struct site *site,
		     const char *kind)
{
	s->sites = grow(s->sites, &s->nr_sites, index, sizeof(*s->sites));
	s->sites[index] = *site;
	if (!strcmp(kind, "interrupted"))
		s->sites[index].kind = SITE_INTERRUPTED;
	else if (!strcmp(kind, "stack"))
		s->sites[index].kind = SITE_STACK;
}

static void read_line(struct exact_stacks *s, const char *line)
{
	uint64_t start, end, vaddr;
	struct site site = {0};
	char kind[32];
	size_t index;
	int at = 0;

	if (sscanf(line, "object %zu %n", &index, &at) == 1 && at) {
		s->objects = grow(s->objects, &s->nr_objects, index, sizeof(*s->objects));
		free(s->objects[index].path);
		s->objects[index].path = need(strdup(line + at));
	} else if (sscanf(line, "map %" SCNx64 " %" SCNx64 " %*x %zu", &start, &end, &index) == 3 &&
		   index < s->nr_objects) {
		add_map(s, start, end, index);
		note_bias(&s->objects[index], start);
	} else if (sscanf(line, "site %zu %zu %" SCNx64 " %" SCNu64 " %31s", &index, &site.object,
			  &site.vaddr, &site.size, kind) == 5) {
		add_site(s, index, &site, kind);
		vaddr = site.vaddr;
	} else if (sscanf(line, "function %zu %zu %" SCNx64, &index, &site.object, &vaddr) != 3) {
		return;
	}
	/* Code that no file has is at its run-time address. */
	if ((line[0] == 's' || line[0] == 'f') && site.object < s->nr_objects &&
	    s->objects[site.object].path && s->objects[site.object].path[0] == '[')
		add_map(s, vaddr & ~(PAGE - 1), (vaddr & ~(PAGE - 1)) + PAGE, site.object);
}

static int compare_maps(const void *a, const void *b)
{
	const struct exact_map *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static bool read_contexts(struct exact_stacks *s, const char *path)
{
	FILE *in = fopen(path, "re");
	bool headed = false;

	if (!in)
		return false;
	while (getline(&s->line, &s->line_size, in) > 0) {
		s->line[strcspn(s->line, "\n")] = 0;
		headed = headed || !strncmp(s->line, "contexts 1 ", 11);
		read_line(s, s->line);
	}
	fclose(in);
	if (!headed || !s->nr_sites || !s->nr_objects)
		return false;
	s->sites[0].kind = SITE_START;
	qsort(s->maps, s->nr_maps, sizeof(*s->maps), compare_maps);
	return true;
}

/* ---- activations ----------------------------------------------------------------------------- */

static struct activation *find_activation(const struct exact_stacks *s, uint64_t serial)
{
	size_t i = (serial * 0x9e3779b97f4a7c15) >> 20;

	for (i &= s->room - 1; s->activations[i].serial; i = (i + 1) & (s->room - 1))
		if (s->activations[i].serial == serial)
			break;
	return &s->activations[i];
}

static void add_activation(struct exact_stacks *s, const struct activation *a)
{
	struct activation *old = s->activations, *slot;
	size_t room = s->room;

	if (2 * s->nr_activations >= room) {
		s->room = room ? 2 * room : 65536;
		s->activations = need(calloc(s->room, sizeof(*old)));
		for (size_t i = 0; i < room; i++)
			if (old[i].serial)
				*find_activation(s, old[i].serial) = old[i];
		free(old);
	}
	slot = find_activation(s, a->serial);
	s->nr_activations += !slot->serial;
	*slot = *a;
}

static bool read_activation(struct exact_stacks *s)
{
	struct activation a;

	if (sscanf(s->line, "a %" SCNu64 " %*u %" SCNu64 " %zu %*u %" SCNx64, &a.serial, &a.parent,
		   &a.site, &a.slot) != 4)
		return false;
	add_activation(s, &a);
	return true;
}

/* ---- opening -------------------------------------------------------------------------------- */

int exact_stacks_open(const char *dir, struct exact_stacks **out)
{
	struct exact_stacks *s = need(calloc(1, sizeof(*s)));
	char path[4096];

	*out = NULL;
	snprintf(path, sizeof(path), "%s/contexts", dir);
	errno = EBADMSG;
	if (!read_contexts(s, path)) {
		exact_stacks_close(s);
		return -errno;
	}
	snprintf(path, sizeof(path), "%s/samples", dir);
	s->samples = fopen(path, "re");
	if (!s->samples) {
		int ret = -errno;

		exact_stacks_close(s);
		return ret;
	}
	while (getline(&s->line, &s->line_size, s->samples) > 0)
		read_activation(s);
	rewind(s->samples);
	*out = s;
	return 0;
}

void exact_stacks_close(struct exact_stacks *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_objects; i++) {
		mp_elf_close(s->objects[i].elf);
		free(s->objects[i].path);
	}
	if (s->samples)
		fclose(s->samples);
	free(s->objects);
	free(s->maps);
	free(s->sites);
	free(s->activations);
	free(s->line);
	free(s->memory);
	free(s->frames.v);
	free(s->known.v);
	free(s);
}

const struct exact_object *exact_stacks_objects(const struct exact_stacks *s, size_t *nr)
{
	*nr = s->nr_objects;
	return s->objects;
}

const struct exact_map *exact_stacks_map(const struct exact_stacks *s, uint64_t ip)
{
	size_t lo = 0, hi = s->nr_maps;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (ip < s->maps[mid].start)
			hi = mid;
		else if (ip >= s->maps[mid].end)
			lo = mid + 1;
		else
			return &s->maps[mid];
	}
	return NULL;
}

/* ---- DIR/samples ---------------------------------------------------------------------------- */

static void add_frame(struct frames *frames, size_t index, uint64_t address, uint64_t slot,
		      bool any)
{
	frames->v = grow(frames->v, &frames->max, index, sizeof(*frames->v));
	frames->v[index] = (struct exact_frame){address, slot, any};
}

/* Collects the frames from the activation @serial outwards. */
static size_t collect_frames(const struct exact_stacks *s, uint64_t serial, struct frames *frames)
{
	size_t nr = 0;

	while (serial && s->room) {
		const struct activation *a = find_activation(s, serial);
		const struct site *site = &s->sites[a->site < s->nr_sites ? a->site : 0];
		bool is_signal = site->kind == SITE_INTERRUPTED;

		if (site->kind == SITE_START)
			break;
		if (is_signal)
			add_frame(frames, nr++, 0, a->slot, true);
		add_frame(frames, nr++, s->objects[site->object].bias + site->vaddr + site->size,
			  is_signal ? 0 : a->slot, false);
		serial = a->parent;
	}
	return nr;
}

static bool have_common_frame(const struct exact_frame *a, size_t nr_a, const struct exact_frame *b,
			      size_t nr_b)
{
	for (size_t i = 0; i < nr_a; i++)
		for (size_t k = 0; k < nr_b; k++)
			if (a[i].slot && a[i].slot == b[k].slot)
				return true;
	return false;
}

bool exact_stacks_know(struct exact_stacks *s, const struct exact_sample *sample,
		       const uint64_t *ips, size_t nr)
{
	for (size_t i = 0; i < s->room; i++) {
		size_t same = 0, nr_frames;

		if (!s->activations[i].serial)
			continue;
		nr_frames = collect_frames(s, s->activations[i].serial, &s->known);
		while (same < nr && same < nr_frames &&
		       (s->known.v[same].any || s->known.v[same].address == ips[same]))
			same++;
		if (nr && same == nr && same == nr_frames &&
		    !have_common_frame(s->known.v, nr, sample->frames, sample->nr_frames))
			return true;
	}
	return false;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t read_memory(struct exact_stacks *s, const char *text)
{
	size_t size = strspn(text, "0123456789abcdef") / 2;

	s->memory = need(realloc(s->memory, size + 1));
	for (size_t i = 0; i < size; i++)
		s->memory[i] = (uint8_t)(hex_digit(text[2 * i]) << 4 | hex_digit(text[2 * i + 1]));
	return size;
}

static bool is_changed(const struct exact_sample *sample)
{
	uint64_t word;

	for (size_t i = 0; i < sample->nr_frames; i++) {
		const struct exact_frame *f = &sample->frames[i];

		if (f->slot && !f->any && exact_sample_word(sample, f->slot, &word) &&
		    word != f->address)
			return true;
	}
	return false;
}

/* Return: false: the sample has no registers. */
static bool read_sample(struct exact_stacks *s, struct exact_sample *sample)
{
	const char *line = s->line;
	uint64_t vaddr, serial;
	size_t object;
	char *end;
	int at;

	if (sscanf(line, "s %" SCNu32 " %" SCNu64 " %zu %" SCNx64 " %" SCNu64 "%n", &sample->thread,
		   &sample->count, &object, &vaddr, &serial, &at) != 5 ||
	    object >= s->nr_objects)
		return false;
	line += at;
	for (int i = 0; i < 16; i++) {
		sample->regs[i] = strtoull(line, &end, 16);
		if (end == line)
			return false;
		line = end;
	}
	sample->memory_size = read_memory(s, line + strspn(line, " "));
	sample->memory = s->memory;
	sample->pc = s->objects[object].bias + vaddr;
	sample->nr_frames = collect_frames(s, serial, &s->frames);
	sample->frames = s->frames.v;
	sample->number = s->number;
	sample->is_changed = is_changed(sample);
	return true;
}

bool exact_stacks_next(struct exact_stacks *s, struct exact_sample *sample)
{
	while (getline(&s->line, &s->line_size, s->samples) > 0) {
		s->number++;
		if (s->line[0] != 's')
			read_activation(s); /* again: one may be written anew */
		else if (read_sample(s, sample))
			return true;
		else
			s->nr_skipped++;
	}
	return false;
}

uint64_t exact_stacks_skipped(const struct exact_stacks *s)
{
	return s->nr_skipped;
}

bool exact_sample_word(const struct exact_sample *sample, uint64_t address, uint64_t *word)
{
	uint64_t start = sample->regs[7] - EXACT_RED_ZONE;

	if (address < start || sample->memory_size < 8 || address - start > sample->memory_size - 8)
		return false;
	memcpy(word, sample->memory + (address - start), sizeof(*word));
	return true;
}
