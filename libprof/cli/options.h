// SPDX-License-Identifier: Apache-2.0
/*
 * options - a command's options as a table: name, what --help says, and the variable that gets the value, of
 * which kind. Reads the command line by it; usage errors end the program.
 *
 * A file with such a table says first in which structure the variables are:
 *
 *	#define MP_OPTIONS struct query
 *	static const struct mp_option options[] = {
 *		MP_VALUE(TIME, "since", 's', since_s, "WHEN", "Leave out older samples"),
 *		MP_OPTIONS_END};
 */
#ifndef MP_OPTIONS_H
#define MP_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

/* The type of the variable that gets an option's value. */
enum mp_option_kind {
	MP_OPTION_FLAG,	  /* bool */
	MP_OPTION_TEXT,	  /* const char * */
	MP_OPTION_NUMBER, /* double, from low to high */
	MP_OPTION_COUNT,  /* uint64_t */
	MP_OPTION_LIMIT,  /* long, at least 1 */
	MP_OPTION_TIME,	  /* int64_t, seconds since 1970 */
	MP_OPTION_WORD,	  /* an enum: the index of the word in words; "" is none */
	MP_OPTION_SET,	  /* none: set() takes the value */
	MP_OPTION_HEAD,	  /* no option: the name is the heading of a group in --help */
};

struct mp_option {
	const char *name;
	int letter;		 /* or 0 */
	const char *value, *doc; /* value NULL: it has none; doc NULL: --help does not print it */
	enum mp_option_kind kind;
	size_t at;	  /* of the variable, in the command's structure; for SET: any number */
	double low, high; /* NUMBER */
	const char *const *words; /* WORD; ends with NULL */
	void (*set)(const struct mp_option *option, void *options, char *arg,
		    struct argp_state *state);
	int group;     /* order in --help */
	bool optional; /* the value may be left out; set() gets NULL then */
};

#define MP_AT(field)		    offsetof(MP_OPTIONS, field)
#define MP_FLAG(name_, field, doc_) MP_LETTER_FLAG(name_, 0, field, doc_)
#define MP_LETTER_FLAG(name_, letter_, field, doc_)                                                \
	{                                                                                          \
		.name = name_, .letter = letter_, .doc = doc_, .kind = MP_OPTION_FLAG,             \
		.at = MP_AT(field)                                                                 \
	}
#define MP_VALUE(kind_, name_, letter_, field, value_, doc_)                                       \
	{                                                                                          \
		.name = name_, .letter = letter_, .value = value_, .doc = doc_,                    \
		.kind = MP_OPTION_##kind_, .at = MP_AT(field)                                      \
	}
#define MP_NUMBER(name_, letter_, field, low_, high_, value_, doc_)                                \
	{                                                                                          \
		.name = name_, .letter = letter_, .value = value_, .doc = doc_,                    \
		.kind = MP_OPTION_NUMBER, .at = MP_AT(field), .low = low_, .high = high_           \
	}
#define MP_WORD(name_, field, words_, value_, doc_)                                                \
	{                                                                                          \
		.name = name_, .value = value_, .doc = doc_, .kind = MP_OPTION_WORD,               \
		.at = MP_AT(field), .words = words_                                                \
	}
#define MP_SET(name_, letter_, set_, value_, doc_)                                                 \
	{                                                                                          \
		.name = name_, .letter = letter_, .value = value_, .doc = doc_,                    \
		.kind = MP_OPTION_SET, .set = set_                                                 \
	}
#define MP_OPTIONS_END                                                                             \
	{                                                                                          \
		0                                                                                  \
	}

struct mp_words {
	char **list;
	int nr;
};

struct mp_usage {
	const struct mp_option *options; /* NULL: none of its own */
	/* Tables of options that other commands have, too; NULL ends the list. NULL: there are none. */
	const struct mp_option *const *more;
	const char *arguments, *doc; /* for --help */
	size_t argument;     /* MP_AT() of the only word that is no option; 0: there is none */
	size_t words;	     /* or MP_AT() of a struct mp_words for all of them */
	int least, most;     /* words */
	const char *lacking; /* message if there are fewer; NULL: there may be none */
	/* Takes each word that is no option, instead. */
	void (*word)(void *options, char *arg, struct argp_state *state);
	/* Checks options together, by argp_error(). NULL: there is nothing to check. */
	void (*check)(void *options, struct argp_state *state);
	/* Options that several commands have; NULL ends the list. */
	const struct argp *shared;
	char *(*help_filter)(int key, const char *text, void *input); /* as argp's */
	bool in_order; /* what stands behind the first word is no option of this command */
};

/*
 * mp_options_read - reads the command line into @options. @shared: the input of usage->shared.
 * A mistake ends the program.
 */
void mp_options_read(const struct mp_usage *usage, int argc, char **argv, void *options,
		     void *shared);

/* A value of each kind, for options that are read otherwise. Mistakes are usage errors of --@name. */
double mp_options_number(struct argp_state *state, const char *name, const char *arg, double low,
			 double high);
unsigned long mp_options_count(struct argp_state *state, const char *name, const char *arg);

#endif
