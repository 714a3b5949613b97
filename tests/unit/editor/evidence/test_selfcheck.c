// SPDX-License-Identifier: Apache-2.0
/* test_selfcheck - every sign that a file checks itself is found; ordinary files have none. */
#include <check.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "editor/evidence/selfcheck.h"
#include "tests/unit/suite.h"
#include "tests/support/tiny_elf.h"

static uint8_t *bytes;
static size_t size;

static const uint8_t code[64] = {0xc3};
static const char data[100] = "payload";

/* Builds a file with one loaded section and @extra. */
static void build(const struct tiny_section *extra)
{
	struct tiny_section sections[2] = {
		{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x200, code, 64, 0, 0, 0}};

	if (extra)
		sections[1] = *extra;
	free(bytes);
	bytes = tiny_elf_build(sections, extra ? 2 : 1, NULL, 0, &size);
}

static void append(const void *more, size_t n)
{
	bytes = realloc(bytes, size + n);
	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes + size, more, n);
	size += n;
}

static int look(struct mp_err *err)
{
	struct mp_elf *elf;
	int rc = mp_elf_open_memory("file", bytes, size, MP_ELF_SYMBOLS, &elf, err);

	ck_assert_msg(!rc, "%s", err->msg);
	err->msg[0] = '\0';
	rc = me_selfcheck_file(elf, err);
	mp_elf_close(elf);
	return rc;
}

static void passes(void)
{
	int rc = look(&err);

	ck_assert_msg(!rc, "%s", err.msg);
}

static void refuses(const char *text)
{
	ck_assert_int_eq(look(&err), -EPERM);
	ck_assert_msg(strstr(err.msg, text) != NULL, "'%s' is not in: %s", text, err.msg);
}

static void teardown(void)
{
	free(bytes);
	bytes = NULL;
}

FIXTURE(NULL, teardown);

TEST(selfcheck_passes_ordinary_files)
{
	struct tiny_section comment = {".comment", SHT_PROGBITS, 0, 0, data, 100, 0, 0, 0};

	build(NULL);
	passes();
	build(&comment);
	passes();
}

TEST(selfcheck_sees_what_is_behind_the_last_section)
{
	uint8_t zeros[4096] = {0};

	build(NULL);
	append("x", 1);
	refuses("carries 1 bytes behind its last section");
	build(NULL);
	append(data, sizeof(data));
	refuses("carries 100 bytes");
	/* A tool may round the file size up, but not by a page. */
	build(NULL);
	append(zeros, 4095);
	passes();
	append(zeros, 1);
	refuses("carries 4096 bytes");
}

TEST(selfcheck_sees_what_no_section_holds)
{
	struct tiny_section comment = {".comment", SHT_PROGBITS, 0, 0, data, 100, 0, 0, 0};
	Elf64_Ehdr *ehdr;
	Elf64_Shdr *shdrs;

	build(&comment);
	ehdr = (Elf64_Ehdr *)bytes;
	shdrs = (Elf64_Shdr *)(bytes + ehdr->e_shoff);
	shdrs[2].sh_size = 1; /* the rest remains in the file */
	refuses("that no section holds");
	/* Before the end of the last segment, bytes keep their offsets. */
	build(NULL);
	memcpy(bytes + 0x180, data, 100);
	passes();
}

TEST(selfcheck_sees_marks)
{
	build(NULL);
	append("~Module signature appended~\n", 28);
	refuses("signature at its end");
	build(NULL);
	memcpy(bytes + 8, "AI\2", 3);
	refuses("AppImage");
	build(NULL);
	memcpy(bytes + 64 + 56 + 4, "UPX!", 4);
	refuses("UPX");
	/* Elsewhere it is only a word. */
	build(NULL);
	memcpy(bytes + 0x210, "UPX!", 4);
	passes();
}

TEST(selfcheck_sees_sections)
{
	static const char *const names[] = {".note.fdo.integrity", ".fips_check", "pydata",
					    ".sha256_sig"};
	struct tiny_section s = {".rodata1", SHT_PROGBITS, SHF_ALLOC, 0x280, data, 32, 0, 0, 0};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct tiny_section named = {
			.name = names[i], .type = SHT_PROGBITS, .data = data, .size = 100};

		build(&named);
		refuses(strcmp(names[i], ".fips_check") ? names[i] : "FIPS");
	}
	build(&s);
	refuses(".rodata1");
	s.size = 33; /* constants of some compilers */
	build(&s);
	passes();
}

