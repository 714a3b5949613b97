// SPDX-License-Identifier: Apache-2.0
/*
 * walk - checks the module's walks by rows: of a stripped program that notes its return
 * addresses (walked), and what the module says to wrong requests and hostile rows.
 *
 *	walk stacks WALKED | walk requests | walk full
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kmod/uapi/morph_rows.h"
#include "libprof/elf/eh.h"
#include "libprof/elf/elf.h"
#include "libprof/unwind/rows_compile.h"
#include "tests/guest/programs/reader.h"
#include "tests/guest/programs/walk.h"

#define SAMPLES 150 /* of each phase */

static struct walked *shared;
static struct reader reader;
static struct morph_segment segments[MORPH_ROWS_SEGMENTS_MAX];

/* ---- rows ---------------------------------------------------------------- */

static int give(struct morph_rows *rows, const void *bytes, size_t size)
{
	rows->segments = (uint64_t)segments;
	rows->bytes = (uint64_t)bytes;
	rows->size = size;
	return ioctl(reader.fd, MORPH_IOC_ROWS, rows);
}

/* Compiles the rows of @elf, and closes it. Return: false if it has none. */
static bool compile(struct mp_elf *elf, void **bytes, size_t *size)
{
	struct mp_cursor frames;
	struct mp_code_bytes code = mp_code_bytes_of(elf);
	bool sized, ok;

	ok = mp_eh_frame_find(elf, &frames, &sized) &&
	     !mp_rows_compile(&frames, sized, elf->start, &code, bytes, size, NULL);
	mp_elf_close(elf);
	return ok;
}

static void give_file(struct morph_rows *rows, const char *path)
{
	struct mp_elf *elf;
	void *bytes = NULL;
	size_t size;

	if (mp_elf_open(path, MP_ELF_FDES, &elf, NULL))
		die("%s: cannot be read", path);
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X &&
		    rows->nr_segments < MORPH_ROWS_SEGMENTS_MAX)
			segments[rows->nr_segments++] =
				(struct morph_segment){p->p_offset, p->p_vaddr, p->p_filesz};
	}
	if (!compile(elf, &bytes, &size))
		die("%s: no rows", path);
	if (give(rows, bytes, size))
		die("%s: ROWS", path);
	free(bytes);
}

/* Gives the rows of every file that runs in @pid, as /proc names it. */
static void give_all(pid_t pid)
{
	char path[64], line[512], name[256], rights[8];
	unsigned int major, minor;
	uint64_t ino;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		die("%s", path);
	while (fgets(line, sizeof(line), f)) {
		struct morph_rows rows = {0};

		if (sscanf(line, "%*s %7s %*s %x:%x %" SCNu64 " %255s", rights, &major, &minor,
			   &ino, name) != 5 ||
		    rights[2] != 'x' || name[0] != '/')
			continue;
		rows.dev_major = major;
		rows.dev_minor = minor;
		rows.ino = ino;
		give_file(&rows, name);
	}
	fclose(f);
}

/* ---- stacks -------------------------------------------------------------- */

struct tally {
	uint64_t nr, complete, wrong, aged, old, frames, some_new;
};

/* Compares a walk, innermost first, with what the program noted, outermost first. */
static bool is_right(const struct morph_stack *stack, uint32_t nr, uint32_t stop)
{
	uint32_t noted = shared->nr, i = 0, k;

	for (k = noted; k-- > (shared->phase == PHASE_ALTSTACK ? 2 : 0) && i < nr; i++) {
		if (stack->ips[i] != shared->ips[k])
			return false;
		/* Code that was made at run time notes nothing. */
		i += shared->phase == PHASE_JIT && k + 1 == noted;
	}
	if (shared->phase == PHASE_DEEP)
		return nr == 127 && stop == MORPH_STACK_DEPTH;
	if (shared->phase == PHASE_ALTSTACK) {
		while (i < nr && stack->ips[i] != shared->ips[1])
			i++;
		if (i + 1 >= nr || stack->ips[i + 1] != shared->ips[0])
			return false;
		i += 2;
	}
	/* main() was called by libc, and this by _start, which was called by nobody. */
	return stop == MORPH_STACK_BOTTOM && nr == i + 2;
}

