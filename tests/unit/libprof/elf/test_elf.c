// SPDX-License-Identifier: Apache-2.0
/* test_elf - the ELF reader: its results for real programs, and that it survives any other file. */
#include "libprof/elf/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "libprof/elf/eh.h"
#include "tests/unit/suite.h"
#include "tests/support/tiny_elf.h"

static const char hello[] =
	"#include <stdio.h>\n"
	"int table[4] = {1, 2, 3, 4}; int *where = &table[2];\n"
	"__attribute__((noinline)) int twice(int x) { return puts(\"x\") + x; }\n"
	"int main(int argc, char **argv) { (void)argv; return twice(argc) + *where; }\n";

static struct mp_err err;

static void shell(const char *fmt, const char *a, const char *b)
{
	char command[1024];

	snprintf(command, sizeof(command), fmt, a, b);
	ck_assert_msg(system(command) == 0, "%s", command);
}

/* Compiles a program with @flags to @path. Return: false: there is no compiler. */
static bool compile(const char *flags, char *path)
{
	char source[256];

	if (system("command -v gcc >/dev/null 2>&1"))
		return false;
	ck_assert_int_eq(tiny_elf_write(hello, sizeof(hello) - 1, source), 0);
	snprintf(path, 256, "%.240s.out", source);
	strcat(source, " -o ");
	strcat(source, path);
	shell("gcc -O2 -x c %s %s", flags, source);
	*strchr(source, ' ') = '\0';
	unlink(source);
	return true;
}

static struct mp_elf *open_all(const char *path)
{
	struct mp_elf *elf = NULL;
	int ret = mp_elf_open(path, MP_ELF_ALL, &elf, &err);

	ck_assert_msg(ret == 0, "%s", err.msg);
	return elf;
}

static const struct mp_symbol *symbol(const struct mp_elf *elf, const char *name)
{
	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		if (!strcmp(elf->symbols[i].name, name) && elf->symbols[i].vaddr)
			return &elf->symbols[i];
	}
	return NULL;
}

TEST(elf_finds_functions_relocations_and_build_id)
{
	const struct mp_symbol *twice;
	const struct mp_reloc *relocs;
	struct mp_elf *elf;
	uint32_t n, i;
	char path[256];
	int32_t disp;

	if (!compile("-fpie -pie -Wl,--emit-relocs -Wl,--build-id=sha1", path))
		MORPH_SKIP("no gcc");
	elf = open_all(path);
	ck_assert(elf->relinkable);
	ck_assert(elf->has_symtab);
	ck_assert_uint_eq(elf->id.build_id_len, 20);
	twice = symbol(elf, "twice");
	ck_assert_ptr_nonnull(twice);
	ck_assert_int_eq(twice->type, STT_FUNC);
	ck_assert(mp_elf_is_code(elf, twice->vaddr));
	ck_assert_str_eq(mp_elf_section_at(elf, twice->vaddr)->name, ".text");
	/* Its FDE covers exactly the function. */
	for (i = 0; i < elf->nr_fdes && elf->fdes[i].start != twice->vaddr; i++)
		;
	ck_assert_uint_lt(i, elf->nr_fdes);
	ck_assert_uint_eq(elf->fdes[i].size, twice->size);
	/* The call of puts: its relocation names a symbol of another module, at E8 + 1. */
	relocs = mp_elf_relocs_in(elf, twice->vaddr, twice->vaddr + twice->size, &n);
	ck_assert_uint_gt(n, 0);
	for (i = 0; i < n && relocs[i].type != R_X86_64_PLT32; i++)
		;
	ck_assert_uint_lt(i, n);
	ck_assert_int_eq(relocs[i].sym_shndx, SHN_UNDEF);
	ck_assert_int_eq(relocs[i].addend, -4);
	ck_assert_uint_eq(*mp_elf_bytes(elf, relocs[i].vaddr - 1, 1), 0xe8);
	memcpy(&disp, mp_elf_bytes(elf, relocs[i].vaddr, 4), 4);
	ck_assert_int_ne(disp, 0);
	mp_elf_close(elf);
	unlink(path);
}