TEST(selfcheck_sees_symbols)
{
	static const char names[] = "\0BORINGSSL_bcm_text_start";
	Elf64_Sym symbols[2] = {{0}, {.st_name = 1, .st_value = 0x200, .st_shndx = 1}};

	for (int defined = 0; defined < 2; defined++) {
		struct tiny_section sections[] = {
			{".text", SHT_PROGBITS, SHF_ALLOC, 0x200, code, 64, 0, 0, 0},
			{".symtab", SHT_SYMTAB, 0, 0, symbols, sizeof(symbols), 3, 1, 24},
			{".strtab", SHT_STRTAB, 0, 0, names, sizeof(names), 0, 0, 0}};

		symbols[1].st_shndx = (uint16_t)defined;
		free(bytes);
		bytes = tiny_elf_build(sections, 3, NULL, 0, &size);
		if (defined)
			refuses("BORINGSSL_bcm_text_start");
		else /* undefined: another module's */
			passes();
	}
}

/* Gforth copies code. */
TEST(selfcheck_sees_who_copies_code)
{
	static const char names[] = "\0compile_prim1";
	Elf64_Sym symbols[2] = {{0}, {.st_name = 1, .st_value = 0x200, .st_shndx = 1}};
	struct tiny_section sections[] = {
		{".text", SHT_PROGBITS, SHF_ALLOC, 0x200, code, 64, 0, 0, 0},
		{".symtab", SHT_SYMTAB, 0, 0, symbols, sizeof(symbols), 3, 1, 24},
		{".strtab", SHT_STRTAB, 0, 0, names, sizeof(names), 0, 0, 0}};

	free(bytes);
	bytes = tiny_elf_build(sections, 3, NULL, 0, &size);
	refuses("compile_prim1");
}

static char dir[256];

static void touch(const char *name)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fclose(fopen(path, "w"));
}

static void beside(const char *name, const char *companion)
{
	char path[600], command[700];
	struct mp_err err = {""};

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(command, sizeof(command), "mkdir -p %s/fipscheck %s/hmaccalc", dir, dir);
	ck_assert_int_eq(system(command), 0);
	ck_assert_msg(!me_selfcheck_companions(path, &err), "%s", err.msg);
	touch(companion);
	ck_assert_int_eq(me_selfcheck_companions(path, &err), -EPERM);
	ck_assert_msg(strstr(err.msg, companion) != NULL, "%s", err.msg);
	snprintf(command, sizeof(command), "rm -rf %s/* %s/.[a-z]*", dir, dir);
	ck_assert_int_eq(system(command), 0);
}

TEST(selfcheck_sees_checksums_beside_a_file)
{
	const char *tmp = getenv("TMPDIR");
	char cwd[256];

	snprintf(dir, sizeof(dir), "%s/test_selfcheck.XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	beside("prog", ".prog.hmac");
	beside("prog", "prog.hmac");
	beside("prog", "fipscheck/prog.hmac");
	beside("prog", "hmaccalc/prog.hmac");
	beside("libx.so.1.2.3", ".libx.so.1.2.3.hmac");
	beside("libx.so.1.2.3", ".libx.so.1.hmac");
	beside("libx.so.1.2.3", ".libx.so.hmac");
	beside("libsoftokn3.so", "libsoftokn3.chk");
	/* Files of other programs, and a directory. */
	touch(".programme.hmac");
	touch(".prog.1.hmac");
	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	ck_assert_int_eq(chdir(dir), 0);
	ck_assert_int_eq(mkdir(".prog.hmac", 0700), 0);
	ck_assert_int_eq(me_selfcheck_companions("prog", &err), 0);
	ck_assert_int_eq(me_selfcheck_companions("./prog", &err), 0);
	ck_assert_int_eq(rmdir(".prog.hmac"), 0);
	touch(".prog.hmac");
	ck_assert_int_eq(me_selfcheck_companions("prog", &err), -EPERM);
	ck_assert_int_eq(chdir(cwd), 0);
	snprintf(cwd, sizeof(cwd), "rm -rf %.200s", dir);
	ck_assert_int_eq(system(cwd), 0);
}

TEST(selfcheck_sees_signatures_of_the_kernel)
{
	static const char *const signs[] = {"security.ima", "security.evm"};
	int fd = open("/proc/self/exe", O_RDONLY);
	struct me_attributes none = {0};

	ck_assert_int_eq(me_selfcheck_signed(fd, &none, &err), 0);
	for (int i = 0; i < 2; i++) {
		struct me_xattr x[2] = {{.name = "security.selinux"}, {.name = (char *)signs[i]}};
		struct me_attributes a = {.xattrs = x, .nr_xattrs = 2};

		ck_assert_int_eq(me_selfcheck_signed(fd, &a, &err), -EPERM);
		ck_assert_ptr_nonnull(strstr(err.msg, signs[i]));
		a.nr_xattrs = 1;
		ck_assert_int_eq(me_selfcheck_signed(fd, &a, &err), 0);
	}
	close(fd);
}
