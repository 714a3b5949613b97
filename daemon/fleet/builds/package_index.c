// SPDX-License-Identifier: Apache-2.0
/* package_index - see package_index.h. */
#include "daemon/fleet/builds/package_index.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/fleet/builds/archive_bytes.h"
#include "daemon/fleet/builds/confined.h"

/* The largest window of xz and zstd, and a line. */
#define MEMORY	    (UINT64_C(256) << 20)
#define SECONDS	    300
#define ENTRIES_MAX 256
/* A package of a kernel's debug information has some thousand build-ids in one line. */
#define LINE_MAX_BYTES (4u << 20)

enum outcome {
	DONE,
	DAMAGED,
	TOO_LARGE
};

/* ---- in the confined process --------------------------------------------------------------- */

struct reader {
	const struct md_package_query *query;
	struct md_package_entry entry; /* of the stanza that is being read */
	bool in_build_ids;	       /* the lines that continue this field belong to it */
	bool is_foreign;	       /* of another architecture */
	size_t nr_entries;
	char *line;
	size_t size, max;
};

/* Copies a value if it fits, else nothing of it. */
static void copy(char *out, size_t room, const char *value)
{
	size_t size = strlen(value);

	if (size < room)
		memcpy(out, value, size + 1);
}

static bool has_word(const char *text, const char *word)
{
	size_t size = strlen(word), n;

	for (; *text; text += n) {
		text += strspn(text, " \t");
		n = strcspn(text, " \t");
		if (n == size && !strncasecmp(text, word, n))
			return true;
	}
	return false;
}

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c | 0x20) : NULL;

	return at && (c >= 'A' || c <= '9') ? (int)(at - digits) : -1;
}

static bool read_hash(const char *text, uint8_t hash[MD_SHA256_SIZE])
{
	for (size_t i = 0; i < MD_SHA256_SIZE; i++) {
		int high = digit(text[2 * i]), low = high < 0 ? -1 : digit(text[2 * i + 1]);

		if (low < 0)
			return false;
		hash[i] = (uint8_t)(high << 4 | low);
	}
	return !text[2 * MD_SHA256_SIZE];
}

static bool is_wanted(const struct reader *r)
{
	const struct md_package_query *q = r->query;

	if (r->is_foreign)
		return false;
	if (r->entry.has_build_id)
		return true;
	for (size_t i = 0; i < q->nr_names; i++)
		if (!strcmp(q->names[i].name, r->entry.is.name) &&
		    (!q->names[i].version[0] || !strcmp(q->names[i].version, r->entry.is.version)))
			return true;
	return false;
}

static bool put(const struct md_package_entry *entry)
{
	return write(MD_CONFINED_OUT, entry, sizeof(*entry)) == (ssize_t)sizeof(*entry);
}

static enum outcome end_stanza(struct reader *r)
{
	enum outcome result = DONE;

	if (r->entry.is.name[0] && is_wanted(r) && r->nr_entries < ENTRIES_MAX) {
		r->nr_entries++;
		if (!put(&r->entry))
			result = TOO_LARGE;
	}
	r->entry = (struct md_package_entry){0};
	r->is_foreign = false;
	r->in_build_ids = false;
	return result;
}

static void see_field(struct reader *r, const char *name, const char *value)
{
	struct md_package_entry *e = &r->entry;

	r->in_build_ids = !strcasecmp(name, "Build-Ids");
	if (r->in_build_ids)
		e->has_build_id |= r->query->build_id && has_word(value, r->query->build_id);
	else if (!strcasecmp(name, "Package"))
		copy(e->is.name, sizeof(e->is.name), value);
	else if (!strcasecmp(name, "Version"))
		copy(e->is.version, sizeof(e->is.version), value);
	else if (!strcasecmp(name, "Architecture"))
		r->is_foreign = strcmp(value, "amd64") != 0;
	else if (!strcasecmp(name, "Depends"))
		copy(e->depends, sizeof(e->depends), value);
	else if (!strcasecmp(name, "Filename"))
		copy(e->filename, sizeof(e->filename), value);
	else if (!strcasecmp(name, "Size"))
		e->size = strtoull(value, NULL, 10);
	else if (!strcasecmp(name, "SHA256"))
		e->has_sha256 = read_hash(value, e->sha256);
}

