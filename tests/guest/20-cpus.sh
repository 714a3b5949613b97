#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A CPU goes off and comes back; an idle one is let alone.
. "$(dirname "$0")/lib.sh"
load
check cpus hotplug $((3 + LONG * 47))
check cpus idle
unload
finish
