// SPDX-License-Identifier: Apache-2.0
/*
 * own_files - the records of this process's address space, as morphd would have got them, with the files
 * that they map looked up. Used by unit tests.
 */
#ifndef TESTS_OWN_FILES_H
#define TESTS_OWN_FILES_H

#include "daemon/attribute/attribute.h"

/*
 * Calls @take for each record of this process, in their order. @file: of a mapping, looked up in @modcache;
 * NULL: @record is no mapping. Return: 0; the first other value of @take; -errno.
 */
int own_files_each(struct md_modcache *modcache,
		   int (*take)(struct morph_record *record, struct md_file *file, void *arg),
		   void *arg);
/* Attributes these records. Return: 0, -errno. */
int own_files_attribute(struct md_attribute *at);

#endif
