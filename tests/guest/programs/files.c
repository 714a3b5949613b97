// SPDX-License-Identifier: Apache-2.0
/*
 * files - checks that the kernel memory for the mappings of many processes is freed when they
 * exit.
 *
 *  files    starts itself, so that the observed processes have called exec
 *  files run  one file under many long names, mapped by many processes
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/programs/reader.h"

#define NR_PROCESSES 16
#define NR_NAMES     100 /* fewer than the module keeps of one process */
#define NR_DIRS	     15
#define DIR_LEN	     240

/* Creates directories so deep that a path takes 3,600 bytes. */
static void go_deep(void)
{
	char name[DIR_LEN + 1];
	int i;

	memset(name, 'd', DIR_LEN);
	name[DIR_LEN] = 0;
	for (i = 0; i < NR_DIRS; i++)
		if (mkdir(name, 0700) || chdir(name))
			die("mkdir");
}

/* Maps the file under a new name. */
static void map_as(unsigned int nr)
{
	char last[16], name[16];
	int fd;

	snprintf(last, sizeof(last), "%u", nr - 1);
	snprintf(name, sizeof(name), "%u", nr);
	if (rename(last, name))
		die("rename");
	fd = open(name, O_RDONLY);
	if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		die("mmap");
	close(fd);
}

static long unreclaimable_kib(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	long kib = -1;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "SUnreclaim: %ld", &kib);
	if (!f || kib < 0)
		die("/proc/meminfo");
	fclose(f);
	return kib;
}

/* Starts the processes, which stay until the writing end of @end is closed. */
static void start_all(int end[2])
{
	unsigned int i, k;
	int done[2];
	char byte;
	pid_t pid;

	if (pipe(done))
		die("pipe");
	for (i = 0; i < NR_PROCESSES; i++) {
		pid = fork();
		if (pid < 0)
			die("fork");
		if (!pid) {
			close(end[1]);
			for (k = 1; k <= NR_NAMES; k++)
				map_as(i * NR_NAMES + k);
			_exit(write(done[1], "", 1) != 1 || read(end[0], &byte, 1) != 0);
		}
		if (read(done[0], &byte, 1) != 1)
			die("read");
	}
}

static int run(void)
{
	long before, peak, after;
	int end[2], status, fd, i;

	go_deep();
	fd = open("0", O_RDWR | O_CREAT | O_EXCL, 0700);
	if (fd < 0 || ftruncate(fd, 4096) || pipe(end))
		die("0");
	close(fd);
	before = unreclaimable_kib();
	start_all(end);
	peak = unreclaimable_kib();
	close(end[1]);
	for (i = 0; i < NR_PROCESSES; i++)
		if (wait(&status) < 0 || status)
			die("a child: status %#x", status);
	/* One more mapping makes the module free memory. */
	map_as(NR_PROCESSES * NR_NAMES + 1);
	/* The kernel may return freed memory with a delay. */
	for (i = 0; i < 100; i++) {
		after = unreclaimable_kib();
		if (after - before < (peak - before) / 2)
			break;
		sleep_ms(20);
	}
	printf("files: %ld KiB before, %ld with %d processes, %ld after\n", before, peak,
	       NR_PROCESSES, after);
	EXPECT(peak - before > NR_PROCESSES * NR_NAMES * 4L, "only %ld KiB were taken",
	       peak - before);
	EXPECT(after - before < (peak - before) / 2, "%ld of %ld KiB stay", after - before,
	       peak - before);
	return finish();
}

int main(int argc, char **argv)
{
	static struct reader r;
	int status;
	pid_t pid;

	if (argc > 1)
		return run();
	reader_open(&r);
	r.flags = MORPH_START_LAZY;
	reader_start(&r, 1, MORPH_MODE_HRTIMER, 0);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		execl("/proc/self/exe", argv[0], "run", NULL);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		die("the runner: status %#x", status);
	EXPECT(!reader_counts(&r).lost_events, "events were lost");
	reader_close(&r);
	return finish();
}
