// SPDX-License-Identifier: Apache-2.0
/*
 * test_debug_file - separate debug files: which file is accepted for a program, what is made from
 * it, and that verify finds errors in it. tests/e2e checks what debuggers say.
 */
#include <limits.h>

#include "editor/debug/debuglink.h"
#include "editor/emit/emit.h"
#include "editor/layout/plan_all.h"
#include "editor/debug/debug_file.h"
#include "editor/verify/verify.h"
#include "tests/unit/suite.h"
#include "tests/support/rewrite.h"

#define NAME "out.debug"

static char dir[256];

/* Runs @command in the test's directory. */
static void run(const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd %s && { %s; } >/dev/null 2>&1", dir, command);
	ck_assert_msg(system(line) == 0, "%s", command);
}

static const char *path_of(const char *name)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

#define SOURCE                                                                                       \
	"int side; __attribute__((noinline)) int f(int a) { int s = 0; for (int i = 0; i < a; i++) " \
	"{ s += 3 * i + side; if (s > 99) side++; } return s; } "                                    \
	"int main(int c, char **v) { (void)v; return f(c); }"

/* prog has everything; shipped and prog.debug are what a distribution makes from it. */
static void setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/test_debug_file.XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	run("echo '" SOURCE
	    "' >p.c && gcc -g -O1 -Wl,--build-id -fdebug-prefix-map=$PWD=/p -o prog p.c &&"
	    "objcopy --only-keep-debug prog prog.debug && strip -o shipped prog &&"
	    "objcopy --add-gnu-debuglink=prog.debug shipped");
}

static void teardown(void)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static struct mp_elf *open_elf(const char *name)
{
	struct mp_elf *elf;
	struct mp_err err = {""};

	ck_assert_msg(!mp_elf_open(path_of(name), MP_ELF_ALL, &elf, &err), "%s", err.msg);
	return elf;
}

/* Opens the debug file @debug (NULL: search) for @program. Return: as me_debug_file_open(). */
static int take(const char *program, const char *debug, struct mp_err *err)
{
	struct mp_elf *elf = open_elf(program), *found;
	int rc = me_debug_file_open(elf, debug ? path_of(debug) : ME_DEBUG_FILE_AUTO, &found, err);

	ck_assert(!rc == !!found);
	mp_elf_close(found);
	mp_elf_close(elf);
	return rc;
}

static void refused(const char *program, const char *debug, const char *why)
{
	struct mp_err err = {""};

	ck_assert_int_eq(take(program, debug, &err), -EPERM);
	ck_assert_msg(strstr(err.msg, why) != NULL, "%s", err.msg);
}

FIXTURE(setup, teardown);

TEST(the_debug_file_is_found_by_its_link)
{
	struct mp_err err;

	ck_assert_int_eq(take("shipped", NULL, &err), 0);
	run("mkdir .debug && mv prog.debug .debug");
	ck_assert_int_eq(take("shipped", NULL, &err), 0);
	run("ln -s ../shipped .debug/link");
	ck_assert_int_eq(take(".debug/link", NULL, &err), 0);
	run("rm -r .debug");
	ck_assert_int_eq(take("shipped", NULL, &err), -ENOENT);
}

TEST(the_debug_file_is_found_where_debuginfod_keeps_it)
{
	char command[512], cache[300];
	struct mp_err err;

	snprintf(cache, sizeof(cache), "%s/cache", dir);
	snprintf(command, sizeof(command), "%s",
		 "id=$(readelf -n prog | sed -n 's/.*Build ID: //p') && mkdir -p cache/$id &&"
		 "mv prog.debug cache/$id/debuginfo");
	run(command);
	ck_assert_int_eq(take("shipped", NULL, &err), -ENOENT);
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	ck_assert_int_eq(take("shipped", NULL, &err), 0);
	unsetenv("DEBUGINFOD_CACHE_PATH");
}

TEST(another_programs_debug_file_is_refused)
{
	struct mp_err err;

	run("sed s/99/98/ p.c >q.c && gcc -g -O1 -Wl,--build-id -o q q.c &&"
	    "objcopy --only-keep-debug q q.debug");
	refused("shipped", "q.debug", "another build-id");
	/* It would be found by name, but it is the wrong file. */
	run("mv q.debug prog.debug");
	ck_assert_int_eq(take("shipped", NULL, &err), -ENOENT);
	refused("prog", "prog.debug", "carries its debug information itself");
	ck_assert_int_eq(take("prog", NULL, &err), -ENOENT);
	refused("shipped", "shipped", "no debug information");
	ck_assert_int_eq(take("shipped", "nothing", &err), -ENOENT);
	ck_assert_int_eq(take("shipped", "p.c", &err), -ENOEXEC);
}

