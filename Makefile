# SPDX-License-Identifier: Apache-2.0
#
# One Makefile builds all of Morph. It finds sources in all folders, so a new file
# needs no edit here:
#   libprof/  daemon/  editor/  -> an archive each, mains to programs
#   tests/**/test_*.c  tests/fuzz/fuzz_*.c  tests/plugin/*.c -> tests, fuzzers, QEMU plugins
#   tests/tools/*.c -> developers' programs in $(O)/tools
# `make help` lists the targets and settings.

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:

# ---- settings -------------------------------------------------------------

# CORE=1: without the optional parts (PARTS, below), in a directory of its own.
CORE ?= 0
ifeq ($(CORE),1)
O ?= build-core
endif
O ?= build
# Flags and lists of headers name this directory. One spelling of it, `make O=$PWD/build` as well,
# keeps objects from being built again.
override O := $(patsubst $(CURDIR)/%,%,$(abspath $(O)))
$(foreach goal,$(filter $(CURDIR)/%,$(MAKECMDGOALS)),$(eval $(goal): $(goal:$(CURDIR)/%=%) ;))
PREFIX ?= /usr/local
DESTDIR ?=
DEBUG ?= 0
ASAN ?= 0
TSAN ?= 0
V ?= 0

ifeq ($(origin CC),default)
CC := gcc
endif
CC ?= gcc
AR ?= ar
CLANG ?= clang
PKG_CONFIG ?= pkg-config
INSTALL ?= install
OBJCOPY ?= objcopy

BINDIR ?= $(PREFIX)/bin
SBINDIR ?= $(PREFIX)/sbin
MANDIR ?= $(PREFIX)/share/man
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
PRESETDIR ?= $(PREFIX)/lib/systemd/system-preset
USERUNITDIR ?= $(PREFIX)/lib/systemd/user
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
UDEVDIR ?= $(PREFIX)/lib/udev
MODPROBEDIR ?= $(PREFIX)/lib/modprobe.d
EXAMPLEDIR ?= $(PREFIX)/share/doc/morph/examples
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
INCLUDEDIR ?= $(PREFIX)/include
# Holds the plugin that marks loops; it serves one version of GCC only.
MARKERDIR ?= $(PREFIX)/lib/morph

# A release tarball carries VERSION; a checkout asks git.
VERSION := $(shell cat VERSION 2>/dev/null || \
	git describe --tags --always --dirty 2>/dev/null || echo unknown)

# ---- libraries ------------------------------------------------------------

# Zydis has no .pc file in Debian 12.
PKGS := libelf libdw sqlite3 libxxhash jansson zlib
# The bpf source needs clang, bpftool (in /usr/sbin) and libbpf. Without them,
# morphd is built without that source, and make says so.
BPFTOOL ?= $(firstword $(shell PATH=$$PATH:/usr/sbin:/sbin command -v bpftool 2>/dev/null))
BPF_LACKS := $(strip $(if $(shell command -v $(CLANG) 2>/dev/null),,clang) \
	$(if $(shell $(BPFTOOL) version 2>/dev/null),,bpftool) \
	$(if $(shell $(PKG_CONFIG) --exists libbpf 2>/dev/null && echo y),,libbpf-dev))
ifeq ($(BPF_LACKS),)
BPF_CFLAGS := -DMORPH_BPF -I$(O)/bpf
PKGS += libbpf
endif

# morph-fleet needs PostgreSQL's client library and libcrypto, and no other program does. Without them
# morph-fleet is not built, and make says so.
FLEET_PKGS := libpq libcrypto
FLEET_LACKS := $(strip $(if $(filter 1,$(CORE)),CORE=0) $(foreach p,$(FLEET_PKGS),$(if $(shell $(PKG_CONFIG) --exists $(p) 2>/dev/null && \
	echo y),,$(p))))
FLEET_CFLAGS := -I$(O)/fleet $(if $(FLEET_LACKS),,$(shell $(PKG_CONFIG) --cflags $(FLEET_PKGS)))
FLEET_LIBS := $(if $(FLEET_LACKS),,$(shell $(PKG_CONFIG) --libs $(FLEET_PKGS)))

PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
PKG_LIBS := $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null || \
	echo -lelf -ldw -lsqlite3 -lxxhash -ljansson -lz)
CHECK_LIBS = $(shell $(PKG_CONFIG) --libs check 2>/dev/null || \
	echo -lcheck -lsubunit -lrt)

# The plugin that marks loops is for gcc, whichever compiler builds Morph. It needs a C++ compiler
# and the headers of gcc-12-plugin-dev. Without them it is not built, and make says so.
GCC ?= gcc
GXX ?= g++
GCC_PLUGIN_INCLUDE := $(shell $(GCC) -print-file-name=plugin 2>/dev/null)/include
MARKER_LACKS := $(strip $(if $(filter 1,$(CORE)),CORE=0) $(if $(shell command -v $(GXX) 2>/dev/null),,g++) \
	$(if $(wildcard $(GCC_PLUGIN_INCLUDE)/gcc-plugin.h),,gcc-12-plugin-dev))

# ---- flags ----------------------------------------------------------------

ifeq ($(DEBUG),1)
OPT := -O0 -g3 -DMORPH_DEBUG
else
OPT := -O2 -g
endif

ifeq ($(ASAN),1)
SAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer
endif
ifeq ($(TSAN),1)
SAN := -fsanitize=thread -fno-omit-frame-pointer
endif

WARN := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes

# Morph's own flags come first, so that CFLAGS= on the command line can override.
MORPH_CFLAGS := -std=gnu17 $(OPT) $(WARN) $(SAN) -fno-strict-aliasing \
	-I. -I$(O)/runtime -D_GNU_SOURCE $(BPF_CFLAGS) $(PKG_CFLAGS)
CFLAGS ?=
LDFLAGS ?=
MORPH_LDFLAGS := $(SAN)
LIBS := $(PKG_LIBS) -lZydis -lZycore -lm -lpthread

# ---- quiet build ----------------------------------------------------------

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-7s %s\n' $(1) $(2)
endif

# ---- sources and files to build -------------------------------------------

