// SPDX-License-Identifier: Apache-2.0
/*
 * objects - the files whose code the emulated process runs, and where they are mapped.
 *
 * Decides which file and link-time address a piece of mapped code has, and which ranges are
 * patches or moved code. Does not count. Included by branches.c and paths.c.
 */
#ifndef MORPH_TESTS_OBJECTS_H
#define MORPH_TESTS_OBJECTS_H

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct range {
	uint64_t start, size; /* link-time addresses */
};

struct ranges {
	struct range *v;
	size_t nr;
};

struct object {
	char *path;
	dev_t dev;
	ino_t ino;
	bool is_main;
	Elf64_Phdr *phdrs; /* NULL: not ELF; then addresses are file offsets */
	size_t nr_phdrs;
	struct ranges patches, moved;
	size_t index;
};

/* One line of a patches= or moved= file. */
struct wish {
	char *path; /* NULL: the main program */
	struct range range;
	bool is_patch;
};

struct mapping {
	uint64_t start, end, offset; /* host addresses */
	struct object *object;
};

static struct {
	struct object **objects;
	size_t nr_objects;
	struct mapping *mappings;
	size_t nr_mappings;
	struct wish *wishes;
	size_t nr_wishes;
} objs;

static void *grow(void *array, size_t nr, size_t size)
{
	/* grows when @nr is a power of two */
	if (nr & (nr - 1))
		return array;
	array = realloc(array, (nr ? 2 * nr : 1) * size);
	if (!array) {
		fputs("branches: out of memory\n", stderr);
		_exit(1);
	}
	return array;
}

static void ranges_add(struct ranges *ranges, uint64_t start, uint64_t size)
{
	ranges->v = grow(ranges->v, ranges->nr, sizeof(*ranges->v));
	ranges->v[ranges->nr++] = (struct range){start, size};
}

static int range_compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Return: the range that holds @vaddr, or NULL. Ranges are sorted and do not overlap. */
__attribute__((unused)) static const struct range *ranges_find(const struct ranges *ranges,
							       uint64_t vaddr)
{
	size_t low = 0, high = ranges->nr;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (vaddr < ranges->v[mid].start)
			high = mid;
		else if (vaddr - ranges->v[mid].start >= ranges->v[mid].size)
			low = mid + 1;
		else
			return &ranges->v[mid];
	}
	return NULL;
}

/*
 * Reads lines `ADDRESS LENGTH` (C notation). `file=PATH` applies the following lines to this
 * file instead of the main program; `#` begins a comment. Return: false after an error message.
 */
__attribute__((unused)) static bool wishes_read(const char *path, bool is_patch)
{
	char line[4352], *file = NULL, word[4200];
	FILE *in = fopen(path, "re");
	unsigned int nr = 0;

	if (!in) {
		fprintf(stderr, "branches: %s: %s\n", path, strerror(errno));
		return false;
	}
	while (fgets(line, sizeof(line), in)) {
		char *end;
		struct wish wish = {.path = file, .is_patch = is_patch};

		nr++;
		line[strcspn(line, "#\n")] = 0;
		if (sscanf(line, " file=%4199[^\n]", word) == 1) {
			file = realpath(word, NULL);
			if (!file)
				file = strdup(word);
			continue;
		}
		if (line[strspn(line, " \t")] == 0)
			continue;
		wish.range.start = strtoull(line, &end, 0);
		if (end != line)
			wish.range.size = strtoull(end, &end, 0);
		if (wish.range.size == 0 || end[strspn(end, " \t")]) {
			fprintf(stderr, "branches: %s: line %u: not `ADDRESS LENGTH`\n", path, nr);
			fclose(in);
			return false;
		}
		objs.wishes = grow(objs.wishes, objs.nr_wishes, sizeof(wish));
		objs.wishes[objs.nr_wishes++] = wish;
	}
	fclose(in);
	return true;
}

static bool read_at(int fd, void *to, size_t size, uint64_t off)
{
	return pread(fd, to, size, (off_t)off) == (ssize_t)size;
}

/* Finds sections .morph* with code, where an optimised file has its moved code. */
static void object_find_moved(struct object *obj, int fd, const Elf64_Ehdr *eh)
{
	size_t size = (size_t)eh->e_shnum * sizeof(Elf64_Shdr), i;
	Elf64_Shdr *shdrs;
	char name[16];

	if (!eh->e_shnum || eh->e_shentsize != sizeof(*shdrs) || eh->e_shstrndx >= eh->e_shnum)
		return;
	shdrs = malloc(size);
	if (shdrs && read_at(fd, shdrs, size, eh->e_shoff)) {
		uint64_t names = shdrs[eh->e_shstrndx].sh_offset;

		for (i = 0; i < eh->e_shnum; i++) {
			memset(name, 0, sizeof(name));
			if ((shdrs[i].sh_flags & SHF_EXECINSTR) && shdrs[i].sh_size &&
			    pread(fd, name, sizeof(name) - 1, (off_t)(names + shdrs[i].sh_name)) >
				    0 &&
			    !strncmp(name, ".morph", 6))
				ranges_add(&obj->moved, shdrs[i].sh_addr, shdrs[i].sh_size);
		}
	}
	free(shdrs);
}