static const struct mp_reloc *dynamic_at(const struct mp_elf *elf, uint64_t vaddr)
{
	for (uint32_t i = 0; i < elf->nr_dyn_relocs; i++) {
		if (elf->dyn_relocs[i].vaddr == vaddr)
			return &elf->dyn_relocs[i];
	}
	return NULL;
}

TEST(elf_expands_packed_relative_relocations)
{
	const struct mp_reloc *reloc;
	struct mp_elf *elf;
	char path[256];

	/*
	 * The same pointer with a normal relocation and, if the linker supports it, with
	 * DT_RELR.
	 */
	for (int packed = 0; packed < 2; packed++) {
		if (packed && system("ld --help | grep -q pack-relative-relocs"))
			MORPH_SKIP("this linker packs no relocations");
		if (!compile(packed ? "-fpie -pie -Wl,-z,pack-relative-relocs" : "-fpie -pie",
			     path))
			MORPH_SKIP("no gcc");
		elf = open_all(path);
		reloc = dynamic_at(elf, symbol(elf, "where")->vaddr);
		ck_assert_ptr_nonnull(reloc);
		ck_assert_uint_eq(reloc->type, R_X86_64_RELATIVE);
		ck_assert_uint_eq(reloc->addend, symbol(elf, "table")->vaddr + 8);
		ck_assert(reloc->dynamic);
		mp_elf_close(elf);
		unlink(path);
	}
}

TEST(elf_reads_static_programs)
{
	struct mp_elf *elf;
	uint32_t nr_irelative = 0;
	char path[256];

	if (!compile("-static -fno-pie -no-pie", path))
		MORPH_SKIP("no gcc");
	elf = open_all(path);
	ck_assert_int_eq(elf->ehdr.e_type, ET_EXEC);
	ck_assert(!elf->relinkable);
	ck_assert_uint_gt(elf->nr_fdes, 500);
	/* There is no PT_DYNAMIC: these are found through their section. */
	for (uint32_t i = 0; i < elf->nr_dyn_relocs; i++)
		nr_irelative += elf->dyn_relocs[i].type == R_X86_64_IRELATIVE;
	ck_assert_uint_gt(nr_irelative, 0);
	mp_elf_close(elf);
	unlink(path);
}

TEST(elf_finds_as_many_fdes_as_readelf)
{
	static const char *const files[] = {"/bin/sh", "/usr/lib/x86_64-linux-gnu/libc.so.6"};

	if (system("command -v readelf >/dev/null 2>&1"))
		MORPH_SKIP("no readelf");
	for (int i = 0; i < 2; i++) {
		struct mp_elf *elf = open_all(files[i]);
		char command[256];
		unsigned int nr = 0;
		FILE *pipe;

		snprintf(command, sizeof(command),
			 "readelf --debug-dump=frames %s 2>/dev/null | "
			 "grep -c ' FDE cie='",
			 files[i]);
		pipe = popen(command, "r");
		ck_assert_int_eq(fscanf(pipe, "%u", &nr), 1);
		pclose(pipe);
		ck_assert_uint_eq(elf->nr_fdes, nr);
		for (uint32_t k = 1; k < elf->nr_fdes; k++)
			ck_assert_uint_le(elf->fdes[k - 1].start, elf->fdes[k].start);
		mp_elf_close(elf);
	}
}

TEST(elf_id_survives_strip_and_ignores_data)
{
	struct mp_elf *elf, *stripped, *id_only;
	char path[256], copy[300];

	if (!compile("-fpie -pie", path))
		MORPH_SKIP("no gcc");
	snprintf(copy, sizeof(copy), "%s.stripped", path);
	shell("strip -o %s %s", copy, path);
	elf = open_all(path);
	stripped = open_all(copy);
	ck_assert(mp_id_equal(&elf->id, &stripped->id));
	ck_assert(!stripped->has_symtab);
	ck_assert_uint_eq(stripped->nr_fdes, elf->nr_fdes);
	/* Without mapping the file, the id must be the same. */
	ck_assert_int_eq(mp_elf_open(path, MP_ELF_ID, &id_only, &err), 0);
	ck_assert_ptr_null(id_only->data);
	ck_assert_ptr_null(mp_elf_bytes(id_only, symbol(elf, "main")->vaddr, 1));
	ck_assert(mp_id_equal(&elf->id, &id_only->id));
	mp_elf_close(id_only);
	mp_elf_close(stripped);
	mp_elf_close(elf);
	unlink(path);
	unlink(copy);
}