static void take(const struct morph_stack *stack, uint64_t ip, struct tally *t)
{
	uint32_t nr = (stack->task.record.size - sizeof(*stack)) / 8, flags = stack->task.flags;
	uint32_t old = MORPH_STACK_OLD(flags), stop = flags & MORPH_STACK_STOP;

	if (shared->phase != PHASE_CALLS && (ip < shared->spin_from || ip >= shared->spin_to))
		return;
	t->nr++;
	t->frames += nr;
	t->complete += stop == MORPH_STACK_BOTTOM;
	EXPECT(old <= nr, "%u of %u are old", old, nr);
	if (shared->phase != PHASE_CALLS && !is_right(stack, nr, stop)) {
		if (!t->wrong++)
			for (uint32_t i = 0; i < nr; i++)
				printf("phase %u, stop %u: %u: %#llx, noted %#llx\n", shared->phase,
				       stop, i, stack->ips[i],
				       i < shared->nr
					       ? (unsigned long long)shared->ips[shared->nr - 1 - i]
					       : 0ULL);
	}
	if (!(flags & MORPH_STACK_AGED))
		return;
	t->aged++;
	t->old += old;
	t->some_new += old < nr;
}

/* Takes samples of the program in @phase. */
static struct tally run_phase(uint32_t phase, pid_t pid)
{
	const struct morph_record *record;
	struct tally t = {0};
	uint64_t ip = 0;

	shared->want = phase;
	while (shared->phase != phase)
		sleep_ms(1);
	reader_take(&reader);
	reader.bytes = 0; /* samples of the way here */
	while (t.nr < SAMPLES) {
		sleep_ms(20);
		reader_take(&reader);
		for (record = reader_next(&reader, NULL); record;
		     record = reader_next(&reader, record)) {
			const struct morph_samples *samples = (const void *)record;

			if (record->type == MORPH_REC_SAMPLES)
				ip = samples->ips[reader_nr_ips(record) - 1];
			else if (record->type == MORPH_REC_STACK &&
				 ((const struct morph_task *)record)->tgid == (uint32_t)pid)
				take((const void *)record, ip, &t);
		}
		reader.bytes = 0;
	}
	return t;
}

static void check_phase(uint32_t phase, const struct tally *t)
{
	printf("phase %u: %" PRIu64 " stacks, %" PRIu64 " complete, %" PRIu64 " wrong, %" PRIu64
	       " aged, %" PRIu64 " of %" PRIu64 " frames old, %" PRIu64 " with new ones\n",
	       phase, t->nr, t->complete, t->wrong, t->aged, t->old, t->frames, t->some_new);
	EXPECT(!t->wrong, "%" PRIu64 " of %" PRIu64 " are wrong", t->wrong, t->nr);
	EXPECT(phase == PHASE_DEEP || t->complete == t->nr, "some are not complete");
	EXPECT(t->aged + 2 >= t->nr, "walks are not remembered");
	if (phase != PHASE_CALLS)
		EXPECT(t->some_new <= 2, "it spins, but calls are said to be new");
	else
		EXPECT(t->some_new * 5 > t->nr, "calls are made, but none is said to be new");
}

static pid_t start_walked(const char *program)
{
	char name[] = "shared";
	pid_t pid;
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || ftruncate(fd, sizeof(*shared)))
		die("%s", name);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	close(fd);
	shared->phase = PHASE_NONE;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(program, program, name, NULL);
		_exit(127);
	}
	while (shared->phase != PHASE_CHAIN)
		sleep_ms(1);
	return pid;
}

