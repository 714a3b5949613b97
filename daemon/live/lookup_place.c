// SPDX-License-Identifier: Apache-2.0
/* lookup_place - finds _dl_find_object() and the page; see lookup_place.h. */
#include "daemon/live/lookup_place.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A page is known by its code; behind it are numbers that differ from process to process. */
#define SAME_BYTES 64

/* Reaches from the library to the page. */
#define NEAR ((uint64_t)1 << 30)

/* The C library's code. */
static const struct md_mapping *find_library(const struct md_process *p)
{
	for (size_t i = 0; i < p->nr_maps; i++)
		if (md_mapping_is_libc(&p->maps[i]))
			return &p->maps[i];
	return NULL;
}

/* Takes the function's address and bytes from the library's file. Return: 0, -ENOENT: it has none; -errno. */
static int read_library(const struct md_process *p, const struct md_mapping *m,
			struct md_lookup_place *out, struct mp_err *err)
{
	struct mp_elf *elf = NULL;
	uint64_t bias;
	const uint8_t *bytes;
	int fd = md_process_open_file(p, m, err);
	int r = fd < 0 ? fd : mp_elf_open_fd(m->path, fd, MP_ELF_SYMBOLS, &elf, err);

	if (fd >= 0)
		close(fd);
	if (r)
		return r;
	r = -ENOENT;
	for (uint32_t i = 0; i < elf->nr_symbols && r; i++) {
		const struct mp_symbol *s = &elf->symbols[i];

		if (strcmp(s->name, "_dl_find_object") != 0 || !s->vaddr ||
		    !md_version_bias(elf, m, &bias))
			continue;
		bytes = mp_elf_bytes(elf, s->vaddr, MD_LOOKUP_READ);
		if (!bytes)
			continue;
		memcpy(out->function, bytes, MD_LOOKUP_READ);
		out->ip = bias + s->vaddr;
		r = 0;
	}
	mp_elf_close(elf);
	return r;
}

/* Is @page one of ours? */
static bool is_page(const struct md_lookup_place *place, int mem, uint64_t page)
{
	struct md_lookup made;
	uint8_t bytes[SAME_BYTES];

	return !md_lookup_make(place->function, place->ip, page, NULL, 0, &made) &&
	       pread(mem, bytes, sizeof(bytes), (off_t)page) == sizeof(bytes) &&
	       !memcmp(bytes, made.page, sizeof(bytes));
}

/* A page that somebody mapped who was killed before the function jumped there. */
static uint64_t find_page(const struct md_process *p, const struct md_lookup_place *place, int mem)
{
	for (size_t i = 0; i < p->nr_maps; i++) {
		const struct md_mapping *m = &p->maps[i];

		if (m->exec && !m->write && !*m->path && m->end - m->start == MD_LOOKUP_PAGE &&
		    is_page(place, mem, m->start))
			return m->start;
	}
	return 0;
}

static int refuse(const struct md_process *p, const char *why, struct mp_err *err)
{
	return mp_err_set(err, EPERM,
			  "process %d: %s, so exceptions would not find their way through "
			  "the copies",
			  (int)p->pid, why);
}

/* *@now: the function in the process, without a breakpoint at its beginning. Return: false: it cannot be read. */
static bool read_now(const struct md_lookup_place *place, int mem, uint8_t now[MD_LOOKUP_READ])
{
	if (pread(mem, now, MD_LOOKUP_READ, (off_t)place->ip) != MD_LOOKUP_READ)
		return false;
	if (now[0] == MD_BREAKPOINT)
		now[0] = place->function[0];
	return true;
}

/* Does the function lead to a page of ours by a jump @off bytes behind its beginning, and is else as in the file? */
static bool jumps_at(struct md_lookup_place *out, int mem, uint64_t off)
{
	uint8_t was[MD_LOOKUP_READ];
	int32_t distance;

	memcpy(was, out->now, sizeof(was));
	memcpy(was + off, out->function + off, MD_LOOKUP_PATCH);
	memcpy(&distance, out->now + off + 1, sizeof(distance));
	if (out->now[off] != 0xe9 || memcmp(was, out->function, sizeof(was)) != 0)
		return false;
	out->at = out->ip + off;
	out->page = out->at + MD_LOOKUP_PATCH + (uint64_t)(int64_t)distance;
	out->jumps = is_page(out, mem, out->page);
	return out->jumps;
}

/* Does the function jump to a page of ours, or is it as in the file? */
static int look_at_function(const struct md_process *p, int mem, struct md_lookup_place *out,
			    struct mp_err *err)
{
	struct md_lookup made;

