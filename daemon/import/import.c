// SPDX-License-Identifier: Apache-2.0
/*
 * import - collects modules, counts and the ledger of one imported file, and stores them; see
 * import.h. Decides which addresses of a module are accepted. The parsers read the formats.
 */
#include "daemon/import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/module/outputs.h"
#include "libprof/base/grow.h"
#include "libprof/base/infile.h"
#include "libprof/note/path_table.h"
#include "libprof/store/store_span.h"
#include "libprof/store/store_ways.h"

/* Sort and add up counts each time this many have been added. */
#define SORT_AT 65536

struct md_import *md_import_new(void)
{
	return calloc(1, sizeof(struct md_import));
}

void md_import_free(struct md_import *import)
{
	if (!import)
		return;
	for (uint32_t i = 0; i < import->nr_modules; i++) {
		struct md_import_module *m = &import->modules[i];

		mp_map_free(m->map);
		mp_elf_close(m->elf);
		mp_elf_close(m->code);
		free(m->map_ends);
		free(m->counts);
		free(m->edges);
		free(m->ways);
		free(m->path);
	}
	free(import->modules);
	free(import);
}

/* ---- modules ------------------------------------------------------------------------------- */

static int add_module(struct md_import *import, const char *path, uint32_t *index,
		      struct mp_err *err)
{
	struct md_import_module *m;
	uint32_t nr = import->nr_modules;

	if (!(nr & (nr - 1)) && mp_resize(import->modules, nr ? 2 * (size_t)nr : 1))
		return mp_err_set(err, ENOMEM, "out of memory");
	m = &import->modules[nr];
	memset(m, 0, sizeof(*m));
	m->why = -1;
	m->path = strdup(path);
	if (!m->path)
		return mp_err_set(err, ENOMEM, "out of memory");
	*index = import->nr_modules++;
	return 0;
}

/* The file was opened with MP_ELF_ID, so its sections are not in memory. */
static uint64_t hash_of_paths(const struct mp_elf *elf, int fd)
{
	const struct mp_section *sec = mp_elf_section(elf, MP_PATH_TABLE_SECTION);
	uint64_t hash = 0;
	void *bytes;

	if (!sec || sec->type != SHT_PROGBITS || !sec->size)
		return 0;
	bytes = malloc(sec->size);
	if (bytes && pread(fd, bytes, sec->size, (off_t)sec->off) == (ssize_t)sec->size)
		hash = mp_path_table_hash(bytes, sec->size);
	free(bytes);
	return hash;
}

static bool is_confirmed(const struct md_import *import, const struct md_import_module *m)
{
	struct mp_output output = {.id = m->elf->id, .original = m->map->original};
	int fd = open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char *path = fd < 0 ? NULL : realpath(m->path, NULL);
	bool yes;

	output.paths_hash = fd < 0 ? 0 : hash_of_paths(m->elf, fd);
	yes = path && md_outputs_confirm(import->list, fd, path, &output);
	free(path);
	if (fd >= 0)
		close(fd);
	return yes;
}

/* Reads the file as it is now. An error becomes the reason why its samples are unattributed. */
static void read_file(const struct md_import *import, struct md_import_module *m)
{
	int r = mp_elf_open(m->path, MP_ELF_ID, &m->elf, NULL);

	if (r) {
		m->no_memory = r == -ENOMEM;
		m->why = r == -ENOENT ? MP_UNATTR_DELETED : MP_UNATTR_UNREADABLE;
		return;
	}
	m->kind = MP_MODULE_FILE;
	m->id = m->elf->id;
	m->text_size = mp_elf_text_size(m->elf);
	r = mp_map_read(m->elf, &m->map, NULL);
	m->no_memory = r == -ENOMEM;
	if (!r && import->confirms && !is_confirmed(import, m)) {
		mp_map_free(m->map);
		m->map = NULL;
	} else if (!r)
		m->id = m->map->original;
	else if (r != -ENOENT)
		/* without its map, moved code cannot be attributed */
		m->why = MP_UNATTR_UNREADABLE;
}

int md_import_find_file(struct md_import *import, const char *path, uint32_t *index,
			struct mp_err *err)
{
	int r;

	for (uint32_t i = import->nr_modules; i-- > 0;) {
		if (import->modules[i].kind == MP_MODULE_FILE &&
		    !strcmp(import->modules[i].path, path)) {
			*index = i;
			return 0;
		}
	}
	r = add_module(import, path, index, err);
	if (!r)
		read_file(import, &import->modules[*index]);
	return r;
}

int md_import_find_kernel(struct md_import *import, const struct mp_id *id, const char *name,
			  uint64_t text_size, uint32_t *index, struct mp_err *err)
{
	struct md_import_module *m;
	int r;

	for (uint32_t i = 0; i < import->nr_modules; i++) {
		if (import->modules[i].kind == MP_MODULE_KERNEL &&
		    mp_id_equal(&import->modules[i].id, id)) {
			*index = i;
			return 0;
		}
	}
	r = add_module(import, name, index, err);
	if (r)
		return r;
	m = &import->modules[*index];
	m->kind = MP_MODULE_KERNEL;
	m->id = *id;
	m->text_size = text_size;
	return 0;
}

/* ---- counts -------------------------------------------------------------------------------- */

static int grow(uint64_t *sum, uint64_t by, struct mp_err *err)
{
	if (__builtin_add_overflow(*sum, by, sum) || *sum > INT64_MAX)
		return mp_err_set(err, EOVERFLOW, "more than 2^63 samples");
	return 0;
}

