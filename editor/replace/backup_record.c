// SPDX-License-Identifier: Apache-2.0
/* backup_record - reads and writes the JSON. A damaged file is an error. */
#include "editor/replace/backup_record.h"
#include "libprof/cli/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_OUTPUTS = 256, /* enough for months of daily outputs at several places */
	MAX_SIZE = 16 << 20,
};

/* ---- values -------------------------------------------------------------------------------- */

static int set_new(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) ? -ENOMEM : 0;
}

static int set_hex(json_t *object, const char *key, const void *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *b = bytes;
	char *hex = malloc(2 * size + 1);
	int rc;

	if (!hex)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++) {
		hex[2 * i] = digits[b[i] >> 4];
		hex[2 * i + 1] = digits[b[i] & 15];
	}
	hex[2 * size] = '\0';
	rc = set_new(object, key, json_string(hex));
	free(hex);
	return rc;
}

/*
 * Set @key to @text; if that is not UTF-8, which JSON needs, set @key_hex to its bytes
 * in hex. Paths and names of attributes need not be UTF-8.
 */
static int set_text(json_t *object, const char *key, const char *text)
{
	char hex_key[32];
	json_t *value = json_string(text);

	if (value)
		return set_new(object, key, value);
	snprintf(hex_key, sizeof(hex_key), "%s_hex", key);
	return set_hex(object, hex_key, text, strlen(text));
}

static bool text_is(const json_t *object, const char *key, const char *text)
{
	const char *value = json_string_value(json_object_get(object, key));
	json_t *other = json_object();
	char hex_key[32];
	bool same;

	if (value) {
		json_decref(other);
		return !strcmp(value, text);
	}
	snprintf(hex_key, sizeof(hex_key), "%s_hex", key);
	same = other && !set_text(other, key, text) && json_object_get(object, hex_key) &&
	       json_equal(json_object_get(object, hex_key), json_object_get(other, hex_key));
	json_decref(other);
	return same;
}

/* Read a value that set_text() wrote. Ownership: free(). */
static char *get_text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key)), *hex;
	char hex_key[32], *text;
	size_t len;

	if (value)
		return strdup(value);
	snprintf(hex_key, sizeof(hex_key), "%s_hex", key);
	hex = json_string_value(json_object_get(object, hex_key));
	len = hex ? strlen(hex) : 1;
	if (len % 2 || strspn(hex, "0123456789abcdef") != len)
		return NULL;
	text = malloc(len / 2 + 1);
	for (size_t i = 0; text && i < len / 2; i++) {
		unsigned int byte = 0;

		sscanf(hex + 2 * i, "%2x", &byte);
		text[i] = (char)byte;
	}
	if (text)
		text[len / 2] = '\0';
	return text;
}

static int set_id(json_t *object, const struct mp_id *id)
{
	char text[2 * MP_BUILD_ID_MAX + 1];
	int rc;

	mp_id_format_build_id(id, text);
	rc = set_new(object, "build_id", json_string(text));
	snprintf(text, sizeof(text), "%016" PRIx64, id->text_hash);
	return rc ? rc : set_new(object, "text_hash", json_string(text));
}

static bool id_is(const json_t *object, const struct mp_id *id)
{
	json_t *want = json_object();
	bool same = want && !set_id(want, id) &&
		    json_equal(json_object_get(object, "build_id"),
			       json_object_get(want, "build_id")) &&
		    json_equal(json_object_get(object, "text_hash"),
			       json_object_get(want, "text_hash"));

	json_decref(want);
	return same;
}

/* ---- the file ------------------------------------------------------------------------------ */

json_t *me_record_new(const struct mp_id *id, const struct me_digest *digest, uint64_t size)
{
	json_t *root = json_object();

	if (!root || set_new(root, "schema", json_integer(ME_BACKUP_SCHEMA)) || set_id(root, id) ||
	    set_new(root, "xxh3_128", json_string(digest->hex)) ||
	    set_new(root, "size", json_integer((json_int_t)size)) ||
	    set_new(root, "places", json_array()) || set_new(root, "outputs", json_array())) {
		json_decref(root);
		return NULL;
	}
	return root;
}

static int read_text(int fd, char **out, size_t *size)
{
	struct stat st;
	char *text;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > MAX_SIZE)
		return -EBADMSG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	n = pread(fd, text, (size_t)st.st_size, 0);
	if (n != st.st_size) {
		free(text);
		return n < 0 ? -errno : -EBADMSG;
	}
	*out = text;
	*size = (size_t)n;
	return 0;
}

