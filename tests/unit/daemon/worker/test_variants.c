// SPDX-License-Identifier: Apache-2.0
/* test_variants - hashes of a job's versions survive; what is damaged is no version. Whose counts are read. */
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "daemon/everyday/count_dir.h"
#include "daemon/worker/variants.h"
#include "libprof/note/counts_file.h"

#define HASH  UINT64_C(0x1234)
#define COUNT 3

static struct md_work_dir job;

static void setup(void)
{
	scratch_make();
	ck_assert(!md_work_dir_open(dir, "/usr/bin/prog", &job, &err));
}

FIXTURE(setup, scratch_remove);

TEST(variants_are_found_by_their_hash)
{
	struct md_variants v;

	md_variants_load(&job, &v);
	ck_assert_int_eq(md_variants_find(&v, "aa"), MD_ORIGINAL);
	ck_assert_int_eq(md_variants_note(&job, MD_COUNTING, "aa", &err), 0);
	ck_assert_int_eq(md_variants_note(&job, MD_NEW, "bb", &err), 0);
	ck_assert_int_eq(md_variants_note(&job, MD_COUNTING, "cc", &err), 0);
	md_variants_load(&job, &v);
	ck_assert_int_eq(md_variants_find(&v, "aa"), MD_ORIGINAL);
	ck_assert_int_eq(md_variants_find(&v, "bb"), MD_NEW);
	ck_assert_int_eq(md_variants_find(&v, "cc"), MD_COUNTING);
	ck_assert_int_eq(md_variants_find(&v, ""), MD_ORIGINAL);
}

TEST(variants_of_a_damaged_file_are_none)
{
	static const char *const texts[] = {
		"", "{", "[1]", "{\"counting\": 7}",
		"{\"counting\": \"0123456789012345678901234567890123456789012345\"}"};
	struct md_variants v;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		write_text(md_work_path(&job, "variants").text, texts[i]);
		md_variants_load(&job, &v);
		ck_assert_str_eq(v.hash[MD_COUNTING], "");
		ck_assert_int_eq(md_variants_note(&job, MD_NEW, "bb", &err), 0);
	}
}

/* A file of counts with @sets sets of 1, 2, 3 times @factor. */
static void write_sets(const char *path, uint64_t hash, uint64_t factor, uint64_t sets)
{
	struct mp_counts_file_header header = {.magic = MP_COUNTS_FILE_MAGIC,
					       .version = sets > 1 ? MP_COUNTS_FILE_VERSION_SETS
								   : MP_COUNTS_FILE_VERSION,
					       .nr_sets = sets > 1 ? sets : 0,
					       .header_bytes = MP_COUNTS_FILE_HEADER_BYTES,
					       .counters_bytes = 4096,
					       .table_hash = hash};
	FILE *f = fopen(path, "w");

	ck_assert(f && fwrite(&header, sizeof(header), 1, f) == 1);
	for (uint64_t i = 0; i < sets * COUNT; i++) {
		uint64_t count = (i % COUNT + 1) * factor, at = i / COUNT * 4096 + i % COUNT * 8;

		ck_assert(!fseek(f, (long)(MP_COUNTS_FILE_HEADER_BYTES + at), SEEK_SET) &&
			  fwrite(&count, 8, 1, f) == 1);
	}
	ck_assert(!fclose(f) &&
		  !truncate(path, (off_t)(MP_COUNTS_FILE_HEADER_BYTES + 4096 * sets)));
}

static void write_counts(const char *path, uint64_t hash, uint64_t factor)
{
	write_sets(path, hash, factor, 1);
}

TEST(count_dir_reads_files_of_their_owners_alone)
{
	struct md_work_path path = md_variant_counts(&job, MD_COUNTING);
	char own[PATH_MAX + 32], other[PATH_MAX + 32];
	uint64_t counters[COUNT];
	struct stat st;

	ck_assert_int_eq(md_count_dir_read(path.text, HASH, counters, COUNT, &err), 0);
	ck_assert(!counters[0]);
	ck_assert_int_eq(md_count_dir_make(path.text, false, &err), 0);
	ck_assert(!stat(path.text, &st) && (st.st_mode & 07777) == 01777);
	snprintf(own, sizeof(own), "%s/%u", path.text, geteuid());
	write_counts(own, HASH, 10);
	/* A name that is not its owner's, a link, a second name, and a directory. */
	snprintf(other, sizeof(other), "%s/%u", path.text, geteuid() + 1);
	write_counts(other, HASH, 1000);
	snprintf(other, sizeof(other), "%s/%u", path.text, geteuid() + 2);
	ck_assert(!symlink(own, other));
	snprintf(other, sizeof(other), "%s/0%u", path.text, geteuid());
	write_counts(other, HASH, 1000);
	snprintf(other, sizeof(other), "%s/%u", path.text, geteuid() + 3);
	ck_assert(!mkdir(other, 0755));
	ck_assert_int_eq(md_count_dir_read(path.text, HASH, counters, COUNT, &err), 0);
	ck_assert(counters[0] == 10 && counters[1] == 20 && counters[2] == 30);
	/* A program with threads has a set of counters for each; a file of another size is none. */
	write_sets(own, HASH, 10, MP_COUNTS_FILE_MAX_SETS);
	ck_assert_int_eq(md_count_dir_read(path.text, HASH, counters, COUNT, &err), 0);
	ck_assert(counters[2] == 30 * MP_COUNTS_FILE_MAX_SETS);
	ck_assert(
		!truncate(own, MP_COUNTS_FILE_HEADER_BYTES + 4096 * (MP_COUNTS_FILE_MAX_SETS + 1)));
	ck_assert_int_eq(md_count_dir_read(path.text, HASH, counters, COUNT, &err), 0);
	ck_assert(!counters[0]);
	write_counts(own, HASH, 10);
	/* Of another program, cut short, with a second name: they count for nothing. */
	ck_assert_int_eq(md_count_dir_read(path.text, HASH + 1, counters, COUNT, &err), 0);
	ck_assert(!counters[0]);
	snprintf(other, sizeof(other), "%s/second", dir);
	ck_assert(!link(own, other));
	ck_assert_int_eq(md_count_dir_read(path.text, HASH, counters, COUNT, &err), 0);
	ck_assert(!counters[0]);
	ck_assert(!unlink(other) && !truncate(own, 100));
	ck_assert_int_eq(md_count_dir_read(path.text, HASH, counters, COUNT, &err), 0);
	ck_assert(!counters[0]);
	md_count_dir_remove(path.text);
	ck_assert_int_eq(access(path.text, F_OK), -1);
}

