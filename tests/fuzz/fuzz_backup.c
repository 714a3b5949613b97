// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_backup - any bytes as the record of a backed-up original: either refused, or all
 * functions work on it and it can be written and read again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "editor/replace/backup_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAME "record.json"

static char dir[64];

static void clean_up(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/" NAME, dir);
	unlink(path);
	rmdir(dir);
}

/* Use a file system without a disk, because saving calls fsync. */
static int open_dir(void)
{
	const char *tmp = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";

	snprintf(dir, sizeof(dir), "%s/morph-fuzz-XXXXXX", tmp);
	if (!mkdtemp(dir))
		abort();
	atexit(clean_up);
	return open(dir, O_RDONLY | O_DIRECTORY);
}

static void use(int fd, json_t *record)
{
	static const struct mp_id id = {.build_id = "idid", .build_id_len = 4, .text_hash = 9};
	static char debug[] = "/lib/\xff/id.debug";
	struct me_backup_output output = {
		.id = id,
		.digest.hex = "00112233445566778899aabbccddeeff",
		.debug = {.path = debug, .digest.hex = "ffeeddccbbaa99887766554433221100"}};
	struct me_backup_debug found;
	struct me_attributes attributes = {.mode = 0755, .mtime = {1, 2}};
	struct timespec mtime;
	struct me_digest digest;
	struct mp_err err;
	const char *user_id;
	json_t *again;
	size_t at = 0;
	char *user;

	me_record_is_of(record, &id);
	if (me_record_digest(record, &digest) && strlen(digest.hex) != 32)
		abort();
	me_record_score(record, "/bin/x", &output);
	if (me_record_mtime(record, "/bin/x", &mtime) && (mtime.tv_nsec < 0))
		abort();
	while (me_record_next_debug(record, "/bin/x", &id, &at, &found)) {
		if (found.path[0] != '/')
			abort();
		free(found.path);
	}
	for (at = 0; me_record_next_user(record, "/bin/y", debug, &at, &user, &user_id);)
		free(user);
	if (me_record_put_place(record, "/bin/\xff", &attributes) ||
	    me_record_add_output(record, "/bin/x", &output, 5))
		abort();
	/* The added output is found, also after saving and loading. */
	if (me_record_score(record, "/bin/x", &output) != 7 ||
	    me_record_save(fd, NAME, record, &err) || me_record_load(fd, NAME, &again, &err))
		abort();
	if (me_record_score(again, "/bin/x", &output) != 7)
		abort();
	at = 0;
	if (!me_record_next_debug(again, "/bin/x", NULL, &at, &found))
		abort();
	free(found.path);
	me_record_drop_debug(again, "/bin/x", debug);
	json_decref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mp_err err = {{0}};
	static int fd = -1;
	json_t *record;
	int file;

	if (fd < 0)
		fd = open_dir();
	file = openat(fd, NAME, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (file < 0 || write(file, data, size) != (ssize_t)size)
		abort();
	close(file);
	if (!me_record_load(fd, NAME, &record, &err)) {
		use(fd, record);
		json_decref(record);
	} else if (!err.msg[0] || record) {
		abort();
	}
	return 0;
}
