// SPDX-License-Identifier: Apache-2.0
/*
 * call_names - the function that an address in a calling context belongs to, and its name. Reads a
 * module's file when its first address comes. Called by call_tree and by those who print it.
 */
#ifndef MD_CALL_NAMES_H
#define MD_CALL_NAMES_H

#include "libprof/context/context_tree.h"
#include "libprof/store/store.h"

struct md_call_names;

/*
 * @modules: all modules of the store, which must outlive the result. @binary: read the code of its
 * module from this file; NULL: from their last paths. @note: gets a message for each file that cannot
 * be read. Return: NULL: no memory.
 */
struct md_call_names *md_call_names_new(const struct mp_module *modules, size_t nr,
					const char *binary,
					void (*note)(void *arg, const char *message), void *arg);
void md_call_names_free(struct md_call_names *names);

/*
 * Turns the key of a call site or of sampled code into that of the function there. All keys of one
 * function become equal.
 */
void md_call_names_to_function(struct md_call_names *names, struct mp_context_key *key);
/*
 * Return: the name of what md_call_names_to_function() made, for instance "main", "puts@plt",
 * "[kernel]" or "(truncated: copy)"; NULL: no memory. Valid as long as @names. C++ names are mangled.
 */
const char *md_call_names_get(struct md_call_names *names, const struct mp_context_key *key);
/* Return: 0; -errno: a file was not read for a failure of the machine, and names are missing. */
int md_call_names_failed(const struct md_call_names *names, struct mp_err *err);
/* Return: the module of a key; NULL: none, or not known. */
const struct mp_module *md_call_names_module(const struct md_call_names *names, uint64_t module);

#endif
