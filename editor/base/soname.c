// SPDX-License-Identifier: Apache-2.0
/* soname - reads DT_SONAME from the dynamic section; see soname.h. */
#include "editor/base/soname.h"

#include <string.h>

#include "libprof/elf/elf.h"

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

char *me_soname(const char *path)
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
