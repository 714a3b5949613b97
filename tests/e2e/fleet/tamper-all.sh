#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# long
# 3,000 changes of a build: see tamper.sh.
MUTATIONS=${MUTATIONS:-3000} exec bash "$(dirname "$0")/tamper.sh"