static void stacks(const char *program)
{
	struct morph_walks walks = {0};
	uint64_t sum = 0;
	uint32_t depth = 127, i;
	struct tally t;
	int status;
	pid_t pid;

	reader_open(&reader);
	pid = start_walked(program);
	EXPECT_ERRNO(ioctl(reader.fd, MORPH_IOC_STACKS, &depth), 0);
	reader_start(&reader, 2000, -1, 0);
	reader_map(&reader);
	/* Without rows, no frame is guessed. */
	t = run_phase(PHASE_CHAIN, pid);
	EXPECT(!t.frames, "%" PRIu64 " frames without rows", t.frames);
	give_all(pid);
	for (i = 0; i < NR_PHASES; i++) {
		t = run_phase(i, pid);
		check_phase(i, &t);
	}
	/* While walks are made, the counts are not of one moment. */
	reader_stop(&reader);
	if (ioctl(reader.fd, MORPH_IOC_WALKS, &walks))
		die("WALKS");
	for (i = 0; i < 16; i++)
		sum += walks.stops[i];
	printf("%llu walks, %llu frames, %llu read again, %llu busy, %llu files of %llu bytes\n",
	       walks.walks, walks.frames, walks.read_again, walks.busy, walks.rows_files,
	       walks.rows_bytes);
	EXPECT(sum == walks.walks, "%" PRIu64 " reasons", sum);
	EXPECT(walks.rows_files >= 3, "files");
	EXPECT(walks.read_again * 2 > walks.frames, "most frames are those of the last walk");
	shared->want = NR_PHASES;
	waitpid(pid, &status, 0);
	EXPECT(!status, "the program's status is %#x", status);
	reader_close(&reader);
}

/* ---- requests ------------------------------------------------------------ */

static void *sound_rows(size_t *size)
{
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	struct mp_elf *elf;
	void *bytes;

	if (mp_elf_open_memory("vdso", (const void *)vdso, 4096, MP_ELF_FDES, &elf, NULL) &&
	    mp_elf_open("/proc/self/exe", MP_ELF_FDES, &elf, NULL))
		die("no rows");
	if (!compile(elf, &bytes, size))
		die("no rows");
	return bytes;
}

/* Any change of any byte: the rows are taken or refused. */
static void hostile_rows(const uint8_t *bytes, size_t size)
{
	struct morph_rows rows = {.ino = 77};
	uint8_t *copy = malloc(size);
	unsigned int taken = 0, refused = 0;
	size_t at;

	srand(7);
	for (int i = 0; i < 3000; i++) {
		memcpy(copy, bytes, size);
		for (int k = rand() % 3; k >= 0; k--) {
			at = (size_t)rand() % (rand() % 4 ? size : 96);
			copy[at] = (uint8_t)(rand() % 2 ? rand() : copy[at] ^ 1 << rand() % 8);
		}
		if (!give(&rows, copy, size))
			taken++;
		else if (errno == EBADMSG)
			refused++;
		else
			EXPECT(0, "error %s", strerror(errno));
	}
	printf("hostile rows: %u taken, %u refused\n", taken, refused);
	EXPECT(refused > 1000, "too few were refused");
	free(copy);
}