TEST(elf_without_section_headers_still_has_fdes)
{
	struct mp_elf *elf, *bare;
	uint8_t *bytes;
	char path[256];

	if (!compile("-fpie -pie", path))
		MORPH_SKIP("no gcc");
	elf = open_all(path);
	bytes = malloc(elf->size);
	memcpy(bytes, elf->data, elf->size);
	((Elf64_Ehdr *)bytes)->e_shoff = 0;
	((Elf64_Ehdr *)bytes)->e_shnum = 0;
	((Elf64_Ehdr *)bytes)->e_shstrndx = 0;
	ck_assert_int_eq(mp_elf_open_memory("bare", bytes, elf->size, MP_ELF_ALL, &bare, &err), 0);
	ck_assert_uint_eq(bare->nr_sections, 0);
	ck_assert_uint_eq(bare->nr_fdes, elf->nr_fdes);
	ck_assert(mp_id_equal(&bare->id, &elf->id));
	ck_assert_uint_eq(bare->nr_dyn_relocs, elf->nr_dyn_relocs);
	ck_assert_ptr_null(mp_elf_section(bare, ".text"));
	mp_elf_close(bare);
	mp_elf_close(elf);
	free(bytes);
	unlink(path);
}

TEST(elf_tells_read_only_from_writable)
{
	struct mp_elf *elf;
	uint64_t off, vaddr;
	char path[256];

	if (!compile("-fpie -pie -Wl,-z,relro,-z,now", path))
		MORPH_SKIP("no gcc");
	elf = open_all(path);
	ck_assert(mp_elf_is_readonly(elf, symbol(elf, "twice")->vaddr));
	ck_assert(mp_elf_is_readonly(elf, mp_elf_section(elf, ".rodata")->vaddr));
	ck_assert(mp_elf_is_readonly(elf, mp_elf_section(elf, ".dynamic")->vaddr));
	ck_assert(!mp_elf_is_readonly(elf, symbol(elf, "table")->vaddr));
	ck_assert(!mp_elf_is_code(elf, symbol(elf, "table")->vaddr));
	/* .bss has no bytes in the file; the data before it has. */
	vaddr = mp_elf_section(elf, ".bss")->vaddr;
	ck_assert_ptr_null(mp_elf_bytes(elf, vaddr, 1));
	ck_assert_ptr_null(mp_elf_bytes(elf, symbol(elf, "table")->vaddr, 1 << 20));
	ck_assert(mp_elf_vaddr_to_off(elf, symbol(elf, "table")->vaddr, &off));
	ck_assert_int_eq(elf->data[off], 1);
	ck_assert(mp_elf_off_to_vaddr(elf, off, &vaddr));
	ck_assert_uint_eq(vaddr, symbol(elf, "table")->vaddr);
	ck_assert(!mp_elf_off_to_vaddr(elf, elf->size - 1, &vaddr));
	mp_elf_close(elf);
	unlink(path);
}

/* ---- files that are refused ----------------------------------------------------------------- */

static uint8_t *small_elf(size_t *size)
{
	static const char code[] = "\x55\xc3";
	static const uint8_t note[] = {4, 0, 0,	  0,   4,   0, 0,    0,	   3,	 0,
				       0, 0, 'G', 'N', 'U', 0, 0xde, 0xad, 0xbe, 0xef};
	static const char names[] = "\0f\0";
	static const Elf64_Sym syms[2] = {
		{0}, {.st_name = 1, .st_value = 0x400, .st_size = 2, .st_shndx = 1}};
	static const Elf64_Rela rela = {.r_offset = 0x400, .r_info = ELF64_R_INFO(1, R_X86_64_64)};
	struct tiny_section sections[] = {
		{.name = ".text",
		 .type = SHT_PROGBITS,
		 .flags = SHF_ALLOC | SHF_EXECINSTR,
		 .vaddr = 0x400,
		 .data = code,
		 .size = 2},
		{.name = ".note.gnu.build-id",
		 .type = SHT_NOTE,
		 .flags = SHF_ALLOC,
		 .vaddr = 0x420,
		 .data = note,
		 .size = sizeof(note)},
		{.name = ".strtab", .type = SHT_STRTAB, .data = names, .size = 3},
		{.name = ".symtab",
		 .type = SHT_SYMTAB,
		 .data = syms,
		 .size = sizeof(syms),
		 .link = 3,
		 .entsize = sizeof(Elf64_Sym)},
		{.name = ".rela.text",
		 .type = SHT_RELA,
		 .data = &rela,
		 .size = sizeof(rela),
		 .link = 4,
		 .info = 1,
		 .entsize = sizeof(Elf64_Rela)},
	};

	return tiny_elf_build(sections, 5, NULL, 0, size);
}

