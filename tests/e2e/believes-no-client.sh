#!/bin/bash
# SPDX-License-Identifier: MIT
# A client that sends nonsense, passes descriptors or never reads its answers costs
# its own connection: who traces at the time goes on, and others are served.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "there is no python3"
build counter plain gcc
start "$BIN" 1 1000
snapshot "$PID" >"$T/before"
trace_start 1 'p work'
BROKER=$(broker_of "$PID")
descriptors()
{
	ls "/proc/$BROKER/fd" | wc -l
}
BEFORE=$(descriptors)

cat >"$T/client.py" <<'END'
import array, glob, os, socket, struct, sys, time
path = glob.glob("/tmp/ukprobes-%d/%s-*.sock" % (os.geteuid(), sys.argv[1]))[0]
OPEN, LIST, VERSION = 0, 14, 7

def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path)
    s.settimeout(60)
    return s

def ask(s, kind, arg=0, data=b"", length=None, fds=()):
    head = struct.pack("<IIII", kind, arg, len(data) if length is None else length, 0)
    s.sendmsg([head + data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", f)) for f in fds])

def ended(s):
    try:
        while s.recv(65536):
            pass
    except ConnectionResetError:
        pass
    s.close()

def served():
    s = connect()
    ask(s, LIST)
    assert b"work" in s.recv(65536)
    s.close()

for bad in (b"", b"x", struct.pack("<IIII", LIST, 0, 1, 0), struct.pack("<IIII", LIST, 0, 0xffffffff, 0)):
    s = connect()
    s.send(bad)
    if bad:
        ended(s)
    s.close()
served()

# Two descriptors fit where one is looked for.
s = connect()
null = os.open("/dev/null", os.O_RDONLY)
for n in (1, 2, 3):
    for _ in range(10):
        ask(s, LIST, fds=([null] * n,))
        s.recv(65536)
print("descriptors", len(os.listdir("/proc/%s/fd" % sys.argv[2])))
s.close()

s = connect()
ask(s, OPEN, VERSION - 1)
assert b"version" in s.recv(65536)
ask(s, 99)
assert b"not open" in s.recv(65536)
s.close()

# Never reads: as many as find room are answered.
s = connect()
try:
    s.settimeout(20)
    for _ in range(5000):
        ask(s, LIST)
    raise SystemExit("5000 answers found room")
except (BrokenPipeError, ConnectionResetError):
    pass
served()
END
timeout 100 python3 "$T/client.py" "$PID" "$BROKER" >"$T/said" 2>&1 || fail "$(tail -n 1 "$T/said")"
# One more: its own connection.
eq "$(sed -n 's/^descriptors //p' "$T/said")" $((BEFORE + 1)) "descriptors of the broker"
eq "$(broker_of "$PID")" "$BROKER" "the broker"
within 10 eval '[ "$(descriptors)" -eq "$BEFORE" ]' || fail "$(descriptors) descriptors, not $BEFORE"
say go
await '^done'
trace_end
eq "$RECORDS" 1000 "records"
assert_untouched "$PID" "$T/before"
