// SPDX-License-Identifier: Apache-2.0
/* cli_backup - the options of commands that replace a file and keep the original: adopt, restore. */
#include <argp.h>

#include "editor/cli/cli.h"

enum key {
	KEY_BACKUP_DIR = 0x700,
	KEY_BREAK_LINKS,
	KEY_NO_SYMLINKS,
};

static const struct argp_option options[] = {
	{"backup-dir", KEY_BACKUP_DIR, "DIR", 0,
	 "Where originals are kept (default: see FILES in the man page)", 0},
	{"break-links", KEY_BREAK_LINKS, NULL, 0,
	 "Replace FILE even if another name in its directory (a hard link) keeps the old bytes", 0},
	{"no-symlinks", KEY_NO_SYMLINKS, NULL, 0,
	 "Refuse a FILE whose path leads through a symbolic link, or does not begin with /", 0},
	{0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct me_inplace_options *inplace = state->input;

	switch (key) {
	case KEY_BACKUP_DIR:
		if (!*arg)
			argp_error(state, "--backup-dir: which directory?");
		inplace->backup_dir = arg;
		return 0;
	case KEY_BREAK_LINKS: inplace->break_links = true; return 0;
	case KEY_NO_SYMLINKS: inplace->no_symlinks = true; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

const struct argp me_cli_backup_argp = {.options = options, .parser = parse};
