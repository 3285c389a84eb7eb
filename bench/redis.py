#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""redis.py UKPROBE PID LOAD SOCKET QUADS SECONDS: CPU time that a redis-server needs for
a GET, with a counting probe on processCommand and without.

It is taken in units of what the load generator, process LOAD on the same CPU, spends in
the same window: a request of the one and one of the other alternate by microseconds, so
whatever makes the machine slower for a while (neighbours, clock rates) changes both,
and a probe only the first.  In nanoseconds a window's cost varies three times as much.

One after the other are measured, for so many seconds each: without, with, with,
without.  What drifts evenly over a quad cancels out.  Every second quad is a blank:
nothing is attached, so it says what the method is worth here.  Of the differences
of each kind: the median, and its 95 % confidence interval by order statistics, which
assumes nothing of how they are distributed.
"""
import glob
import json
import math
import signal
import socket
import subprocess
import sys
import time

SETTLE = 0.05  # after a change
PATIENCE = 60


def cpu_of(pid):
    """Nanoseconds of all threads so far."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path) as f:
            total += int(f.read().split()[0])
    return total


class Server:
    def __init__(self, pid, load, path):
        self.pid = pid
        self.load = load
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)

    def gets(self):
        """Calls of GET so far."""
        self.socket.sendall(b"INFO commandstats\r\n")
        data = b""
        while b"\r\n" not in data:
            data += self.socket.recv(65536)
        head, _, data = data.partition(b"\r\n")
        while len(data) < int(head[1:]) + 2:
            data += self.socket.recv(65536)
        at = data.index(b"cmdstat_get:calls=") + len(b"cmdstat_get:calls=")
        return int(data[at:data.index(b",", at)])

    def window(self, seconds):
        """CPU time in units of the load's, nanoseconds a GET, and how many there were."""
        gets, cpu, load = self.gets(), cpu_of(self.pid), cpu_of(self.load)
        time.sleep(seconds)
        gets, cpu, load = self.gets() - gets, cpu_of(self.pid) - cpu, cpu_of(self.load) - load
        if gets < 100:
            sys.exit(f"redis: {gets} requests in {seconds} s: the load does not run")
        return cpu / load, cpu / gets, gets


class Probe:
    def __init__(self, ukprobe, pid):
        self.pid = str(pid)
        self.stat = subprocess.Popen([ukprobe, "stat", "-p", self.pid, "--json", "p processCommand"],
                                     stdout=subprocess.PIPE, text=True)
        end = time.monotonic() + PATIENCE
        while not self.is_jump(ukprobe):
            if self.stat.poll() is not None or time.monotonic() > end:
                sys.exit("redis: no jump comes at processCommand")
            time.sleep(0.01)

    def is_jump(self, ukprobe):
        said = subprocess.run([ukprobe, "list", "-p", self.pid], capture_output=True, text=True).stdout
        return any("processCommand" in line and "[OPTIMIZED]" in line for line in said.splitlines())

    def remove(self):
        """The hits."""
        self.stat.send_signal(signal.SIGINT)
        return json.loads(self.stat.communicate()[0])["hits"]


def quad(server, ukprobe, seconds):
    """The difference in per cent; ukprobe None: a blank."""
    before, ns, _ = server.window(seconds)
    probe = Probe(ukprobe, server.pid) if ukprobe else None
    time.sleep(SETTLE)
    first, _, gets = server.window(seconds)
    second, _, more = server.window(seconds)
    if probe:
        hits = probe.remove()
        if hits < gets + more:
            sys.exit(f"redis: {hits} hits of {gets + more} requests")
    time.sleep(SETTLE)
    after, last, _ = server.window(seconds)
    return 100 * ((first + second) / (before + after) - 1), (ns + last) / 2


def interval(values):
    """Median and 95 % interval of the median."""
    v = sorted(values)
    n = len(v)
    k = max(0, math.floor(n / 2 - 0.98 * math.sqrt(n)))
    return (v[(n - 1) // 2] + v[n // 2]) / 2, v[k], v[n - 1 - k]


def main():
    ukprobe, pid, load, path, quads, seconds = sys.argv[1:]
    server = Server(int(pid), int(load), path)
    server.window(1)  # warm
    blank, probed, ns = [], [], []
    for _ in range(int(quads)):
        for values, program in ((blank, None), (probed, ukprobe)):
            difference, without = quad(server, program, float(seconds))
            values.append(difference)
            ns.append(without)
    print(f"redis, CPU time a request: {sorted(ns)[len(ns) // 2]:.0f} ns (median); {quads} quads of 4 times {seconds} s each")
    for name, values in (("nothing attached in either", blank),
                         ("a counting probe on processCommand (aim: within 1)", probed)):
        print("  %s: %+.2f %% (95 %%: %+.2f to %+.2f)" % (name, *interval(values)))


main()
