#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""load.py redis|digest SOCKET: asks and checks each answer, until told to end (SIGTERM).

redis   sets, gets, counters and lists, a bunch of commands at once, against what
        each answer has to be
digest  a line with a number; the answer is SHA-256 of a text that it stands for

Ends with the number of requests; with status 1 at the first answer that is wrong,
late by a minute, or missing.
"""
import hashlib
import random
import signal
import socket
import sys

ended = False


def text_of(n):
    return (b"ukprobes %d\n" % n) * (n % 50 + 1)


def digests(sock):
    n, done = 0, 0
    answers = sock.makefile("rb")
    while not ended:
        some = [(n + k * 7919) % 100003 for k in range(16)]
        sock.sendall(b"".join(b"%d\n" % k for k in some))
        for k in some:
            want = hashlib.sha256(text_of(k)).hexdigest().encode() + b"\n"
            got = answers.readline()
            if got != want:
                sys.exit("%d: %r, expected %r" % (k, got, want))
        n += 1
        done += len(some)
    return done


def command(*words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def bulk(value):
    return b"$%d\r\n%s\r\n" % (len(value), value)


def redis(sock):
    """Keys of its own, so that all answers are known."""
    mine = "%d" % random.getrandbits(40)
    rnd = random.Random(1)
    count = done = 0
    while not ended:
        key = "k:%s:%d" % (mine, rnd.randrange(500))
        value = (b"%d," % count) * rnd.randrange(1, 60)
        count += 1
        ask = [
            (("SET", key, value), b"+OK\r\n"),
            (("GET", key), bulk(value)),
            (("STRLEN", key), b":%d\r\n" % len(value)),
            (("INCR", "n:" + mine), b":%d\r\n" % count),
            (("RPUSH", "l:" + mine, value), b":1\r\n"),
            (("LRANGE", "l:" + mine, 0, -1), b"*1\r\n" + bulk(value)),
            (("LPOP", "l:" + mine), bulk(value)),
            (("HSET", "h:" + mine, "a", value), b":1\r\n"),
            (("HGET", "h:" + mine, "a"), bulk(value)),
            (("DEL", "h:" + mine), b":1\r\n"),
            (("GET", "none:" + mine), b"$-1\r\n"),
            (("EVAL", "return redis.call('get', KEYS[1])", 1, key), bulk(value)),
        ]
        sock.sendall(b"".join(command(*words) for words, _ in ask))
        want = b"".join(answer for _, answer in ask)
        got = b""
        while len(got) < len(want):
            more = sock.recv(len(want) - len(got))
            if not more:
                sys.exit("the connection ended after %r" % got)
            got += more
        if got != want:
            sys.exit("%r, expected %r" % (got, want))
        done += len(ask)
    return done


def end(*_):
    global ended
    ended = True


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    conn = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    conn.connect(sys.argv[2])
    conn.settimeout(60)
    print({"redis": redis, "digest": digests}[sys.argv[1]](conn), "requests")
