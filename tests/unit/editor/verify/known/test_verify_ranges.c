// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_ranges - code that others know by a range of addresses or by a table: verify refuses copies of it.
 * The editor makes none, so a good pair is changed: names and headers, in the original and the output alike.
 */
#include "tests/unit/suite.h"

#include "tests/unit/verify_pair.h"

/* A file in memory that the test changes. */
struct changed {
	uint8_t *bytes;
	size_t size;
};

static struct changed copy_of(const struct mp_elf *elf)
{
	struct changed c = {malloc(elf->size), elf->size};

	ck_assert_ptr_nonnull(c.bytes);
	memcpy(c.bytes, elf->data, elf->size);
	return c;
}

static Elf64_Shdr *header(const struct changed *c, const char *name)
{
	const Elf64_Ehdr *ehdr = (const void *)c->bytes;
	Elf64_Shdr *sections = (void *)(c->bytes + ehdr->e_shoff);
	const char *names = (const char *)c->bytes + sections[ehdr->e_shstrndx].sh_offset;

	for (uint32_t i = 0; i < ehdr->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, name))
			return &sections[i];
	ck_abort_msg("no section %s", name);
	return NULL;
}

static void rename_section(const struct changed *c, const char *name, const char *to)
{
	const Elf64_Ehdr *ehdr = (const void *)c->bytes;
	const Elf64_Shdr *sections = (const void *)(c->bytes + ehdr->e_shoff);

	memcpy(c->bytes + sections[ehdr->e_shstrndx].sh_offset + header(c, name)->sh_name, to,
	       strlen(to));
}

/* Let the segment that ends with @section have other zeros at its end. */
static void resize(const struct changed *c, const char *section, int64_t memory)
{
	const Elf64_Ehdr *ehdr = (const void *)c->bytes;
	Elf64_Phdr *p = (void *)(c->bytes + ehdr->e_phoff);
	Elf64_Shdr *s = header(c, section);

	for (uint32_t i = 0; i < ehdr->e_phnum; i++) {
		if (p[i].p_type != PT_LOAD || s->sh_addr < p[i].p_vaddr ||
		    s->sh_addr + s->sh_size > p[i].p_vaddr + p[i].p_memsz)
			continue;
		p[i].p_memsz = (uint64_t)((int64_t)p[i].p_memsz + memory);
		s->sh_size = (uint64_t)((int64_t)s->sh_size + memory);
		return;
	}
	ck_abort_msg("no segment ends with %s", section);
}

static void name_section(const struct changed *c)
{
	rename_section(c, ".inner", "_inner");
}

static void name_table(const struct changed *c)
{
	rename_section(c, ".rodata_tabl", "__jump_table");
}

static void name_own_table(const struct changed *c)
{
	rename_section(c, ".rodata_tabl", "my_own_table");
}

static void name_own_quads(const struct changed *c)
{
	rename_section(c, ".data__quads", "my_own_quads");
}

static void name_own_longs(const struct changed *c)
{
	rename_section(c, ".data__longs", "my_own_longs");
}

static void shorten_code(const struct changed *c)
{
	header(c, ".fini")->sh_size--;
}

static void lengthen_memory(const struct changed *c)
{
	resize(c, ".bss", 16);
}

static void empty_bss(const struct changed *c)
{
	resize(c, ".bss", -(int64_t)header(c, ".bss")->sh_size);
}

static const struct {
	const char *flags, *refused;
	void (*change)(const struct changed *c);
} kinds[] = {
	{"-DMARK=etext+3", "section's bounds", name_section},
	{"-DMARK=etext+3", "by a table", name_table},
	{"-DMARK=etext+3", "by a table", name_own_table},
	{"-DMARK=etext+3", "by a table", name_own_quads},
	{"-DMARK=etext+3", "by a table", name_own_longs},
	{"-DMARK=etext-1", "code ends", shorten_code},
	{"-DMARK=_end+16", "program break", lengthen_memory},
	{"-DMARK=etext+3", "program break", empty_bss},
};

#define NR_KINDS (int)(sizeof(kinds) / sizeof(kinds[0]))

static int verify(struct changed *original, struct changed *output, struct mp_err *err)
{
	struct mp_elf *o, *n;
	int rc;

	ck_assert_msg(!mp_elf_open_memory("o", original->bytes, original->size, MP_ELF_ALL, &o,
					  err),
		      "%s", err->msg);
	ck_assert_msg(!mp_elf_open_memory("n", output->bytes, output->size, MP_ELF_ALL, &n, err),
		      "%s", err->msg);
	rc = me_verify(o, n, NULL, err);
	mp_elf_close(o);
	mp_elf_close(n);
	return rc;
}

TEST_EACH(verify_refuses_copies_of_known_code, 4 * NR_KINDS)
{
	static const char *const modes[] = {"-fno-pie -no-pie", "-fPIE -pie"};
	int kind = _i / 4;
	char line[512];

	/* Only files with fixed addresses can be dumped with their memory, and relocations tell of places in tables. */
	if ((kinds[kind].change == empty_bss && _i & 1) ||
	    (kinds[kind].change == name_table && _i & 2) ||
	    (kinds[kind].change == name_own_table && _i & 2) ||
	    ((kinds[kind].change == name_own_quads || kinds[kind].change == name_own_longs) &&
	     _i & 3))
		return;
	snprintf(line, sizeof(line), "gcc -O2 %s tests/data/own_code/ranges.c %s %s", modes[_i & 1],
		 kinds[kind].flags, _i & 2 ? "-Wl,--emit-relocs" : "-s");
	{
		struct mp_err err = {""};
		struct changed o, n;
		struct pair p;

		pair_build_as_it_is(&p, line, 0);
		o = copy_of(p.original);
		n = copy_of(p.good);
		ck_assert_msg(!verify(&o, &n, &err), "%s", err.msg);
		kinds[kind].change(&o);
		kinds[kind].change(&n);
		ck_assert_int_eq(verify(&o, &n, &err), -EBADMSG);
		ck_assert_msg(strstr(err.msg, kinds[kind].refused), "%s: '%s'", line, err.msg);
		free(o.bytes);
		free(n.bytes);
		pair_free(&p);
	}
}
