// SPDX-License-Identifier: Apache-2.0
// What depends on program headers and on unwinding: exceptions in frames and threads, thread-local
// storage, AT_PHDR and dl_iterate_phdr(). One program, or with -DLIBRARY a library: run_all().
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <stdexcept>
#include <string>
#include <sys/auxv.h>
#include <thread>
#include <vector>

static std::atomic<int> destroyed;
static thread_local int depth_seen = 3;

struct Counted {
	~Counted() { destroyed++; }
};

template <typename T> __attribute__((noinline)) static T sink(T value, int depth)
{
	Counted c;

	if (depth == 0) {
		if (sizeof(T) == 4)
			throw std::runtime_error("four");
		throw value;
	}
	depth_seen += depth & 1;
	return sink<T>(value + 1, depth - 1) + static_cast<T>(depth);
}

__attribute__((noinline)) static int classify(int n)
{
	switch (n % 9) {
	case 0: return n + 1;
	case 1: return n ^ 5;
	case 2: return n * 3;
	case 3: return n - 7;
	case 4: return n / 3;
	case 5: return -n;
	case 6: return n << 2;
	case 7: return ~n;
	default: return n % 11;
	}
}

// Where a run spends its time, so that samples find something.
__attribute__((noinline)) static long work(int n)
{
	long sum = 0;

	for (int i = 0; i < n; i++)
		sum += classify(i) & 0xff;
	return sum;
}

static int catches(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		try {
			sum += i & 1 ? sink<int>(i, 3) : static_cast<int>(sink<long>(i, 4));
		} catch (const std::exception &e) {
			sum += static_cast<int>(std::strlen(e.what())) + classify(i);
		} catch (long v) {
			sum += static_cast<int>(v);
		}
	}
	return sum;
}

static int threads(void)
{
	std::atomic<int> sum(0);
	std::vector<std::thread> all;

	for (int i = 0; i < 4; i++)
		all.emplace_back([i, &sum] { sum += catches(10 + i) + depth_seen; });
	for (auto &t : all)
		t.join();
	return sum;
}

struct Found {
	uintptr_t inside; // an address in the module that is looked for
	int modules, found, table, interp, notes, unwind;
};

// What the module's own headers lead to.
static void look(struct dl_phdr_info *info, Found *f)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const char *at = reinterpret_cast<const char *>(info->dlpi_addr + ph->p_vaddr);

		switch (ph->p_type) {
		case PT_PHDR:
			f->table = reinterpret_cast<uintptr_t>(at) ==
					   reinterpret_cast<uintptr_t>(info->dlpi_phdr) &&
				   ph->p_memsz == info->dlpi_phnum * sizeof(*ph);
			break;
		case PT_INTERP: f->interp = !std::strcmp(at, "/lib64/ld-linux-x86-64.so.2"); break;
		case PT_NOTE: f->notes += !std::memcmp(at + 12, "GNU", 4); break;
		case PT_GNU_EH_FRAME: f->unwind = *at == 1; break;
		}
	}
}

static int visit(struct dl_phdr_info *info, size_t, void *data)
{
	Found *f = static_cast<Found *>(data);

	f->modules++;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && f->inside - info->dlpi_addr - ph->p_vaddr < ph->p_memsz)
			f->found++, look(info, f);
	}
	return 0;
}

static int headers(void)
{
	const ElfW(Phdr) *ph = reinterpret_cast<const ElfW(Phdr) *>(getauxval(AT_PHDR));
	Found f = {reinterpret_cast<uintptr_t>(&destroyed), 0, 0, 0, 0, 0, 0};
	int loads = 0, tls = 0;

	dl_iterate_phdr(visit, &f);
	for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++) {
		loads += ph[i].p_type == PT_LOAD && ph[i].p_offset == 0;
		tls += ph[i].p_type == PT_TLS;
	}
	// An output may lack PT_PHDR or a note of properties where nobody needs it.
	std::printf("modules %d, found %d, interpreter %d, notes %d, unwind %d, first %d, tls %d\n",
		    f.modules, f.found, f.interp, f.notes > 0, f.unwind, loads, tls);
	if (std::getenv("LINKERS_PHDR"))
		std::printf("PT_PHDR %d\n", f.table);
	return 0;
}

extern "C" int run_all(int rounds)
{
	long sum = 0;

	for (int i = 0; i < rounds; i++)
		sum += catches(40) % 1000 + threads() % 1000 + work(100000);
	std::printf("sum %ld, destroyed %d, own %d\n", sum, destroyed.load(), depth_seen);
	return headers();
}

#ifndef LIBRARY
int main(int argc, char **argv)
{
	return run_all(argc > 1 ? std::atoi(argv[1]) : 2);
}
#endif
