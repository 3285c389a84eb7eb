#!/bin/bash
# SPDX-License-Identifier: MIT
# deps.sh build|demo|check|torture|bench|peers...: installs what these need and is not there.
# Debian's names; on another system the list is printed and nothing is done.
set -u

declare -A need=(
	[build]="gcc libc6-dev binutils make pkg-config libzydis-dev libzycore-dev libjson-c-dev"
	[demo]="redis-server redis-tools procps"
	[check]="bc libcmocka-dev clang clang-format libclang-rt-14-dev g++ gcc-multilib libunwind-14-dev libunwind8 libboost-context-dev musl-tools gdb strace
		linux-perf redis-server redis-tools procps util-linux mandoc python3 python3-greenlet"
	[torture]="python3.11 libpython3.11-testsuite sqlite3 libsqlite3-0 libssl3 libssl-dev perl gzip
		redis-server nginx-light wrk postgresql openjdk-17-jdk-headless nodejs golang-go"
	[bench]="libcmocka-dev libelf-dev"
	[peers]="uftrace liblttng-ust-dev lttng-tools redis-server redis-tools python3"
)

missing=()
for group in "$@"; do
	for p in ${need[$group]}; do
		state=$(dpkg-query -W -f '${Status}' "$p" 2>/dev/null) || state=
		[ "$state" = "install ok installed" ] || missing+=("$p")
	done
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
	echo "deps: install these first (Debian's names): ${missing[*]}" >&2
	exit 1
fi
root=
[ "$(id -u)" -eq 0 ] || root=sudo
echo "deps: installing ${missing[*]}"
# Runlevel 1: a server that a package brings is not started as a service.
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
	$root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
		apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1
}
install || { $root apt-get update >"$log" 2>&1 && install; } || {
	tail -n 20 "$log" >&2
	echo "deps: apt-get could not install ${missing[*]}" >&2
	exit 1
}
