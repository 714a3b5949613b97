// SPDX-License-Identifier: Apache-2.0
/*
 * train_where - in which files a command spent its time, by the samples of a store.
 *
 * Decides nothing: train does. Called by train.
 */
#include "editor/cli/train_where.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/elf/elf.h"
#include "libprof/store/store.h"

/* The soname in the dynamic section. NULL: the file has none. */
static const char *soname_in(const struct mp_elf *elf, const Elf64_Phdr *dynamic)
{
	uint64_t strtab = 0, soname = 0;
	bool named = false;
	const char *name;

	for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic->p_filesz;
	     at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;

		memcpy(&d, elf->data + dynamic->p_offset + at, sizeof(d));
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_STRTAB)
			strtab = d.d_un.d_ptr;
		if (d.d_tag == DT_SONAME) {
			soname = d.d_un.d_val;
			named = true;
		}
	}
	if (!named || strtab + soname < strtab)
		return NULL;
	/* The whole name must lie in the file. */
	for (size_t len = 1; len < 256; len++) {
		name = (const char *)mp_elf_bytes(elf, strtab + soname, len);
		if (!name)
			return NULL;
		if (!name[len - 1])
			return len > 1 && !strchr(name, '/') ? name : NULL;
	}
	return NULL;
}

char *me_where_soname(const char *path)
{
	struct mp_elf *elf = NULL;
	struct mp_err ignored;
	const char *name = NULL;
	char *copy;

	/* MP_ELF_ID alone maps nothing. */
	if (mp_elf_open(path, MP_ELF_SYMBOLS, &elf, &ignored))
		return NULL;
	for (uint32_t i = 0; elf->data && i < elf->nr_phdrs && !name; i++)
		if (elf->phdrs[i].p_type == PT_DYNAMIC)
			name = soname_in(elf, &elf->phdrs[i]);
	copy = name ? strdup(name) : NULL;
	mp_elf_close(elf);
	return copy;
}

static int name_other(struct me_where *where, const char *path)
{
	const char *slash = strrchr(path, '/');

	where->path = strdup(path);
	where->name = me_where_soname(path);
	where->library = where->name;
	if (!where->name)
		where->name = strdup(slash ? slash + 1 : path);
	return where->path && where->name ? 0 : -ENOMEM;
}

int me_where_find(const char *db, const char *file, struct me_where *where, struct mp_err *err)
{
	struct mp_module *modules = NULL;
	const char *path = NULL;
	struct mp_store *store;
	size_t nr = 0;
	int rc;

	memset(where, 0, sizeof(*where));
	rc = mp_store_open(db, MP_STORE_READ, &store, err);
	if (rc)
		return rc;
	rc = mp_store_list_modules(store, 0, &modules, &nr, err);
	for (size_t i = 0; !rc && i < nr; i++) {
		const struct mp_module *m = &modules[i];

		if (m->kind != MP_MODULE_FILE || !m->path)
			continue;
		where->all += m->nr_samples;
		if (!strcmp(m->path, file)) {
			where->file += m->nr_samples;
		} else if (m->nr_samples > where->other && !access(m->path, R_OK)) {
			where->other = m->nr_samples;
			path = m->path;
		}
	}
	if (!rc && path && name_other(where, path))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	where->matters = !rc && where->other > where->file && where->all >= ME_WHERE_LEAST_SAMPLES;
	mp_store_free_modules(modules, nr);
	mp_store_close(store);
	return rc;
}

void me_where_fini(struct me_where *where)
{
	free(where->path);
	free(where->name);
	where->path = where->name = NULL;
}
