// SPDX-License-Identifier: Apache-2.0
/* test_change - what lies inside a patch, words of tables, and files that are no versions. */
#include "daemon/live/change.h"
#include "tests/support/rewrite.h"
#include "tests/unit/suite.h"

static uint64_t patches[] = {0x1000, 0x1005, 0x2ffb};
static uint32_t words[] = {0x10, 0x7fffff00, 0xfffffff0};
static const struct md_changes changes = {
	.patches = patches, .nr_patches = 3, .words = words, .nr_words = 3};

TEST(only_addresses_strictly_inside_a_patch_are_inside)
{
	ck_assert(!md_changes_inside(&changes, 0xfff));
	ck_assert(!md_changes_inside(&changes, 0x1000));
	for (uint64_t at = 0x1001; at < 0x1005; at++)
		ck_assert(md_changes_inside(&changes, at));
	/* The next patch begins where the first one ends. */
	ck_assert(!md_changes_inside(&changes, 0x1005));
	ck_assert(md_changes_inside(&changes, 0x1009));
	ck_assert(!md_changes_inside(&changes, 0x100a));
	ck_assert(md_changes_inside(&changes, 0x2fff));
	ck_assert(!md_changes_inside(&changes, 0x3000));
	ck_assert(!md_changes_inside(&changes, 0));
	ck_assert(!md_changes_inside(&changes, UINT64_MAX));
}

TEST(a_patch_covers_its_first_byte_too)
{
	ck_assert(!md_changes_has_patch(&changes, 0xfff));
	for (uint64_t at = 0x1000; at < 0x100a; at++)
		ck_assert(md_changes_has_patch(&changes, at));
	ck_assert(!md_changes_has_patch(&changes, 0x100a));
	ck_assert(!md_changes_has_patch(&changes, 0x2ffa));
	ck_assert(md_changes_has_patch(&changes, 0x2fff));
	ck_assert(!md_changes_has_patch(&changes, 0x3000));
}

TEST(without_patches_nothing_is_inside)
{
	const struct md_changes none = {0};

	ck_assert(!md_changes_inside(&none, 0x1001));
	ck_assert(!md_changes_has_word(&none, 0x10));
}

TEST(words_are_found_with_and_without_a_sign)
{
	ck_assert(md_changes_has_word(&changes, 0x10));
	ck_assert(md_changes_has_word(&changes, 0xfffffff0));
	ck_assert(md_changes_has_word(&changes, 0xfffffffffffffff0));
	ck_assert(md_changes_has_word(&changes, 0x7fffff00));
	ck_assert(!md_changes_has_word(&changes, 0x1fffffff0));
	ck_assert(!md_changes_has_word(&changes, 0x11));
}

TEST(a_file_without_a_map_is_no_version)
{
	struct md_changes found;
	struct mp_elf *elf = NULL;

	ck_assert_int_eq(mp_elf_open("/proc/self/exe", MP_ELF_ALL, &elf, &err), 0);
	ck_assert_int_eq(md_changes_find(elf, elf, &found, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "is no version"));
	md_changes_fini(&found);
	mp_elf_close(elf);
}

/* A program and a version of it, whose headers a test changes. */
struct pair {
	struct rewrite_bytes bytes[2];
	struct mp_elf *elf[2];
};

static bool make_pair(struct pair *pair)
{
	struct mp_elf *elf = NULL;

	*pair = (struct pair){0};
	if (!rewrite_compile(
		    "echo 'int f(int x) { return x % 7 ? x * 3 : x; } int main(int c, char **v) "
		    "{ return v[c] ? f(c) : f(c + 1) & 1; }' | gcc -O1 -no-pie -x c -",
		    &pair->bytes[0]))
		return false;
	ck_assert_int_eq(mp_elf_open_memory("original", pair->bytes[0].data, pair->bytes[0].size,
					    MP_ELF_ALL, &elf, &err),
			 0);
	ck_assert(rewrite_all(elf, NULL, &pair->bytes[1]));
	mp_elf_close(elf);
	return true;
}

/* @read: more of the files than their symbols. */
static int find_with(struct pair *pair, unsigned int read, struct md_changes *found)
{
	for (int i = 0; i < 2; i++) {
		mp_elf_close(pair->elf[i]);
		pair->elf[i] = NULL;
		ck_assert_msg(!mp_elf_open_memory(i ? "output" : "original", pair->bytes[i].data,
						  pair->bytes[i].size, MP_ELF_SYMBOLS | read,
						  &pair->elf[i], &err),
			      "%s", err.msg);
	}
	return md_changes_find(pair->elf[0], pair->elf[1], found, &err);
}

static int find(struct pair *pair, struct md_changes *found)
{
	return find_with(pair, 0, found);
}

static void free_pair(struct pair *pair)
{
	for (int i = 0; i < 2; i++) {
		mp_elf_close(pair->elf[i]);
		free(pair->bytes[i].data);
	}
}

/* The header of the section with this name, or, in the output, with the place of the original's. */
static Elf64_Shdr *header_of(struct pair *pair, int i, const char *name)
{
	const struct mp_section *sec = mp_elf_section(pair->elf[0], name);
	Elf64_Shdr *headers = (void *)(pair->bytes[i].data + pair->elf[i]->ehdr.e_shoff);

	ck_assert_ptr_nonnull(sec);
	while (headers->sh_addr != sec->vaddr)
		headers++;
	return headers;
}

