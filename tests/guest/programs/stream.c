// SPDX-License-Identifier: Apache-2.0
/*
 * stream - samples while a command runs, and prints how many bytes of which records the stream
 * has.
 *
 *  stream [-r RATE] COMMAND...
 *
 * Output: a line TYPE RECORDS BYTES for each type of record, then the samples and all bytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/programs/reader.h"

static const char *const names[] = {
	[MORPH_REC_PAD] = "pad",     [MORPH_REC_SAMPLES] = "samples", [MORPH_REC_EXEC] = "exec",
	[MORPH_REC_MMAP] = "mmap",   [MORPH_REC_FORK] = "fork",	      [MORPH_REC_EXIT] = "exit",
	[MORPH_REC_LOST] = "lost",   [MORPH_REC_STACK] = "stack",     [MORPH_REC_FILE] = "file",
	[MORPH_REC_SPACE] = "space",
};
#define NR_TYPES (sizeof(names) / sizeof(names[0]))

static void print_bytes(const struct reader *r)
{
	uint64_t nr[NR_TYPES] = {0}, bytes[NR_TYPES] = {0}, samples = 0, all = 0;
	const struct morph_record *record = NULL;
	size_t i;

	while ((record = reader_next(r, record))) {
		if (record->type >= NR_TYPES || !names[record->type])
			die("a record of type %u", record->type);
		nr[record->type]++;
		bytes[record->type] += record->size;
		all += record->size;
		if (record->type == MORPH_REC_SAMPLES)
			samples += reader_nr_ips(record);
	}
	for (i = 0; i < NR_TYPES; i++)
		if (nr[i])
			printf("%s %llu %llu\n", names[i], (unsigned long long)nr[i],
			       (unsigned long long)bytes[i]);
	printf("all %llu %llu\n", (unsigned long long)samples, (unsigned long long)all);
	EXPECT(!r->lost, "%llu lost", (unsigned long long)r->lost);
}

int main(int argc, char **argv)
{
	static struct reader r;
	uint32_t rate = 1024;
	int opt, status = 0;
	pid_t pid;

	while ((opt = getopt(argc, argv, "+r:")) != -1)
		if (opt == 'r')
			rate = (uint32_t)atoi(optarg);
		else
			return 2;
	if (optind == argc)
		return 2;
	reader_open(&r);
	reader_start(&r, rate, MORPH_MODE_HRTIMER, 0);
	reader_map(&r);
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		execvp(argv[optind], argv + optind);
		_exit(127);
	}
	while (waitpid(pid, &status, WNOHANG) != pid) {
		sleep_ms(50);
		reader_take(&r);
	}
	EXPECT(!status, "%s: status %#x", argv[optind], (unsigned int)status);
	reader_stop(&r);
	reader_take(&r);
	print_bytes(&r);
	reader_close(&r);
	return finish();
}