DAEMON_MAINS := morphd morph_stats morph morph_worker
FLEET_MAINS := morph_fleet
EDITOR_MAINS := morph_optimize morph_audit

# The optional parts: the fleet; objects; code markers and compilations. Other folders enter them by the
# functions of editor/absent, which stands in for them if CORE=1. Their tests are left out, too.
PARTS := daemon/fleet editor/object editor/verify/object editor/cli/object editor/compilations \
	editor/cli/compilations editor/marker editor/optimize/markers editor/verify/marker
LEFT_OUT := $(if $(filter 1,$(CORE)),$(PARTS),editor/absent)
LEFT_OUT += $(LEFT_OUT:%=tests/unit/%)

# The sources below a folder, in one order everywhere. BPF programs, and what runs inside of
# instrumented files, are no part of the archives.
find_srcs = $(filter-out $(addsuffix /%,$(LEFT_OUT)),$(shell find $(1) -name '*.c' ! -name '*.mod.c' | LC_ALL=C sort))
SRCS := $(filter-out %.bpf.c editor/runtime/% $(if $(FLEET_LACKS),daemon/fleet/%),\
	$(call find_srcs,libprof daemon editor))
main_srcs = $(filter $(foreach m,$(2),%/$(m).c),$(filter $(1)/%,$(SRCS)))
lib_srcs = $(filter-out $(foreach m,$(2),%/$(m).c),$(filter $(1)/%,$(SRCS)))
objs = $(patsubst %.c,$(O)/obj/%.o,$(1))

LIBPROF_OBJS := $(call objs,$(call lib_srcs,libprof,))
DAEMON_OBJS := $(call objs,$(filter-out daemon/fleet/%,$(call lib_srcs,daemon,$(DAEMON_MAINS))))
FLEET_OBJS := $(call objs,$(call lib_srcs,daemon/fleet,$(FLEET_MAINS)))
EDITOR_OBJS := $(call objs,$(call lib_srcs,editor,$(EDITOR_MAINS)))
SUPPORT_OBJS := $(call objs,$(wildcard tests/support/*.c tests/support/*/*.c))

DAEMON_SRCS := $(call main_srcs,daemon,$(DAEMON_MAINS))
EDITOR_SRCS := $(call main_srcs,editor,$(EDITOR_MAINS))
FLEET_SRCS := $(call main_srcs,daemon/fleet,$(FLEET_MAINS))
prog = $(O)/$(subst _,-,$(basename $(notdir $(1))))
DAEMON_PROGS := $(foreach s,$(DAEMON_SRCS),$(call prog,$(s)))
EDITOR_PROGS := $(foreach s,$(EDITOR_SRCS),$(call prog,$(s)))
FLEET_PROGS := $(foreach s,$(FLEET_SRCS),$(call prog,$(s)))
PROGS := $(DAEMON_PROGS) $(EDITOR_PROGS) $(FLEET_PROGS)

LIBPROF := $(O)/libprof.a
DAEMON := $(O)/daemon.a
EDITOR := $(O)/editor.a
FLEET := $(if $(FLEET_LACKS),,$(O)/fleet.a)
SUPPORT := $(O)/tests/support.a
ARCHIVES := $(EDITOR) $(FLEET) $(DAEMON) $(LIBPROF)

TEST_SRCS := $(filter-out $(if $(FLEET_LACKS),tests/unit/daemon/fleet/%),\
	$(filter tests/unit/%,$(call find_srcs,tests)))
test = $(O)/tests/$(basename $(notdir $(1)))
TESTS := $(foreach s,$(TEST_SRCS),$(call test,$(s)))
FUZZ_SRCS := $(if $(filter 1,$(CORE)),$(shell grep -L "^// parts: " tests/fuzz/fuzz_*.c),$(wildcard tests/fuzz/fuzz_*.c))
ENGINE ?= libfuzzer
FUZZ_DIR := $(O)/fuzz$(if $(filter afl,$(ENGINE)),-afl)
FUZZERS := $(patsubst tests/fuzz/%.c,$(FUZZ_DIR)/%,$(FUZZ_SRCS))
PLUGIN_SRCS := $(wildcard tests/plugin/*.c)
PLUGINS := $(patsubst tests/plugin/%.c,$(O)/plugin/%.so,$(PLUGIN_SRCS))
# Two tools emulate a processor, and are not built without the emulator.
UNICORN_LIBS := $(shell $(PKG_CONFIG) --libs unicorn 2>/dev/null)
TOOL_SRCS := $(filter-out $(if $(FLEET_LACKS),tests/tools/fleet_%) \
	$(if $(UNICORN_LIBS),,tests/tools/emulated/%),$(wildcard tests/tools/*.c tests/tools/*/*.c))