static Elf64_Phdr *segment_of(struct pair *pair, int i, uint64_t vaddr)
{
	Elf64_Phdr *ph = (void *)(pair->bytes[i].data + pair->elf[i]->ehdr.e_phoff);

	while (ph->p_type != PT_LOAD || vaddr - ph->p_vaddr >= ph->p_memsz)
		ph++;
	return ph;
}

/* What a process maps need not have been proved: root looks at the files of all processes. */
TEST(a_word_that_the_segment_cuts_off_is_no_change)
{
	struct md_changes found;
	struct pair pair;

	if (!make_pair(&pair))
		MORPH_SKIP("no gcc");
	ck_assert_int_eq(find(&pair, &found), 0);
	ck_assert_uint_gt(found.nr_patches, 0);
	md_changes_fini(&found);
	for (int i = 0; i < 2; i++) {
		Elf64_Shdr *sec = header_of(&pair, i, ".eh_frame");
		Elf64_Phdr *ph = segment_of(&pair, i, sec->sh_addr);

		sec->sh_size -= 3;
		ph->p_filesz = ph->p_memsz = sec->sh_addr + sec->sh_size - ph->p_vaddr;
		if (i)
			pair.bytes[1].data[sec->sh_offset + sec->sh_size - 1] ^= 1;
	}
	ck_assert_int_eq(find(&pair, &found), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "is no version"));
	md_changes_fini(&found);
	free_pair(&pair);
}

/* An ordinary output has them. */
TEST(patches_over_first_instructions_are_counted)
{
	struct md_changes found;
	struct pair pair;

	if (!make_pair(&pair))
		MORPH_SKIP("no gcc");
	ck_assert_int_eq(find_with(&pair, MP_ELF_FDES, &found), 0);
	ck_assert_uint_gt(found.nr_over_first, 0);
	ck_assert_uint_lt(found.nr_over_first, found.nr_patches);
	md_changes_fini(&found);
	free_pair(&pair);
}

TEST(sections_that_overlap_are_refused)
{
	struct md_changes found;
	struct pair pair;

	if (!make_pair(&pair))
		MORPH_SKIP("no gcc");
	ck_assert_int_eq(find(&pair, &found), 0);
	md_changes_fini(&found);
	for (int i = 0; i < 2; i++) {
		Elf64_Shdr *a = header_of(&pair, i, ".rodata"),
			   *b = header_of(&pair, i, ".eh_frame");

		b->sh_addr = a->sh_addr;
		b->sh_offset = a->sh_offset;
		b->sh_size = a->sh_size;
	}
	ck_assert_int_eq(find(&pair, &found), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "overlap"));
	md_changes_fini(&found);
	free_pair(&pair);
}

/* The bytes of the pages are copied, so the files may change later. */
TEST(pages_have_the_bytes_of_the_file)
{
	struct md_changes found;
	struct pair pair;

	if (!make_pair(&pair))
		MORPH_SKIP("no gcc");
	ck_assert_int_eq(find(&pair, &found), 0);
	ck_assert_uint_gt(found.nr_pages, 0);
	for (size_t i = 0; i < found.nr_pages; i++) {
		const struct md_live_page *page = &found.pages[i];
		size_t size = pair.bytes[0].size - page->off;

		ck_assert_uint_eq(page->off % MD_LIVE_PAGE, 0);
		ck_assert_mem_eq(found.old_bytes + page->at, pair.bytes[0].data + page->off,
				 size < MD_LIVE_PAGE ? size : MD_LIVE_PAGE);
	}
	md_changes_fini(&found);
	free_pair(&pair);
}

/* Lets the segment of .eh_frame, its last section, begin 16 bytes later in the file, at the same address. */
static void move_segment(struct pair *pair, int i)
{
	Elf64_Shdr *last = header_of(pair, i, ".eh_frame"),
		   *headers = (void *)(pair->bytes[i].data + pair->elf[i]->ehdr.e_shoff);
	Elf64_Phdr *ph = segment_of(pair, i, last->sh_addr);

	last->sh_size -= 16;
	for (uint32_t k = 0; k < pair->elf[i]->ehdr.e_shnum; k++)
		if ((headers[k].sh_flags & SHF_ALLOC) &&
		    headers[k].sh_addr - ph->p_vaddr < ph->p_memsz)
			headers[k].sh_offset += 16;
	ph->p_offset += 16;
	ph->p_filesz = ph->p_memsz -= 16;
}

/* The kernel maps no file so, but root looks at the files of all processes. */
TEST(a_page_that_is_no_page_of_the_file_is_refused)
{
	struct md_changes found;
	struct mp_id id;
	struct pair pair;
	Elf64_Shdr *sec;

	if (!make_pair(&pair))
		MORPH_SKIP("no gcc");
	ck_assert_int_eq(find(&pair, &found), 0);
	md_changes_fini(&found);
	sec = header_of(&pair, 1, ".eh_frame");
	pair.bytes[1].data[sec->sh_offset + 32] ^= 1;
	ck_assert_int_eq(find(&pair, &found), 0);
	ck_assert_uint_eq(found.nr_words, 1);
	md_changes_fini(&found);
	id = pair.elf[0]->id;
	for (int i = 0; i < 2; i++)
		move_segment(&pair, i);
	ck_assert_int_eq(find(&pair, &found), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "is no version"));
	ck_assert(mp_id_equal(&id, &pair.elf[0]->id));
	md_changes_fini(&found);
	free_pair(&pair);
}