TEST(without_build_id_the_checksum_decides)
{
	struct mp_err err = {""};

	run("gcc -g -O1 -Wl,--build-id=none -o prog p.c && objcopy --only-keep-debug prog prog.debug &&"
	    "strip -o bare prog && cp bare shipped && objcopy --add-gnu-debuglink=prog.debug shipped");
	refused("bare", "prog.debug", "neither a build-id");
	ck_assert_int_eq(take("shipped", NULL, &err), 0);
	ck_assert_int_eq(take("shipped", "prog.debug", &err), 0);
	run("printf x >>prog.debug");
	refused("shipped", "prog.debug", "checksum");
	ck_assert_int_eq(take("shipped", NULL, &err), -ENOENT);
}

/* Anybody can set a build-id. */
TEST(other_sections_are_another_program)
{
	run("gcc -g -O1 -Wl,--build-id=0x0123456789 -o prog p.c && strip -o shipped prog");
	run("sed s/99/f\\(9\\)/ p.c >q.c && gcc -g -O0 -Wl,--build-id=0x0123456789 -o q q.c &&"
	    "objcopy --only-keep-debug q q.debug");
	refused("shipped", "q.debug", "differs");
	run("objcopy --add-section .extra=p.c --set-section-flags .extra=alloc,readonly "
	    "--change-section-address .extra=0x700000 prog q || true;"
	    "objcopy --only-keep-debug --remove-section .bss prog q.debug");
	refused("shipped", "q.debug", "section");
}

/* ---- what is made of it ---- */

struct pair {
	struct mp_elf *program, *debug;
	struct mp_cfg *cfg;
	struct me_plan plan;
	struct rewrite_bytes out, debug_out;
	struct me_debug_report report;
};

static void read_program(struct pair *p, const char *program)
{
	struct mp_err err = {""};
	uint8_t *movable;

	*p = (struct pair){.program = open_elf(program)};
	ck_assert_int_eq(mp_cfg_build(p->program, NULL, &p->cfg, &err), 0);
	movable = rewrite_movable(p->cfg);
	ck_assert_ptr_nonnull(movable);
	ck_assert_int_eq(me_plan_all(p->cfg, movable, NULL, &p->plan, &err), 0);
	ck_assert_int_eq(rewrite_redirect(p->cfg, &p->plan, &err), 0);
	free(movable);
}

/* Return: as me_emitter_write(). */
static int emit(struct pair *p, struct mp_err *err)
{
	struct me_emitted emitted;
	int rc =
		rewrite_emit_with_debug_file(p->cfg, &p->plan, NULL, p->debug, NAME, &emitted, err);

	if (rc)
		return rc;
	p->out = rewrite_flatten(&emitted.output);
	p->debug_out = rewrite_flatten(&emitted.debug_output);
	p->report = emitted.debug;
	me_emitted_fini(&emitted);
	return 0;
}

static void make_pair(struct pair *p, const char *program, const char *debug)
{
	struct mp_err err = {""};

	read_program(p, program);
	ck_assert_msg(!me_debug_file_open(p->program, path_of(debug), &p->debug, &err), "%s",
		      err.msg);
	ck_assert_msg(!emit(p, &err), "%s", err.msg);
}

static void free_outputs(struct pair *p)
{
	free(p->out.data);
	free(p->debug_out.data);
	p->out.data = p->debug_out.data = NULL;
}

static void free_pair(struct pair *p)
{
	free_outputs(p);
	me_plan_fini(&p->plan);
	mp_cfg_free(p->cfg);
	mp_elf_close(p->debug);
	mp_elf_close(p->program);
}

/* Return: as me_verify(), or the error of opening a file. */
static int verify(const struct pair *p, const char *name, struct mp_err *err)
{
	struct me_verify_debug debug = {p->debug, NULL, name};
	struct mp_elf *out, *debug_out = NULL;
	int rc = mp_elf_open_memory("out", p->out.data, p->out.size, MP_ELF_ALL, &out, err);

	if (!rc)
		rc = mp_elf_open_memory("debug", p->debug_out.data, p->debug_out.size,
					MP_ELF_DEBUG | MP_ELF_SYMBOLS, &debug_out, err);
	debug.output = debug_out;
	if (!rc)
		rc = me_verify_parallel(p->program, out, name ? &debug : NULL, 1, NULL, err);
	mp_elf_close(debug_out);
	mp_elf_close(out);
	return rc;
}