tool = $(O)/tools/$(subst _,-,$(basename $(notdir $(1))))
TOOLS := $(foreach s,$(TOOL_SRCS),$(call tool,$(s)))
# Programs for the guest. One of them is built several times, under different names.
GUEST_SRCS := $(filter-out %/reader.c %/variant.c,$(wildcard tests/guest/programs/*.c))
GUEST_VARIANTS := 1 2 3 4 5 6 7
GUEST_PROGS := $(patsubst tests/guest/programs/%.c,$(O)/guest/%,$(GUEST_SRCS)) \
	$(foreach v,$(GUEST_VARIANTS),$(O)/guest/variant$(v)) \
	$(O)/guest/libvariant1.so $(O)/guest/libvariant2.so \
	$(patsubst %,$(O)/guest/producers-%,busy other liba.so libb.so) \
	$(patsubst %,$(O)/guest/%,libmix.so mix same_profile paths-original paths-copy)

MARKER_PLUGIN := $(if $(MARKER_LACKS),,$(O)/morph_marker.so)

ALL_OBJS := $(LIBPROF_OBJS) $(DAEMON_OBJS) $(EDITOR_OBJS) $(FLEET_OBJS) $(SUPPORT_OBJS) \
	$(call objs,$(DAEMON_SRCS) $(EDITOR_SRCS) $(FLEET_SRCS) $(TEST_SRCS) $(TOOL_SRCS) \
	$(FUZZ_SRCS) tests/fuzz/driver.c)

MAN_SRCS := $(filter-out $(if $(FLEET_LACKS),Documentation/morph-fleet.1),$(wildcard Documentation/*.[1458]))
COMPLETIONS := $(patsubst $(O)/%,$(O)/completion/%,$(PROGS))

# ---- targets --------------------------------------------------------------

.PHONY: all parts programs tests tools fuzzers plugins completions kmod guest-programs check check-all check-long check-guest \
	check-guest-debug demo \
	check-torture check-runtimes check-distribution check-hazards check-audits check-self check-mutation fuzz bench figure3 \
	deb deb-check check-system check-power install install-dkms format format-check layers setup clean help FORCE

all: programs plugins

# For the test runner
parts:
	@echo $(PARTS)

programs: $(PROGS) $(ARCHIVES) $(MARKER_PLUGIN)
tests: $(TESTS)
tools: $(TOOLS)
fuzzers: $(FUZZERS)
plugins: $(PLUGINS)
completions: $(COMPLETIONS)

help:
	@echo 'make [all]          programs and QEMU plugins, in $$(O)'
	@echo 'make tests tools fuzzers plugins   programs for the tests'
	@echo 'make kmod           morphmon.ko, for each kernel of scripts/kernel/kernels, in $$(O)/kmod'
	@echo 'make check          most tests, 12 minutes on 2 cores; last line counts them'
	@echo 'make check-all      all of them; REST=1: only those that make check leaves out'
	@echo 'make check-long     the long tests and forms as well; hours'
	@echo 'make check-guest    long tests of the module in virtual machines'
	@echo 'make check-guest-debug   the same on a kernel with lockdep, KASAN and similar checks'
	@echo 'make demo           makes this machine'\''s C compiler faster, and measures by how much'
	@echo 'make check-hazards  the editor on programs that are easy to break, and on this machine'\''s own'
	@echo 'make check-torture  the editor on gcc'\''s C torture programs and csmith'\''s; TORTURE=--full'
	@echo 'make check-runtimes  the editor on the runtimes of other languages: OCaml, Node.js, Java, ...'
	@echo 'make check-distribution  packages of Debian, rewritten, with their own tests; PKG=name for one; hours, continues'
	@echo 'make check-audits   the first two of these programs, audited in two versions, in full; hours'
	@echo 'make check-self     the tests with programs that the editor has rewritten'
	@echo 'make check-mutation flips every bit of some outputs; verify must detect each flip'
	@echo 'make fuzz           long runs of the fuzzers: FUZZ_SECONDS=60 for each, ENGINE=afl for AFL++'
	@echo 'make bench          Morph beside BOLT on each program; writes Documentation/lab/results.md'
	@echo 'make figure3        the Morph paper'\''s Figure 3 with today'\''s programs; FIGURE3=--time=20 adds times'
	@echo 'make install        DESTDIR= PREFIX= (default /usr/local)'
	@echo 'make deb            the Debian packages of the committed tree, in $$(O)/deb'
	@echo 'make deb-check      builds and checks the Debian packages'
	@echo 'make check-system   the packages in a virtual machine with systemd, across reboots'
	@echo 'make check-power    the machine loses its power in the middle of rounds (CUTS=30)'
	@echo 'make format-check   checks the format; make format changes the files'
	@echo 'make layers         checks the direction of includes'
	@echo 'make setup          installs what the build needs (Debian, root); the tests install the rest'
	@echo 'make clean          removes the build'\''s files from $$(O)'
	@echo 'settings: O=DIR V=1 CORE=1 DEBUG=1 ASAN=1 TSAN=1 CC=clang CFLAGS= LDFLAGS='

# ---- compile --------------------------------------------------------------

# This file holds the settings that affect objects. A changed setting rebuilds them.
FLAGS_NOW := $(CC) $(MORPH_CFLAGS) $(CFLAGS)
$(O)/obj/.flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(FLAGS_NOW))' | cmp -s - $@ || \
		printf '%s\n' '$(subst ','\'',$(FLAGS_NOW))' > $@

# Only the object that knows the version depends on this file.
$(O)/obj/.version: FORCE
	@mkdir -p $(@D)
	@echo '#define MORPH_VERSION "$(VERSION)"' | cmp -s - $@ || \
		echo '#define MORPH_VERSION "$(VERSION)"' > $@

$(call objs,libprof/cli/program.c): $(O)/obj/.version

$(O)/obj/%.o: %.c $(O)/obj/.flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(MORPH_CFLAGS) -DMORPH_VERSION='"$(VERSION)"' $(CFLAGS) \
		-MMD -MP -c -o $@ $<

# The BPF programs contain nothing of this machine's kernel, so they run on others.
ifeq ($(BPF_LACKS),)
BPF_SRC := $(shell find daemon -name collector.bpf.c)
BPF_DEPS := $(O)/bpf/$(subst /,-,$(BPF_SRC:.bpf.c=.d))
$(O)/bpf/%.bpf.o: $(dir $(BPF_SRC))%.bpf.c
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) -target bpf -mcpu=v2 -g -O2 -Wall -Wextra -I. \
		-idirafter /usr/include/$(subst -pc-,-,$(shell $(CC) -dumpmachine)) -MMD -MP -MF $(BPF_DEPS) -c -o $@ $<

$(O)/bpf/%.skel.h: $(O)/bpf/%.bpf.o
	$(Q)$(BPFTOOL) gen skeleton $< name $* > $@

$(foreach d,obj fuzz/obj fuzz-afl/obj,$(patsubst %.c,$(O)/$(d)/%.o,$(filter \
	%/bpf_programs.c,$(SRCS)))): $(O)/bpf/collector.skel.h
.SECONDARY: $(O)/bpf/collector.bpf.o
-include $(BPF_DEPS)
else
$(info   NOTE    no bpf source: $(BPF_LACKS) missing)
endif

# The fleet's SQL files, as C arrays.
FLEET_SQL := $(sort $(wildcard daemon/fleet/sql/*.sql))
$(O)/fleet/fleet_sql.h: $(FLEET_SQL)
	$(call say,SQL,daemon/fleet/sql)
	@mkdir -p $(@D)
	$(Q){ for f in $(FLEET_SQL); do n=$$(basename $$f .sql | tr - _); printf 'static const char sql_%s[] = {\n' $$n; \
			od -An -v -tx1 $$f | sed 's/ \([0-9a-f]*\)/0x\1, /g'; echo '0};'; done; \
		echo 'static const struct md_fleet_sql sql_files[] = {'; \
		for f in $(FLEET_SQL); do n=$$(basename $$f .sql); v=sql_$$(echo $$n | tr - _); \
			printf '\t{"%s", %s},\n' $$n $$v; done; echo '};'; } > $@
$(O)/obj/daemon/fleet/schema.o: $(O)/fleet/fleet_sql.h
$(filter $(foreach d,daemon/fleet tests/unit/daemon/fleet tests/tools/fleet_,$(O)/obj/$(d)%),$(ALL_OBJS)): \
	MORPH_CFLAGS += $(FLEET_CFLAGS)

ifneq ($(filter-out CORE=0,$(FLEET_LACKS)),)
$(info   NOTE    no morph-fleet: $(FLEET_LACKS) missing)
endif

# The code that instrumented files run first (editor/base/runtime.h), as a C array of machine code. It is
# built without the flags of the other code, which may ask for a sanitizer. It must link to the same
# bytes at every address; otherwise it would need relocations.
RUNTIME_OBJS := $(O)/runtime/start.o $(O)/runtime/attach.o $(O)/runtime/thread.o $(O)/runtime/ring.o \
	$(O)/runtime/audit.o $(O)/runtime/audit_point.o $(O)/runtime/audit_thread.o \
	$(O)/runtime/untimed.o $(O)/runtime/call_clock.o
RUNTIME_CFLAGS := -std=gnu17 -Os $(WARN) -I. -D_GNU_SOURCE -m64 -march=x86-64 -mgeneral-regs-only \
	-ffreestanding -fpie -fvisibility=hidden -fno-stack-protector -fcf-protection=none \
	-fasynchronous-unwind-tables -fno-jump-tables -fno-strict-aliasing

$(O)/runtime/%.o: editor/runtime/%.c $(O)/obj/.flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(RUNTIME_CFLAGS) -MMD -MP -c -o $@ $<

$(O)/runtime/%.o: editor/runtime/%.S $(O)/obj/.flags
	$(call say,AS,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -m64 -MMD -MP -c -o $@ $<

$(O)/runtime/at-%.bin: $(RUNTIME_OBJS) editor/runtime/runtime.ld
	$(Q)$(CC) -m64 -nostdlib -static -Wl,--defsym=BASE=$* -Wl,--build-id=none \
		-Wl,-z,noexecstack -Wl,--no-eh-frame-hdr -Wl,-T,editor/runtime/runtime.ld -o $(@:.bin=.elf) $(RUNTIME_OBJS)
	$(Q)$(OBJCOPY) -O binary -j .text $(@:.bin=.elf) $@
	$(Q)$(OBJCOPY) -O binary -j .eh_frame $(@:.bin=.elf) $(@:.bin=.frames)

$(O)/runtime/runtime_blob.h: $(O)/runtime/at-0x10000.bin $(O)/runtime/at-0x76543000.bin
	$(call say,BLOB,editor/runtime)
	$(Q)cmp $^ || { echo "editor/runtime: needs relocations" >&2; exit 1; }
	$(Q)cmp $(^:.bin=.frames) || { echo "editor/runtime: unwind rows need relocations" >&2; exit 1; }
	$(Q)od -An -v -tx1 $(<:.bin=.frames) | sed 's/ \([0-9a-f]*\)/0x\1, /g' > $(@D)/runtime_frames.h
	$(Q)od -An -v -tx1 $< | sed 's/ \([0-9a-f]*\)/0x\1, /g' > $@

$(foreach d,obj fuzz/obj fuzz-afl/obj,$(patsubst %.c,$(O)/$(d)/%.o,$(filter \
	%/runtime.c,$(SRCS)))): $(O)/runtime/runtime_blob.h
.SECONDARY: $(RUNTIME_OBJS)
-include $(RUNTIME_OBJS:.o=.d)

# ---- link -----------------------------------------------------------------

# An archive is written anew, because objects of deleted sources must not stay in it.
define archive
	$(call say,AR,$(patsubst $(O)/%,%,$@))
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcsD $@ $(filter %.o,$^)
endef

$(LIBPROF): $(LIBPROF_OBJS)
	$(archive)
$(DAEMON): $(DAEMON_OBJS)
	$(archive)
$(O)/fleet.a: $(FLEET_OBJS)
	$(archive)
$(EDITOR): $(EDITOR_OBJS)
	$(archive)
$(SUPPORT): $(SUPPORT_OBJS)
	$(archive)

link = $(CC) $(MORPH_LDFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^)

define daemon_prog
$(call prog,$(1)): $(call objs,$(1)) $(DAEMON) $(LIBPROF)
	$$(call say,LD,$$(notdir $$@))
	$$(Q)$$(link) $$(LIBS)
endef
$(foreach s,$(DAEMON_SRCS),$(eval $(call daemon_prog,$(s))))
# Only `morph top' draws on a terminal.
$(O)/morph: LIBS += $(shell $(PKG_CONFIG) --libs ncursesw 2>/dev/null || echo -lncursesw -ltinfo)

define fleet_prog
$(call prog,$(1)): $(call objs,$(1)) $(FLEET) $(DAEMON) $(LIBPROF)
	$$(call say,LD,$$(notdir $$@))
	$$(Q)$$(link) $(FLEET_LIBS) $$(LIBS)
endef
$(foreach s,$(FLEET_SRCS),$(eval $(call fleet_prog,$(s))))

define editor_prog
$(call prog,$(1)): $(call objs,$(1)) $(EDITOR) $(LIBPROF)
	$$(call say,LD,$$(notdir $$@))
	$$(Q)$$(link) $$(LIBS)
endef
$(foreach s,$(EDITOR_SRCS),$(eval $(call editor_prog,$(s))))

# The module walks the stack by frame pointers. Sanitizers are never used here.
guest_cc = $(CC) -std=gnu17 -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls $(WARN) \
	-I. -D_GNU_SOURCE -MMD -MP -MF $(O)/guest/.$(notdir $@).d

guest-programs: $(GUEST_PROGS) $(call tool,bpf_walks)

# Most variants are static: all of them lie at one address, and they start sooner.
$(O)/guest/variant%: tests/guest/programs/variant.c
	$(call say,CC,guest/variant$*)
	@mkdir -p $(@D)
	$(Q)$(guest_cc) -DVARIANT=$* $(if $(filter 6,$*),,-static) -o $@ $<

$(O)/guest/libvariant%.so: tests/guest/programs/variant.c
	$(call say,CC,guest/libvariant$*.so)
	@mkdir -p $(@D)
	$(Q)$(guest_cc) -DVARIANT=$* -DLIBRARY -shared -fPIC -o $@ $<

# Programs of tests/e2e/morphd/producers.sh. Building them in the guest takes too long.
$(O)/guest/producers-%: tests/e2e/morphd/busy.c
	$(call say,CC,guest/producers-$*)
	@mkdir -p $(@D)
	$(Q)$(CC) -O1 -Wl,--build-id=0x$(shell echo $* | md5sum | cut -c 1-16) \
		$(if $(filter %.so,$*),-DLIBRARY -shared -fPIC) -o $@ $< -ldl -lpthread

# Programs of tests/e2e/morphd/same-profile.sh.
$(O)/guest/libmix.so: tests/e2e/morphd/mix.c
	$(call say,CC,guest/libmix.so)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -DLIBRARY -shared -fPIC -Wl,--build-id,-soname=./libmix.so -o $@ $<

$(O)/guest/mix: tests/e2e/morphd/mix.c $(O)/guest/libmix.so
	$(call say,CC,guest/mix)
	$(Q)$(CC) -O2 -Wl,--build-id -o $@ $^

$(O)/guest/same_profile: tests/e2e/morphd/same_profile.c
	$(call say,CC,guest/same_profile)
	@mkdir -p $(@D)
	$(Q)$(CC) -O3 -o $@ $< -lm

# Programs of tests/e2e/morphd/paths.sh. The note lies behind the code, so
# adding the note later moves no code.
$(O)/guest/paths-original $(O)/guest/paths-first: tests/e2e/morphd/paths.S
	$(call say,CC,$(patsubst $(O)/%,%,$@))
	@mkdir -p $(@D)
	$(Q)$(CC) $(if $(filter %first,$@),-DNUMBERED) -Wl,--build-id -o $@ $<

$(O)/guest/paths-copy: tests/e2e/morphd/paths.S $(O)/guest/paths-original $(O)/guest/paths-first \
		$(O)/tools/path-note
	$(call say,CC,guest/paths-copy)
	$(Q)$(O)/tools/path-note $(O)/guest/paths-original $(O)/guest/paths-first $@.note $@.table
	$(Q)$(CC) -Wa,--no-warn -DNUMBERED -DNOTE='"$@.note"' -DPATHS='"$@.table"' -Wl,--build-id -o $@ $<

# Programs of tests/guest/walks.sh. The second one is like Debian's: without frame pointers or symbols.
$(O)/guest/walk: tests/guest/programs/walk.c tests/guest/programs/reader.c $(LIBPROF)
	$(call say,CC,guest/walk)
	@mkdir -p $(@D)
	$(Q)$(guest_cc) -o $@ $(filter %.c,$^) $(LIBPROF) $(LIBS)

$(O)/guest/walked: tests/guest/programs/walked.c
	$(call say,CC,guest/walked)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 -fno-optimize-sibling-calls -fomit-frame-pointer $(WARN) -I. -D_GNU_SOURCE -MMD -MP \
		-MF $(O)/guest/.walked.d -s -o $@ $<

$(O)/guest/%: tests/guest/programs/%.c tests/guest/programs/reader.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(guest_cc) -o $@ $(filter %.c,$^) -lm

-include $(wildcard $(O)/guest/.*.d)

# The archives that tests test are built like the programs. The tests themselves need not be fast.
ifneq ($(DEBUG),1)
$(call objs,$(TEST_SRCS)): MORPH_CFLAGS += -O1
endif

define test_prog
$(call test,$(1)): $(call objs,$(1)) $(SUPPORT) $(ARCHIVES)
	$$(call say,LD,$$(patsubst $$(O)/%,%,$$@))
	@mkdir -p $$(@D)
	$$(Q)$$(link) $$(LIBS) $$(CHECK_LIBS) -Wl,--as-needed $(FLEET_LIBS)
endef
$(foreach s,$(TEST_SRCS),$(eval $(call test_prog,$(s))))

define tool_prog
$(call tool,$(1)): $(call objs,$(1)) $(SUPPORT) $(ARCHIVES)
	$$(call say,LD,$$(patsubst $(O)/%,%,$$@))
	@mkdir -p $$(@D)
	$$(Q)$$(link) $$(LIBS) -Wl,--as-needed $(FLEET_LIBS) $(UNICORN_LIBS)
endef
$(foreach s,$(TOOL_SRCS),$(eval $(call tool_prog,$(s))))

# Fuzzers: libFuzzer where clang is installed, otherwise a driver that replays files. With
# ENGINE=afl, AFL++ in persistent mode, in a directory of its own.
HAVE_CLANG := $(shell command -v $(CLANG) 2>/dev/null)
# No fuzzer uses these folders; compiling them a second time took a third of the fuzzers' build. If a new
# fuzzer does not link, take its folder out of this list.
FUZZ_UNUSED := $(addsuffix /%,$(addprefix daemon/,annotate audit diff draw export fleet stats) \
	$(addprefix editor/,audit cli refine train))
FUZZ_LIB_SRCS := $(filter-out $(FUZZ_UNUSED),$(call lib_srcs,libprof,) \
	$(call lib_srcs,daemon,$(DAEMON_MAINS)) $(call lib_srcs,editor,$(EDITOR_MAINS)) \
	$(wildcard tests/support/*.c tests/support/*/*.c))
