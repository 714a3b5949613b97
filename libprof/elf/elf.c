// SPDX-License-Identifier: Apache-2.0
/*
 * elf - opens an ELF file: it checks headers, segments and sections against the file's
 * size.
 * elf_symbols, elf_relocs and elf_fdes read symbols, relocations and FDEs; elf_lookup finds
 * things by address. All of them treat the file as hostile. Called by all programs that
 * read ELF files.
 */
#include "libprof/elf/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/infile.h"
#include "libprof/elf/elf_private.h"

static int read_ehdr(struct mp_elf *elf, struct mp_err *err)
{
	Elf64_Ehdr *ehdr = &elf->ehdr;
	int ret;

	if (elf->size < EI_NIDENT)
		return mp_err_set(err, ENOEXEC, "%s: not an ELF file", elf->path);
	ret = mp_elf_read(elf, 0, EI_NIDENT, ehdr->e_ident, err);
	if (ret)
		return ret;
	if (memcmp(ehdr->e_ident, ELFMAG, SELFMAG))
		return mp_err_set(err, ENOEXEC, "%s: not an ELF file", elf->path);
	if (ehdr->e_ident[EI_CLASS] != ELFCLASS64 || ehdr->e_ident[EI_DATA] != ELFDATA2LSB)
		return mp_err_set(err, ENOEXEC, "%s: not a 64-bit little-endian ELF file",
				  elf->path);
	if (elf->size < sizeof(*ehdr))
		return mp_err_set(err, EBADMSG, "%s: truncated in the ELF header", elf->path);
	ret = mp_elf_read(elf, 0, sizeof(*ehdr), ehdr, err);
	if (ret)
		return ret;
	if (ehdr->e_machine != EM_X86_64)
		return mp_err_set(err, ENOEXEC, "%s: for machine %u, not x86-64", elf->path,
				  ehdr->e_machine);
	if (ehdr->e_type != ET_EXEC && ehdr->e_type != ET_DYN)
		return mp_err_set(err, ENOEXEC, "%s: neither a program nor a shared object",
				  elf->path);
	if (ehdr->e_ident[EI_VERSION] != EV_CURRENT || ehdr->e_version != EV_CURRENT)
		return mp_err_set(err, EBADMSG, "%s: unknown ELF version %u", elf->path,
				  ehdr->e_version);
	return 0;
}

static int check_phdr(const struct mp_elf *elf, uint32_t i, const Elf64_Phdr *prev_load,
		      struct mp_err *err)
{
	const Elf64_Phdr *phdr = &elf->phdrs[i];

	if (phdr->p_filesz && !mp_elf_in_file(elf, phdr->p_offset, phdr->p_filesz))
		return mp_err_set(err, EBADMSG, "%s: truncated: segment %u ends beyond the file",
				  elf->path, i);
	if (phdr->p_memsz > UINT64_MAX - phdr->p_vaddr)
		return mp_err_set(err, EBADMSG, "%s: segment %u wraps around the address space",
				  elf->path, i);
	if (phdr->p_type != PT_LOAD)
		return 0;
	if (phdr->p_filesz > phdr->p_memsz)
		return mp_err_set(err, EBADMSG, "%s: segment %u is larger in the file than loaded",
				  elf->path, i);
	if (prev_load && phdr->p_vaddr < prev_load->p_vaddr + prev_load->p_memsz)
		return mp_err_set(err, EBADMSG,
				  "%s: segment %u overlaps the one before or is out of order",
				  elf->path, i);
	return 0;
}

