// SPDX-License-Identifier: Apache-2.0
/*
 * answer_confirm - checks whether a file is an output of Morph, made from one of the candidate
 * originals.
 *
 * The files come as open descriptors and may be hostile. Before it reads them, this
 * process gives up its rights and restricts itself to few system calls. It verifies
 * copies in memory, since a file's owner may change the file meanwhile.
 */
#include "editor/cli/answer_confirm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "editor/verify/verify.h"
#include "libprof/base/confine.h"
#include "libprof/note/confirm.h"
#include "libprof/note/map.h"
#include "libprof/note/path_table.h"

#define SIZE_MAX_BYTES (UINT64_C(1) << 31)

struct file {
	uint64_t size; /* 0: there is no usable file */
	void *bytes;
};

/* The file's size, asked for while fstat() is still allowed. 0: not usable. */
static uint64_t size_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size >= SIZE_MAX_BYTES)
		return 0;
	return (uint64_t)st.st_size;
}

static bool copy(int fd, struct file *file)
{
	uint64_t done = 0;

	if (!file->size)
		return false;
	file->bytes = malloc(file->size);
	while (file->bytes && done < file->size) {
		ssize_t n = pread(fd, (char *)file->bytes + done, file->size - done, (off_t)done);

		if (n <= 0)
			return false;
		done += (uint64_t)n;
	}
	return file->bytes != NULL;
}

static uint64_t paths_hash(const struct mp_elf *elf)
{
	const struct mp_section *sec = mp_elf_section(elf, MP_PATH_TABLE_SECTION);

	return sec && sec->type == SHT_PROGBITS && sec->size
		       ? mp_path_table_hash(elf->data + sec->off, sec->size)
		       : 0;
}

/*
 * Find the candidate whose id is @id, and copy it to memory. Its id is read first: most
 * candidates are other files.
 */
static struct mp_elf *find_original(const uint64_t *sizes, int nr, const struct mp_id *id)
{
	for (int i = 0; i < nr; i++) {
		struct file file = {.size = sizes[i]};
		struct mp_elf *elf = NULL;
		bool same;

		if (!file.size ||
		    mp_elf_open_sized("", MP_CONFIRM_CANDIDATES + i, file.size, &elf, NULL))
			continue;
		same = mp_id_equal(&elf->id, id);
		mp_elf_close(elf);
		if (!same || !copy(MP_CONFIRM_CANDIDATES + i, &file) ||
		    mp_elf_open_memory("", file.bytes, file.size, MP_ELF_ALL, &elf, NULL))
			continue;
		if (mp_id_equal(&elf->id, id))
			return elf;
	}
	return NULL;
}

static int confirm(const uint64_t *sizes, int nr, uint64_t output_size)
{
	struct mp_confirm_answer answer = {.paths_hash = 0};
	struct file file = {.size = output_size};
	struct mp_elf *output = NULL, *original;
	struct me_verify_report *report = calloc(1, sizeof(*report));
	struct mp_map *map = NULL;

	if (!report || !copy(MP_CONFIRM_OUTPUT, &file) ||
	    mp_elf_open_memory("", file.bytes, file.size, MP_ELF_ALL, &output, NULL) ||
	    mp_map_read(output, &map, NULL))
		return 1;
	original = find_original(sizes, nr, &map->original);
	if (!original || me_verify_parallel(original, output, NULL, 1, report, NULL))
		return 1;
	answer.output = output->id;
	answer.original = original->id;
	answer.paths_hash = paths_hash(output);
	return write(MP_CONFIRM_ANSWER, &answer, sizeof(answer)) == sizeof(answer) ? 0 : 1;
}

void me_confirm_main(char **argv)
{
	uint64_t sizes[MP_CONFIRM_MAX], output_size;
	int nr = 0;

	if (!argv[0] || strcmp(argv[0], MP_CONFIRM_NAME))
		return;
	output_size = size_of(MP_CONFIRM_OUTPUT);
	while (nr < MP_CONFIRM_MAX && fcntl(MP_CONFIRM_CANDIDATES + nr, F_GETFD) >= 0) {
		sizes[nr] = size_of(MP_CONFIRM_CANDIDATES + nr);
		nr++;
	}
	/* Lowest priority: nobody waits for this process. */
	if (setpriority(PRIO_PROCESS, 0, 19))
		errno = 0; /* a service may not be allowed to change it */
	if (mp_confine_privileges() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || mp_confine_calls())
		_exit(1);
	_exit(confirm(sizes, nr, output_size));
}
