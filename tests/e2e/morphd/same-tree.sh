#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone: it samples
# long
# The same work gives the same calling context tree with every source: how many samples fall into each path of
# calls, of a program that calls the same functions in several ways. The test is that of same-profile.sh.
export STACKS=1 RATE=${RATE:-2000} MS=${MS:-1000}
exec bash "$(dirname "$0")/same-profile.sh"