ifeq ($(ENGINE),afl)
FUZZ_CC := AFL_QUIET=1 afl-clang-fast
FUZZ_OBJ_FLAGS := -fsanitize=address,undefined
FUZZ_LINK_FLAGS := -fsanitize=fuzzer,address,undefined
FUZZ_DRIVER :=
else ifneq ($(HAVE_CLANG),)
FUZZ_CC := $(CLANG)
FUZZ_OBJ_FLAGS := -gline-tables-only -fsanitize=fuzzer-no-link,address,undefined
FUZZ_LINK_FLAGS := -fsanitize=fuzzer,address,undefined
FUZZ_DRIVER :=
else
FUZZ_CC := $(CC)
FUZZ_OBJ_FLAGS := -fsanitize=address,undefined
FUZZ_LINK_FLAGS := -fsanitize=address,undefined
FUZZ_DRIVER := $(O)/fuzz/obj/tests/fuzz/driver.o
endif
FUZZ_OBJS := $(patsubst %.c,$(FUZZ_DIR)/obj/%.o,$(FUZZ_LIB_SRCS))
FUZZ_ARCHIVE := $(FUZZ_DIR)/morph.a

$(FUZZ_DIR)/obj/%.o: %.c
	$(call say,FUZZCC,$<)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) -std=gnu17 -O1 -g $(WARN) $(FUZZ_OBJ_FLAGS) \
		-fno-sanitize-recover=undefined -fno-omit-frame-pointer \
		-fno-strict-aliasing -I. -I$(O)/runtime -D_GNU_SOURCE \
		-DMORPH_VERSION='"$(VERSION)"' $(BPF_CFLAGS) $(PKG_CFLAGS) -MMD -MP -c -o $@ $<

