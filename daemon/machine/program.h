// SPDX-License-Identifier: Apache-2.0
/*
 * program - which file a user means: by path, command, file name, package or build-id.
 *
 * Kinds are tried in this order, and the first kind with a match decides. Several matches of one
 * kind are an error that lists them. "package:NAME" and "build-id:HEX" leave out the other kinds.
 * Called by the commands of morph that take a PROGRAM.
 */
#ifndef MD_PROGRAM_H
#define MD_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "libprof/base/err.h"
#include "libprof/elf/id.h"
#include "libprof/store/store.h"

/* A shorter build-id could be meant as a name. */
#define MD_PROGRAM_HEX_MIN 4
/* A package with more programs lists only this many. */
#define MD_PROGRAM_CANDIDATES_MAX 64

/* The places where md_program_find() looks up a name. */
struct md_program_search {
	const char *commands;		 /* directories, separated by colons; NULL: $PATH */
	const char *dpkg_admin;		 /* dpkg's directory; NULL: the usual one */
	const struct mp_module *modules; /* what the store knows */
	size_t nr_modules;
};

struct md_program {
	char *path;	 /* absolute, without symbolic links */
	struct mp_id id; /* of an output: the identity of its original */
	bool is_output;	 /* the file was written by morph-optimize */
	bool gone;	 /* the store knows this program, but the file is not there any more */
};

/*
 * md_program_find - Return: 0; -ENOENT: nothing has this name; -ENOTUNIQ: several have; -ENOEXEC:
 * the file is no program, a script for instance; -errno. Ownership: md_program_fini(@out).
 */
int md_program_find(const struct md_program_search *search, const char *name,
		    struct md_program *out, struct mp_err *err);
void md_program_fini(struct md_program *program);

/*
 * md_program_read - the program at @path, after symbolic links. Return: 0, -ENOENT, -ENOEXEC,
 * -errno.
 */
int md_program_read(const char *path, struct md_program *out, struct mp_err *err);

void md_programs_free(struct md_program *programs, size_t nr);

/* Return: @module has the identity or, where it has a build-id, the build-id of @program. */
bool md_program_is_module(const struct md_program *program, const struct mp_module *module);

#endif
