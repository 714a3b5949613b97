// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_phdr_extend - a program header table that grew: its address according to old and new
 * kernels, and wrong outputs that verify refuses.
 */
#include "tests/unit/suite.h"

#include "tests/support/rewrite.h"
#include "tests/unit/verify_pair.h"

static const char *const commands[] = {
	"gcc -O2 -fPIE -pie -fuse-ld=lld tests/data/control.c",
	"gcc -O2 -fPIE -pie -fuse-ld=mold tests/data/control.c",
	"gcc -O2 -fPIE -static-pie -fuse-ld=lld tests/data/control.c",
	"gcc -O2 -fPIE -static-pie -fuse-ld=mold tests/data/control.c",
	"gcc -O2 -fPIE -pie -fuse-ld=lld -Wl,--build-id=none tests/data/control.c",
	/* Only a few bytes lie behind the table, fewer than a new entry needs. */
	("gcc -O2 -fPIE -pie -fuse-ld=lld -Wl,--build-id=none "
	 "-Wl,--dynamic-linker=/lib64/ld-linux.so tests/data/control.c"),
};

enum {
	NR_COMMANDS = sizeof(commands) / sizeof(commands[0])
};

static Elf64_Ehdr *ehdr(struct pair *p)
{
	return (Elf64_Ehdr *)p->bytes;
}

static Elf64_Phdr *phdr(struct pair *p, uint32_t i)
{
	return (Elf64_Phdr *)(p->bytes + ehdr(p)->e_phoff) + i;
}

static Elf64_Phdr *find(struct pair *p, uint32_t type)
{
	for (uint32_t i = 0; i < ehdr(p)->e_phnum; i++)
		if (phdr(p, i)->p_type == type)
			return phdr(p, i);
	return NULL;
}

static void build(struct pair *p, int i)
{
	pair_build_stock(p, commands[i], 1);
	ck_assert_uint_eq(p->good->nr_phdrs, p->original->nr_phdrs + 1);
}

/* Return: AT_PHDR as the kernel sets it, minus the load address. */
static uint64_t at_phdr_before_5_18(struct pair *p)
{
	const Elf64_Phdr *first = find(p, PT_LOAD);

	return first->p_vaddr - first->p_offset + ehdr(p)->e_phoff;
}

static uint64_t at_phdr_since_5_18(struct pair *p)
{
	for (uint32_t i = 0; i < ehdr(p)->e_phnum; i++) {
		const Elf64_Phdr *ph = phdr(p, i);

		if (ph->p_type == PT_LOAD && ph->p_offset <= ehdr(p)->e_phoff &&
		    ehdr(p)->e_phoff < ph->p_offset + ph->p_filesz)
			return ehdr(p)->e_phoff - ph->p_offset + ph->p_vaddr;
	}
	return 0;
}

TEST_EACH(kernels_old_and_new_find_the_larger_table, NR_COMMANDS)
{
	struct pair p;
	size_t size;

	build(&p, _i);
	size = p.good->nr_phdrs * sizeof(Elf64_Phdr);
	ck_assert_uint_eq(at_phdr_before_5_18(&p), at_phdr_since_5_18(&p));
	ck_assert_uint_eq(find(&p, PT_PHDR)->p_vaddr, at_phdr_since_5_18(&p));
	ck_assert_uint_eq(find(&p, PT_PHDR)->p_memsz, size);
	ck_assert_mem_eq(mp_elf_bytes(p.good, at_phdr_since_5_18(&p), size), phdr(&p, 0), size);
	/* The address according to __ehdr_start, which start-up code reads. */
	ck_assert_uint_eq(ehdr(&p)->e_phoff, p.original->ehdr.e_phoff);
	pair_free(&p);
}

static void refused(struct pair *p, const char *what)
{
	struct mp_err err;
	int rc = pair_verify(p, p->size, &err);

	ck_assert_msg(rc == -EBADMSG, "%s is not refused: %d", what, rc);
	pair_restore(p);
}

