# SPDX-License-Identifier: MIT
"""The programs of the soak: how each is started and loaded, and what its load found.

A program has targets (processes to be probed, by a title), and loads, of which each
checks the answers that it gets.  finish() ends the loads and says how many requests
there were; what went wrong is in `wrong`.  All is in one folder, by Unix sockets, but
for nginx, whose load generator knows nothing but loopback.
"""
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Missing(Exception):
    """What it takes isn't installed."""


def need(name, *places):
    for place in (*places, shutil.which(name)):
        for found in sorted(glob.glob(place)) if place else []:
            return found
    raise Missing("there is no " + name)


def until(seconds, what, check):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if check():
            return
        time.sleep(0.05)
    raise RuntimeError(what + " doesn't come")


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return [int(c) for c in f.read().split()]
    except OSError:
        return []


class Program:
    modules = ["MAIN", "libc.so.6"]
    stay = 1.5  # seconds that a client stays, on average: longer where it takes longer to come

    slots = True  # return addresses may be replaced

    def __init__(self, folder, built):
        self.folder, self.built = folder, built
        self.procs, self.loads, self.wrong, self.targets = [], [], [], {}
        os.mkdir(folder)
        os.chmod(folder, 0o755)
        self.sock = folder + "/sock"

    def spawn(self, *cmd, name=None, **how):
        log = open("%s/%s.log" % (self.folder, name or os.path.basename(cmd[0])), "a+b")
        p = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                             cwd=how.pop("cwd", self.folder), **how)
        p.log = log
        self.procs.append(p)
        return p

    def load(self, *cmd):
        p = self.spawn(*cmd, name="load%d" % len(self.loads))
        self.loads.append(p)

    def said(self, p):
        p.log.seek(0)
        return p.log.read().decode(errors="replace")

    def check(self):
        """What has ended that should not have."""
        for p in self.procs:
            if p.poll() is not None:
                self.wrong.append("%s ended with %d: %s" % (p.args[0], p.returncode, self.said(p)[-2000:]))
        for title, pid in self.targets.items():
            if not os.path.exists("/proc/%d/maps" % pid):
                self.wrong.append("%s (%d) is gone" % (title, pid))
        return not self.wrong

    def finish(self):
        """Ends the loads, then the program; the number of requests."""
        total = 0
        for p in self.loads:
            if p.poll() is None:
                p.send_signal(signal.SIGTERM)
        for p in self.loads:
            try:
                p.wait(120)
            except subprocess.TimeoutExpired:
                self.wrong.append("a load does not end")
                continue
            said = self.said(p)
            n = re.search(r"^(\d+) requests", said, re.M)
            total += int(n[1]) if n else 0
            if p.returncode or not n or not int(n[1]):
                self.wrong.append("load: %d: %s" % (p.returncode, said[-2000:]))
        return total

    def end(self):
        for p in reversed(self.procs):
            if p.poll() is None:
                p.terminate()
        for p in self.procs:
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()


class Digests(Program):
    """A server of ours that answers with digests."""

    def serve(self, *cmd, **how):
        p = self.spawn(*cmd, self.sock, **how)
        until(120, self.sock, lambda: os.path.exists(self.sock) or p.poll() is not None)
        time.sleep(0.3)
        self.targets["server"] = p.pid
        for _ in range(2):
            self.load("python3", HERE + "/load.py", "digest", self.sock)


class Redis(Program):
    modules = ["MAIN", "libc.so.6", "libjemalloc.so.2", "liblua5.1.so.0"]

    def start(self):
        p = self.spawn(need("redis-server"), "--port", "0", "--unixsocket", self.sock, "--save", "",
                       "--appendonly", "no", "--io-threads", "2", "--dir", self.folder)
        until(60, "redis", lambda: os.path.exists(self.sock))
        self.targets["server"] = p.pid
        for _ in range(2):
            self.load("python3", HERE + "/load.py", "redis", self.sock)


class Nginx(Program):
    modules = ["MAIN", "libc.so.6", "libz.so.1.2.13"]

    def start(self):
        nginx, self.wrk = need("nginx", "/usr/sbin/nginx"), need("wrk")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        os.mkdir(self.folder + "/www")
        for name, text in (("a", "a" * 100), ("b", "bc" * 20000)):
            with open("%s/www/%s" % (self.folder, name), "w") as f:
                f.write(text + "\n")
        with open(self.folder + "/conf", "w") as f:
            f.write("""daemon off; worker_processes 2; pid %(d)s/pid; error_log %(d)s/error;
user root;
events { worker_connections 256; }
http {
  access_log %(d)s/access; gzip on; gzip_types *; gzip_min_length 1;
  client_body_temp_path %(d)s/t1; proxy_temp_path %(d)s/t2; fastcgi_temp_path %(d)s/t3;
  uwsgi_temp_path %(d)s/t4; scgi_temp_path %(d)s/t5;
  keepalive_requests 50;
  server { listen 127.0.0.1:%(p)d; root %(d)s/www; }
}
""" % {"d": self.folder, "p": self.port})
        p = self.spawn(nginx, "-c", self.folder + "/conf", "-p", self.folder)
        until(60, "nginx's workers", lambda: len(children(p.pid)) == 2)
        for i, pid in enumerate(children(p.pid)):
            self.targets["worker %d" % (i + 1)] = pid
        self.targets["master"] = p.pid
        self.total = 0
        self.again()

    def again(self):
        """wrk tells what it has found in its end, so its runs are short."""
        self.run = self.spawn(self.wrk, "-t", "1", "-c", "8", "-d", "10", "--timeout", "60", "-s",
                              HERE + "/check.lua", "http://127.0.0.1:%d/" % self.port)

    def reap(self):
        said = re.findall(r"^result (\d+) (\d+)", self.said(self.run), re.M)
        if self.run.returncode or not said or said[-1][1] != "0":
            self.wrong.append("wrk: %d: %s" % (self.run.returncode, self.said(self.run)[-2000:]))
        else:
            self.total += int(said[-1][0])
        self.procs.remove(self.run)

    def check(self):
        if self.run.poll() is not None:
            self.reap()
            self.again()
        return super().check()

    def finish(self):
        self.run.wait(120)
        self.reap()
        with open(self.folder + "/error") as f:
            bad = [line for line in f if re.search(r"alert|crit|exited on signal", line)]
        if bad:
            self.wrong.append("nginx: " + bad[0])
        return self.total