$(FUZZ_ARCHIVE): $(FUZZ_OBJS)
	$(archive)

$(FUZZ_DIR)/fuzz_%: $(FUZZ_DIR)/obj/tests/fuzz/fuzz_%.o $(FUZZ_DRIVER) $(FUZZ_ARCHIVE)
	$(call say,LD,$(patsubst $(O)/%,%,$@))
	$(Q)$(FUZZ_CC) $(FUZZ_LINK_FLAGS) -o $@ $(filter %.o,$^) $(FUZZ_ARCHIVE) $(LIBS)

# The seeds of a fuzzer, replayed by the build that the other tests use.
SEEDS_TESTS := $(patsubst tests/fuzz/fuzz_%.c,$(O)/tests/seeds_%,$(FUZZ_SRCS))
$(O)/tests/seeds_%: $(O)/obj/tests/fuzz/fuzz_%.o $(O)/obj/tests/fuzz/driver.o $(SUPPORT) $(ARCHIVES)
	$(call say,LD,$(patsubst $(O)/%,%,$@))
	@mkdir -p $(@D)
	$(Q)$(link) $(LIBS) -Wl,--as-needed $(FLEET_LIBS)

# GCC loads this plugin. Its headers leave parameters unused.
$(O)/morph_marker.so: editor/marker/plugin/morph_marker.cc
	$(call say,MARKER,$<)
	@mkdir -p $(@D)
	$(Q)$(GXX) -std=gnu++17 -O2 -g -Wall -Wextra -Wno-unused-parameter -fno-rtti -fno-exceptions \
		-isystem $(GCC_PLUGIN_INCLUDE) -fPIC -shared -o $@ $<