static int read_phdrs(struct mp_elf *elf, struct mp_err *err)
{
	struct mp_elf_private *priv = elf->private_data;
	const Elf64_Ehdr *ehdr = &elf->ehdr;
	const Elf64_Phdr *prev_load = NULL;
	size_t size;
	int ret;

	if (ehdr->e_phnum > MP_ELF_MAX_PHDRS)
		return mp_err_set(err, ENOEXEC, "%s: more than %zu program headers", elf->path,
				  MP_ELF_MAX_PHDRS);
	if (!ehdr->e_phnum)
		return mp_err_set(err, ENOEXEC, "%s: no program headers: nothing is loaded",
				  elf->path);
	if (ehdr->e_phentsize != sizeof(Elf64_Phdr))
		return mp_err_set(err, EBADMSG, "%s: program headers of %u bytes", elf->path,
				  ehdr->e_phentsize);
	size = (size_t)ehdr->e_phnum * sizeof(Elf64_Phdr);
	if (!mp_elf_in_file(elf, ehdr->e_phoff, size))
		return mp_err_set(err, EBADMSG, "%s: truncated: program headers beyond its end",
				  elf->path);
	elf->phdrs = malloc(size);
	priv->loads = malloc(size);
	if (!elf->phdrs || !priv->loads)
		return mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
	ret = mp_elf_read(elf, ehdr->e_phoff, size, elf->phdrs, err);
	if (ret)
		return ret;
	elf->nr_phdrs = ehdr->e_phnum;
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		ret = check_phdr(elf, i, prev_load, err);
		if (ret)
			return ret;
		if (elf->phdrs[i].p_type != PT_LOAD)
			continue;
		prev_load = &elf->phdrs[i];
		priv->loads[priv->nr_loads] = *prev_load;
		if (prev_load->p_filesz > priv->loads[priv->main_load].p_filesz)
			priv->main_load = priv->nr_loads;
		priv->nr_loads++;
	}
	return 0;
}

/* If e_shnum or e_shstrndx exceeds 16 bits, section 0 holds the number. */
static int count_sections(struct mp_elf *elf, uint64_t *nr, uint64_t *shstrndx, struct mp_err *err)
{
	const Elf64_Ehdr *ehdr = &elf->ehdr;
	Elf64_Shdr first;
	int ret;

	*nr = ehdr->e_shnum;
	*shstrndx = ehdr->e_shstrndx;
	if (!ehdr->e_shoff) {
		*nr = 0;
		return 0;
	}
	if (*nr && *shstrndx != SHN_XINDEX)
		goto check;
	ret = mp_elf_read(elf, ehdr->e_shoff, sizeof(first), &first, err);
	if (ret)
		return ret;
	if (!*nr)
		*nr = first.sh_size;
	if (*shstrndx == SHN_XINDEX)
		*shstrndx = first.sh_link;
check:
	if (*nr > MP_ELF_MAX_SECTIONS)
		return mp_err_set(err, EBADMSG, "%s: %" PRIu64 " sections are too many", elf->path,
				  *nr);
	if (ehdr->e_shentsize != sizeof(Elf64_Shdr))
		return mp_err_set(err, EBADMSG, "%s: section headers of %u bytes", elf->path,
				  ehdr->e_shentsize);
	if (!mp_elf_in_file(elf, ehdr->e_shoff, *nr * sizeof(Elf64_Shdr)))
		return mp_err_set(err, EBADMSG, "%s: truncated: section headers beyond its end",
				  elf->path);
	return 0;
}

/*
 * A loaded section must lie where its segment puts it: readers convert addresses to
 * sections and file bytes and back, and walk a section's addresses one by one.
 */
static bool section_is_loaded(const struct mp_elf *elf, const Elf64_Shdr *shdr)
{
	const struct mp_elf_private *priv = elf->private_data;

	for (uint32_t i = 0; i < priv->nr_loads; i++) {
		const Elf64_Phdr *load = &priv->loads[i];
		uint64_t into = shdr->sh_addr - load->p_vaddr;

		if (shdr->sh_addr < load->p_vaddr || into > load->p_memsz ||
		    shdr->sh_size > load->p_memsz - into)
			continue;
		if (shdr->sh_type == SHT_NOBITS)
			return true;
		if (shdr->sh_offset - load->p_offset == into && into <= load->p_filesz &&
		    shdr->sh_size <= load->p_filesz - into)
			return true;
	}
	return false;
}

/* patchelf may leave a section of which one segment loads the start and the next one the end. */
static bool lies_in_two(const struct mp_elf *elf, const Elf64_Shdr *shdr)
{
	const struct mp_elf_private *priv = elf->private_data;
	uint64_t end = shdr->sh_addr + shdr->sh_size;

	for (uint32_t i = 0; i + 1 < priv->nr_loads; i++) {
		const Elf64_Phdr *a = &priv->loads[i], *b = a + 1;

		if (shdr->sh_addr >= a->p_vaddr && shdr->sh_addr < b->p_vaddr &&
		    a->p_vaddr + a->p_filesz == b->p_vaddr && a->p_filesz == a->p_memsz &&
		    a->p_offset + a->p_filesz == b->p_offset && end <= b->p_vaddr + b->p_filesz &&
		    shdr->sh_offset - a->p_offset == shdr->sh_addr - a->p_vaddr)
			return true;
	}
	return false;
}