static void object_read_elf(struct object *obj, int fd)
{
	Elf64_Ehdr eh;
	size_t size;

	if (!read_at(fd, &eh, sizeof(eh), 0) || memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || !eh.e_phnum ||
	    eh.e_phentsize != sizeof(Elf64_Phdr))
		return;
	size = (size_t)eh.e_phnum * sizeof(Elf64_Phdr);
	obj->phdrs = malloc(size);
	if (!obj->phdrs || !read_at(fd, obj->phdrs, size, eh.e_phoff)) {
		free(obj->phdrs);
		obj->phdrs = NULL;
		return;
	}
	obj->nr_phdrs = eh.e_phnum;
	object_find_moved(obj, fd, &eh);
}

static bool object_is(const struct object *obj, const char *path)
{
	struct stat st;

	return !strcmp(obj->path, path) ||
	       (!stat(path, &st) && st.st_dev == obj->dev && st.st_ino == obj->ino);
}

static struct object *object_new(const char *path, dev_t dev, ino_t ino, const char *main_path)
{
	struct object *obj = calloc(1, sizeof(*obj));
	size_t i;
	int fd;

	if (!obj || !(obj->path = strdup(path))) {
		fputs("branches: out of memory\n", stderr);
		_exit(1);
	}
	obj->dev = dev;
	obj->ino = ino;
	obj->is_main = ino && main_path && object_is(obj, main_path);
	fd = ino ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		object_read_elf(obj, fd);
		close(fd);
	}
	for (i = 0; i < objs.nr_wishes; i++) {
		const struct wish *wish = &objs.wishes[i];

		if (wish->path ? object_is(obj, wish->path) : obj->is_main)
			ranges_add(wish->is_patch ? &obj->patches : &obj->moved, wish->range.start,
				   wish->range.size);
	}
	if (obj->patches.nr)
		qsort(obj->patches.v, obj->patches.nr, sizeof(struct range), range_compare);
	if (obj->moved.nr)
		qsort(obj->moved.v, obj->moved.nr, sizeof(struct range), range_compare);
	obj->index = objs.nr_objects;
	objs.objects = grow(objs.objects, objs.nr_objects, sizeof(*objs.objects));
	objs.objects[objs.nr_objects++] = obj;
	return obj;
}

static struct object *object_get(const char *path, dev_t dev, ino_t ino, const char *main_path)
{
	size_t i;

	for (i = 0; i < objs.nr_objects; i++)
		if (objs.objects[i]->dev == dev && objs.objects[i]->ino == ino &&
		    !strcmp(objs.objects[i]->path, path))
			return objs.objects[i];
	return object_new(path, dev, ino, main_path);
}

/* Reads the process's mappings again: only code and pages of files matter. */
static void mappings_read(const char *main_path)
{
	FILE *in = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t size = 0;

	objs.nr_mappings = 0;
	if (!in)
		return;
	while (getline(&line, &size, in) > 0) {
		uint64_t start, end, offset;
		unsigned int major, minor;
		unsigned long ino;
		struct mapping *m;
		int path = -1;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %x:%x %lu %n", &start,
			   &end, &offset, &major, &minor, &ino, &path) < 6 ||
		    path < 0)
			continue;
		line[strcspn(line, "\n")] = 0;
		if (!ino)
			continue;
		objs.mappings = grow(objs.mappings, objs.nr_mappings, sizeof(*m));
		m = &objs.mappings[objs.nr_mappings++];
		*m = (struct mapping){
			start,
			end,
			offset,
			object_get(line + path, makedev(major, minor), ino, main_path),
		};
	}
	free(line);
	fclose(in);
}

static const struct mapping *mapping_find(uint64_t host)
{
	size_t low = 0, high = objs.nr_mappings;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (host < objs.mappings[mid].start)
			high = mid;
		else if (host >= objs.mappings[mid].end)
			low = mid + 1;
		else
			return &objs.mappings[mid];
	}
	return NULL;
}

/*
 * Return: link-time address of file offset @off. Executable segments come first, because two
 * segments may share a page.
 */
static uint64_t object_vaddr(const struct object *obj, uint64_t off)
{
	int pass;
	size_t i;

	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < obj->nr_phdrs; i++) {
			const Elf64_Phdr *ph = &obj->phdrs[i];

			if (ph->p_type == PT_LOAD && (pass || (ph->p_flags & PF_X)) &&
			    off >= ph->p_offset && off - ph->p_offset < ph->p_filesz)
				return off - ph->p_offset + ph->p_vaddr;
		}
	return off;
}

#endif
