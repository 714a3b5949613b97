// SPDX-License-Identifier: Apache-2.0
/*
 * policy - what the administrator, or a user, allows Morph to do by itself: morph.conf(5).
 *
 *	DIR/morph.conf		limits, what is idle, exclusions, the share above which files are watched
 *	DIR/on.conf		the same keys, as `morph on' wrote them: they win over morph.conf, and lists add
 *	DIR/watch.d/NAME.conf	one rule: which files, advise or adopt, how to train and to audit
 *
 * The policy is the only permission to replace a file: the store may be written by others. A file
 * of the policy that another user could have written is refused. Decides what the settings mean;
 * deny decides what nobody may allow. Read by morph-worker, and by morph for its lists.
 */
#ifndef MD_POLICY_H
#define MD_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libprof/base/err.h"

/* The directory of the system's policy; a user's is morph below $XDG_CONFIG_HOME or ~/.config. */
#define MD_POLICY_DIR "/etc/morph"

enum md_policy_mode {
	MD_POLICY_ADVISE, /* write, verify, audit, and say so */
	MD_POLICY_ADOPT,  /* and put it in place if an audit found it faster */
};

enum md_policy_audit {
	MD_AUDIT_NONE,	    /* cannot be audited: never adopted */
	MD_AUDIT_COMMAND,   /* a command that uses the file runs with both versions in turns */
	MD_AUDIT_IN_PROCESS /* the running program times its functions itself */
};

/* A rule: one file of watch.d. Texts are NULL where they are not set. */
struct md_rule {
	char *file;	 /* path of the rule's file */
	char *name;	 /* its name without .conf */
	char **programs; /* patterns of absolute paths; * matches / as well. NULL-terminated */
	char **packages; /* Debian packages, all of whose programs and libraries are meant */
	enum md_policy_mode mode;
	bool has_mode;		    /* mode was set; else it is that of morph.conf */
	char **train;		    /* a command; NULL: samples alone */
	enum md_policy_audit audit; /* follows from the other keys */
	bool instrument; /* in-process: a version with stubs may be in place for the audit */
	bool live,
		has_live; /* may running processes be changed; it was set, else it is that of morph.conf */
	char **command; /* what an audit runs; NULL: train */
	char *user; /* who trains and audits; NULL: nobody if root does the work, else who works */
	char *unit; /* service that is restarted after the file was replaced */
	double audit_s; /* 0: the policy's */
};

struct md_policy {
	char *dir;		  /* where it was read */
	enum md_policy_mode mode; /* of rules that do not say */
	double share;		  /* files with this share of all samples are watched; 0: none */
	char **only;	 /* patterns: no other file is looked after without a rule; NULL: all */
	char **excludes; /* patterns of paths that are left alone */
	bool counting;	 /* a version that counts may be in place for a while */
	bool live;	 /* versions may be put into processes that run already */
	double cost; /* part of the machine's CPU time that all work may take, versions that count or are metered as well */
	uint64_t min_samples; /* a round begins with so many samples of a file */
	uint64_t disk_bytes;  /* may be written on a day */
	double audit_s;	      /* longest audit */
	/* the machine is idle if it keeps all of these limits */
	double max_load;   /* load of the last minute for each CPU */
	bool on_battery;   /* work without AC power, too */
	double busy_share; /* stop when others use more than this share of the CPUs */
	/* after adoption */
	double probation_s;
	double retry_s;	    /* a round that ended without a gain is repeated after this time */
	double retention_s; /* of profiles and originals that nothing needs */
	double worse_by;    /* 0.05: a version that is this much slower than before is undone */
	double age_by;	    /* 0.25: a kept version that saves so much less than a new one ages */
	char *dpkg_admin;   /* dpkg's directory; NULL: the usual one */
	struct md_rule *rules; /* in the order of names */
	size_t nr_rules;
	uint64_t files; /* md_policy_has_changed() compares */
};

/* The file of a policy's directory that `morph on' writes. */
#define MD_POLICY_ON "on.conf"

/* The policy's directory of this user. Return: 0, -errno. */
int md_policy_default_dir(char *buf, size_t size, struct mp_err *err);
/*
 * md_policy_read - reads DIR/morph.conf, DIR/on.conf and DIR/watch.d. Files that do not exist are as if they were empty.
 * Return: 0; -EINVAL with "FILE:LINE: what is wrong"; -EPERM: another user can write a file of it;
 * -errno. Ownership: md_policy_fini(), after an error too.
 */
int md_policy_read(const char *dir, struct md_policy *out, struct mp_err *err);
/* The same with the file @on in place of DIR/on.conf; "": without such a file. */
int md_policy_read_on(const char *dir, const char *on, struct md_policy *out, struct mp_err *err);
void md_policy_fini(struct md_policy *policy);
/* Was a file of its directory changed, added or removed since it was read? Whatever that changes in its meaning. */
bool md_policy_has_changed(const struct md_policy *policy);

/*
 * The first rule that names @path, an absolute path without links; NULL: none, or it is not known whether a rule
 * does, since dpkg-query failed.
 */
const struct md_rule *md_policy_rule(const struct md_policy *policy, const char *path);
/* May a version that audits itself be in place of a file of @rule (NULL: no rule) for a while? */
bool md_policy_may_instrument(const struct md_policy *policy, const struct md_rule *rule);
/* CPU time that the worker may take on a day: @cost of all CPUs that are online. In seconds. */
double md_policy_day_s(const struct md_policy *policy);
/* Is it a library, by its name? */
bool md_policy_is_library(const char *path);
/* The mode for a file of @rule (NULL: no rule; then it is the policy's). */
enum md_policy_mode md_policy_mode_of(const struct md_policy *policy, const struct md_rule *rule);

/*
 * May everyday use count and try @path, a file of @rule (NULL: no rule)? Then a version that counts, and later two versions in
 * turns, are in its place for a while. Not if a command trains or audits it. A library, which any program may load, is
 * counted and tried in running processes alone. The worker also refuses while a job's versions are for running
 * processes and the policy does not permit them any more.
 */
bool md_policy_may_count(const struct md_policy *policy, const struct md_rule *rule,
			 const char *path);

/* May versions of a file of @rule (NULL: no rule) be put into processes that run already? */
bool md_policy_may_live(const struct md_policy *policy, const struct md_rule *rule);

const char *md_policy_mode_name(enum md_policy_mode mode);
const char *md_policy_audit_name(enum md_policy_audit audit);

#endif