/*
 * Tools that add sections to finished files (objcopy, postject) may mark data as loaded that no
 * segment loads. Kernel and loader do not read section headers: these bytes are as good as those
 * of a section that is not loaded.
 */
static bool claims_only(const struct mp_elf *elf, const Elf64_Shdr *shdr)
{
	const struct mp_elf_private *priv = elf->private_data;

	if (shdr->sh_flags & (SHF_EXECINSTR | SHF_TLS) ||
	    (shdr->sh_type != SHT_PROGBITS && shdr->sh_type != SHT_NOTE))
		return false;
	for (uint32_t i = 0; i < priv->nr_loads; i++) {
		const Elf64_Phdr *load = &priv->loads[i];

		if (shdr->sh_offset < load->p_offset + load->p_filesz &&
		    load->p_offset < shdr->sh_offset + shdr->sh_size)
			return false;
	}
	return true;
}

static int convert_section(struct mp_elf *elf, uint32_t i, const Elf64_Shdr *shdr, bool loaded,
			   struct mp_err *err)
{
	struct mp_section *sec = &elf->sections[i];
	bool claims = false;

	sec->name = "";
	if (i == 0 || shdr->sh_type == SHT_NULL)
		return 0;
	if (shdr->sh_type != SHT_NOBITS && !mp_elf_in_file(elf, shdr->sh_offset, shdr->sh_size))
		return mp_err_set(err, EBADMSG, "%s: truncated: section %u ends beyond the file",
				  elf->path, i);
	if ((shdr->sh_flags & SHF_ALLOC) && shdr->sh_size > UINT64_MAX - shdr->sh_addr)
		return mp_err_set(err, EBADMSG, "%s: section %u wraps around the address space",
				  elf->path, i);
	/* .tbss has an address but takes no room there. */
	if (loaded && (shdr->sh_flags & SHF_ALLOC) && shdr->sh_size &&
	    !((shdr->sh_flags & SHF_TLS) && shdr->sh_type == SHT_NOBITS) &&
	    !section_is_loaded(elf, shdr)) {
		claims = claims_only(elf, shdr);
		if (!claims && lies_in_two(elf, shdr))
			return mp_err_set(err, EPERM, "%s: section %u lies in two segments",
					  elf->path, i);
		if (!claims)
			return mp_err_set(err, EBADMSG, "%s: section %u lies outside its segment",
					  elf->path, i);
	}
	*sec = (struct mp_section){
		.name = "",
		.type = shdr->sh_type,
		.flags = claims ? shdr->sh_flags & ~(uint64_t)SHF_ALLOC : shdr->sh_flags,
		.vaddr = shdr->sh_addr,
		.off = shdr->sh_offset,
		.size = shdr->sh_size,
		.entsize = shdr->sh_entsize,
		.align = shdr->sh_addralign,
		.link = shdr->sh_link,
		.info = shdr->sh_info,
	};
	return 0;
}

static int read_section_names(struct mp_elf *elf, const Elf64_Shdr *shdrs, uint64_t shstrndx,
			      struct mp_err *err)
{
	struct mp_elf_private *priv = elf->private_data;
	const struct mp_section *sec;
	int ret;

	if (shstrndx == SHN_UNDEF)
		return 0;
	if (shstrndx >= elf->nr_sections || elf->sections[shstrndx].type != SHT_STRTAB)
		return mp_err_set(err, EBADMSG, "%s: section names are in no string table",
				  elf->path);
	sec = &elf->sections[shstrndx];
	if (sec->size > MP_ELF_MAX_SHSTRTAB)
		return mp_err_set(err, EBADMSG, "%s: section name table of %" PRIu64 " bytes",
				  elf->path, sec->size);
	/* A private copy with one more NUL: no name can run past its end. */
	priv->shstrtab = calloc(1, sec->size + 1);
	if (!priv->shstrtab)
		return mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
	ret = mp_elf_read(elf, sec->off, sec->size, priv->shstrtab, err);
	if (ret)
		return ret;
	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		if (elf->sections[i].type == SHT_NULL)
			continue;
		if (shdrs[i].sh_name > sec->size)
			return mp_err_set(err, EBADMSG, "%s: name of section %u out of bounds",
					  elf->path, i);
		elf->sections[i].name = priv->shstrtab + shdrs[i].sh_name;
	}
	return 0;
}

static int cmp_section_vaddr(const void *a, const void *b, void *ctx)
{
	const struct mp_section *sections = ctx;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;

	if (sections[ia].vaddr != sections[ib].vaddr)
		return sections[ia].vaddr < sections[ib].vaddr ? -1 : 1;
	return ia < ib ? -1 : ia > ib;
}