TEST_EACH(the_output_leads_to_its_own_debug_file, 8)
{
	static const char *const whats[] = {
		"true",
		"strip -g -o shipped prog", /* symbols in both files; no link in the program */
		"eu-strip -f prog.debug -o shipped prog",
		"cp prog prog.debug", /* prog.debug still has everything */
		"objcopy --compress-debug-sections prog.debug",
		"gcc -g -O1 -gdwarf-4 -Wl,--build-id=0x0123456789abcdef p.c -o prog &&"
		"objcopy --only-keep-debug prog prog.debug && strip -o shipped prog",
		"gcc -g -O1 -Wl,--build-id=none p.c -o prog && objcopy --only-keep-debug prog prog.debug"
		"&& strip -o shipped prog && objcopy --add-gnu-debuglink=prog.debug shipped",
		"gcc -g -O1 -static -Wl,--emit-relocs p.c -o prog && objcopy --only-keep-debug prog "
		"prog.debug && strip -o shipped prog",
	};
	struct me_debuglink link;
	struct mp_err err = {""};
	struct mp_elf *out;
	struct pair p;

	run(whats[_i]);
	make_pair(&p, "shipped", "prog.debug");
	ck_assert(p.report.present);
	ck_assert_uint_gt(p.report.nr_extended, 0);
	ck_assert_msg(!verify(&p, NAME, &err), "%s", err.msg);
	ck_assert_int_eq(mp_elf_open_memory("out", p.out.data, p.out.size, MP_ELF_ALL, &out, &err),
			 0);
	ck_assert_int_eq(me_debuglink_read(out, &link), 0);
	ck_assert_str_eq(link.name, NAME);
	ck_assert_uint_eq(link.crc, me_debuglink_crc(p.debug_out.data, p.debug_out.size));
	/* A wrong name is noticed, and so is a missing check. */
	ck_assert_int_eq(verify(&p, "other.debug", &err), -EBADMSG);
	ck_assert_int_eq(verify(&p, NULL, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, ".gnu_debuglink"));
	mp_elf_close(out);
	free_pair(&p);
}

/* Writes the checksum of the current debug file into the program. */
static void mend_link(struct pair *p, uint64_t link_off)
{
	size_t size;
	uint8_t *link = me_debuglink_make(
		NAME, me_debuglink_crc(p->debug_out.data, p->debug_out.size), &size);

	ck_assert_ptr_nonnull(link);
	memcpy(p->out.data + link_off, link, size);
	free(link);
}

/*
 * Return: true for bytes that may change, because no run depends on them, as in a file with its
 * own debug information.
 */
static bool may_be_anything(const struct pair *p, const struct mp_elf *good, uint64_t off)
{
	uint64_t at = off - good->ehdr.e_shoff, index = at / sizeof(Elf64_Shdr);

	for (uint32_t i = 1; i < good->nr_sections; i++) {
		const struct mp_section *s = &good->sections[i], *was;
		Elf64_Sym sym;

		if (s->type == SHT_NOBITS || off - s->off >= s->size)
			continue;
		was = mp_elf_section(p->debug, s->name);
		if (!strcmp(s->name, ".debug_info") || !strcmp(s->name, ".debug_aranges"))
			return true;
		if (!strncmp(s->name, ".debug_", 7))
			return !was || off - s->off >= was->size;
		if (strcmp(s->name, ".symtab"))
			return false;
		memcpy(&sym, good->data + off - (off - s->off) % sizeof(sym), sizeof(sym));
		return (off - s->off) % sizeof(sym) >= offsetof(Elf64_Sym, st_size) &&
		       sym.st_shndx < good->nr_sections &&
		       !strcmp(good->sections[sym.st_shndx].name, ".morph.text");
	}
	/* An empty section may have any offset. Added sections may or may not end with zeros. */
	if (index && index < good->nr_sections) {
		const struct mp_section *s = &good->sections[index];

		at %= sizeof(Elf64_Shdr);
		return (s->type == SHT_NOBITS && at / 8 == offsetof(Elf64_Shdr, sh_offset) / 8) ||
		       (!strncmp(s->name, ".debug_", 7) &&
			at / 8 == offsetof(Elf64_Shdr, sh_size) / 8);
	}
	return false;
}