TEST_EACH(verify_refuses_wrong_headers_of_a_larger_table, NR_COMMANDS)
{
	static const uint32_t moved[] = {PT_INTERP, PT_NOTE};
	const Elf64_Phdr *was;
	struct pair p;

	build(&p, _i);
	find(&p, PT_PHDR)->p_filesz -= sizeof(Elf64_Phdr);
	refused(&p, "PT_PHDR too short in the file");
	find(&p, PT_PHDR)->p_memsz -= sizeof(Elf64_Phdr);
	refused(&p, "PT_PHDR too short in memory");
	find(&p, PT_PHDR)->p_vaddr += sizeof(Elf64_Phdr);
	refused(&p, "PT_PHDR elsewhere");
	find(&p, PT_PHDR)->p_type = PT_NULL;
	refused(&p, "no PT_PHDR");
	ehdr(&p)->e_phnum--;
	refused(&p, "one header less");
	ehdr(&p)->e_phoff += sizeof(Elf64_Phdr);
	refused(&p, "a table elsewhere");
	for (size_t i = 0; i < 2; i++) {
		if (!find(&p, moved[i]))
			continue;
		find(&p, moved[i])->p_vaddr += 64;
		refused(&p, "another address");
		find(&p, moved[i])->p_offset += 64;
		refused(&p, "another place in the file");
		find(&p, moved[i])->p_filesz--;
		refused(&p, "another size");
		was = p.original->phdrs;
		while (was->p_type != moved[i])
			was++;
		*find(&p, moved[i]) = *was;
		refused(&p, "a header that leads to the table");
	}
	pair_free(&p);
}

/* Each byte of the new table, of what moved, and of the place that it left. */
TEST_EACH(verify_refuses_every_other_byte_of_the_table_and_of_what_moved, 2)
{
	const Elf64_Phdr *first = NULL, *last;
	uint64_t table, table_end, old_end;
	struct pair p;
	uint32_t i;

	build(&p, _i);
	table = ehdr(&p)->e_phoff;
	table_end = table + p.good->nr_phdrs * sizeof(Elf64_Phdr);
	for (uint64_t at = table; at < table_end; at++) {
		p.bytes[at] ^= 1;
		refused(&p, "a byte of the table");
	}
	last = find(&p, PT_NOTE);
	first = find(&p, PT_INTERP) ? find(&p, PT_INTERP) : last;
	for (uint64_t at = first->p_offset; at < last->p_offset + last->p_filesz; at++) {
		const struct mp_section *id = mp_elf_section(p.good, ".note.gnu.build-id");

		/* The output has its own build-id; any is accepted. */
		if (id && at >= id->off + 16 && at < id->off + id->size)
			continue;
		p.bytes[at] ^= 1;
		refused(&p, "a byte that moved");
	}
	for (i = 0; p.original->phdrs[i].p_type != PT_NOTE; i++)
		;
	old_end = p.original->phdrs[i].p_offset + p.original->phdrs[i].p_filesz;
	for (uint64_t at = table_end; at < old_end; at++) {
		p.bytes[at] ^= 1;
		refused(&p, "a byte left behind");
	}
	pair_free(&p);
}

TEST_EACH(verify_refuses_section_headers_that_did_not_follow, NR_COMMANDS)
{
	struct pair p;
	Elf64_Shdr *sh;
	const struct mp_section *note;
	uint32_t i;

	build(&p, _i);
	note = mp_elf_section(p.good, ".note.ABI-tag");
	i = (uint32_t)(note - p.good->sections);
	sh = (Elf64_Shdr *)(p.bytes + ehdr(&p)->e_shoff) + i;
	sh->sh_addr += 64;
	refused(&p, "another address of a section");
	sh->sh_offset += 64;
	refused(&p, "another offset of a section");
	note = mp_elf_section(p.original, ".note.ABI-tag");
	sh->sh_addr = note->vaddr;
	sh->sh_offset = note->off;
	refused(&p, "a section where it was");
	pair_free(&p);
}

/* Programs that refer to the addresses of bytes that would move. */
TEST_EACH(bytes_that_the_program_names_stay, 4)
{
	static const char *const programs[] = {
		"extern char __ehdr_start[]; int main(void) { return __ehdr_start[0x2b0] & 1; }",
		"extern char __ehdr_start[]; char *p = __ehdr_start + 0x2b0; "
		"int main(void) { return *p & 1; }",
	};
	static const char *const flags[] = {"", "-Wl,--emit-relocs "};
	const uint64_t seed = 1;
	struct rewrite_bytes in, out;
	struct mp_elf *o, *n;
	char command[512];
	struct mp_err err;

	snprintf(command, sizeof(command), "echo '%s' | gcc -O1 -fPIE -pie -fuse-ld=lld %s-xc -",
		 programs[_i / 2], flags[_i % 2]);
	ck_assert(rewrite_compile(command, &in));
	ck_assert_int_eq(mp_elf_open_memory("in", in.data, in.size, MP_ELF_ALL, &o, &err), 0);
	ck_assert(rewrite_all(o, &seed, &out));
	ck_assert_int_eq(mp_elf_open_memory("out", out.data, out.size, MP_ELF_ALL, &n, &err), 0);
	ck_assert_int_eq(me_verify(o, n, NULL, &err), -EBADMSG);
	ck_assert_msg(strstr(err.msg, "uses bytes behind its program headers") != NULL, "%s",
		      err.msg);
	mp_elf_close(n);
	mp_elf_close(o);
	free(out.data);
	free(in.data);
}
