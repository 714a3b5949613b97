// SPDX-License-Identifier: Apache-2.0
/*
 * package_index - reads the index of a Debian archive (Packages, Contents; plain or compressed) in a confined process.
 * Decides which entries are wanted, not where their files are. Called by packages.
 *
 * Only packages of debug information list build-ids. Such a package depends on the package that has the file:
 *
 *	Package: perl-base-dbgsym        Package: perl-base
 *	Depends: perl-base (= 5.36)  --> Version: 5.36
 *	Build-Ids: 5e2c07... 9b1d52...   Filename: pool/main/p/perl/perl-base_5.36_amd64.deb
 */
#ifndef MD_FLEET_PACKAGE_INDEX_H
#define MD_FLEET_PACKAGE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/fleet/packages/package_files.h"
#include "daemon/fleet/whole_file.h"

/* A package that is looked for. */
struct md_package_name {
	char name[128];
	char version[128]; /* "": any */
};

/* An entry of an index answers the query if it has the build-id, or one of the names. */
struct md_package_query {
	const char *build_id;		     /* hexadecimal; NULL: none */
	const struct md_package_name *names; /* packages with one of these names */
	size_t nr_names;
};

/* One entry. All text is printable ASCII without spaces, but @depends. */
struct md_package_entry {
	struct md_package_name is;
	char depends[2048];
	char filename[1024]; /* relative, without ".."; "": none */
	uint64_t size;	     /* 0: not known */
	uint8_t sha256[MD_SHA256_SIZE];
	bool has_sha256;
	bool has_build_id; /* it lists the wanted one */
};

/*
 * md_package_index_read - the entries of the index at @path that @query wants, 256 at most. @dir: for a file of this
 * work. Return: 0, maybe with no entries; -EBADMSG: damaged; -ECANCELED; -errno. Ownership: free(*@entries).
 */
int md_package_index_read(const char *path, const struct md_package_query *query, const char *dir,
			  const struct md_package_look *look, struct md_package_entry **entries,
			  size_t *nr, struct mp_err *err);
/* The packages that @depends names with an exact version, @max at most. Return: how many. */
size_t md_package_depends(const char *depends, struct md_package_name *names, size_t max);

#endif