int me_record_load(int dir_fd, const char *name, json_t **out, struct mp_err *err)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	json_t *root = NULL;
	char *text = NULL;
	size_t size = 0;
	int rc;

	*out = NULL;
	if (fd < 0)
		return mp_err_set(err, errno, "%s: %s", name, strerror(errno));
	rc = read_text(fd, &text, &size);
	close(fd);
	if (!rc) {
		root = json_loadb(text, size, 0, NULL);
		if (!root ||
		    json_integer_value(json_object_get(root, "schema")) != ME_BACKUP_SCHEMA ||
		    !json_is_array(json_object_get(root, "places")) ||
		    !json_is_array(json_object_get(root, "outputs")))
			rc = -EBADMSG;
	}
	free(text);
	if (rc) {
		json_decref(root);
		return mp_err_set(err, -rc, "%s: %s", name,
				  rc == -EBADMSG ? "damaged, or of a newer Morph" : strerror(-rc));
	}
	*out = root;
	return 0;
}

static int write_text(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t n = write(fd, text, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		text += n;
		left -= (size_t)n;
	}
	return 0;
}

int me_record_save(int dir_fd, const char *name, const json_t *record, struct mp_err *err)
{
	char *text = mp_json_is_whole(record) ? json_dumps(record, JSON_INDENT(1) | JSON_SORT_KEYS)
					      : NULL;
	char temporary[NAME_MAX + 1];
	int fd, rc;

	if (!text)
		return mp_err_set(err, ENOMEM, "%s: out of memory", name);
	snprintf(temporary, sizeof(temporary), "%.200s.new", name);
	unlinkat(dir_fd, temporary, 0);
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = fd < 0 ? -errno : write_text(fd, text);
	free(text);
	if (!rc && (fsync(fd) || renameat(dir_fd, temporary, dir_fd, name)))
		rc = -errno;
	if (fd >= 0)
		close(fd);
	if (!rc)
		return 0;
	unlinkat(dir_fd, temporary, 0);
	return mp_err_set(err, -rc, "%s: %s", name, strerror(-rc));
}

/* ---- contents ------------------------------------------------------------------------------ */

bool me_record_is_of(const json_t *record, const struct mp_id *id)
{
	return id_is(record, id);
}

bool me_record_digest(const json_t *record, struct me_digest *out)
{
	const char *hex = json_string_value(json_object_get(record, "xxh3_128"));

	if (!hex || strlen(hex) != sizeof(out->hex) - 1 || strspn(hex, "0123456789abcdef") != 32)
		return false;
	memcpy(out->hex, hex, sizeof(out->hex));
	return true;
}

static json_t *describe(const struct me_attributes *a)
{
	char mode[16];
	json_t *place;
	json_t *list;

	snprintf(mode, sizeof(mode), "%04o", (unsigned int)a->mode);
	place = json_pack("{s:s, s:I, s:I, s:I, s:I, s:[]}", "mode", mode, "uid",
			  (json_int_t)a->uid, "gid", (json_int_t)a->gid, "mtime_s",
			  (json_int_t)a->mtime.tv_sec, "mtime_ns", (json_int_t)a->mtime.tv_nsec,
			  "xattrs");
	list = json_object_get(place, "xattrs");
	for (uint32_t i = 0; place && i < a->nr_xattrs; i++) {
		json_t *x = json_object();

		if (!x || set_text(x, "name", a->xattrs[i].name) ||
		    set_hex(x, "value_hex", a->xattrs[i].value, a->xattrs[i].size) ||
		    json_array_append(list, x)) {
			json_decref(place);
			place = NULL;
		}
		json_decref(x);
	}
	return place;
}

int me_record_put_place(json_t *record, const char *path, const struct me_attributes *attributes)
{
	json_t *places = json_object_get(record, "places"), *place = describe(attributes);

	if (!place || set_text(place, "path", path)) {
		json_decref(place);
		return -ENOMEM;
	}
	for (size_t i = 0; i < json_array_size(places); i++) {
		if (text_is(json_array_get(places, i), "path", path))
			return json_array_set_new(places, i, place) ? -ENOMEM : 0;
	}
	return json_array_append_new(places, place) ? -ENOMEM : 0;
}

/* Did Morph make the directory of @path for an earlier output's debug file? */
static bool made_before(const json_t *outputs, const char *path)
{
	size_t len = (size_t)(strrchr(path, '/') - path);

	for (size_t i = 0; i < json_array_size(outputs); i++) {
		const json_t *debug = json_object_get(json_array_get(outputs, i), "debug");
		char *have = debug ? get_text(debug, "path") : NULL;
		bool made = have && json_is_true(json_object_get(debug, "made_directory")) &&
			    !strncmp(have, path, len + 1) && !strchr(have + len + 1, '/');

		free(have);
		if (made)
			return true;
	}
	return false;
}

static int set_debug(json_t *output, const json_t *outputs, const struct me_backup_debug *debug)
{
	json_t *d;

	if (!debug->path)
		return 0;
	d = json_object();
	if (!d || set_text(d, "path", debug->path) ||
	    set_new(d, "xxh3_128", json_string(debug->digest.hex)) ||
	    set_new(d, "made_directory",
		    json_boolean(debug->made_directory || made_before(outputs, debug->path)))) {
		json_decref(d);
		return -ENOMEM;
	}
	return set_new(output, "debug", d);
}