/* One line, which is a string now. */
static enum outcome see_line(struct reader *r)
{
	char *colon;

	while (r->size && strchr(" \t\r", r->line[r->size - 1]))
		r->line[--r->size] = '\0';
	if (!r->size)
		return end_stanza(r);
	if (r->line[0] == ' ' || r->line[0] == '\t') {
		if (r->in_build_ids && r->query->build_id)
			r->entry.has_build_id |= has_word(r->line, r->query->build_id);
		return DONE;
	}
	colon = strchr(r->line, ':');
	if (!colon)
		return DAMAGED;
	*colon = '\0';
	see_field(r, r->line, colon + 1 + strspn(colon + 1, " \t"));
	return DONE;
}

static enum outcome see_bytes(struct reader *r, const char *bytes, size_t size)
{
	while (size) {
		const char *end = memchr(bytes, '\n', size);
		size_t n = end ? (size_t)(end - bytes) : size;
		enum outcome result;

		if (r->size + n >= LINE_MAX_BYTES || memchr(bytes, '\0', n))
			return DAMAGED;
		if (r->size + n >= r->max) {
			r->max = 2 * (r->size + n) + 4096;
			r->line = realloc(r->line, r->max);
			if (!r->line)
				return TOO_LARGE;
		}
		memcpy(r->line + r->size, bytes, n);
		r->size += n;
		r->line[r->size] = '\0';
		if (!end)
			return DONE;
		result = see_line(r);
		if (result != DONE)
			return result;
		r->size = 0;
		bytes = end + 1;
		size -= n + 1;
	}
	return DONE;
}

static enum outcome see_index(struct reader *r, struct archive *a)
{
	struct archive_entry *entry;
	enum outcome result = DONE;
	const void *bytes;
	la_int64_t off;
	size_t size;
	int next = archive_read_next_header(a, &entry);

	/* An empty index is one. */
	if (next == ARCHIVE_EOF)
		return DONE;
	if (next != ARCHIVE_OK)
		return DAMAGED;
	while (result == DONE &&
	       (next = archive_read_data_block(a, &bytes, &size, &off)) == ARCHIVE_OK)
		result = see_bytes(r, bytes, size);
	if (result != DONE)
		return result;
	if (next != ARCHIVE_EOF || r->size)
		return DAMAGED; /* the last line has an end, too */
	return end_stanza(r);
}

static int read_index(const void *arg)
{
	static struct md_archive_bytes bytes = {.fd = MD_CONFINED_IN};
	static struct reader r;
	struct archive *a = archive_read_new();

	r.query = arg;
	if (!a)
		return TOO_LARGE;
	if (md_archive_allow_filters(a) != ARCHIVE_OK ||
	    archive_read_support_format_raw(a) != ARCHIVE_OK ||
	    archive_read_support_format_empty(a) != ARCHIVE_OK ||
	    md_archive_open(a, &bytes) != ARCHIVE_OK)
		return DAMAGED;
	return (int)see_index(&r, a);
}

/* ---- the caller ---------------------------------------------------------------------------- */

static bool is_text(const char *text, size_t room, const char *more)
{
	size_t size = strnlen(text, room);

	if (size == room)
		return false;
	for (size_t i = 0; i < size; i++)
		if ((text[i] <= ' ' || text[i] > '~') && !strchr(more, text[i]))
			return false;
	return true;
}

/* A path that stays below the archive. */
static bool is_inside(const char *path)
{
	if (*path == '/')
		return false;
	for (; *path; path += strcspn(path, "/"), path += *path == '/')
		if (!strncmp(path, "..", 2) && (path[2] == '/' || !path[2]))
			return false;
	return true;
}

