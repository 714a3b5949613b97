// SPDX-License-Identifier: Apache-2.0
/* package_index - see package_index.h. */
#include "daemon/fleet/packages/package_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "daemon/fleet/confined.h"
#include "daemon/fleet/packages/index_lines.h"

#define ENTRIES_MAX 256
/* ---- in the confined process --------------------------------------------------------------- */

struct reader {
	const struct md_package_query *query;
	struct md_package_entry entry; /* of the stanza that is being read */
	bool in_build_ids;	       /* the lines that continue this field belong to it */
	bool is_foreign;	       /* of another architecture */
	size_t nr_entries;
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

static enum md_index_outcome end_stanza(struct reader *r)
{
	enum md_index_outcome result = MD_INDEX_DONE;

	if (r->entry.is.name[0] && is_wanted(r) && r->nr_entries < ENTRIES_MAX) {
		r->nr_entries++;
		if (!put(&r->entry))
			result = MD_INDEX_TOO_LARGE;
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

static enum md_index_outcome see_line(void *arg, char *line, size_t size)
{
	struct reader *r = arg;
	char *colon;

	if (!size)
		return end_stanza(r);
	if (line[0] == ' ' || line[0] == '\t') {
		if (r->in_build_ids && r->query->build_id)
			r->entry.has_build_id |= has_word(line, r->query->build_id);
		return MD_INDEX_DONE;
	}
	colon = strchr(line, ':');
	if (!colon)
		return MD_INDEX_DAMAGED;
	*colon = '\0';
	see_field(r, line, colon + 1 + strspn(colon + 1, " \t"));
	return MD_INDEX_DONE;
}

static int read_index(const void *arg)
{
	static struct reader r;
	enum md_index_outcome result;

	r.query = arg;
	result = md_index_lines(see_line, &r);
	return (int)(result == MD_INDEX_DONE ? end_stanza(&r) : result);
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

int md_package_index_read(const char *path, const struct md_package_query *query, const char *dir,
			  const struct md_package_look *look, struct md_package_entry **entries,
			  size_t *nr, struct mp_err *err)
{
	int fd = md_confined_file(dir, err), r;

	*entries = NULL;
	*nr = 0;
	if (fd < 0)
		return fd;
	r = md_index_run(path, read_index, query, fd, look, err);
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