ifneq ($(filter-out CORE=0,$(MARKER_LACKS)),)
$(info   NOTE    no plugin for code markers: $(MARKER_LACKS) missing)
endif

# QEMU loads the plugins; QEMU itself defines the functions that they call.
$(O)/plugin/%.so: tests/plugin/%.c
	$(call say,PLUGIN,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 -g $(WARN) -I. -D_GNU_SOURCE -fPIC -shared \
		-MMD -MP -MF $(O)/plugin/$*.d -o $@ $<

-include $(wildcard $(patsubst %.o,%.d,$(ALL_OBJS)) $(O)/plugin/*.d \
	$(patsubst %.o,%.d,$(FUZZ_OBJS)) $(FUZZ_DIR)/obj/tests/fuzz/*.d)

.SECONDARY: $(ALL_OBJS) $(patsubst tests/fuzz/%.c,$(FUZZ_DIR)/obj/tests/fuzz/%.o,$(FUZZ_SRCS))

# ---- check, demo, bench ---------------------------------------------------

setup:
	$(Q)scripts/setup --build

# Setup may install the compiler itself. scripts/check/run therefore starts a new
# make, which looks for the installed tools again.
check:
	$(Q)scripts/setup --guest
	$(Q)MAKE='$(MAKE)' scripts/check/run --build=$(O)

# REST=1: only what make check leaves out.
REST ?= 0
check-all:
	$(Q)scripts/setup --guest --deb --bench
	$(Q)MAKE='$(MAKE)' scripts/check/run --$(if $(filter 1,$(REST)),rest,all) --build=$(O)

# The tests that have a line '# long' as well.
check-long:
	$(Q)scripts/setup --guest --deb --bench
	$(Q)MAKE='$(MAKE)' scripts/check/run --long --build=$(O)

# A module is built for each kernel, but not for a kernel without headers.
kmod:
	$(Q)scripts/kernel/kernels > /dev/null
	$(Q)scripts/kernel/kmod-build --build=$(O)

check-guest:
	$(Q)scripts/setup --guest
	$(Q)$(MAKE) --no-print-directory all
	$(Q)BUILD=$(O) scripts/check/check-guest --long
	$(Q)BUILD=$(O) scripts/check/check-guest --kaslr requests kernel morphd

# The first run builds a kernel, which takes half an hour or more.
check-guest-debug:
	$(Q)scripts/setup --guest
	$(Q)$(MAKE) --no-print-directory all
	$(Q)BUILD=$(O) scripts/check/check-guest --debug

# Builds the four programs that the demo needs.
demo:
	$(Q)scripts/setup --build
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) $(addprefix $(O)/,morphd morph-stats morph-optimize morph-audit)
	$(Q)$(call need,scripts/demo)
	$(Q)BUILD=$(O) scripts/demo

need = test -x $(1) || { echo "make: $(1): not there yet" >&2; exit 1; }

check-hazards: all
	$(Q)MORPH_PROGRAMS=all scripts/check/run --build=$(O) e2e/optimize/programs
	$(Q)BUILD=$(O) scripts/check/hazards --long --seeds=4 --table=$(O)/hazards.md
	$(Q)BUILD=$(O) scripts/check/sweep

# Continues an interrupted run. TORTURE= holds options of scripts/check/torture,
# CSMITH= the number of programs.
TORTURE ?=
CSMITH ?= 100
check-torture: all
	$(Q)$(call need,scripts/check/torture)
	$(Q)BUILD=$(O) scripts/check/torture --executed=12 $(TORTURE)
	$(Q)BUILD=$(O) scripts/check/torture --csmith=$(CSMITH)
	$(Q)BUILD=$(O) scripts/check/torture --rust
	$(Q)BUILD=$(O) scripts/check/rust-program

check-runtimes: all
	$(Q)scripts/setup --runtimes
	$(Q)BUILD=$(O) scripts/check/runtimes

# Continues an interrupted run. PKG= names packages, DISTRIBUTION= holds options of scripts/check/distribution.
PKG ?=
DISTRIBUTION ?=
check-distribution: all
	$(Q)scripts/setup --distribution
	$(Q)BUILD=$(O) scripts/check/distribution $(DISTRIBUTION) $(PKG)

# The same programs, audited in two versions: each runs undecided, decided for A, and decided for B.
# Continues an interrupted run of the torture programs.
check-audits: all
	$(Q)BUILD=$(O) scripts/check/torture --instrument=audit $(TORTURE)
	$(Q)BUILD=$(O) scripts/check/torture --instrument=audit --csmith=$(CSMITH)
	$(Q)BUILD=$(O) scripts/check/torture --instrument=audit --rust
	$(Q)BUILD=$(O) scripts/check/hazards --instrument=audit --long --seeds=4

check-self:
	$(Q)scripts/setup
	$(Q)MAKE='$(MAKE)' scripts/check/check-self --build=$(O)
	$(Q)MAKE='$(MAKE)' scripts/check/check-self --build=$(O) --stripped

check-mutation: $(O)/tests/test_verify_bits
	$(Q)MORPH_MUTATION=all $<

# Continues with the existing corpus. FUZZ= names fuzzers (default: all);
# FUZZ_SECONDS= is the time for each.
FUZZ ?=
FUZZ_SECONDS ?= 60
fuzz:
	$(Q)scripts/setup $(if $(filter afl,$(ENGINE)),--fuzz)
	$(Q)$(MAKE) --no-print-directory fuzzers
	$(Q)$(call need,scripts/check/fuzz)
	$(Q)BUILD=$(O) scripts/check/fuzz --engine=$(ENGINE) --seconds=$(FUZZ_SECONDS) $(FUZZ)

bench:
	$(Q)scripts/setup --bench
	$(Q)$(MAKE) --no-print-directory all
	$(Q)$(call need,scripts/bench/run)
	$(Q)BUILD=$(O) scripts/bench/run

# Continues an interrupted run. FIGURE3= holds options of scripts/bench/figure3.
FIGURE3 ?=
figure3:
	$(Q)scripts/setup --bench --figure3
	$(Q)$(MAKE) --no-print-directory all
	$(Q)$(call need,scripts/bench/figure3)
	$(Q)BUILD=$(O) scripts/bench/figure3 --keep=$(O)/figure3 $(FIGURE3)

deb:
	$(Q)scripts/setup --build --deb
	$(call say,DEB,$(O)/deb)
	$(Q)scripts/package/deb --output=$(O)/deb

deb-check: deb
	$(Q)scripts/package/deb-check $(O)/deb

check-system: deb
	$(Q)scripts/setup --system
	$(Q)BUILD=$(O) tests/guest/system/run
	$(Q)BUILD=$(O) tests/guest/automatic/run
	$(Q)BUILD=$(O) tests/guest/automatic/session
	$(Q)BUILD=$(O) tests/guest/automatic/everyday

# CUTS= says how often the machine loses its power.
CUTS ?= 30
check-power: deb
	$(Q)scripts/setup --system
	$(Q)BUILD=$(O) tests/guest/automatic/power --cuts=$(CUTS)
	$(Q)BUILD=$(O) tests/guest/automatic/power --everyday --cuts=$(CUTS)

layers:
	$(Q)scripts/check/layers

# What tests work on has forms of its own.
FORMAT_SRCS = $(shell find kmod libprof daemon editor tests -name '*.[ch]' ! -name '*.mod.c' \
	! -path 'tests/data/*' ! -path 'tests/e2e/*' ! -path 'tests/hazards/*' ! -path 'tests/plugin/*/*' \
	! -path 'tests/guest/cost/*' | LC_ALL=C sort)
format-check:
	$(Q)clang-format --dry-run --Werror $(FORMAT_SRCS)

format:
	$(Q)clang-format -i $(FORMAT_SRCS)

# ---- install, clean -------------------------------------------------------

# The programs themselves list their options, so the completions are of the same version.
$(O)/completion/%: $(O)/% scripts/package/completion
	$(call say,COMPL,$*)
	@mkdir -p $(@D)
	$(Q)scripts/package/completion $(abspath $<) > $@

# State lives in /var/lib/morph. systemd creates the directory (StateDirectory=) and its user
# (sysusers.d), so `make install' does not.
install: all $(COMPLETIONS)
	$(call say,INSTALL,$(DESTDIR)$(PREFIX))
	$(Q)$(INSTALL) -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(SBINDIR)
	$(Q)for p in $(PROGS); do \
		case $$p in */morphd|*/morph-worker) dir=$(SBINDIR);; *) dir=$(BINDIR);; esac; \
		$(INSTALL) -m 0755 $$p $(DESTDIR)$$dir/ || exit 1; \
	done
	$(Q)for m in $(MAN_SRCS); do \
		dir=$(DESTDIR)$(MANDIR)/man$${m##*.}; \
		$(INSTALL) -d $$dir && $(INSTALL) -m 0644 $$m $$dir/ || exit 1; \
	done
	$(Q)$(if $(filter 1,$(CORE)),:,$(INSTALL) -D -m 0644 editor/marker/plugin/morph_marker.h \
		$(DESTDIR)$(INCLUDEDIR)/morph_marker.h)
	$(Q)test -z "$(MARKER_PLUGIN)" || \
		$(INSTALL) -D -m 0644 $(MARKER_PLUGIN) $(DESTDIR)$(MARKERDIR)/morph_marker.so
	$(Q)$(INSTALL) -d $(DESTDIR)$(COMPLETIONDIR)
	$(Q)$(INSTALL) -m 0644 $(COMPLETIONS) $(DESTDIR)$(COMPLETIONDIR)/
	$(Q)$(INSTALL) -d $(DESTDIR)$(UNITDIR)
	$(Q)sed 's|@SBINDIR@|$(SBINDIR)|g; s|@SYSCONFDIR@|$(SYSCONFDIR)|g' daemon/morphd/morphd.service \
		> $(DESTDIR)$(UNITDIR)/morphd.service
	$(Q)chmod 0644 $(DESTDIR)$(UNITDIR)/morphd.service
	$(Q)for u in service socket timer path; do \
		sed 's|@SBINDIR@|$(SBINDIR)|g; s|@SYSCONFDIR@|$(SYSCONFDIR)|g' \
			daemon/worker/morph-optimize.$$u > $(DESTDIR)$(UNITDIR)/morph-optimize.$$u && \
		chmod 0644 $(DESTDIR)$(UNITDIR)/morph-optimize.$$u || exit 1; \
	done
	$(Q)test -n "$(FLEET_LACKS)" || for u in morph-fleet.service morph-fleet.timer morph-fleet-builds.service \
			morph-fleet-builds.timer morph-fleet-canary.service morph-fleet-canary.timer; do \
		sed -e 's|@BINDIR@|$(BINDIR)|g; s|@SYSCONFDIR@|$(SYSCONFDIR)|g' \
			-e '/^@SERVICE@$$/{r daemon/fleet/service.conf' -e 'd;}' daemon/fleet/$$u \
			> $(DESTDIR)$(UNITDIR)/$$u && \
		chmod 0644 $(DESTDIR)$(UNITDIR)/$$u || exit 1; \
	done
	$(Q)test -n "$(FLEET_LACKS)" || \
		$(INSTALL) -D -m 0644 daemon/fleet/fleet.conf $(DESTDIR)$(EXAMPLEDIR)/fleet.conf
	$(Q)$(INSTALL) -D -m 0644 daemon/worker/morph.preset $(DESTDIR)$(PRESETDIR)/60-morph.preset
	$(Q)$(INSTALL) -d $(DESTDIR)$(USERUNITDIR)
	$(Q)for u in service timer; do \
		sed 's|@SBINDIR@|$(SBINDIR)|g' daemon/worker/user/morph-optimize.$$u \
			> $(DESTDIR)$(USERUNITDIR)/morph-optimize.$$u && \
		chmod 0644 $(DESTDIR)$(USERUNITDIR)/morph-optimize.$$u || exit 1; \
	done
	$(Q)$(INSTALL) -D -m 0644 daemon/morphd/morph.sysusers $(DESTDIR)$(SYSUSERSDIR)/morph.conf
	$(Q)$(INSTALL) -D -m 0644 kmod/99-morphmon.rules $(DESTDIR)$(UDEVDIR)/rules.d/99-morphmon.rules
	$(Q)$(INSTALL) -D -m 0644 kmod/morphmon.modprobe.conf $(DESTDIR)$(MODPROBEDIR)/morphmon.conf
	$(Q)$(INSTALL) -D -m 0644 kmod/morphmon.modules-load.conf $(DESTDIR)$(EXAMPLEDIR)/morphmon.modules-load.conf
	$(Q)$(INSTALL) -D -m 0644 daemon/morphd/morphd.conf $(DESTDIR)$(EXAMPLEDIR)/morphd.conf
	$(Q)$(INSTALL) -D -m 0644 daemon/policy/morph.conf $(DESTDIR)$(EXAMPLEDIR)/morph.conf
# The configuration file may hold an administrator's changes, so it is not overwritten. A package
# always gets a fresh copy.
	$(Q)$(INSTALL) -d $(DESTDIR)$(SYSCONFDIR)/morph $(DESTDIR)$(SYSCONFDIR)/morph/watch.d
	$(Q)for c in morphd/morphd.conf policy/morph.conf; do \
		test -e $(DESTDIR)$(SYSCONFDIR)/morph/$${c##*/} || \
		$(INSTALL) -m 0644 daemon/$$c $(DESTDIR)$(SYSCONFDIR)/morph/$${c##*/} || exit 1; \
	done

# Install the module's source for dkms. The sources lie in a subdirectory, because their includes
# are named from its parent.
DKMSDIR ?= /usr/src/morphmon-$(VERSION)
KMOD_SRCS = kmod/Kbuild $(filter-out %.mod.c,$(wildcard $(foreach d,kmod kmod/probe kmod/uapi,\
	$(d)/*.c $(d)/*.h)))
install-dkms:
	$(call say,INSTALL,$(DESTDIR)$(DKMSDIR))
	$(Q)for f in $(KMOD_SRCS); do \
		$(INSTALL) -D -m 0644 $$f $(DESTDIR)$(DKMSDIR)/$$f || exit 1; \
	done
	$(Q)sed 's|#MODULE_VERSION#|$(VERSION)|' kmod/dkms.conf > $(DESTDIR)$(DKMSDIR)/dkms.conf
	$(Q)chmod 0644 $(DESTDIR)$(DKMSDIR)/dkms.conf

# $(O) may be any directory, so only files that the build itself made are removed.
clean:
	$(call say,CLEAN,$(O))
	$(Q)rm -rf $(O)/obj $(O)/bpf $(O)/fleet $(O)/runtime $(O)/fuzz $(O)/fuzz-afl $(O)/plugin $(O)/tests $(O)/tools \
		$(O)/logs $(O)/completion $(O)/kmod $(O)/guest \
		$(PROGS) $(ARCHIVES) $(O)/morph_marker.so

FORCE:
