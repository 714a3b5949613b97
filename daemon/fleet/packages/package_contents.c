// SPDX-License-Identifier: Apache-2.0
/* package_contents - see package_contents.h. A line is a path, spaces, and "SECTION/PACKAGE,...". */
#include "daemon/fleet/packages/package_contents.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/fleet/confined.h"
#include "daemon/fleet/packages/index_lines.h"

struct query {
	const char *wanted;
	struct md_file_names names;
	const char *base; /* the last part of a path that is wanted; NULL: a hash is */
};

/* ---- in the confined process --------------------------------------------------------------- */

/* Programs and libraries are nowhere there, and most files are. */
static bool may_be_code(const char *path)
{
	static const char *const others[] = {"usr/share/", "usr/include/", "usr/src/", "etc/"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strncmp(path, others[i], strlen(others[i])))
			return false;
	return true;
}

static bool has_name(const struct query *q, const char *prefix, const char *path)
{
	char full[4200], name[MD_NAME_SIZE];

	return snprintf(full, sizeof(full), "%s%s", prefix, path) < (int)sizeof(full) &&
	       md_file_name(&q->names, full, name) && !strcmp(name, q->wanted);
}

static bool is_wanted(const struct query *q, const char *path)
{
	const char *slash = strrchr(path, '/');

	/* Most lines end here, so a path needs no hashes and no copies. */
	if (q->base ? strcmp(slash ? slash + 1 : path, q->base) != 0 : !may_be_code(path))
		return false;
	return has_name(q, "/", path) ||
	       ((!strncmp(path, "bin/", 4) || !strncmp(path, "sbin/", 5) ||
		 !strncmp(path, "lib", 3)) &&
		has_name(q, "/usr/", path));
}

static bool put(const char *package)
{
	const char *slash = strrchr(package, '/');
	struct md_package_name name = {.name = ""};

	package = slash ? slash + 1 : package;
	if (!*package || strlen(package) >= sizeof(name.name))
		return true;
	strcpy(name.name, package);
	return write(MD_CONFINED_OUT, &name, sizeof(name)) == (ssize_t)sizeof(name);
}

static enum md_index_outcome see_line(void *arg, char *line, size_t size)
{
	const struct query *q = arg;
	char *packages = line + size, *path_end, *save;

	while (packages > line && packages[-1] != ' ' && packages[-1] != '\t')
		packages--;
	path_end = packages;
	while (path_end > line && (path_end[-1] == ' ' || path_end[-1] == '\t'))
		path_end--;
	if (path_end == line)
		return MD_INDEX_DONE;
	*path_end = '\0';
	if (!is_wanted(q, line))
		return MD_INDEX_DONE;
	for (char *p = strtok_r(packages, ",", &save); p; p = strtok_r(NULL, ",", &save))
		if (!put(p))
			return MD_INDEX_TOO_LARGE;
	return MD_INDEX_DONE;
}

static int read_contents(const void *arg)
{
	return (int)md_index_lines(see_line, (void *)arg);
}

/* ---- the caller ---------------------------------------------------------------------------- */

static bool is_sound(const struct md_package_name *p)
{
	size_t size = strnlen(p->name, sizeof(p->name));

	return size && size < sizeof(p->name) && !p->version[0] &&
	       strspn(p->name, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == size;
}

int md_package_contents_read(const char *path, const char *wanted,
			     const struct md_file_names *names, const char *dir,
			     const struct md_package_look *look, struct md_package_name *packages,
			     size_t max, size_t *nr, struct mp_err *err)
{
	struct query q = {.wanted = wanted, .names = *names};
	const char *slash = strrchr(wanted, '/');
	char ready[MD_NAME_SIZE];
	int fd, r;
	ssize_t n;

	*nr = 0;
	q.names.how = wanted[0] == '#' ? MD_NAMES_HASHED : MD_NAMES_PLAIN;
	q.base = wanted[0] == '#' ? NULL : slash ? slash + 1 : wanted;
	/* Also makes libcrypto load what it needs: the confined process cannot. */
	if (!md_file_name(&q.names, "/", ready))
		return mp_err_set(err, ENOENT, "without the salt of hashed names");
	fd = md_confined_file(dir, err);
	if (fd < 0)
		return fd;
	r = md_index_run(path, read_contents, &q, fd, look, err);
	n = r ? 0 : pread(fd, packages, max * sizeof(*packages), 0);
	close(fd);
	for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(*packages); i++)
		if (is_sound(&packages[i]))
			packages[(*nr)++] = packages[i];
	return r;
}