static Elf64_Shdr *shdr(uint8_t *bytes, unsigned int i)
{
	return (Elf64_Shdr *)(bytes + ((Elf64_Ehdr *)bytes)->e_shoff) + i;
}

static Elf64_Phdr *phdr(uint8_t *bytes, unsigned int i)
{
	return (Elf64_Phdr *)(bytes + sizeof(Elf64_Ehdr)) + i;
}

TEST(elf_reads_the_smallest_file)
{
	char hex[2 * MP_BUILD_ID_MAX + 1];
	struct mp_elf *elf;
	size_t size;
	uint8_t *bytes = small_elf(&size);

	ck_assert_int_eq(mp_elf_open_memory("s", bytes, size, MP_ELF_ALL, &elf, &err), 0);
	ck_assert_uint_eq(elf->nr_relocs, 1);
	ck_assert_uint_eq(elf->relocs[0].sym_value, 0x400);
	ck_assert_str_eq(elf->symbols[1].name, "f");
	mp_id_format_build_id(&elf->id, hex);
	ck_assert_str_eq(hex, "deadbeef");
	/* One executable PT_LOAD: the hash is that of its bytes. */
	ck_assert_uint_eq(elf->id.text_hash, XXH3_64bits(bytes, phdr(bytes, 0)->p_filesz));
	mp_elf_close(elf);
	free(bytes);
}

/* Kinds of damage and the expected errors. */
static const struct {
	const char *what;
	int error;
} damages[] = {
	{"machine", ENOEXEC},
	{"class", ENOEXEC},
	{"type", ENOEXEC},
	{"xnum", ENOEXEC},
	{"no phdrs", ENOEXEC},
	{"phentsize", EBADMSG},
	{"phoff", EBADMSG},
	{"shoff", EBADMSG},
	{"shentsize", EBADMSG},
	{"shnum", EBADMSG},
	{"shstrndx", EBADMSG},
	{"section beyond", EBADMSG},
	{"section wraps", EBADMSG},
	{"section elsewhere", EBADMSG},
	{"segment beyond", EBADMSG},
	{"segment wraps", EBADMSG},
	{"filesz", EBADMSG},
	{"section name", EBADMSG},
	{"symbol name", EBADMSG},
	{"symbol size", EBADMSG},
	{"symbol strings", EBADMSG},
	{"reloc symbol", EBADMSG},
	{"reloc link", EBADMSG},
	{"strings unended", EBADMSG},
	{"sections by 2^40", EBADMSG},
	{"too many phdrs", ENOEXEC},
	{"sections overlap", EBADMSG},
};

static bool is(const char *a, const char *b)
{
	return !strcmp(a, b);
}

