// SPDX-License-Identifier: Apache-2.0
/* version - pairs an output with what a process runs; see version.h. */
#include "daemon/live/version.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/elf/own_output.h"
#include "libprof/note/counts_file.h"
#include "libprof/note/edge_table.h"
#include "libprof/note/map.h"

/* At most so many bytes are read of the files that one process runs. */
#define READ_MAX ((uint64_t)16 << 30)
/* An opened file counts as at least so many bytes. */
#define FILE_COST ((uint64_t)1 << 20)
/* As the kernel writes the path of a file that another one has replaced. */
#define DELETED " (deleted)"

/* ---- files -------------------------------------------------------------------------------------- */

bool md_version_bias(const struct mp_elf *elf, const struct md_mapping *m, uint64_t *bias)
{
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];
		uint64_t page = p->p_vaddr & -(uint64_t)MD_LIVE_PAGE;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) ||
		    m->off != (p->p_offset & -(uint64_t)MD_LIVE_PAGE))
			continue;
		*bias = m->start - page;
		return true;
	}
	return false;
}

static void find_bounds(struct md_version *v)
{
	v->low = UINT64_MAX;
	v->high = 0;
	for (uint32_t i = 0; i < v->original->nr_phdrs; i++) {
		const Elf64_Phdr *p = &v->original->phdrs[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (v->bias + p->p_vaddr < v->low)
			v->low = v->bias + p->p_vaddr;
		if (v->bias + p->p_vaddr + p->p_memsz > v->high)
			v->high = v->bias + p->p_vaddr + p->p_memsz;
	}
}

/* Return: 0; -EFBIG with a message: more was read of the process's files than may be. */
static int count_bytes(struct md_process *p, int fd, struct mp_err *err)
{
	struct stat st;

	if (!fstat(fd, &st) && st.st_size > 0)
		p->read_bytes += (uint64_t)st.st_size;
	p->read_bytes += FILE_COST;
	return p->read_bytes <= READ_MAX
		       ? 0
		       : mp_err_set(err, EFBIG,
				    "process %d: runs too many files, or too large ones",
				    (int)p->pid);
}

/* Is it the file with the identity @id? Reads no more than that takes. Return: 1: yes; 0: no; -errno. */
static int has_id(const char *path, int fd, const struct mp_id *id, struct mp_err *err)
{
	struct mp_elf *elf;
	int r = mp_elf_open_fd(path, fd, MP_ELF_ID, &elf, err);

	if (r)
		return mp_err_is_failure(r) ? r : 0;
	r = mp_id_equal(&elf->id, id);
	mp_elf_close(elf);
	return r;
}

/* The file of @m, if it is the original of one of @mapped. Return: NULL: it is not. */
static struct mp_elf *find_opened(const struct md_versions *mapped, const struct md_mapping *m)
{
	for (size_t i = 0; i < mapped->nr; i++)
		if (mapped->list[i].original_ino == m->ino &&
		    mapped->list[i].original_dev == makedev(m->dev_major, m->dev_minor))
			return mapped->list[i].original;
	return NULL;
}

/* Opens the file of @m if it has the identity @id. Return: 0; -EBADMSG: it has not; -errno. */
static int open_original(struct md_process *p, const struct md_mapping *m, const struct mp_id *id,
			 struct mp_elf **out, struct mp_err *err)
{
	struct mp_err quiet;
	int fd = md_process_open_file(p, m, &quiet), r;

	if (fd < 0)
		return -EBADMSG;
	r = count_bytes(p, fd, err);
	if (!r)
		r = has_id(m->path, fd, id, err);
	if (r == 1)
		r = mp_elf_open_fd(m->path, fd, MP_ELF_SYMBOLS | MP_ELF_FDES | MP_ELF_UNHASHED, out,
				   err);
	else if (!r)
		r = -EBADMSG;
	if (!r)
		(*out)->id = *id; /* its code need not be hashed twice */
	close(fd);
	return r;
}

/* Is @m code of the file with the identity @id? Return: 1: yes, @v has it; 0: no; -errno. */
static int try_original(struct md_process *p, const struct md_mapping *m, const struct mp_id *id,
			const struct md_versions *mapped, struct md_version *v, struct mp_err *err)
{
	struct mp_elf *opened;
	int r = 0;

	if (!m->exec || m->again || m->path[0] != '/')
		return 0;
	opened = find_opened(mapped, m);
	if (opened)
		v->original = mp_elf_share(opened);
	else
		r = open_original(p, m, id, &v->original, err);
	if (r)
		return mp_err_is_failure(r) || r == -EFBIG ? r : 0;
	if (mp_id_equal(&v->original->id, id) && md_version_bias(v->original, m, &v->bias)) {
		v->original_dev = makedev(m->dev_major, m->dev_minor);
		v->original_ino = m->ino;
		v->original_path = strdup(m->path);
		return v->original_path ? 1 : mp_err_code(err, ENOMEM);
	}
	mp_elf_close(v->original);
	v->original = NULL;
	return 0;
}

/* ---- counters ----------------------------------------------------------------------------------- */

const char *md_version_kind_name(enum md_version_kind kind)
{
	static const char *const names[] = {"live", "live+edges", "live+meter"};

	return names[kind];
}

static enum md_version_kind kind_of(const struct mp_elf *elf)
{
	return mp_elf_section(elf, MP_EDGE_TABLE_SECTION)    ? MD_VERSION_EDGES
	       : mp_elf_section(elf, MP_METER_TABLE_SECTION) ? MD_VERSION_METER
							     : MD_VERSION_LIVE;
}

int md_version_kind_read(const char *path, enum md_version_kind *kind)
{
	struct mp_elf *elf = NULL;
	int r = mp_elf_open(path, MP_ELF_UNHASHED, &elf, NULL);

	if (!r && !mp_elf_section(elf, MP_LIVE_SECTION))
		r = -EPERM;
	if (!r)
		*kind = kind_of(elf);
	mp_elf_close(elf);
	return r;
}

/* Finds the counters of a version that counts. */
static int find_counters(struct md_version *v, struct mp_err *err)
{
	const struct mp_section *s = mp_elf_section(v->output, ".morph.counters");
	struct mp_edge_table *table = NULL;
	int r;

	v->kind = kind_of(v->output);
	if (v->kind == MD_VERSION_LIVE && !s)
		return 0;
	r = v->kind == MD_VERSION_METER ? mp_meter_table_read(v->output, &table, err)
					: mp_edge_table_read(v->output, &table, err);
	if (r)
		return r;
	v->table_hash = table->hash;
	if (!s || s->vaddr % MD_LIVE_PAGE || !s->size || s->size % MD_LIVE_PAGE ||
	    s->size / 8 < table->nr_counters || s->vaddr > v->changes.segment_vaddr ||
	    v->changes.segment_vaddr - s->vaddr < s->size)
		r = mp_err_set(err, EPERM, "%s: its counters cannot be mapped alone", v->path);
	else {
		v->counters_vaddr = s->vaddr;
		v->counters_size = s->size;
	}
	mp_edge_table_free(table);
	return r;
}

/* ---- the version --------------------------------------------------------------------------------- */

static int find_original(struct md_process *p, const struct md_versions *mapped,
			 struct md_version *v, struct mp_err *err)
{
	struct mp_id id;
	int r = mp_map_read_original(v->output, &id, err);

	if (r == -ENOENT)
		return mp_err_set(err, EPERM, "%s: is no version that Morph wrote", v->path);
	for (size_t i = 0; !r && i < p->nr_maps; i++)
		r = try_original(p, &p->maps[i], &id, mapped, v, err);
	if (!r)
		return mp_err_set(err, EPERM,
				  "process %d: does not run the original of %s, or its file is no "
				  "longer there",
				  (int)p->pid, v->path);
	if (r < 0)
		return r;
	find_bounds(v);
	return md_changes_find_segment(v->output, &v->changes, err);
}

/* Takes @fd over. */
static int open_output(struct md_version *v, const char *path, int fd, struct mp_err *err)
{
	struct stat st;

	v->output_fd = fd;
	v->path = strdup(path);
	if (!v->path)
		return mp_err_code(err, ENOMEM);
	if (fstat(fd, &st))
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	v->output_dev = st.st_dev;
	v->output_ino = st.st_ino;
	return mp_elf_open_fd(path, fd, MP_ELF_UNHASHED, &v->output, err);
}

int md_version_open(struct md_process *process, const char *path, const struct md_versions *mapped,
		    struct md_version *out, struct mp_err *err)
{
	char *full = realpath(path, NULL);
	int fd, r;

	*out = (struct md_version){.pid = process->pid, .output_fd = -1};
	fd = full ? open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	if (fd < 0)
		r = mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	else
		r = open_output(out, full, fd, err);
	free(full);
	if (!r)
		r = find_original(process, mapped, out, err);
	return r ? r : md_version_read_changes(out, err);
}

/*
 * Are the copies of @v in use, or ready, where its library is now? @m: a mapping with code of its output. A library that was loaded
 * again may lie elsewhere; then what was there before is still mapped, and may come first.
 */
static bool has_segment(const struct md_process *p, const struct md_mapping *m,
			const struct md_version *v)
{
	const struct md_mapping *at = md_process_mapping(p, md_version_segment(v));

	return at && at->start == md_version_segment(v) && at->exec && !at->write &&
	       md_mapping_same_file(at, m);
}

/*
 * The version whose segment is mapped behind the first *@at mappings. @mapped: those before. Return: 1: found, *@at is behind
 * it; 0: there is no more; -errno with a message. Ownership: as md_version_open().
 */
static int find_next(struct md_process *p, size_t *at, const struct md_versions *mapped,
		     struct md_version *out, struct mp_err *err)
{
	for (; *at < p->nr_maps; ++*at) {
		const struct md_mapping *m = &p->maps[*at];
		int fd, r;

		*out = (struct md_version){.pid = p->pid, .output_fd = -1};
		/* A file that the loader has mapped has its first page mapped, too. */
		if (!m->exec || m->write || m->again || m->begun || m->path[0] != '/')
			continue;
		fd = md_process_open_file(p, m, err);
		if (fd == -EPERM)
			continue;
		if (fd < 0)
			return fd;
		r = count_bytes(p, fd, err);
		if (r) {
			close(fd);
			return r;
		}
		r = open_output(out, m->path, fd, err);
		if (!r)
			r = find_original(p, mapped, out, err);
		if (!r && has_segment(p, m, out)) {
			++*at;
			return 1;
		}
		md_version_close(out);
		if (r == -EFBIG || (r && mp_err_is_failure(r)))
			return r;
	}
	return 0;
}

int md_versions_find(struct md_process *p, bool changes, struct md_versions *out,
		     struct mp_err *err)
{
	struct md_version v;
	size_t at = 0, room = 0;
	int r;

	*out = (struct md_versions){0};
	while ((r = find_next(p, &at, out, &v, err)) == 1) {
		r = changes ? md_version_read_changes(&v, err) : 0;
		if (!r && mp_grow(out->list, room, out->nr + 1))
			r = mp_err_code(err, ENOMEM);
		if (!r) {
			out->list[out->nr++] = v;
			continue;
		}
		md_version_close(&v);
		if (mp_err_is_failure(r))
			return r;
	}
	return r;
}

struct md_version *md_versions_of(const struct md_versions *versions, const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return NULL;
	for (size_t i = 0; i < versions->nr; i++)
		if (versions->list[i].output_ino == st.st_ino &&
		    versions->list[i].output_dev == st.st_dev)
			return &versions->list[i];
	return NULL;
}

bool md_version_is_of(const struct md_version *v, const char *file)
{
	const char *mapped = v->original_path;
	size_t len = strlen(file);
	struct stat st;

	while (len && file[len - 1] == '/')
		len--;
	if (!strncmp(mapped, file, len) && (!mapped[len] || !strcmp(mapped + len, DELETED)))
		return true;
	if (!strncmp(v->path, file, len) &&
	    (!v->path[len] || v->path[len] == '/' || !strcmp(v->path + len, DELETED)))
		return true;
	/* The process may know it by another name. */
	return !stat(file, &st) && st.st_dev == v->original_dev && st.st_ino == v->original_ino;
}

void md_versions_take(struct md_versions *versions, struct md_version *version,
		      struct md_version *out)
{
	*out = *version;
	memmove(version, version + 1,
		(size_t)(versions->list + --versions->nr - version) * sizeof(*version));
}

void md_versions_close(struct md_versions *versions)
{
	for (size_t i = 0; i < versions->nr; i++)
		md_version_close(&versions->list[i]);
	free(versions->list);
	*versions = (struct md_versions){0};
}

int md_version_read_changes(struct md_version *v, struct mp_err *err)
{
	struct md_changes changes;
	int r;

	if (v->changes_known)
		return 0;
	r = md_changes_find(v->original, v->output, &changes, err);
	if (!r)
		r = find_counters(v, err);
	if (r) {
		md_changes_fini(&changes);
		return r;
	}
	v->changes = changes;
	v->changes_known = true;
	return 0;
}

int md_version_read_copies(struct md_version *v, struct mp_err *err)
{
	int r;

	if (v->copies_known)
		return 0;
	r = md_copies_read(v->original, v->output, &v->changes, &v->copies, err);
	if (r)
		md_copies_fini(&v->copies);
	v->copies_known = !r;
	return r;
}

void md_version_close(struct md_version *v)
{
	md_copies_fini(&v->copies);
	md_changes_fini(&v->changes);
	mp_elf_close(v->original);
	mp_elf_close(v->output);
	if (v->output_fd >= 0)
		close(v->output_fd);
	free(v->path);
	free(v->original_path);
	free(v->breakpoints);
	*v = (struct md_version){.output_fd = -1};
}

/* ---- the process -------------------------------------------------------------------------------- */

uint64_t md_version_segment(const struct md_version *v)
{
	return v->bias + v->changes.segment_vaddr;
}

bool md_version_is_mapped(const struct md_version *v, const struct md_process *p)
{
	const struct md_mapping *m = md_process_mapping(p, md_version_segment(v));

	return m && m->start == md_version_segment(v) && m->ino == v->output_ino &&
	       makedev(m->dev_major, m->dev_minor) == v->output_dev && m->exec && !m->write &&
	       m->off == v->changes.segment_off && m->end - m->start == v->changes.segment_size;
}

uint64_t md_version_counters(const struct md_version *v)
{
	return v->bias + v->counters_vaddr;
}

const struct md_mapping *md_version_counters_mapping(const struct md_version *v,
						     const struct md_process *p)
{
	const struct md_mapping *m = md_process_mapping(p, md_version_counters(v));

	return v->counters_size && m && m->start == md_version_counters(v) &&
			       m->end - m->start == v->counters_size && m->shared && m->write &&
			       m->off == MP_COUNTS_FILE_HEADER_BYTES
		       ? m
		       : NULL;
}

bool md_version_is_rival(const struct md_version *v, const struct md_version *other)
{
	return (v->output_ino != other->output_ino || v->output_dev != other->output_dev) &&
	       v->bias == other->bias && mp_id_equal(&v->original->id, &other->original->id);
}

/* Index of the page at @vaddr; nr_pages: it does not change. */
static size_t page_at(const struct md_changes *c, uint64_t vaddr)
{
	size_t at = mp_search(i, 0, c->nr_pages, c->pages[i].vaddr < vaddr);

	return at < c->nr_pages && c->pages[at].vaddr == vaddr ? at : c->nr_pages;
}

bool md_version_has_page(const struct md_version *v, uint64_t vaddr)
{
	return page_at(&v->changes, vaddr) < v->changes.nr_pages;
}

/* A page of the original's, and what may stand there: the file's bytes, or those of a version that changes it. */
struct page {
	const struct md_version *v;
	const struct md_versions *mapped;
	uint64_t vaddr;
	const uint8_t *old; /* of the file */
	size_t size;	    /* bytes of @old */
};

/* The version's bytes of the page; NULL: it does not change the page, or what it changes is not known. */
static const uint8_t *bytes_of(const struct md_version *v, uint64_t vaddr)
{
	const struct md_changes *c = &v->changes;
	size_t i = page_at(c, vaddr);

	return i < c->nr_pages ? c->new_bytes + c->pages[i].at : NULL;
}

/* The same of the version at @k of the mapped ones, if it is another one. */
static const uint8_t *bytes_of_other(const struct page *p, size_t k)
{
	const struct md_version *other = &p->mapped->list[k];

	return md_version_is_rival(p->v, other) && other->changes_known ? bytes_of(other, p->vaddr)
									: NULL;
}

/* Byte @i is 0xcc in the process: has neither the file nor a known version 0xcc there? */
static bool is_breakpoint(const struct page *p, size_t i)
{
	const uint8_t *new = bytes_of(p->v, p->vaddr);
	bool other = p->old[i] == MD_BREAKPOINT || (new != NULL &&new[i] == MD_BREAKPOINT);

	for (size_t k = 0; !other && k < p->mapped->nr; k++) {
		new = bytes_of_other(p, k);
		other = new != NULL &&new[i] == MD_BREAKPOINT;
	}
	return !other;
}

/* Are @now the bytes @want, apart from breakpoints? The caller has compared whole pages before. */
static bool is_probed(const struct page *p, const uint8_t *now, const uint8_t *want)
{
	for (size_t i = 0; want && i < p->size; i++)
		if (now[i] != want[i] && (now[i] != MD_BREAKPOINT || !is_breakpoint(p, i)))
			return false;
	return want;
}

/*
 * Is each byte the original's, the version's or a breakpoint? So the kernel leaves a page when a uprobe goes that
 * was set on a changed instruction: it writes what the file has there, which it takes for what the process had.
 */
static bool is_mixed(const struct page *p, const uint8_t *now, const uint8_t *new)
{
	for (size_t i = 0; i < p->size; i++)
		if (now[i] != p->old[i] && now[i] != new[i] &&
		    (now[i] != MD_BREAKPOINT || !is_breakpoint(p, i)))
			return false;
	return true;
}

static bool is_same(const uint8_t *now, const uint8_t *want)
{
	return want && !memcmp(now, want, MD_LIVE_PAGE);
}

/*
 * Return: whose bytes page @i has in the process. @now: these bytes. *@has: what they would be without breakpoints;
 * NULL: not known. Bytes of versions may look like breakpoints, so pages without any are told first.
 */
static enum md_page look_at_page(const struct md_version *v, const struct md_versions *mapped,
				 size_t i, const uint8_t *now, const uint8_t **has)
{
	const struct md_changes *c = &v->changes;
	const struct page p = {v, mapped, c->pages[i].vaddr, c->old_bytes + c->pages[i].at,
			       MD_LIVE_PAGE};
	const uint8_t *new = c->new_bytes + c->pages[i].at;

	*has = p.old;
	if (is_same(now, p.old))
		return MD_PAGE_OLD;
	*has = new;
	if (is_same(now, new))
		return MD_PAGE_NEW;
	for (size_t k = 0; k < mapped->nr; k++) {
		*has = bytes_of_other(&p, k);
		if (is_same(now, *has))
			return MD_PAGE_ANOTHER;
	}
	*has = p.old;
	if (is_probed(&p, now, p.old))
		return MD_PAGE_OLD;
	*has = new;
	if (is_probed(&p, now, new))
		return MD_PAGE_NEW;
	for (size_t k = 0; k < mapped->nr; k++) {
		*has = bytes_of_other(&p, k);
		if (is_probed(&p, now, *has))
			return MD_PAGE_ANOTHER;
	}
	*has = NULL;
	return is_mixed(&p, now, new) ? MD_PAGE_MIXED : MD_PAGE_OTHER;
}

/* Reads what the process has at the link-time address @vaddr. Faster than /proc/PID/mem: the process may stand still. */
static bool read_memory(const struct md_version *v, uint64_t vaddr, void *to, size_t size)
{
	struct iovec here = {to, size}, there = {(void *)(v->bias + vaddr), size};

	return process_vm_readv(v->pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/*
 * Adds the breakpoints in page @i, whose bytes are @now, to those of the version. *@page: what the page is,
 * also if one of them stands in a change. Return: 0, -ENOMEM.
 */
static int note_breakpoints(struct md_version *v, size_t i, const uint8_t *now, const uint8_t *has,
			    enum md_page *page)
{
	const struct md_changes *c = &v->changes;
	const uint8_t *old = c->old_bytes + c->pages[i].at, *new = c->new_bytes + c->pages[i].at;
	bool inside = false;

	if (*page == MD_PAGE_OTHER || (has && !memcmp(now, has, MD_LIVE_PAGE)))
		return 0;
	for (size_t k = 0; k < MD_LIVE_PAGE; k++) {
		bool own = has ? has[k] == MD_BREAKPOINT
			       : old[k] == MD_BREAKPOINT || new[k] == MD_BREAKPOINT;

		if (now[k] != MD_BREAKPOINT || own)
			continue;
		if (mp_push(v->breakpoints, v->nr_breakpoints, v->max_breakpoints,
			    c->pages[i].vaddr + k))
			return -ENOMEM;
		inside |= old[k] != new[k] || md_changes_has_patch(c, c->pages[i].vaddr + k);
	}
	if (inside)
		*page = *page == MD_PAGE_OLD || *page == MD_PAGE_ANOTHER ? MD_PAGE_GUARDED
			: *page == MD_PAGE_NEW				 ? MD_PAGE_MIXED
									 : *page;
	return 0;
}

int md_version_pages(struct md_version *v, const struct md_versions *mapped, uint8_t *each,
		     struct mp_err *err)
{
	uint8_t now[64 * MD_LIVE_PAGE];
	const struct md_changes *c = &v->changes;

	v->pages = (struct md_pages){0};
	v->nr_breakpoints = 0;
	for (size_t i = 0, run; i < c->nr_pages; i += run) {
		for (run = 1; run < 64 && i + run < c->nr_pages; run++)
			if (c->pages[i + run].vaddr != c->pages[i].vaddr + run * MD_LIVE_PAGE)
				break;
		if (!read_memory(v, c->pages[i].vaddr, now, run * MD_LIVE_PAGE))
			return mp_err_set(err, EIO, "process %d: the code of %s cannot be read",
					  (int)v->pid, v->original_path);
		for (size_t k = 0; k < run; k++) {
			const uint8_t *bytes = now + k * MD_LIVE_PAGE, *has;
			enum md_page page = look_at_page(v, mapped, i + k, bytes, &has);

			if (note_breakpoints(v, i + k, bytes, has, &page))
				return mp_err_code(err, ENOMEM);
			v->pages.nr[page]++;
			if (page == MD_PAGE_MIXED)
				v->pages.nr[MD_PAGE_OTHER]++;
			if ((page == MD_PAGE_MIXED || page == MD_PAGE_OTHER) &&
			    v->pages.nr[MD_PAGE_OTHER] == 1)
				v->pages.other = i + k;
			if (each)
				each[i + k] = (uint8_t)page;
		}
	}
	return 0;
}

static int changed_by_others(const struct md_version *v, uint64_t vaddr, struct mp_err *err)
{
	return mp_err_set(err, EPERM,
			  "%s: somebody else has changed the code at 0x%" PRIx64
			  " in the process (a debugger, a probe, another version)",
			  v->original_path, v->bias + vaddr);
}

/* Does @v change the page at @vaddr? *@same: set if it has the version's bytes then. */
static bool changes_page(const struct md_version *v, uint64_t vaddr, const uint8_t *now, bool *same)
{
	const uint8_t *new = bytes_of(v, vaddr);

	*same |= is_same(now, new);
	return new;
}

/*
 * The smallest version in @mapped whose changes are not known; NULL: there is none. Small ones come first: large ones take
 * long to read, and are mostly versions that count, which are seldom in use.
 */
static struct md_version *next_unknown(const struct md_version *v, const struct md_versions *mapped)
{
	struct md_version *best = NULL;

	for (size_t k = 0; k < mapped->nr; k++) {
		struct md_version *other = &mapped->list[k];

		if (md_version_is_rival(v, other) && !other->changes_known &&
		    (!best || other->changes.segment_size < best->changes.segment_size))
			best = other;
	}
	return best;
}

/* Is the page the file's, or a version's, and has breakpoints? The changes of all versions are known. */
static bool explain_probed(const struct page *p, const uint8_t *now)
{
	if (is_probed(p, now, p->old))
		return true;
	/* The last page of the file is compared as far as the file goes. */
	if (p->size < MD_LIVE_PAGE)
		return false;
	if (is_probed(p, now, bytes_of(p->v, p->vaddr)))
		return true;
	for (size_t k = 0; k < p->mapped->nr; k++)
		if (is_probed(p, now, bytes_of_other(p, k)))
			return true;
	return false;
}

/*
 * The page @p, whose bytes @now are not those of the file: has a version changed it? Reads the changes of mapped
 * versions until one explains it. @code: it is code; @others: somebody else may have changed it, if no version does.
 * Return: 0; -EPERM, -errno.
 */
static int explain(struct md_version *v, const struct page *p, const uint8_t *now, bool code,
		   bool others, struct mp_err *err)
{
	const struct md_versions *mapped = p->mapped;
	bool same = false, changed = changes_page(v, p->vaddr, now, &same);
	struct md_version *other;
	int r;

	for (size_t k = 0; !same && k < mapped->nr; k++)
		if (md_version_is_rival(v, &mapped->list[k]) && mapped->list[k].changes_known)
			changed |= changes_page(&mapped->list[k], p->vaddr, now, &same);
	while (!same && (other = next_unknown(v, mapped))) {
		r = md_version_read_changes(other, err);
		if (r)
			return r;
		changed |= changes_page(other, p->vaddr, now, &same);
	}
	if (same || (!changed && (others || !code)) || (code && explain_probed(p, now)))
		return 0;
	return changed_by_others(v, p->vaddr, err);
}

/* May a version change data whose segment the process writes? Then the file does not tell whether it has. */
static bool has_written_data(const struct mp_elf *original)
{
	for (uint32_t i = 0; i < original->nr_phdrs; i++) {
		const Elf64_Phdr *p = &original->phdrs[i];

		if (p->p_type != PT_LOAD || (p->p_flags & (PF_W | PF_X)) != PF_W)
			continue;
		for (uint32_t k = 0; k < original->nr_sections; k++)
			if (md_changes_compares(&original->sections[k]) &&
			    original->sections[k].vaddr - p->p_vaddr < p->p_memsz)
				return true;
	}
	return false;
}

/* Reads the changes of all @mapped versions. */
static int know_all(const struct md_version *v, const struct md_versions *mapped,
		    struct mp_err *err)
{
	struct md_version *other;
	int r = 0;

	while (!r && (other = next_unknown(v, mapped)))
		r = md_version_read_changes(other, err);
	return r;
}

/* @others: pages that no version changes may differ. */
static int check_segment(struct md_version *v, const struct md_versions *mapped,
			 const Elf64_Phdr *p, bool others, struct mp_err *err)
{
	const bool code = p->p_flags & PF_X;
	uint64_t start = p->p_vaddr & -(uint64_t)MD_LIVE_PAGE, end = p->p_vaddr + p->p_filesz;
	uint8_t now[64 * MD_LIVE_PAGE];
	int r = 0;

	if ((p->p_vaddr - p->p_offset) % MD_LIVE_PAGE)
		return mp_err_set(err, EPERM, "%s: is not mapped as a program", v->original_path);
	for (uint64_t at = start, size; !r && at < end; at += size) {
		uint64_t off = p->p_offset - (p->p_vaddr - start) + (at - start);
		uint64_t left = (end - at + MD_LIVE_PAGE - 1) & -(uint64_t)MD_LIVE_PAGE;

		size = left < sizeof(now) ? left : sizeof(now);
		if (!read_memory(v, at, now, size))
			return code ? mp_err_set(err, EIO,
						 "%s: its code cannot be read in the process",
						 v->original_path)
				    : know_all(v, mapped, err);
		for (uint64_t k = 0; !r && k < size; k += MD_LIVE_PAGE) {
			uint64_t in_file = v->original->size - (off + k);
			const struct page page = {v, mapped, at + k, v->original->data + off + k,
						  in_file < MD_LIVE_PAGE ? in_file : MD_LIVE_PAGE};

			if (memcmp(now + k, page.old, page.size))
				r = explain(v, &page, now + k, code, others, err);
		}
	}
	return r;
}

/* @whole: no page has the version's bytes. */
static int check_pages(struct md_version *v, const struct md_versions *mapped, bool whole,
		       struct mp_err *err)
{
	int r = md_version_pages(v, mapped, NULL, err);

	if (r)
		return r;
	if (whole && v->pages.nr[MD_PAGE_NEW])
		return mp_err_set(err, EIO, "%s: its old code is not back in the process",
				  v->original_path);
	return v->pages.nr[MD_PAGE_OTHER]
		       ? changed_by_others(v, v->changes.pages[v->pages.other].vaddr, err)
		       : 0;
}

int md_version_check_text(struct md_version *v, const struct md_versions *mapped, bool whole,
			  struct mp_err *err)
{
	int r = has_written_data(v->original) ? know_all(v, mapped, err) : 0;
	/*
	 * Read-only data is compared only if the changes of some version are not known: it shows whether such a version is in
	 * use.
	 */
	const bool all = next_unknown(v, mapped);

	for (uint32_t i = 0; !r && i < v->original->nr_phdrs; i++) {
		const Elf64_Phdr *p = &v->original->phdrs[i];

		if (p->p_type == PT_LOAD && ((p->p_flags & PF_X) || (all && !(p->p_flags & PF_W))))
			r = check_segment(v, mapped, p, whole, err);
	}
	if (!r)
		r = check_pages(v, mapped, whole, err);
	for (size_t k = 0; !r && k < mapped->nr; k++)
		if (md_version_is_rival(v, &mapped->list[k]) && mapped->list[k].changes_known)
			r = check_pages(&mapped->list[k], mapped, false, err);
	return r;
}

int md_version_check_proof(const struct md_version *v, struct mp_err *err)
{
	struct mp_own_proof proof = {0};
	struct stat st;
	int r;

	if (fstat(v->output_fd, &st))
		return mp_err_set(err, errno, "%s: %s", v->path, strerror(errno));
	if (!S_ISREG(st.st_mode) || (st.st_mode & 022))
		return mp_err_set(err, EPERM, "%s: other users may write it", v->path);
	mp_sha256(v->original->data, v->original->size, proof.original);
	r = mp_own_output_check(v->output_fd, v->output_fd, v->path, &proof, err);
	if (!r && strcmp(proof.kind, md_version_kind_name(v->kind)))
		r = mp_err_set(err, EPERM,
			       proof.kind[0]
				       ? "%s: is no version for running processes; write one "
					 "with --live-at"
				       : "%s: was not proved on this machine against the "
					 "file that the process runs; let morph-optimize write it",
			       v->path);
	return r;
}

const char *md_version_function(const struct md_version *v, uint64_t ip, char *buf, size_t size)
{
	uint64_t vaddr = ip - v->bias;
	const struct mp_fde *fde;

	for (uint32_t i = 0; i < v->original->nr_symbols; i++) {
		const struct mp_symbol *s = &v->original->symbols[i];

		if (s->type != STT_FUNC || vaddr < s->vaddr || vaddr - s->vaddr >= s->size)
			continue;
		snprintf(buf, size, "%s", s->name);
		return buf;
	}
	fde = mp_elf_fde_before(v->original, vaddr);
	snprintf(buf, size, "the function at 0x%" PRIx64, fde ? fde->start : vaddr);
	return buf;
}