static void requests(void)
{
	uint32_t depth = 128;
	struct morph_rows rows = {.ino = 5};
	struct morph_walks walks = {0};
	uint64_t with_rows;
	uint8_t *bytes;
	size_t size;
	int status;
	pid_t pid;

	reader_open(&reader);
	EXPECT(reader.hello.abi_minor >= 8, "abi_minor %u", reader.hello.abi_minor);
	bytes = sound_rows(&size);
	EXPECT_ERRNO(ioctl(reader.fd, MORPH_IOC_STACKS, &depth), EINVAL);
	EXPECT_ERRNO(ioctl(reader.fd, MORPH_IOC_STACKS, NULL), EFAULT);
	EXPECT_ERRNO(ioctl(reader.fd, MORPH_IOC_ROWS, NULL), EFAULT);
	EXPECT_ERRNO(ioctl(reader.fd, MORPH_IOC_WALKS, NULL), EFAULT);
	EXPECT_ERRNO(give(&rows, bytes, size), 0);
	EXPECT_ERRNO(ioctl(reader.fd, MORPH_IOC_WALKS, &walks), 0);
	with_rows = walks.rows_bytes;
	EXPECT_ERRNO(give(&rows, bytes, size), 0);
	EXPECT_ERRNO(ioctl(reader.fd, MORPH_IOC_WALKS, &walks), 0);
	EXPECT(walks.rows_files == 1, "%llu files", walks.rows_files);
	EXPECT(walks.rows_bytes == with_rows, "%llu bytes, before %" PRIu64, walks.rows_bytes,
	       with_rows);
	/* The module's own record of a file may be larger than the rows of a small vDSO. */
	EXPECT_ERRNO(give(&rows, NULL, 0), 0);
	EXPECT_ERRNO(ioctl(reader.fd, MORPH_IOC_WALKS, &walks), 0);
	EXPECT(walks.rows_files == 1, "%llu files", walks.rows_files);
	EXPECT(walks.rows_bytes && walks.rows_bytes + size <= with_rows,
	       "the earlier %zu bytes are still there: %llu, before %" PRIu64, size,
	       walks.rows_bytes, with_rows);
	EXPECT_ERRNO(give(&rows, NULL, size), EFAULT);
	EXPECT_ERRNO(give(&rows, bytes, size - 1), EBADMSG);
	EXPECT_ERRNO(give(&rows, bytes, 8), EBADMSG);
	EXPECT_ERRNO(give(&rows, bytes, MORPH_ROWS_SIZE_MAX + 1ULL), EINVAL);
	rows.flags = 4;
	EXPECT_ERRNO(give(&rows, bytes, size), EINVAL);
	rows.flags = MORPH_ROWS_VDSO;
	EXPECT_ERRNO(give(&rows, bytes, size), EINVAL);
	rows.flags = 0;
	rows.nr_segments = MORPH_ROWS_SEGMENTS_MAX + 1;
	EXPECT_ERRNO(give(&rows, bytes, size), EINVAL);
	rows.nr_segments = 1;
	segments[0] = (struct morph_segment){UINT64_MAX, 0, 2};
	EXPECT_ERRNO(give(&rows, bytes, size), EINVAL);
	rows.nr_segments = 0;
	rows.build_id_len = MORPH_BUILD_ID_MAX + 1;
	EXPECT_ERRNO(give(&rows, bytes, size), EINVAL);
	hostile_rows(bytes, size);
	/* Having the device open is not enough. */
	pid = fork();
	if (!pid) {
		rows.build_id_len = 0;
		depth = 1;
		if (setuid(65534))
			_exit(2);
		if (give(&rows, bytes, size) != -1 || errno != EPERM)
			_exit(1);
		_exit(ioctl(reader.fd, MORPH_IOC_STACKS, &depth) != -1 || errno != EPERM);
	}
	waitpid(pid, &status, 0);
	EXPECT(!status, "without rights: %#x", status);
	reader_close(&reader);
	/* The next reader finds nothing. */
	reader_open(&reader);
	EXPECT_ERRNO(ioctl(reader.fd, MORPH_IOC_WALKS, &walks), 0);
	EXPECT(!walks.rows_files && !walks.rows_bytes, "rows of the last reader");
	reader_close(&reader);
	free(bytes);
}

/* With rows_mib=1, giving rows must end with ENOSPC, and free nothing that is there. */
static void full(void)
{
	struct morph_rows rows = {.ino = 1};
	struct morph_walks walks = {0};
	uint8_t *bytes;
	size_t size;
	int ret;

	reader_open(&reader);
	bytes = sound_rows(&size);
	do {
		rows.ino++;
		ret = give(&rows, bytes, size);
	} while (!ret && rows.ino < 1000000);
	EXPECT(ret && errno == ENOSPC, "%s", strerror(errno));
	EXPECT_ERRNO(ioctl(reader.fd, MORPH_IOC_WALKS, &walks), 0);
	EXPECT(walks.rows_files == rows.ino - 2, "%llu files", walks.rows_files);
	EXPECT(walks.rows_bytes <= 1 << 20, "%llu bytes", walks.rows_bytes);
	/* Rows that replace earlier ones need no more room. */
	rows.ino = 2;
	EXPECT_ERRNO(give(&rows, bytes, size), 0);
	reader_close(&reader);
	free(bytes);
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "stacks"))
		stacks(argv[2]);
	else if (argc > 1 && !strcmp(argv[1], "requests"))
		requests();
	else if (argc > 1 && !strcmp(argv[1], "full"))
		full();
	else
		return 2;
	return finish();
}
