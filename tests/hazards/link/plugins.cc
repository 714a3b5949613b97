// SPDX-License-Identifier: Apache-2.0
// A library is loaded and unloaded many times, at different addresses, while threads use another
// one: constructors, destructors, thread-locals, exceptions through the library, addresses of
// functions, and dl_iterate_phdr, which gives the unwind tables.
// flags: -pthread -fno-gnu-unique
// only: gcc
// link: -pthread -ldl
// modes: pie nopie
// library: libplugin.so -DLIBRARY
// library: libother.so -DLIBRARY -DOTHER
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <stdexcept>
#include <thread>
#include <sys/mman.h>

#include "../hazard.h"

#ifdef LIBRARY
#ifdef OTHER
#define FACTOR 7
#else
#define FACTOR 3
#endif
static int constructed = 0;
struct once {
	once() { constructed = FACTOR; }
	~once() { constructed = -1; }
} once;
static thread_local char text[40] = "thread";

extern "C" int ping(int n, int (*back)(int))
{
	try {
		switch (n % 6) {
		case 0: return back(n) * FACTOR;
		case 1: text[0]++; return text[0] % 7 + (int)strlen(text);
		case 2: throw std::runtime_error("library");
		case 3: return constructed;
		case 4: return back(n + 1) + back(n + 2);
		default: return n;
		}
	} catch (const std::out_of_range &) {
		return 1000;
	}
}
extern "C" void *address(void) { return (void *)ping; }
#else
typedef int ping_fn(int, int (*)(int));

KEEP int back(int n)
{
	if (n % 5 == 0)
		throw std::out_of_range("program");
	if (n % 7 == 0)
		throw 7;
	return n * 2;
}

KEEP long use(ping_fn *ping, int times)
{
	long sum = 0;

	for (int i = 0; i < times; i++) {
		try {
			sum = sum * 31 + ping(i, back);
		} catch (const std::runtime_error &e) {
			sum = sum * 31 + e.what()[0];
		} catch (int v) {
			sum = sum * 31 + v;
		}
	}
	return sum;
}

static int count(struct dl_phdr_info *info, size_t, void *arg)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME && info->dlpi_name[0] &&
		    strstr(info->dlpi_name, "libplugin"))
			++*(int *)arg;
	return 0;
}

int main()
{
	void *other = dlopen("libother.so", RTLD_NOW), *filler[40];
	ping_fn *other_ping = other ? (ping_fn *)dlsym(other, "ping") : nullptr;
	long sums[2] = {}, sum = 0;
	int found = 0, same = 0;

	if (!other_ping)
		return 2;
	std::thread one([&] { for (int i = 0; i < 20; i++) sums[0] += use(other_ping, 60); });
	std::thread two([&] { for (int i = 0; i < 20; i++) sums[1] += use(other_ping, 60); });
	for (int i = 0; i < 40; i++) {
		void *library = dlopen("libplugin.so", i & 1 ? RTLD_LAZY : RTLD_NOW);
		ping_fn *ping = library ? (ping_fn *)dlsym(library, "ping") : nullptr;
		void *(*address)() = library ? (void *(*)())dlsym(library, "address") : nullptr;
		Dl_info info;

		if (!ping || !address) {
			printf("%s\n", dlerror());
			return 3;
		}
		same += address() == (void *)ping;
		same += dladdr((void *)ping, &info) && info.dli_sname && !strcmp(info.dli_sname, "ping");
		sum = sum * 31 + use(ping, 30);
		if (i % 10 == 3)
			dl_iterate_phdr(count, &found);
		if (dlclose(library))
			return 4;
		if (dlopen("libplugin.so", RTLD_NOW | RTLD_NOLOAD))
			return 5;
		/* The next library is thus mapped at another address. */
		filler[i] = mmap(nullptr, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	one.join();
	two.join();
	for (void *p : filler)
		munmap(p, 1 << 16);
	printf("%ld %d %d %s\n", sum, found, same, sums[0] == sums[1] ? "same" : "other");
	return dlclose(other);
}
#endif
