// SPDX-License-Identifier: Apache-2.0
/* tiny_elf - builds ELF files; see tiny_elf.h. */
#include "tests/support/tiny_elf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t append(uint8_t **bytes, size_t *size, const void *data, size_t n)
{
	size_t off = (*size + 15) & ~(size_t)15;

	*bytes = realloc(*bytes, off + n + 1);
	if (!*bytes)
		abort();
	memset(*bytes + *size, 0, off - *size);
	if (n)
		memcpy(*bytes + off, data, n);
	*size = off + n;
	return off;
}

uint8_t *tiny_elf_build(const struct tiny_section *sections, unsigned int nr,
			const Elf64_Phdr *phdrs, unsigned int nr_phdrs, size_t *size)
{
	Elf64_Shdr *shdrs = calloc(nr + 2, sizeof(*shdrs));
	size_t end = sizeof(Elf64_Ehdr) + (nr_phdrs + 1) * sizeof(Elf64_Phdr);
	char *names = calloc(1, 64 * (nr + 2));
	size_t names_size = 1;
	uint8_t *bytes;
	Elf64_Ehdr *ehdr;
	Elf64_Phdr load;

	if (!shdrs || !names)
		abort();
	for (unsigned int i = 0; i < nr; i++) {
		if ((sections[i].flags & SHF_ALLOC) && sections[i].vaddr + sections[i].size > end)
			end = sections[i].vaddr + sections[i].size;
	}
	bytes = calloc(1, end + 1);
	if (!bytes)
		abort();
	load = (Elf64_Phdr){.p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_filesz = end,
			    .p_memsz = end,
			    .p_align = 0x1000};
	memcpy(bytes + sizeof(Elf64_Ehdr), &load, sizeof(load));
	if (nr_phdrs)
		memcpy(bytes + sizeof(Elf64_Ehdr) + sizeof(load), phdrs, nr_phdrs * sizeof(*phdrs));
	*size = end;
	for (unsigned int i = 0; i < nr; i++) {
		const struct tiny_section *sec = &sections[i];
		Elf64_Shdr *shdr = &shdrs[i + 1];

		*shdr = (Elf64_Shdr){.sh_name = (uint32_t)names_size,
				     .sh_type = sec->type,
				     .sh_flags = sec->flags,
				     .sh_addr = sec->vaddr,
				     .sh_size = sec->size,
				     .sh_link = sec->link,
				     .sh_info = sec->info,
				     .sh_entsize = sec->entsize,
				     .sh_addralign = 1};
		names_size += (size_t)sprintf(names + names_size, "%s", sec->name) + 1;
		if (sec->flags & SHF_ALLOC) {
			shdr->sh_offset = sec->vaddr;
			if (sec->size)
				memcpy(bytes + sec->vaddr, sec->data, sec->size);
		} else {
			shdr->sh_offset = append(&bytes, size, sec->data, sec->size);
		}
	}
	shdrs[nr + 1] = (Elf64_Shdr){.sh_name = (uint32_t)names_size, .sh_type = SHT_STRTAB};
	names_size += (size_t)sprintf(names + names_size, ".shstrtab") + 1;
	shdrs[nr + 1].sh_size = names_size;
	shdrs[nr + 1].sh_offset = append(&bytes, size, names, names_size);
	end = append(&bytes, size, shdrs, (nr + 2) * sizeof(*shdrs));
	ehdr = (Elf64_Ehdr *)bytes;
	memcpy(ehdr->e_ident, ELFMAG, SELFMAG);
	ehdr->e_ident[EI_CLASS] = ELFCLASS64;
	ehdr->e_ident[EI_DATA] = ELFDATA2LSB;
	ehdr->e_ident[EI_VERSION] = EV_CURRENT;
	ehdr->e_type = ET_DYN;
	ehdr->e_machine = EM_X86_64;
	ehdr->e_version = EV_CURRENT;
	ehdr->e_ehsize = sizeof(*ehdr);
	ehdr->e_phoff = sizeof(*ehdr);
	ehdr->e_phentsize = sizeof(Elf64_Phdr);
	ehdr->e_phnum = (uint16_t)(nr_phdrs + 1);
	ehdr->e_shoff = end;
	ehdr->e_shentsize = sizeof(Elf64_Shdr);
	ehdr->e_shnum = (uint16_t)(nr + 2);
	ehdr->e_shstrndx = (uint16_t)(nr + 1);
	free(shdrs);
	free(names);
	return bytes;
}

int tiny_elf_write(const void *bytes, size_t size, char *path)
{
	const char *dir = getenv("TMPDIR");
	ssize_t n;
	int fd;

	snprintf(path, 256, "%s/tiny-elf-XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	n = write(fd, bytes, size);
	close(fd);
	return n == (ssize_t)size ? 0 : -1;
}