/* The reader was fed with bytes of unknown authors, so its answer is checked as such bytes are. */
static bool is_sound(const struct md_package_entry *e)
{
	return is_text(e->is.name, sizeof(e->is.name), "") && e->is.name[0] &&
	       is_text(e->is.version, sizeof(e->is.version), "") &&
	       is_text(e->depends, sizeof(e->depends), " ") &&
	       is_text(e->filename, sizeof(e->filename), "") && is_inside(e->filename);
}

static int read_entries(int fd, const char *path, struct md_package_entry **out, size_t *nr,
			struct mp_err *err)
{
	struct md_package_entry *entries = calloc(ENTRIES_MAX, sizeof(*entries));
	const size_t size = ENTRIES_MAX * sizeof(*entries);
	ssize_t n = entries ? pread(fd, entries, size, 0) : -1;

	if (!entries)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (n < 0 || (size_t)n % sizeof(*entries)) {
		free(entries);
		return mp_err_set(err, EBADMSG, "%s: is damaged or cut short", path);
	}
	for (size_t i = 0; i < (size_t)n / sizeof(*entries); i++)
		if (is_sound(&entries[i]))
			entries[(*nr)++] = entries[i];
	*out = entries;
	return 0;
}

static int run(const char *path, const struct md_package_query *query, int out_fd,
	       const struct md_package_look *look, struct mp_err *err)
{
	struct md_confined c = {.in_fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY),
				.out_fd = out_fd,
				.work = read_index,
				.arg = query,
				.memory = MEMORY,
				.seconds = SECONDS,
				.look = look->look,
				.look_arg = look->arg};
	struct mp_err why = {""};
	int r;

	if (c.in_fd < 0)
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	r = md_confined_run(&c, &why);
	close(c.in_fd);
	if (r < 0)
		return mp_err_set(err, -r, "%s: %s", path, why.msg);
	if (r == TOO_LARGE)
		return mp_err_set(err, ENOSPC,
				  "%s: reading it needs more memory or disk than there is", path);
	return r == DONE ? 0 : mp_err_set(err, EBADMSG, "%s: is damaged or cut short", path);
}

int md_package_index_read(const char *path, const struct md_package_query *query, const char *dir,
			  const struct md_package_look *look, struct md_package_entry **entries,
			  size_t *nr, struct mp_err *err)
{
	int fd = md_confined_file(dir, err), r;

	*entries = NULL;
	*nr = 0;
	if (fd < 0)
		return fd;
	r = run(path, query, fd, look, err);
	if (!r)
		r = read_entries(fd, path, entries, nr, err);
	close(fd);
	return r;
}

/* "NAME[:ARCHITECTURE] (= VERSION)", between spaces. */
static bool read_dependency(const char *text, size_t size, struct md_package_name *out)
{
	char copy[300], *name = copy, *version, *end;

	if (size >= sizeof(copy))
		return false;
	memcpy(copy, text, size);
	copy[size] = '\0';
	name += strspn(name, " ");
	version = strstr(name, "(=");
	end = version ? strchr(version, ')') : NULL;
	if (!end)
		return false;
	*end = '\0';
	name[strcspn(name, " :(")] = '\0';
	version += 2;
	version += strspn(version, " ");
	version[strcspn(version, " ")] = '\0';
	*out = (struct md_package_name){.name = ""};
	if (!*name || !*version || strlen(name) >= sizeof(out->name) ||
	    strlen(version) >= sizeof(out->version))
		return false;
	strcpy(out->name, name);
	strcpy(out->version, version);
	return true;
}

size_t md_package_depends(const char *depends, struct md_package_name *names, size_t max)
{
	size_t nr = 0, size;

	for (; *depends && nr < max; depends += size, depends += *depends != '\0') {
		size = strcspn(depends, ",|");
		nr += read_dependency(depends, size, &names[nr]);
	}
	return nr;
}