static void damage(uint8_t *bytes, const char *what)
{
	Elf64_Ehdr *e = (Elf64_Ehdr *)bytes;
	Elf64_Sym *syms = (Elf64_Sym *)(bytes + shdr(bytes, 4)->sh_offset);
	Elf64_Rela *rela = (Elf64_Rela *)(bytes + shdr(bytes, 5)->sh_offset);

	if (is(what, "machine"))
		e->e_machine = EM_AARCH64;
	else if (is(what, "class"))
		e->e_ident[EI_CLASS] = ELFCLASS32;
	else if (is(what, "type"))
		e->e_type = ET_REL;
	else if (is(what, "xnum"))
		e->e_phnum = PN_XNUM;
	else if (is(what, "no phdrs"))
		e->e_phnum = 0;
	else if (is(what, "phentsize"))
		e->e_phentsize = 32;
	else if (is(what, "phoff"))
		e->e_phoff = UINT64_MAX - 8;
	else if (is(what, "shoff"))
		e->e_shoff = UINT64_MAX - 8;
	else if (is(what, "shentsize"))
		e->e_shentsize = 40;
	else if (is(what, "shnum"))
		e->e_shnum = 0xfeff;
	else if (is(what, "shstrndx"))
		e->e_shstrndx = 99;
	else if (is(what, "section beyond"))
		shdr(bytes, 1)->sh_size = 1ull << 40;
	else if (is(what, "section elsewhere"))
		shdr(bytes, 1)->sh_addr ^= 1ull << 43;
	else if (is(what, "section wraps"))
		shdr(bytes, 1)->sh_addr = UINT64_MAX;
	else if (is(what, "segment beyond"))
		phdr(bytes, 0)->p_offset = 1ull << 40;
	else if (is(what, "segment wraps"))
		phdr(bytes, 0)->p_vaddr = UINT64_MAX - 16;
	else if (is(what, "filesz"))
		phdr(bytes, 0)->p_memsz = 1;
	else if (is(what, "section name"))
		shdr(bytes, 1)->sh_name = 1 << 30;
	else if (is(what, "symbol name"))
		syms[1].st_name = 1 << 30;
	else if (is(what, "symbol size"))
		shdr(bytes, 4)->sh_size -= 1;
	else if (is(what, "symbol strings"))
		shdr(bytes, 4)->sh_link = 1;
	else if (is(what, "reloc symbol"))
		rela->r_info = ELF64_R_INFO(2, R_X86_64_64);
	else if (is(what, "reloc link"))
		shdr(bytes, 5)->sh_link = 1000;
	else if (is(what, "strings unended"))
		memset(bytes + shdr(bytes, 3)->sh_offset, 'x', 3);
	else if (is(what, "sections by 2^40")) {
		e->e_shnum = 0;
		shdr(bytes, 0)->sh_size = 1ull << 40;
	} else if (is(what, "too many phdrs"))
		e->e_phnum = 65536 / sizeof(Elf64_Phdr) + 1;
	else if (is(what, "sections overlap")) {
		for (int i = 3; i < e->e_shnum; i++) {
			shdr(bytes, i)->sh_offset = 0;
			shdr(bytes, i)->sh_size = e->e_shoff + e->e_shnum * sizeof(Elf64_Shdr);
		}
	} else
		ck_abort_msg("%s", what);
}

TEST_EACH(elf_refuses_damage, sizeof(damages) / sizeof(damages[0]))
{
	struct mp_elf *elf = (void *)1;
	size_t size;
	uint8_t *bytes = small_elf(&size);

	damage(bytes, damages[_i].what);
	err.msg[0] = '\0';
	ck_assert_int_eq(mp_elf_open_memory("dir/name", bytes, size, MP_ELF_ALL, &elf, &err),
			 -damages[_i].error);
	ck_assert_ptr_null(elf);
	ck_assert_msg(!strncmp(err.msg, "dir/name: ", 10), "%s", err.msg);
	if (is(damages[_i].what, "sections overlap"))
		ck_assert_ptr_nonnull(strstr(err.msg, "overlap"));
	free(bytes);
}

TEST(elf_refuses_every_truncation)
{
	struct mp_elf *elf;
	size_t size;
	uint8_t *bytes = small_elf(&size), *cut;

	/* The section headers are last, so every truncation is an error. */
	for (size_t n = 0; n < size; n++) {
		/* allocated exactly, so that a sanitizer detects reads beyond */
		cut = malloc(n ? n : 1);
		memcpy(cut, bytes, n);
		ck_assert_int_lt(mp_elf_open_memory("cut", cut, n, MP_ELF_ALL, &elf, &err), 0);
		free(cut);
	}
	free(bytes);
}

TEST(elf_survives_every_flipped_bit)
{
	struct mp_elf *elf;
	uint32_t nr_ok = 0, nr_bad = 0;
	size_t size;
	uint8_t *bytes = small_elf(&size);

	for (size_t bit = 0; bit < size * 8; bit++) {
		bytes[bit / 8] ^= 1 << bit % 8;
		if (mp_elf_open_memory("flip", bytes, size, MP_ELF_ALL, &elf, &err)) {
			nr_bad++;
		} else {
			nr_ok++;
			mp_elf_close(elf);
		}
		bytes[bit / 8] ^= 1 << bit % 8;
	}
	ck_assert_uint_gt(nr_ok, 100);
	ck_assert_uint_gt(nr_bad, 100);
	free(bytes);
}