int me_record_add_output(json_t *record, const char *path, const struct me_backup_output *output,
			 int64_t now_s)
{
	json_t *outputs = json_object_get(record, "outputs"), *o = json_object();

	if (!o || set_text(o, "path", path) || set_id(o, &output->id) ||
	    set_new(o, "xxh3_128", json_string(output->digest.hex)) ||
	    set_new(o, "time_s", json_integer(now_s)) || set_debug(o, outputs, &output->debug)) {
		json_decref(o);
		return -ENOMEM;
	}
	/* If the same output was put at the same place before, replace its entry. */
	for (size_t i = json_array_size(outputs); i-- > 0;) {
		const json_t *have = json_array_get(outputs, i);

		if (text_is(have, "path", path) && id_is(have, &output->id) &&
		    json_equal(json_object_get(have, "xxh3_128"), json_object_get(o, "xxh3_128")))
			json_array_remove(outputs, i);
	}
	while (json_array_size(outputs) >= MAX_OUTPUTS)
		json_array_remove(outputs, 0);
	return json_array_append_new(outputs, o) ? -ENOMEM : 0;
}

static bool read_debug(const json_t *output, struct me_backup_debug *out)
{
	const json_t *debug = json_object_get(output, "debug");
	const char *hex = json_string_value(json_object_get(debug, "xxh3_128"));
	char *path = debug ? get_text(debug, "path") : NULL;

	if (!path || path[0] != '/' || !hex || strlen(hex) != sizeof(out->digest.hex) - 1) {
		free(path);
		return false;
	}
	*out = (struct me_backup_debug){
		.path = path,
		.made_directory = json_is_true(json_object_get(debug, "made_directory"))};
	memcpy(out->digest.hex, hex, sizeof(out->digest.hex));
	return true;
}

bool me_record_next_debug(const json_t *record, const char *path, const struct mp_id *except,
			  size_t *at, struct me_backup_debug *out)
{
	const json_t *outputs = json_object_get(record, "outputs");

	while (*at < json_array_size(outputs)) {
		const json_t *o = json_array_get(outputs, (*at)++);

		if (text_is(o, "path", path) && !(except && id_is(o, except)) && read_debug(o, out))
			return true;
	}
	return false;
}

void me_record_drop_debug(json_t *record, const char *path, const char *debug)
{
	json_t *outputs = json_object_get(record, "outputs");

	for (size_t i = 0; i < json_array_size(outputs); i++) {
		json_t *o = json_array_get(outputs, i);

		if (text_is(o, "path", path) && text_is(json_object_get(o, "debug"), "path", debug))
			json_object_del(o, "debug");
	}
}

bool me_record_next_user(const json_t *record, const char *path, const char *debug, size_t *at,
			 char **other, const char **output_id)
{
	const json_t *outputs = json_object_get(record, "outputs");

	while (*at < json_array_size(outputs)) {
		const json_t *o = json_array_get(outputs, (*at)++);

		if (text_is(o, "path", path) ||
		    !text_is(json_object_get(o, "debug"), "path", debug))
			continue;
		*output_id = json_string_value(json_object_get(o, "build_id"));
		*other = get_text(o, "path");
		if (*other && *output_id)
			return true;
		free(*other);
	}
	return false;
}

int me_record_score(const json_t *record, const char *path, const struct me_backup_output *output)
{
	const json_t *outputs = json_object_get(record, "outputs");
	int best = 0;

	for (size_t i = 0; i < json_array_size(outputs); i++) {
		const json_t *o = json_array_get(outputs, i);
		const char *digest = json_string_value(json_object_get(o, "xxh3_128"));
		int score = 1;

		if (!id_is(o, &output->id))
			continue;
		score += digest && !strcmp(digest, output->digest.hex) ? 4 : 0;
		score += text_is(o, "path", path) ? 2 : 0;
		best = score > best ? score : best;
	}
	return best;
}

bool me_record_mtime(const json_t *record, const char *path, struct timespec *out)
{
	const json_t *places = json_object_get(record, "places"), *found = NULL;

	for (size_t i = 0; i < json_array_size(places); i++) {
		const json_t *place = json_array_get(places, i);

		if (!found || text_is(place, "path", path))
			found = place;
	}
	if (!json_is_integer(json_object_get(found, "mtime_s")))
		return false;
	out->tv_sec = json_integer_value(json_object_get(found, "mtime_s"));
	out->tv_nsec = json_integer_value(json_object_get(found, "mtime_ns"));
	return out->tv_nsec >= 0 && out->tv_nsec < 1000000000;
}
