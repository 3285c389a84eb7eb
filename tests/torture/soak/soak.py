#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""soak.py UKPROBE BUILT [PROGRAM...]: servers under load, and probes that come and go.

Each target has two clients that attach at random with random probes (entries, returns,
instructions, many at once; recorded, counted, timed), stay for a random time, and leave,
or are killed.  In the first half of the time the agent goes with the last of them; in the
second a third client stays, so that agent and broker live on.  No request may fail, no
answer be wrong, no target die, no attach be refused without a reason; in the end all code
is the file's and nothing is left.

SOAK_SECONDS   for all programs together (120)
SOAK_SEED      0 takes one by the clock; it is printed
SOAK_CONTROL   no probes: what the programs grow by themselves

Memory: a few times a minute the two clients pause, and what the target and the broker
hold is read (RssAnon and RssShmem).  After the first third of each half, the slope is the
median of the slopes of all pairs (Theil and Sen), so that single steps of an allocator
count for little.
"""
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter

import programs

CLIENTS = 2
POOL = 16          # functions by target: few, so that all has been tried when it is warm
END_SECONDS = 180  # a client that has been told to end does
STAY_SECONDS = 3   # a refusal comes sooner
SLOPE_MAX = 64     # KiB an hour, where the time is enough to tell


def anon_kb(pid):
    with open("/proc/%d/status" % pid) as f:
        return sum(int(v) for v in re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", f.read(), re.M))


def slope(samples):
    """KiB an hour."""
    rest = samples[len(samples) // 3:]
    all_of = [(b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(rest) for b in rest[i + 1:]]
    return statistics.median(all_of) * 3600 if all_of else 0.0


class Target:
    """One process, its two clients, and the third that stays in the second half."""

    def __init__(self, soak, program, title, pid):
        self.soak, self.program, self.pid = soak, program, pid
        self.name = "%s %s" % (soak.name, title)
        self.out = "%s/out.%d" % (program.folder, pid)
        self.tally, self.wrong, self.refused = Counter(), [], Counter()
        self.own, self.kept, self.broker = [], [], []
        self.gate = threading.Condition()
        self.pause, self.busy, self.stay = False, 0, None
        self.pool, self.never = [], set()

    def run_ukprobe(self, *args, timeout=END_SECONDS):
        return subprocess.run([self.soak.ukprobe, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout, text=True, errors="replace")

    def bad(self, text):
        self.wrong.append("%s: %s" % (self.name, text))

    def choose_pool(self, rnd):
        """Functions that are called, mostly: else nothing would be hit."""
        main = os.path.basename(os.readlink("/proc/%d/exe" % self.pid))
        called, there = [], []
        for module in self.program.modules:
            module = main if module == "MAIN" else module
            counts = self.run_ukprobe("stat", "-p", str(self.pid), "--for", "1", "f %s:*" % module)
            called += re.findall(r"^ +[1-9]\d*  (?:\S+:)?([^\s+%]+)(?:\+0x0/\S+|%return)?(?: |$)", counts.stdout, re.M)
            funcs = self.run_ukprobe("funcs", "-p", str(self.pid), module + ":*")
            names = [line.split("\t")[0] for line in funcs.stdout.splitlines() if "\t" in line]
            there += ["%s:%s" % (module, n) for n in names]
        hit = [f for f in there if f.split(":", 1)[1] in set(called)]
        self.pool = rnd.sample(hit, min(len(hit), POOL * 3 // 4))
        rest = sorted(set(there) - set(self.pool))
        self.pool += rnd.sample(rest, min(len(rest), POOL - len(self.pool)))
        if not self.pool:
            raise RuntimeError("%s has no functions: %s %s" % (self.name, counts.stdout, funcs.stdout))
        self.tally["called"] = len(hit)

    def definition(self, rnd, kind):
        f = rnd.choice(self.pool)
        if kind == "latency":
            return f + rnd.choice(["", "=ptr", "=s32", "=s64"])
        how = rnd.randrange(8)
        if how == 0:
            return "p %s+*" % f
        if how <= 3:
            return "r %s%s" % (f, "" if kind == "stat" else rnd.choice(["", " $retval", " $arg1 $retval $duration",
                                                                       " s=+0($arg1):string", " s=+0($retval):x64"]))
        return "p %s%s" % (f, "" if kind == "stat" else rnd.choice(["", " $arg1 $arg2", " s=+0($arg1):string",
                                                                    " a=+8(+0($arg2)):u32", " $stack0 $comm"]))

    def attach(self, rnd):
        kind = rnd.choice(["trace", "trace", "stat", "latency"])
        # What was refused once stays out mostly: it takes all others with it.
        defs = sorted({self.definition(rnd, kind) for _ in range(rnd.randrange(1, 9))})
        if rnd.randrange(10):
            defs = [d for d in defs if d not in self.never] or [self.pool[0] if kind == "latency" else "p " + self.pool[0]]
        env = dict(os.environ)
        if rnd.randrange(8) == 0:
            env["UKPROBES_OPTIMIZATION"] = "0"
        # Where slots are refused they would take all else with them.
        slots = self.program.slots
        ret = rnd.choice([[], [], ["--ret=exit"], *([["--ret=slot"], ["--ret=call"]] if slots else [])])
        with tempfile.TemporaryFile() as err:
            p = subprocess.Popen([self.soak.ukprobe, kind, "-p", str(self.pid), "-o", self.out, *ret, *defs],
                                 stdin=subprocess.DEVNULL, stdout=err, stderr=err, env=env)
            try:
                p.wait(min(rnd.expovariate(1 / self.program.stay), 15))
            except subprocess.TimeoutExpired:
                p.send_signal(rnd.choice([signal.SIGINT] * 6 + [signal.SIGKILL]))
            try:
                p.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self.bad("%s does not end: %s" % (kind, defs))
                p.kill()
                p.wait()
            err.seek(0)
            self.judge(kind, ret + defs, p.returncode, err.read().decode(errors="replace"))

    def judge(self, kind, defs, status, said):
        self.tally[kind] += 1
        hits = re.search(r"^ukprobe: (\d+) hits", said, re.M)
        self.tally["hits"] += int(hits[1]) if hits else 0
        if status == 1 and re.match(r"ukprobe: ", said):
            line = re.sub(r"0x[0-9a-f]+|\b\d+\b", "N", said.splitlines()[0])
            self.refused[line[:150]] += 1
            self.never.update(d for d in defs if "\n  %s\n" % d in said)
        elif status not in (0, -signal.SIGKILL, -signal.SIGINT):
            self.bad("%s %s: status %d: %s" % (kind, defs, status, said[-1000:]))

    def client(self, number):
        rnd = random.Random("%d/%s/%d" % (self.soak.seed, self.name, number))
        while not self.soak.over and not self.wrong:
            with self.gate:
                self.gate.wait_for(lambda: not self.pause)
                self.busy += 1
            try:
                self.attach(rnd)
            except Exception as e:  # of the test's own: told, not lost
                self.bad(repr(e))
            with self.gate:
                self.busy -= 1
                self.gate.notify_all()
            time.sleep(rnd.random() * 0.3)

    def broker_pid(self):
        for pid in os.listdir("/proc"):
            if pid.isdigit():
                try:
                    with open("/proc/%s/cmdline" % pid, "rb") as f:
                        if f.read().split(b"\0")[:3] == [self.soak.ukprobe.encode(), b"broker", b"%d" % self.pid]:
                            return int(pid)
                except OSError:
                    pass
        return 0

    def keep(self):
        """Some places are refused while another client has jumps off: then it is the next."""
        for f in self.pool:
            self.said = tempfile.TemporaryFile()
            self.stay = subprocess.Popen([self.soak.ukprobe, "stat", "-p", str(self.pid), "-o", "/dev/null",
                                          "p " + f], stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=self.said)
            try:
                self.stay.wait(STAY_SECONDS)
            except subprocess.TimeoutExpired:
                return
            said = self.said_by_stay()
            self.stay = None
            if not said.startswith("ukprobe: Failed to register"):
                self.bad("the client that was to stay said: " + said)
                return
        self.bad("no client could stay")

    def said_by_stay(self):
        self.said.seek(0)
        return self.said.read().decode(errors="replace")[-1000:]

    def sample(self):
        """With nobody but the one that stays.  Nobody at all: then nothing is left."""
        with self.gate:
            self.pause = True
            self.gate.wait_for(lambda: not self.busy)
        try:
            if not self.stay and not self.soak.control:
                self.verify()
            now = time.monotonic()
            (self.kept if self.stay else self.own).append((now, anon_kb(self.pid)))
            broker = self.broker_pid() if self.stay else 0
            if broker:
                self.broker.append((now, anon_kb(broker)))
        except OSError as e:
            self.bad("it can't be read: %s" % e)
        with self.gate:
            self.pause = False
            self.gate.notify_all()

    def verify(self):
        # A broker whose client was killed is on its way out.
        for _ in range(END_SECONDS):
            v = self.run_ukprobe("cure", "-p", str(self.pid))
            if "are in use" not in v.stdout:
                break
            time.sleep(1)
        if v.returncode:
            self.bad("cure: " + v.stdout[-500:])
        v = self.run_ukprobe("verify", "-p", str(self.pid))
        if v.returncode:
            self.bad("verify: " + v.stdout[-500:])

    def leave(self):
        if self.stay:
            self.stay.send_signal(signal.SIGINT)
            self.stay.wait(END_SECONDS)
            if self.stay.returncode:
                self.bad("the client that stayed ended with %d: %s" % (self.stay.returncode, self.said_by_stay()))
            self.stay = None
        self.verify()

    def report(self):
        t = self.tally
        print("  %-18s %4d trace %4d stat %4d latency, %9d hits, %3d refused; KiB/h: own %.0f of %d kB, "
              "with agent %.0f of %d kB, broker %.0f of %d kB"
              % (self.name, t["trace"], t["stat"], t["latency"], t["hits"], sum(self.refused.values()),
                 slope(self.own), self.own[-1][1] if self.own else 0, slope(self.kept),
                 self.kept[-1][1] if self.kept else 0, slope(self.broker),
                 self.broker[-1][1] if self.broker else 0))
        for line, n in self.refused.most_common(int(os.environ.get("SOAK_REFUSED", "3"))):
            print("      %d x %s" % (n, line))


class Soak:
    def __init__(self, ukprobe, built, name, seconds, seed):
        self.built, self.name = os.path.abspath(built), name
        self.seconds, self.seed, self.over = seconds, seed, False
        self.control = bool(os.environ.get("SOAK_CONTROL"))
        self.folder = tempfile.mkdtemp(prefix="ukp-soak-")
        os.chmod(self.folder, 0o755)
        # Whoever builds meanwhile doesn't disturb.
        self.ukprobe = shutil.copy(ukprobe, self.folder + "/ukprobe")

    def broken(self):
        return [w for t in self.targets for w in t.wrong] + self.program.wrong

    def half(self, seconds):
        end, step = time.monotonic() + seconds, max(1.0, min(15.0, seconds / 12))
        while time.monotonic() < end and self.program.check() and not self.broken():
            time.sleep(min(step, max(0.1, end - time.monotonic())))
            for t in self.targets:
                t.sample()

    def judge_memory(self):
        if self.seconds < 600 or self.control:
            return
        for t in self.targets:
            if slope(t.broker) >= SLOPE_MAX:
                seen = ", ".join("%.0f s %d" % (at - t.broker[0][0], kb) for at, kb in t.broker)
                t.bad("its broker grows by %.0f KiB an hour: %s" % (slope(t.broker), seen))

    def run(self):
        self.program = p = programs.PROGRAMS[self.name](self.folder + "/" + self.name, self.built)
        self.targets, threads, total = [], [], 0
        try:
            p.start()
            self.targets = [Target(self, p, title, pid) for title, pid in p.targets.items()]
            for t in self.targets:
                if not self.control:
                    t.choose_pool(random.Random("%d/%s" % (self.seed, t.name)))
                    threads += [threading.Thread(target=t.client, args=(k,)) for k in range(CLIENTS)]
            for th in threads:
                th.start()
            self.half(self.seconds / 2)
            for t in self.targets:
                if not self.control:
                    t.keep()
            self.half(self.seconds / 2)
            self.over = True
            for th in threads:
                th.join()
            for t in self.targets:
                if os.path.exists("/proc/%d/maps" % t.pid) and not self.control:
                    t.leave()
            self.judge_memory()
            p.check()
            total = p.finish()
        finally:
            self.over = True
            for t in self.targets:
                with t.gate:
                    t.pause = False
                    t.gate.notify_all()
            for th in threads:
                if th.is_alive():
                    th.join()
            for t in self.targets:
                if t.stay and t.stay.poll() is None:
                    t.stay.kill()
            p.end()
        for t in self.targets:
            t.report()
        for text in self.broken():
            print("FAILED soak/%s: %s" % (self.name, text))
        if not self.broken():
            print("ok soak/%s: %d requests, %d attaches" % (self.name, total, sum(
                t.tally[k] for t in self.targets for k in ("trace", "stat", "latency"))))
        return not self.broken()


def main():
    # From a shell's background it would come ignored, and a client that is told to end before it
    # has its own handler would not hear it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ukprobe, built, *names = sys.argv[1:]
    names = names or list(programs.PROGRAMS)
    seconds = float(os.environ.get("SOAK_SECONDS", "120")) / len(names)
    seed = int(os.environ.get("SOAK_SEED", "1")) or int(time.time())
    failed = 0
    print("soak: seed %d, %.0f s each" % (seed, seconds), flush=True)
    for name in names:
        soak = Soak(ukprobe, built, name, seconds, seed)
        try:
            ok = soak.run()
        except RuntimeError as e:
            print("FAILED soak/%s: %s; %s" % (name, e, soak.program.wrong))
            ok = False
        except programs.Missing as e:
            print("skipped soak/%s: %s" % (name, e))
            ok = True
        failed += not ok
        sys.stdout.flush()
        if ok and not os.environ.get("KEEP"):
            shutil.rmtree(soak.folder, ignore_errors=True)
        else:
            print("kept: " + soak.folder)
    sys.exit(failed)


if __name__ == "__main__":
    main()
