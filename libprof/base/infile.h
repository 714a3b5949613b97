// SPDX-License-Identifier: Apache-2.0
/*
 * infile - opens a file for reading that a user named, and reads its lines. The name may be
 * anything: opening never waits, and no line fills the memory. Called by all code that reads
 * lists, settings and profiles; libprof/elf opens programs, libprof/store databases.
 */
#ifndef MP_INFILE_H
#define MP_INFILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libprof/base/err.h"

/* In bytes. No format has such lines; a device like /dev/zero has no end of a line. */
#define MP_LINE_MAX (16u << 20)

/*
 * mp_infile_open - opens a file, a device, or a pipe that the shell made, as in <(COMMAND).
 * Refuses a directory, and a FIFO: opening it would wait until another program writes to it.
 * Return: a descriptor, or -errno with a message. Ownership: close().
 */
int mp_infile_open(const char *path, struct mp_err *err);
/* The same as a stream. Return: 0 or -errno with a message. Ownership: fclose(*@out). */
int mp_infile_stream(const char *path, FILE **out, struct mp_err *err);
/*
 * mp_infile_regular - opens a regular file and refuses anything else. Return: as above;
 * *@size_bytes is its size.
 */
int mp_infile_regular(const char *path, uint64_t *size_bytes, struct mp_err *err);
/*
 * mp_infile_line - reads one line of text into *@line of *@room bytes, which grows as that of
 * getline() does. Takes "\n" or "\r\n" off its end.
 * Return: 1: a line; 0: the end of the file; -EILSEQ: a zero byte, so this is no text; -EFBIG:
 * longer than MP_LINE_MAX; -ENOMEM, -errno. Ownership: free(*@line), also after an error.
 */
int mp_infile_line(FILE *in, char **line, size_t *room);
/*
 * mp_infile_map - maps @size bytes of a file for reading, as they are in the file: also those of a program in which somebody has
 * uprobes (bpftrace, perf probe). Return: MAP_FAILED with errno. Ownership: munmap().
 */
void *mp_infile_map(int fd, size_t size);
/* Return: the text for a message about the error @rc of mp_infile_line(). */
const char *mp_infile_why(int rc);

#endif