	if (md_lookup_make(out->function, out->ip, out->ip & -(uint64_t)MD_LOOKUP_PAGE, NULL, 0,
			   &made))
		return refuse(p, "its C library has another way to tell unwinders", err);
	if (!read_now(out, mem, out->now))
		return mp_err_set(err, EIO, "process %d: its C library cannot be read",
				  (int)p->pid);
	if (!memcmp(out->now, out->function, sizeof(out->now))) {
		out->page = find_page(p, out, mem);
		return 0;
	}
	/* Morph once wrote the jump over the first instruction. */
	if (jumps_at(out, mem, made.at - out->ip) || jumps_at(out, mem, 0))
		return 0;
	return mp_err_set(err, EPERM, "process %d: somebody else has changed its C library",
			  (int)p->pid);
}

int md_lookup_place_find(const struct md_process *p, int mem, struct md_lookup_place *out,
			 struct mp_err *err)
{
	const struct md_mapping *library = find_library(p);
	int r;

	*out = (struct md_lookup_place){0};
	for (size_t i = 0; i < p->nr_maps; i++)
		if (strstr(basename(p->maps[i].path), "libunwind"))
			return refuse(p, "it has an unwinder of its own (libunwind)", err);
	if (!library)
		return refuse(p, "it does not use glibc as a shared library", err);
	r = read_library(p, library, out, err);
	if (r == -ENOENT)
		return refuse(p, "its glibc is older than 2.35", err);
	if (!r)
		r = look_at_function(p, mem, out, err);
	if (!r && out->page &&
	    pread(mem, out->page_now, MD_LOOKUP_PAGE, (off_t)out->page) != MD_LOOKUP_PAGE)
		r = mp_err_set(err, EIO, "process %d: its memory cannot be read", (int)p->pid);
	return r;
}

bool md_lookup_place_holds(const struct md_lookup_place *place, int mem)
{
	uint8_t now[MD_LOOKUP_READ], page[MD_LOOKUP_PAGE];

	return read_now(place, mem, now) && !memcmp(now, place->now, sizeof(now)) &&
	       (!place->page ||
		(pread(mem, page, sizeof(page), (off_t)place->page) == sizeof(page) &&
		 !memcmp(page, place->page_now, sizeof(page))));
}

uint64_t md_lookup_place_choose(const struct md_process *p, const struct md_lookup_place *place)
{
	uint64_t page = place->ip & -(uint64_t)MD_LOOKUP_PAGE, end = page + NEAR,
		 low = page > NEAR ? page - NEAR : 16 * MD_LOOKUP_PAGE, from = low;

	/* In the first gap that is not narrow, and not at its ends, where the next mmap() is most likely to be. */
	for (size_t i = 0; i <= p->nr_maps && from < end; i++) {
		const struct md_mapping *m = i < p->nr_maps ? &p->maps[i] : NULL;
		uint64_t start = m && m->start < end ? m->start : end;

		if (start >= from + 64 * MD_LOOKUP_PAGE)
			return from + 32 * MD_LOOKUP_PAGE;
		if (m && m->end > from)
			from = m->end;
	}
	return 0;
}

static int add_entry(const struct md_version *v, struct md_lookup_entry *entries, uint32_t *nr,
		     struct mp_err *err)
{
	const struct mp_section *hdr = mp_elf_section(v->output, ".eh_frame_hdr"),
				*text = mp_elf_section(v->original, ".text");

	if (!hdr || !text)
		return mp_err_set(err, EPERM, "%s: has no unwind rows", v->path);
	if (*nr == MD_LOOKUP_MAX)
		return mp_err_set(err, EPERM, "%s: too many versions in one process", v->path);
	entries[(*nr)++] = (struct md_lookup_entry){md_version_segment(v), v->changes.segment_size,
						    v->bias + text->vaddr, v->bias + hdr->vaddr};
	return 0;
}

int md_lookup_place_make(const struct md_process *p, const struct md_lookup_place *place,
			 const struct md_versions *mapped, const struct md_version *with,
			 const struct md_version *without, struct md_lookup *out,
			 struct mp_err *err)
{
	struct md_lookup_entry entries[MD_LOOKUP_MAX];
	uint32_t nr = 0;
	int r = 0;

	for (size_t i = 0; !r && i < mapped->nr; i++) {
		const struct md_version *v = &mapped->list[i];
		uint64_t segment = md_version_segment(v);

		if (md_version_is_mapped(v, p) && (!with || segment != md_version_segment(with)) &&
		    (!without || segment != md_version_segment(without)))
			r = add_entry(v, entries, &nr, err);
	}
	if (!r && with)
		r = add_entry(with, entries, &nr, err);
	if (!r && md_lookup_make(place->function, place->ip, place->page, entries, nr, out))
		r = refuse(p, "its C library has another way to tell unwinders", err);
	return r;
}