static int index_alloc_sections(struct mp_elf *elf, struct mp_err *err)
{
	struct mp_elf_private *priv = elf->private_data;

	priv->alloc_sections = calloc(elf->nr_sections, sizeof(uint32_t));
	if (!priv->alloc_sections)
		return mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		const struct mp_section *sec = &elf->sections[i];

		/* .tbss has an address but takes no room there. */
		if (!(sec->flags & SHF_ALLOC) || !sec->size ||
		    ((sec->flags & SHF_TLS) && sec->type == SHT_NOBITS))
			continue;
		priv->alloc_sections[priv->nr_alloc_sections++] = i;
	}
	qsort_r(priv->alloc_sections, priv->nr_alloc_sections, sizeof(uint32_t), cmp_section_vaddr,
		elf->sections);
	return 0;
}

/* Copies the map note: it must stay readable in a file that is not mapped. */
static int read_map_note(struct mp_elf *elf, struct mp_err *err)
{
	struct mp_elf_private *priv = elf->private_data;
	const struct mp_section *sec = mp_elf_section(elf, MP_MAP_SECTION);
	int ret;

	if (!sec || sec->type != SHT_NOTE)
		return 0;
	if (sec->size > MP_ELF_MAX_MAP_NOTE)
		return mp_err_set(err, EBADMSG, "%s: %s of %" PRIu64 " bytes, the limit is %u",
				  elf->path, MP_MAP_SECTION, sec->size, MP_ELF_MAX_MAP_NOTE);
	priv->map_note = malloc(sec->size ? sec->size : 1);
	if (!priv->map_note)
		return mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
	ret = mp_elf_read(elf, sec->off, sec->size, priv->map_note, err);
	if (ret)
		return ret;
	elf->map_note = priv->map_note;
	elf->map_note_size = sec->size;
	return 0;
}

static int read_sections(struct mp_elf *elf, bool loaded, struct mp_err *err)
{
	Elf64_Shdr *shdrs = NULL;
	uint64_t nr, shstrndx, total = 0;
	int ret;

	ret = count_sections(elf, &nr, &shstrndx, err);
	if (ret || !nr)
		return ret;
	shdrs = malloc(nr * sizeof(*shdrs));
	elf->sections = calloc(nr, sizeof(*elf->sections));
	if (!shdrs || !elf->sections) {
		ret = mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
		goto out;
	}
	ret = mp_elf_read(elf, elf->ehdr.e_shoff, nr * sizeof(*shdrs), shdrs, err);
	if (ret)
		goto out;
	elf->nr_sections = (uint32_t)nr;
	for (uint32_t i = 0; i < elf->nr_sections; i++) {
		ret = convert_section(elf, i, &shdrs[i], loaded, err);
		if (ret)
			goto out;
		if (elf->sections[i].type != SHT_NOBITS)
			total += elf->sections[i].size;
		if (total > MP_ELF_MAX_OVERLAP * (uint64_t)elf->size) {
			ret = mp_err_set(err, EBADMSG, "%s: sections overlap", elf->path);
			goto out;
		}
	}
	ret = read_section_names(elf, shdrs, shstrndx, err);
	if (!ret)
		ret = index_alloc_sections(elf, err);
	if (!ret)
		ret = read_map_note(elf, err);
out:
	free(shdrs);
	return ret;
}

static int read_all(struct mp_elf *elf, unsigned int need, struct mp_err *err)
{
	int ret;

	ret = read_ehdr(elf, err);
	if (!ret && !(need & MP_ELF_DEBUG))
		ret = read_phdrs(elf, err);
	if (!ret)
		ret = read_sections(elf, !(need & MP_ELF_DEBUG), err);
	if (!ret)
		ret = mp_elf_read_id(elf, !(need & MP_ELF_UNHASHED), err);
	if (!ret)
		mp_elf_find_start(elf);
	if (!ret && (need & MP_ELF_SYMBOLS))
		ret = mp_elf_read_symbols(elf, err);
	if (!ret && (need & MP_ELF_RELOCS))
		ret = mp_elf_read_relocs(elf, err);
	if (!ret && (need & MP_ELF_FDES))
		ret = mp_elf_read_fdes(elf, err);
	if (!ret && (need & MP_ELF_ALL) == MP_ELF_ALL)
		mp_elf_name_personalities(elf);
	return ret;
}

