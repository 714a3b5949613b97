#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A CPU goes offline and comes back; an idle CPU is not woken up.
. "$(dirname "$0")/lib.sh"
load
check cpus hotplug $((3 + LONG * 47))
check cpus idle
unload
finish
