#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs the end-to-end tests, all or those named, one line each.
# E2E_LONG=1: with the counts of "make torture".
cd "$(dirname "$0")/../.." || exit 1
[ $# -gt 0 ] || set -- tests/e2e/*-*.sh
[ -z "${E2E_LONG:-}" ] || export LIMIT="${LIMIT:-3600}"
exec tests/run.sh "$@"