TEST(elf_refuses_what_is_no_regular_file)
{
	char path[256], fifo[300];
	struct mp_elf *elf;
	int fd;

	ck_assert_int_eq(mp_elf_open("/nonexistent", MP_ELF_ID, &elf, &err), -ENOENT);
	ck_assert_int_eq(mp_elf_open("/", MP_ELF_ID, &elf, &err), -ENOEXEC);
	ck_assert_int_eq(mp_elf_open("/dev/null", MP_ELF_ALL, &elf, &err), -ENOEXEC);
	ck_assert_int_eq(tiny_elf_write("", 0, path), 0);
	ck_assert_int_eq(mp_elf_open(path, MP_ELF_ALL, &elf, &err), -ENOEXEC);
	snprintf(fifo, sizeof(fifo), "%s.fifo", path);
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	ck_assert_int_eq(mp_elf_open(fifo, MP_ELF_ID, &elf, &err), -ENOEXEC); /* must not hang */
	/* A sparse file of more than 2 GiB. */
	fd = open(path, O_WRONLY);
	ck_assert_int_eq(ftruncate(fd, (off_t)(2ull << 30) + 1), 0);
	close(fd);
	ck_assert_int_eq(mp_elf_open(path, MP_ELF_ID, &elf, &err), -ENOEXEC);
	ck_assert_ptr_nonnull(strstr(err.msg, "2 GiB"));
	unlink(path);
	unlink(fifo);
}

TEST(elf_read_for_its_id_survives_truncation_under_it)
{
	struct mp_elf *elf;
	char path[256];
	size_t size;
	uint8_t *bytes = small_elf(&size);

	/* The file is truncated while open: no later access may cause SIGBUS. */
	ck_assert_int_eq(tiny_elf_write(bytes, size, path), 0);
	ck_assert_int_eq(mp_elf_open(path, MP_ELF_ID, &elf, &err), 0);
	ck_assert_int_eq(truncate(path, 0), 0);
	ck_assert_str_eq(mp_elf_section(elf, ".text")->name, ".text");
	ck_assert_ptr_null(mp_elf_bytes(elf, 0x400, 2));
	ck_assert_uint_eq(elf->id.build_id_len, 4);
	mp_elf_close(elf);
	unlink(path);
	free(bytes);
}

/* ---- pointers of exception tables ------------------------------------------------------------ */

/* Libraries that old linkers made name the start of their code as the entry. */
TEST(elf_start_is_code_that_the_kernel_enters)
{
	static const struct {
		uint8_t code[8];
		bool starts;
	} cases[] = {
		{{0x48, 0x89, 0xe7, 0xe8}, true}, /* mov %rsp, %rdi; call */
		{{0x31, 0xed, 0x49, 0x89}, true}, /* xor %ebp, %ebp */
		{{0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xed}, true},
		{{0x48, 0x31, 0xed}, true},
		{{0x48, 0x8d, 0x3d, 1, 2, 3, 4}, false}, /* deregister_tm_clones() */
		{{0x53, 0x48, 0x89, 0xfb}, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct tiny_section text = {
			.name = ".text",
			.type = SHT_PROGBITS,
			.flags = SHF_ALLOC | SHF_EXECINSTR,
			.vaddr = 0x1000,
			.data = cases[i].code,
			.size = sizeof(cases[i].code),
		};
		struct mp_elf *elf;
		uint8_t *bytes;
		size_t size;

		bytes = tiny_elf_build(&text, 1, NULL, 0, &size);
		for (int at = 0; at < 3; at++) {
			((Elf64_Ehdr *)bytes)->e_entry = (uint64_t[]){0x1000, 0, 0x999999}[at];
			ck_assert_int_eq(mp_elf_open_memory("tiny", bytes, size, 0, &elf, NULL), 0);
			ck_assert_msg(elf->start == (cases[i].starts && !at ? 0x1000 : 0),
				      "case %zu, entry %d", i, at);
			mp_elf_close(elf);
		}
		free(bytes);
	}
}