TEST(a_damaged_debug_file_does_not_verify)
{
	struct mp_err err = {""};
	const struct mp_section *link;
	struct mp_elf *good, *out;
	uint64_t link_off, passed = 0;
	struct pair p;
	uint8_t *copy;

	make_pair(&p, "shipped", "prog.debug");
	copy = malloc(p.debug_out.size);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, p.debug_out.data, p.debug_out.size);
	ck_assert_int_eq(mp_elf_open_memory("out", p.out.data, p.out.size, 0, &out, &err), 0);
	link = mp_elf_section(out, ME_DEBUGLINK_SECTION);
	ck_assert_ptr_nonnull(link);
	link_off = link->off;
	/* With the old checksum, any change is noticed. */
	for (uint64_t off = 0; off < p.debug_out.size; off += 61) {
		p.debug_out.data[off] ^= 1 << off % 8;
		ck_assert_msg(verify(&p, NAME, &err) != 0, "offset %#llx", (unsigned long long)off);
		p.debug_out.data[off] = copy[off];
	}
	ck_assert_int_eq(mp_elf_open_memory("good", copy, p.debug_out.size,
					    MP_ELF_DEBUG | MP_ELF_SYMBOLS, &good, &err),
			 0);
	for (uint64_t off = 0; off < p.debug_out.size; off++) {
		if (may_be_anything(&p, good, off))
			continue;
		p.debug_out.data[off] ^= 1 << (off * 5 + off / 8) % 8;
		mend_link(&p, link_off);
		ck_assert_msg(verify(&p, NAME, &err) != 0, "offset %#llx", (unsigned long long)off);
		p.debug_out.data[off] = copy[off];
		passed++;
	}
	ck_assert_uint_gt(passed, 2000);
	mend_link(&p, link_off);
	ck_assert_msg(!verify(&p, NAME, &err), "%s", err.msg);
	for (uint64_t off = link_off; off < link_off + link->size; off++) {
		p.out.data[off] ^= 4;
		ck_assert_int_eq(verify(&p, NAME, &err), -EBADMSG);
		p.out.data[off] ^= 4;
	}
	mp_elf_close(good);
	mp_elf_close(out);
	free(copy);
	free_pair(&p);
}

static uint8_t *read_bytes(const char *name, size_t *size)
{
	FILE *file = fopen(path_of(name), "rb");
	uint8_t *bytes = malloc(1 << 20);

	ck_assert(file && bytes);
	*size = fread(bytes, 1, 1 << 20, file);
	fclose(file);
	return bytes;
}

static void write_bytes(const char *name, const uint8_t *bytes, size_t size)
{
	FILE *file = fopen(path_of(name), "wb");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
	ck_assert_int_eq(fclose(file), 0);
}

/* Tries a damaged file: it is refused, or its new version verifies. */
static void try_damaged(struct pair *p, uint32_t *nr_refused, uint32_t *nr_done)
{
	struct mp_err err = {""};
	int rc = me_debug_file_open(p->program, path_of("damaged"), &p->debug, &err);

	if (!rc)
		rc = emit(p, &err);
	if (!rc) {
		/* The blank before all headers is not read, and is written as a blank. */
		ck_assert_msg(!verify(p, NAME, &err) || strstr(err.msg, "table does not fit"), "%s",
			      err.msg);
		++*nr_done;
	} else {
		ck_assert_msg(*err.msg && (rc == -EPERM || rc == -EBADMSG || rc == -ENOEXEC),
			      "%d: %s", rc, err.msg);
		++*nr_refused;
	}
	free_outputs(p);
	mp_elf_close(p->debug);
	p->debug = NULL;
}

/* Anybody may write this file. Truncate it anywhere, or change any byte. */
TEST(a_damaged_debug_file_is_refused_or_rewritten)
{
	uint32_t nr_refused = 0, nr_done = 0;
	struct pair p;
	size_t size;
	uint8_t *bytes;

	run("strip -g -o shipped prog");
	read_program(&p, "shipped");
	bytes = read_bytes("prog.debug", &size);
	for (size_t off = 0; off < size; off++) {
		uint8_t was = bytes[off];

		bytes[off] = off % 3 ? (uint8_t)~was : was ^ 1 << off / 3 % 8;
		write_bytes("damaged", bytes, size);
		try_damaged(&p, &nr_refused, &nr_done);
		bytes[off] = was;
		if (off % 16)
			continue;
		write_bytes("damaged", bytes, off);
		try_damaged(&p, &nr_refused, &nr_done);
	}
	ck_assert_uint_gt(nr_refused, 500);
	ck_assert_uint_gt(nr_done, 500);
	free(bytes);
	free_pair(&p);
}
