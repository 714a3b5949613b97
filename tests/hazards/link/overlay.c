// SPDX-License-Identifier: Apache-2.0
// Code that asks where it is: the function around an address, and callers' names by dynamic
// symbols. In stock files these symbols stay with the old code, so the copies have no names.
// link: -rdynamic -ldl
// modes: pie nopie
// kinds: relinkable
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

#include "../hazard.h"

static char names[256];

static _Unwind_Reason_Code note(struct _Unwind_Context *context, void *arg)
{
	void *start = _Unwind_FindEnclosingFunction((void *)(_Unwind_GetIP(context) - 1));
	int *nr = arg;

	if (start)
		++*nr;
	return _URC_NO_REASON;
}

KEEP int third(void)
{
	int nr = 0;

	_Unwind_Backtrace(note, &nr);
	return nr;
}
KEEP int second(void) { return third() + OPAQUE(0); }
KEEP int first(void) { return second() + OPAQUE(0); }

/* Adds the name of its caller, as loggers do. */
KEEP void logs(void)
{
	Dl_info info;

	if (dladdr(__builtin_return_address(0), &info) && info.dli_sname)
		strcat(strcat(names, info.dli_sname), " ");
}
KEEP void exported_caller(void)
{
	logs();
	OPAQUE(0);
}

int main(void)
{
	int nr = first() - third();

	for (int i = 0; i < 3; i++)
		exported_caller();
	printf("%d frames apart\n", nr);
	printf("%s\n", names);
	return 0;
}
