#!/bin/bash
# SPDX-License-Identifier: MIT
# The slice of "make torture" that takes seconds: all of gzip, and libc under the
# shell and under a program of ours.
export QUICK=1
exec bash "$(dirname "$0")/run.sh" gzip libc