static struct mp_elf *alloc_elf(const char *name, struct mp_err *err)
{
	struct mp_elf *elf = calloc(1, sizeof(*elf));

	if (elf) {
		elf->path = strdup(name);
		elf->private_data = calloc(1, sizeof(*elf->private_data));
	}
	if (!elf || !elf->path || !elf->private_data) {
		mp_elf_close(elf);
		mp_err_set(err, ENOMEM, "%s: out of memory", name);
		return NULL;
	}
	elf->private_data->fd = -1;
	elf->private_data->copy_fd = -1;
	return elf;
}

int mp_elf_open_memory(const char *name, const void *data, size_t size, unsigned int need,
		       struct mp_elf **out, struct mp_err *err)
{
	struct mp_elf *elf;
	int ret;

	*out = NULL;
	if (size > MP_ELF_MAX_SIZE)
		return mp_err_set(err, ENOEXEC, "%s: over 2 GiB", name);
	elf = alloc_elf(name, err);
	if (!elf)
		return -ENOMEM;
	elf->data = data;
	elf->size = size;
	ret = read_all(elf, need, err);
	if (ret) {
		mp_elf_close(elf);
		return ret;
	}
	*out = elf;
	return 0;
}

/* @map: map the file; false: read it piece by piece. */
static int open_file(const char *name, int fd, uint64_t size, bool map, unsigned int need,
		     struct mp_elf **out, struct mp_err *err)
{
	struct mp_elf_private *priv;
	struct mp_elf *elf;
	int ret;

	*out = NULL;
	if (size > MP_ELF_MAX_SIZE)
		return mp_err_set(err, ENOEXEC, "%s: over 2 GiB", name);
	if (!size)
		return mp_err_set(err, ENOEXEC, "%s: empty", name);
	elf = alloc_elf(name, err);
	if (!elf)
		return -ENOMEM;
	priv = elf->private_data;
	elf->size = (size_t)size;
	if (!map) {
		priv->fd = fd;
	} else {
		priv->map = mp_infile_map(fd, elf->size);
		if (priv->map == MAP_FAILED) {
			ret = mp_err_set(err, errno, "%s: %s", name, strerror(errno));
			priv->map = NULL;
			goto err_close;
		}
		priv->map_size = elf->size;
		elf->data = priv->map;
		/* If this fails, mp_elf_copy() copies bytes instead. */
		priv->copy_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
	ret = read_all(elf, need, err);
	if (ret)
		goto err_close;
	priv->fd = -1; /* belongs to the caller; not used after this */
	*out = elf;
	return 0;
err_close:
	mp_elf_close(elf);
	return ret;
}

int mp_elf_open_sized(const char *name, int fd, uint64_t size, struct mp_elf **out,
		      struct mp_err *err)
{
	return open_file(name, fd, size, false, MP_ELF_ID, out, err);
}

int mp_elf_open_fd(const char *name, int fd, unsigned int need, struct mp_elf **out,
		   struct mp_err *err)
{
	struct stat st;

	*out = NULL;
	if (fstat(fd, &st))
		return mp_err_set(err, errno, "%s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return mp_err_set(err, ENOEXEC, "%s: not a regular file", name);
	return open_file(name, fd, (uint64_t)st.st_size, need != MP_ELF_ID, need, out, err);
}

int mp_elf_open(const char *path, unsigned int need, struct mp_elf **out, struct mp_err *err)
{
	int fd, ret;

	*out = NULL;
	/* O_NONBLOCK: opening a FIFO must not block. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	ret = mp_elf_open_fd(path, fd, need, out, err);
	close(fd);
	return ret;
}

struct mp_elf *mp_elf_share(struct mp_elf *elf)
{
	elf->private_data->nr_others++;
	return elf;
}

void mp_elf_close(struct mp_elf *elf)
{
	struct mp_elf_private *priv;

	if (!elf)
		return;
	priv = elf->private_data;
	if (priv && priv->nr_others) {
		priv->nr_others--;
		return;
	}
	if (priv) {
		if (priv->map)
			munmap(priv->map, priv->map_size);
		if (priv->copy_fd >= 0)
			close(priv->copy_fd);
		free(priv->shstrtab);
		free(priv->map_note);
		free(priv->loads);
		free(priv->alloc_sections);
		free(priv);
	}
	free(elf->phdrs);
	free(elf->sections);
	free(elf->symbols);
	free(elf->fdes);
	free(elf->relocs);
	free(elf->dyn_relocs);
	free(elf->path);
	free(elf);
}
