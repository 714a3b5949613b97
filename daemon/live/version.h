// SPDX-License-Identifier: Apache-2.0
/*
 * version - one output for one running process: where its original lies there, what changes, and in which state the
 * process is. Reads only. Called by live.
 */
#ifndef MD_LIVE_VERSION_H
#define MD_LIVE_VERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/live/change.h"
#include "daemon/live/copies.h"
#include "daemon/live/process.h"

enum md_version_kind {
	MD_VERSION_LIVE,
	MD_VERSION_EDGES, /* counts */
	MD_VERSION_METER, /* counts a few places */
};

/*
 * Which bytes the process has in a page that the version changes, apart from breakpoints: the kernel sets these
 * for uprobes, mostly at first instructions of functions, which no version changes.
 */
enum md_page {
	MD_PAGE_OLD,	 /* the original's bytes */
	MD_PAGE_NEW,	 /* the version's */
	MD_PAGE_ANOTHER, /* those of another version that is mapped */
	MD_PAGE_OTHER,	 /* others: somebody else changed it */
	/* the original's and the version's: somebody took a change of that back, or a breakpoint stands in one */
	MD_PAGE_MIXED,
	/* the original's or another version's, and a breakpoint stands where this version changes it */
	MD_PAGE_GUARDED,
	MD_NR_PAGES,
};

struct md_pages {
	size_t nr[MD_NR_PAGES]; /* MD_PAGE_OTHER: with those of MD_PAGE_MIXED */
	size_t other;		/* index of the first of these */
};

struct md_version {
	pid_t pid;
	enum md_version_kind kind;
	struct mp_elf *original, *output; /* versions of one process share the original */
	uint64_t original_dev, original_ino;
	int output_fd;
	uint64_t output_dev, output_ino;
	char *path;	     /* of the output */
	char *original_path; /* as the process mapped it */
	uint64_t bias;	     /* run-time address minus link-time address */
	uint64_t low, high;  /* run-time bounds of the original */
	struct md_changes
		changes; /* the segment; the rest, and the counters: md_version_read_changes() */
	bool changes_known;
	struct md_copies copies; /* md_version_read_copies() */
	bool copies_known;
	/* Link-time address and bytes of the counters, which lie below the copies; both are whole pages. Size 0: none. */
	uint64_t counters_vaddr, counters_size;
	uint64_t table_hash;   /* of the table of counters */
	struct md_pages pages; /* as md_version_pages() found them last, and so these: */
	uint64_t *breakpoints; /* link-time addresses in pages that change, ascending */
	size_t nr_breakpoints, max_breakpoints;
};

/* Versions whose copies are mapped in one process. */
struct md_versions {
	struct md_version *list; /* by ascending address */
	size_t nr;
};

/*
 * md_version_open - @path: the output of a version which is not wholly mapped yet. Finds its original among the files that
 * @process runs. Return: 0; -EPERM: none of them is it, or the output does not suit, with the reason; -errno with a message.
 * Ownership: md_version_close(), also after an error.
 */
int md_version_open(struct md_process *process, const char *path, const struct md_versions *mapped,
		    struct md_version *out, struct mp_err *err);
void md_version_close(struct md_version *version);
/* As proofs name it: live, live+edges, live+meter. */
const char *md_version_kind_name(enum md_version_kind kind);
/*
 * md_version_kind_read - the kind that the file says, proved or not. Return: 0; -errno: it cannot be read, or is no version
 * for running processes.
 */
int md_version_kind_read(const char *path, enum md_version_kind *kind);

/*
 * md_versions_find - all versions whose copies are mapped in @process. @changes: reads what each one changes, which takes
 * long for a large one; else only where its copies are is known. Return: 0, -errno with a message. Ownership:
 * md_versions_close(), also after an error.
 */
int md_versions_find(struct md_process *process, bool changes, struct md_versions *out,
		     struct mp_err *err);
/* The version whose output is the file at @path; NULL: there is none. */
struct md_version *md_versions_of(const struct md_versions *versions, const char *path);
/*
 * Is @file its original, whether or not another one lies there now, or its output, or a directory above the output? @file is
 * without symbolic links, and need not be there any more; it may end with a slash.
 */
bool md_version_is_of(const struct md_version *version, const char *file);
/* Moves @version, one of @versions, to *@out. Ownership: md_version_close(). */
void md_versions_take(struct md_versions *versions, struct md_version *version,
		      struct md_version *out);
void md_versions_close(struct md_versions *versions);

/*
 * md_version_read_changes - reads what the version changes, and its counters; does nothing if they are known. Return: 0;
 * -EPERM, -errno with a message.
 */
int md_version_read_changes(struct md_version *version, struct mp_err *err);
/* md_version_read_copies - its changes are known. Return: 0; as md_copies_read(). */
int md_version_read_copies(struct md_version *version, struct mp_err *err);

/* Is it another version of the same original at the same place in the same process? */
bool md_version_is_rival(const struct md_version *version, const struct md_version *other);
/* Finds the address at which a process has loaded @elf, whose code is mapped at @m. Return: false: @m does not map its code. */
bool md_version_bias(const struct mp_elf *elf, const struct md_mapping *m, uint64_t *bias);
/* Is the segment of the copies mapped, from the output's file? */
bool md_version_is_mapped(const struct md_version *version, const struct md_process *process);
/* Run-time address of the copies. */
uint64_t md_version_segment(const struct md_version *version);
/* Run-time address of the counters. */
uint64_t md_version_counters(const struct md_version *version);
/* The mapping of a file over exactly the counters; NULL: there is none. */
const struct md_mapping *md_version_counters_mapping(const struct md_version *version,
						     const struct md_process *process);
/*
 * md_version_pages - compares each page that changes. @mapped: all versions that are mapped, with this one or without.
 * Versions whose changes are not known are not compared.
 * @each: gets the enum md_page of each page; NULL: not wanted. Return: 0; -EIO, -ENOMEM, each with a message.
 */
int md_version_pages(struct md_version *version, const struct md_versions *mapped, uint8_t *each,
		     struct mp_err *err);
/* Does the version change the page at the link-time address @vaddr? */
bool md_version_has_page(const struct md_version *version, uint64_t vaddr);
/*
 * md_version_check_text - does the original's code have the bytes of its file, apart from breakpoints? Pages
 * that @version or a @mapped version changes may have those of such a version; with @whole, not those of
 * @version, and pages that none changes are not asked: somebody may have uprobes there. Reads the changes of
 * @mapped versions only until each page is explained: then no page has the bytes of one whose changes are not
 * known. For all other versions, version->pages is set afterwards. Return: 0; -EPERM, -EIO, each with a
 * message.
 */
int md_version_check_text(struct md_version *version, const struct md_versions *mapped, bool whole,
			  struct mp_err *err);
/*
 * md_version_check_proof - is the output one of ours, proved against this original, and safe from others? Return: 0;
 * -EPERM with the reason; -errno with a message.
 */
int md_version_check_proof(const struct md_version *version, struct mp_err *err);
/* A name for the function at the run-time address @ip of the original: a symbol, or its start. */
const char *md_version_function(const struct md_version *version, uint64_t ip, char *buf,
				size_t size);

#endif