int md_import_add_unattributed(struct md_import *import, enum mp_unattributed why, uint64_t count,
			       struct mp_err *err)
{
	import->ledger.unattributed[why] += count;
	return grow(&import->ledger.emitted, count, err);
}

int md_import_add_lost(struct md_import *import, enum mp_lost why, uint64_t count,
		       struct mp_err *err)
{
	import->ledger.lost[why] += count;
	return grow(&import->ledger.emitted, count, err);
}

static int compare_vaddr(const void *a, const void *b)
{
	const struct mp_ip_count *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

/*
 * Sorts counts and adds up equal addresses. The sums cannot overflow, since the ledger's did
 * not.
 */
static void sort_counts(struct md_import_module *m)
{
	size_t n = 0;

	if (!m->nr)
		return;
	qsort(m->counts, m->nr, sizeof(*m->counts), compare_vaddr);
	for (size_t i = 1; i < m->nr; i++) {
		if (m->counts[i].vaddr == m->counts[n].vaddr)
			m->counts[n].count += m->counts[i].count;
		else
			m->counts[++n] = m->counts[i];
	}
	m->nr = n + 1;
}

static int append(struct md_import_module *m, uint64_t vaddr, uint64_t count, struct mp_err *err)
{
	if (m->nr == m->max) {
		sort_counts(m);
		if (mp_grow(m->counts, m->max, m->nr ? 2 * m->nr : SORT_AT))
			return mp_err_set(err, ENOMEM, "out of memory");
	}
	m->counts[m->nr++] = (struct mp_ip_count){vaddr, count};
	return 0;
}

int md_import_add(struct md_import *import, uint32_t index, uint64_t vaddr, uint64_t count,
		  struct mp_err *err)
{
	const struct md_import_module *m = &import->modules[index];

	/* No code at this address: another version of the file ran. */
	if (m->why < 0 && m->elf && !mp_elf_is_code(m->elf, vaddr))
		return md_import_add_unattributed(import, MP_UNATTR_NO_MAPPING, count, err);
	return md_import_add_original(import, index,
				      m->map ? mp_map_original(m->map, vaddr) : vaddr, count, err);
}

int md_import_add_original(struct md_import *import, uint32_t index, uint64_t vaddr, uint64_t count,
			   struct mp_err *err)
{
	struct md_import_module *m = &import->modules[index];
	int r;

	if (m->why >= 0)
		return md_import_add_unattributed(import, (enum mp_unattributed)m->why, count, err);
	if (!count)
		return 0;
	import->ledger.attributed += count;
	r = grow(&import->ledger.emitted, count, err);
	if (r)
		return r;
	return append(m, vaddr, count, err);
}

/* ---- store --------------------------------------------------------------------------------- */

static int store_module(struct md_import_module *m, struct mp_store *store, int64_t when_s,
			struct mp_err *err)
{
	const struct mp_activity *a = &m->activity;
	bool active = a->app || a->lib || a->kernel || a->other;
	const struct mp_span day = {.first_day = when_s / MP_SECONDS_PER_DAY,
				    .last_day = when_s / MP_SECONDS_PER_DAY,
				    .exact = m->exact};
	int64_t key;
	int r;

	if (m->why >= 0 || (!m->nr && !m->nr_edges && !m->nr_ways && !active))
		return 0;
	sort_counts(m);
	md_import_sort_edges(m);
	r = mp_store_put_module(store, &m->id, m->kind, m->path, m->text_size, when_s, &key, err);
	if (!r)
		r = mp_store_add_ip_count_span(store, key, &day, m->counts, m->nr, err);
	if (!r)
		r = mp_store_add_edge_span(store, key, &day, m->edges, m->nr_edges, err);
	if (!r)
		r = mp_store_add_ways(store, key, when_s, m->ways, m->nr_ways, err);
	if (!r && active)
		r = mp_store_add_activity(store, key, when_s, a, err);
	return r;
}

int md_import_store(struct md_import *import, struct mp_store *store, int64_t when_s,
		    struct mp_err *err)
{
	int r;

	for (uint32_t i = 0; i < import->nr_modules; i++)
		if (import->modules[i].no_memory)
			return mp_err_set(err, ENOMEM, "%s: out of memory",
					  import->modules[i].path);
	r = mp_store_begin(store, err);
	if (r)
		return r;
	for (uint32_t i = 0; i < import->nr_modules && !r; i++)
		r = store_module(&import->modules[i], store, when_s, err);
	if (!r)
		r = mp_store_start_session(store, &import->session, err);
	if (!r)
		r = mp_store_add_ledger(store, import->session.key, import->session.last_s,
					&import->ledger, err);
	if (!r)
		return mp_store_commit(store, err);
	mp_store_rollback(store);
	return r;
}

/* ---- lines --------------------------------------------------------------------------------- */

int md_lines_next(struct md_lines *lines, struct mp_err *err)
{
	int r;

	if (lines->repeat_line) {
		lines->repeat_line = false;
		return 1;
	}
	r = mp_infile_line(lines->file, &lines->line, &lines->max);
	if (!r)
		return 0;
	lines->nr++;
	if (r == -EILSEQ || r == -EFBIG)
		return md_lines_fail(lines, err, "%s", mp_infile_why(r));
	return r < 0 ? mp_err_set(err, -r, "%s: %s", lines->name, mp_infile_why(r)) : 1;
}

int md_lines_fail(const struct md_lines *lines, struct mp_err *err, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return mp_err_set(err, EBADMSG, "%s:%zu: %s", lines->name, lines->nr, what);
}