class Postgres(Program):
    modules = ["MAIN", "libc.so.6"]

    def start(self):
        self.bin = os.path.dirname(need("initdb", "/usr/lib/postgresql/*/bin/initdb"))
        self.run_as = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--"]
        os.chmod(self.folder, 0o777)
        data = self.folder + "/data"
        self.must("initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
        p = self.spawn(*self.run_as, self.bin + "/postgres", "-D", data, "-k", self.folder, "-c",
                       "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=32MB", name="postgres")
        until(120, "postgres", lambda: os.path.exists(self.folder + "/.s.PGSQL.5432"))
        time.sleep(1)
        self.must("pgbench", "-h", self.folder, "-i", "-q", "-U", "postgres", "postgres")
        self.targets["postmaster"] = p.pid
        self.bench("-c", "2")
        # Connects anew for each transaction, so children are forked all the time.
        self.bench("-c", "1", "-C", "-R", "20")
        until(60, "backends", lambda: self.backends(p.pid))
        for i, pid in enumerate(self.backends(p.pid)[:2]):
            self.targets["backend %d" % (i + 1)] = pid

    def bench(self, *how):
        # Told to end by the client's own means: by its count of seconds, at the latest.
        self.load(*self.run_as, self.bin + "/pgbench", "-h", self.folder, "-n", "-U", "postgres", "-T", "86400",
                  *how, "postgres")

    def must(self, cmd, *args):
        return subprocess.run([*self.run_as, self.bin + "/" + cmd, *args], check=True, cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode()

    def backends(self, postmaster):
        """Those that stay: of the pgbench that keeps its connections."""
        def title(pid):
            try:
                with open("/proc/%d/cmdline" % pid, "rb") as f:
                    return f.read()
            except OSError:
                return b""

        first = [p for p in children(postmaster) if b"postgres postgres [local]" in title(p)]
        time.sleep(1)
        return [p for p in first if p in children(postmaster)]

    def sql(self, text):
        return self.must("psql", "-h", self.folder, "-U", "postgres", "-At", "-c", text, "postgres").strip()

    def finish(self):
        """pgbench ends when one transaction fails: that both run on is the one check, the sums the other."""
        for p in self.loads:
            if p.poll() is not None:
                self.wrong.append("pgbench: %d: %s" % (p.returncode, self.said(p)[-2000:]))
            p.terminate()
            p.wait()
        time.sleep(1)
        sums = self.sql("select (select sum(abalance) from pgbench_accounts), (select sum(bbalance) from "
                        "pgbench_branches), (select sum(tbalance) from pgbench_tellers), "
                        "(select sum(delta) from pgbench_history), (select count(*) from pgbench_history)")
        *same, total = sums.split("|")
        if len(set(same)) != 1:
            self.wrong.append("the balances differ: " + sums)
        bad = [line for line in self.said(self.procs[0]).splitlines()
               if re.search(r"PANIC|terminated by signal|crash", line)]
        if bad:
            self.wrong.append("postgres: " + bad[0])
        return int(total)


class Jvm(Digests):
    slots = False
    modules = ["libjvm.so", "libc.so.6", "libzip.so", "libnio.so"]
    stay = 4

    def start(self):
        homes = sorted(glob.glob("/usr/lib/jvm/java-1*-openjdk-*/bin/javac"))
        javac = homes[-1] if homes else need("javac")
        java = os.path.dirname(os.path.realpath(javac)) + "/java"
        subprocess.run([javac, "-d", self.folder, HERE + "/Server.java"], check=True)
        self.serve(java, "-Xmx64m", "-Xss512k", "-cp", self.folder, "Server")


class Node(Digests):
    slots = False
    stay = 4

    def start(self):
        self.serve(need("node"), HERE + "/server.js")


class Go(Digests):
    slots = False
    modules = ["MAIN"]

    def start(self):
        go = need("go", "/usr/lib/go-1.*/bin/go")
        env = dict(os.environ, HOME=self.folder, GO111MODULE="off", GOCACHE=self.built + "/go-cache",
                   CGO_ENABLED="0")
        subprocess.run([go, "build", "-o", self.folder + "/goserver", HERE + "/server.go"], check=True, env=env)
        self.serve(self.folder + "/goserver")


PROGRAMS = {"redis": Redis, "nginx": Nginx, "postgres": Postgres, "jvm": Jvm, "node": Node, "go": Go}