/* Threads count in different pages of different sets; all between is a hole. */
TEST(count_dir_adds_counters_around_holes)
{
	enum {
		NR = 4 * 512,
		SETS = 3
	};
	static const uint32_t where[SETS][2] = {{0, NR - 1}, {512, 513}, {NR - 1, 1023}};
	struct mp_counts_file_header header = {.magic = MP_COUNTS_FILE_MAGIC,
					       .version = MP_COUNTS_FILE_VERSION_SETS,
					       .nr_sets = SETS,
					       .header_bytes = MP_COUNTS_FILE_HEADER_BYTES,
					       .counters_bytes = NR * 8,
					       .table_hash = HASH};
	struct md_work_path path = md_variant_counts(&job, MD_COUNTING);
	uint64_t counters[NR], want[NR] = {0}, one = 1;
	char own[PATH_MAX + 32];
	int fd;

	ck_assert_int_eq(md_count_dir_make(path.text, false, &err), 0);
	snprintf(own, sizeof(own), "%s/%u", path.text, geteuid());
	fd = open(own, O_WRONLY | O_CREAT, 0600);
	ck_assert(pwrite(fd, &header, sizeof(header), 0) == sizeof(header) &&
		  !ftruncate(fd, MP_COUNTS_FILE_HEADER_BYTES + SETS * NR * 8));
	for (uint64_t set = 0; set < SETS; set++)
		for (int i = 0; i < 2; i++) {
			uint64_t at = MP_COUNTS_FILE_HEADER_BYTES + 8 * (set * NR + where[set][i]);

			ck_assert(pwrite(fd, &one, sizeof(one), (off_t)at) == sizeof(one));
			want[where[set][i]]++;
		}
	close(fd);
	ck_assert_int_eq(md_count_dir_read(path.text, HASH, counters, NR, &err), 0);
	ck_assert_mem_eq(counters, want, sizeof(want));
	md_count_dir_remove(path.text);
}

/* Directories in directories, too deep to be removed, are in nobody's way. */
TEST(count_dir_tells_what_users_do_from_what_the_machine_lacks)
{
	struct md_work_path path = md_variant_counts(&job, MD_COUNTING);
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	uint64_t counters[COUNT];
	struct rlimit limit, few;
	char own[PATH_MAX + 32];
	int s = socket(AF_UNIX, SOCK_STREAM, 0), d;

	ck_assert_int_eq(md_count_dir_make(path.text, false, &err), 0);
	snprintf(own, sizeof(own), "%s/%u", path.text, geteuid());
	write_counts(own, HASH, 10);
	/* A socket cannot be opened. */
	ck_assert_int_lt(snprintf(name.sun_path, sizeof(name.sun_path), "%s/%u", path.text,
				  geteuid() + 1),
			 sizeof(name.sun_path));
	ck_assert(!bind(s, (struct sockaddr *)&name, sizeof(name)));
	ck_assert_int_eq(md_count_dir_read(path.text, HASH, counters, COUNT, &err), 0);
	ck_assert(counters[0] == 10);
	/* The directory can be opened, and no file behind it. */
	d = dup(s);
	ck_assert(d >= 0 && !close(d) && !getrlimit(RLIMIT_NOFILE, &limit));
	few = (struct rlimit){(rlim_t)d + 1, limit.rlim_max};
	ck_assert(!setrlimit(RLIMIT_NOFILE, &few));
	ck_assert_int_eq(md_count_dir_read(path.text, HASH, counters, COUNT, &err), -EMFILE);
	ck_assert(!setrlimit(RLIMIT_NOFILE, &limit));
	close(s);
	md_count_dir_remove(path.text);
}

TEST(count_dir_is_made_anew_whatever_its_users_left)
{
	struct md_work_path path = md_variant_counts(&job, MD_COUNTING);
	char deep[PATH_MAX + 64];
	struct stat st;

	ck_assert_int_eq(md_count_dir_make(path.text, false, &err), 0);
	strcpy(deep, path.text);
	for (int i = 0; i < 12; i++) {
		strcat(deep, "/0");
		ck_assert(!mkdir(deep, 0755));
	}
	ck_assert_msg(!md_count_dir_make(path.text, false, &err), "%s", err.msg);
	ck_assert(!stat(path.text, &st) && st.st_nlink == 2 && (st.st_mode & 07777) == 01777);
	md_count_dir_remove(path.text);
	ck_assert_int_eq(access(path.text, F_OK), -1);
	md_work_dir_remove(&job);
}
