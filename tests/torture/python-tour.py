# SPDX-License-Identifier: MIT
"""Through what python3.11 has built in, in C: many functions with a few arguments
each, right ones and wrong ones.  Says what came out, nothing of which depends on
time, chance or addresses; the work starts when a line comes."""
import array
import ast
import binascii
import bisect
import cmath
import codecs
import collections
import csv
import datetime as dt
import errno
import functools
import hashlib
import heapq
import io
import itertools
import marshal
import math
import operator
import os
import pickle
import re
import select
import signal
import socket
import stat
import statistics
import string
import struct
import symtable
import sys
import time
import tokenize
import unicodedata
import warnings
import weakref
import xml.etree.ElementTree as ET
import xml.parsers.expat as expat
import zlib
import _blake2
import _md5
import _sha1
import _sha256
import _sha3
import _sha512
import _string

warnings.simplefilter("ignore")
crc = 0


def plain(x, depth=0):
    """A text of it without addresses."""
    if isinstance(x, str):
        return re.sub("0x[0-9a-f]{6,}", "0x", repr(x))
    if isinstance(
        x,
        (
            bytes,
            bytearray,
            int,
            float,
            complex,
            type(None),
            range,
            dt.date,
            dt.time,
            dt.timedelta,
            dt.timezone,
        ),
    ):
        return repr(x)
    if depth < 4 and isinstance(x, (tuple, list, collections.deque)):
        return "[" + ",".join(plain(i, depth + 1) for i in x) + "]"
    if depth < 4 and isinstance(x, dict):
        return "{" + ",".join(plain(k, 9) + ":" + plain(v, depth + 1) for k, v in x.items()) + "}"
    if isinstance(x, (set, frozenset)):
        return "{" + ",".join(sorted(map(repr, x))) + "}"
    return type(x).__name__


def note(x):
    global crc
    crc = zlib.crc32(plain(x).encode("utf-8", "surrogatepass"), crc)


def attempt(f, *args, **kw):
    try:
        r = f(*args, **kw)
        if hasattr(r, "__next__") and not isinstance(r, io.IOBase):
            r = list(itertools.islice(r, 40))
        note(r)
        return r
    except Exception as e:
        note(type(e).__name__)


SAMPLES = [
    0,
    1,
    -7,
    2**70,
    -(2**65) + 3,
    True,
    1.5,
    -0.0,
    1e300,
    float("inf"),
    float("nan"),
    3 - 4j,
    "",
    "abc",
    "Stra\xdfe \u20ac",
    "\U0001f600x",
    "a,b;c d\n",
    b"",
    b"bytes \xff",
    bytearray(b"mut"),
    None,
    (),
    (1, 2, 3),
    [3, 1, 2],
    {"k": 1},
    {1, 2},
    frozenset("ab"),
    range(3, 20, 4),
    slice(1, 9, 2),
    memoryview(b"view of bytes"),
    array.array("i", [3, 1, 2]),
    array.array("d", [1.5, -2]),
    collections.deque([1, 2, 3], 5),
    collections.OrderedDict(a=1, b=2),
    collections.defaultdict(int, x=1),
    dt.datetime(2024, 2, 29, 12, 34, 56, 789),
    dt.date(1999, 12, 31),
    dt.time(1, 2, 3),
    dt.timedelta(-3, 7, 9),
    dt.timezone(dt.timedelta(hours=2), "X"),
    re.compile("(a)(b)?"),
    io.BytesIO(b"some\nlines\n"),
    io.StringIO("text\nlines"),
    struct.Struct("<hIq"),
    zlib.compressobj(),
    hashlib.sha3_256(b"x"),
]
# Of each of these every method is called.
SKIP = {
    "__class__",
    "__init_subclass__",
    "__subclasshook__",
    "__reduce__",
    "__reduce_ex__",
    "__dir__",
    "__new__",
    "__hash__",
    "__sizeof__",
    "__del__",
    "__getstate__",
    "detach",
    "getpid",
    "__doc__",
    "__repr__",
    "buffer_info",
    "fromfile",
    "today",
    "now",
    "utcnow",
    "__format__",
    "__str__",
}
ARGS = [(), (1,), ("b",), ((1, 2), 2), ("utf-8", "replace")]


def methods():
    for sample in SAMPLES:
        for name in sorted(set(dir(type(sample))) - SKIP):
            for args in ARGS:
                try:
                    target = (
                        sample
                        if isinstance(sample, (int, float, str, bytes, tuple))
                        else fresh(sample)
                    )
                    f = getattr(target, name)
                except Exception as e:
                    note(type(e).__name__)
                    break
                if not callable(f):
                    note(f)
                    break
                if name in (
                    "__mul__",
                    "__rmul__",
                    "__imul__",
                    "__pow__",
                    "__rpow__",
                    "__lshift__",
                    "__rlshift__",
                    "zfill",
                    "center",
                    "ljust",
                    "rjust",
                    "expandtabs",
                ) and any(isinstance(a, int) and abs(a) > 9 for a in (*args, sample)):
                    break
                attempt(f, *args)


def fresh(x):
    for how in (lambda: x.copy(), lambda: pickle.loads(pickle.dumps(x))):
        try:
            return how()
        except Exception:
            pass
    return x


def operators():
    two = [
        getattr(operator, n)
        for n in (
            "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift matmul eq lt le "
            "contains concat getitem iadd isub imul is_ iand ior ixor"
        ).split()
    ]
    one = [getattr(operator, n) for n in "neg pos abs invert index not_ truth length_hint".split()]
    small = [s for s in SAMPLES[:36:3] if not (isinstance(s, int) and abs(s) > 9)]
    for f in two:
        for a in small:
            for b in small:
                attempt(f, fresh(a), b)
    for f in [
        *one,
        str,
        repr,
        ascii,
        bool,
        int,
        float,
        complex,
        list,
        tuple,
        set,
        dict,
        bytes,
        bytearray,
        iter,
        reversed,
        sorted,
        sum,
        max,
        min,
        len,
        hex,
        oct,
        bin,
        chr,
        ord,
        callable,
        all,
        any,
        enumerate,
        round,
    ]:
        for a in SAMPLES[:36]:
            attempt(f, a)
    for spec in (
        "",
        "d",
        "n",
        "b",
        "o",
        "x",
        "#X",
        "08.3f",
        "+e",
        "G",
        "%",
        ",",
        "_",
        "<10",
        ">12",
        "^9",
        "=+8",
        "c",
        "s",
        "z",
    ):
        for a in SAMPLES[:18]:
            attempt(format, a, spec)
            attempt(
                operator.mod,
                "%" + spec.strip("<>^=,_%nbz") + ("d" if not spec[-1:].isalpha() else ""),
                a,
            )


def modules():
    values = [0, -1, 0.5, 7.25, float("inf"), float("nan"), 3 + 4j, 10**30, "x", [1.5, 2]]
    for module in (
        math,
        cmath,
        operator,
        itertools,
        bisect,
        heapq,
        statistics,
        binascii,
        unicodedata,
        string,
        _string,
        functools,
        stat,
        errno,
        codecs,
    ):
        for name in sorted(dir(module)):
            f = getattr(module, name)
            if (
                not callable(f)
                or name.startswith("__")
                or name
                in (
                    "cycle",
                    "repeat",
                    "count",
                    "factorial",
                    "perm",
                    "comb",
                    "lru_cache",
                    "StreamReaderWriter",
                    "open",
                    "EncodedFile",
                    "StreamRecoder",
                )
            ):
                continue
            for a in values:
                attempt(f, a)
            for a, b in ((7, 3.5), ([1, 2, 5], 3), ([5, 1], [2, 3]), ("ab", "cd")):
                attempt(f, a, b)
            attempt(f, 5, 3, 2)
    for n in range(0, 200, 9):
        attempt(math.factorial, n)
        attempt(math.comb, n, 5)
        attempt(math.perm, n, 3)
        attempt(math.isqrt, n**17)
        attempt(lambda: pow(3, n**9, 10**40 + 7))
        attempt(lambda: int("7" * (n + 1)) // int("3" * (n // 2 + 1)) * int("9" * n or "1"))
    for c in itertools.chain(range(0, 0x3000, 37), range(0xAC00, 0xAC80, 7), (0x1F600, 0x2F800)):
        ch = chr(c)
        note(
            (
                unicodedata.name(ch, ""),
                unicodedata.category(ch),
                unicodedata.bidirectional(ch),
                unicodedata.decomposition(ch),
                unicodedata.normalize("NFKD", ch),
                unicodedata.normalize("NFC", ch + "\u0301"),
                unicodedata.numeric(ch, -1),
                unicodedata.east_asian_width(ch),
                unicodedata.combining(ch),
                ch.upper(),
                ch.lower(),
                ch.title(),
                ch.casefold(),
                ch.isidentifier(),
            )
        )
    for name in (
        "LATIN SMALL LETTER A WITH ACUTE",
        "HANGUL SYLLABLE GAG",
        "CJK UNIFIED IDEOGRAPH-4E00",
        "NO SUCH",
    ):
        attempt(unicodedata.lookup, name)


def encodings():
    text = "plain \xe4\u20ac\U0001f600 \ud800 end"
    for enc in (
        "ascii",
        "latin-1",
        "utf-8",
        "utf-8-sig",
        "utf-7",
        "utf-16",
        "utf-16-le",
        "utf-16-be",
        "utf-32",
        "utf-32-be",
        "cp1252",
        "koi8-r",
        "mac-roman",
        "idna",
        "punycode",
        "unicode-escape",
        "raw-unicode-escape",
        "charmap",
        "nosuch",
    ):
        for err in (
            "strict",
            "ignore",
            "replace",
            "xmlcharrefreplace",
            "backslashreplace",
            "surrogateescape",
            "surrogatepass",
            "namereplace",
        ):
            b = attempt(text.encode, enc, err)
            attempt((b or b"\xff\xfe+AGEA- \xc3(\xe2\x82").decode, enc, err)
            attempt(b"\xf0\x9f\x98 \xed\xa0\x80 \x80\xff\\x4 \\N{DASH}+AG".decode, enc, err)
    for enc in ("utf-8", "utf-16", "utf-7", "utf-32"):
        d = codecs.getincrementaldecoder(enc)("replace")
        note(
            [d.decode(bytes([b])) for b in text.replace("\ud800", "").encode(enc)]
            + [d.decode(b"\xff", True)]
        )
    for f, g in (
        (binascii.b2a_base64, binascii.a2b_base64),
        (binascii.b2a_hex, binascii.a2b_hex),
        (binascii.b2a_uu, binascii.a2b_uu),
        (binascii.b2a_qp, binascii.a2b_qp),
    ):
        for data in (b"", b"a", b"some = data\r\n\xff\x00", bytes(range(45))):
            attempt(g, attempt(f, data))
            attempt(g, b"not! valid==")


def storage():
    things = [s for s in SAMPLES[:40] if not isinstance(s, memoryview)] + [
        [1, [2, [3]]],
        {"d": {"e": (1, "f")}},
        Ellipsis,
        int,
        len,
        Point(1, 2),
    ]
    for proto in range(6):
        for x in things:
            data = attempt(pickle.dumps, x, proto)
            attempt(lambda: pickle.loads(data))
            for cut in range(0, min(len(data or b""), 60), 9):
                attempt(lambda: type(pickle.loads(data[:cut])).__name__)
    for version in range(5):
        for x in SAMPLES[:27]:
            attempt(lambda: marshal.loads(marshal.dumps(x, version)))
    for fmt in "cbB?hHiIlLqQnNefdspPx":
        for order in ("", "@", "<", ">", "!", "="):
            for v in (1, -1, 2**63, 1.5, b"z", b"longer", "s", None):
                data = attempt(struct.pack, order + "2" * (fmt in "sp") + fmt, v)
                if data:
                    attempt(struct.unpack, order + "2" * (fmt in "sp") + fmt, data)
                    attempt(struct.unpack_from, order + fmt, b"." * 40, 3)
    for code in "bBuhHiIlLqQfd":
        a = array.array(code, "xyz" if code == "u" else [3, 1, 2])
        for f in (
            a.byteswap,
            a.tobytes,
            a.tolist,
            a.reverse,
            a.pop,
            lambda: a + a,
            lambda: a * 3,
            lambda: a[::-1],
            lambda: a.index(a[0]),
            lambda: a.insert(1, a[0]),
            lambda: a.extend(a),
            lambda: a == a[:],
            lambda: memoryview(a).cast("B").tolist(),
            lambda: a.frombytes(b"12345678"),
        ):
            attempt(f)


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


def hashes():
    data = bytes(i * 7 % 256 for i in range(1000))
    for f in (
        _md5.md5,
        _sha1.sha1,
        _sha256.sha224,
        _sha256.sha256,
        _sha512.sha384,
        _sha512.sha512,
        _sha3.sha3_224,
        _sha3.sha3_256,
        _sha3.sha3_384,
        _sha3.sha3_512,
        _sha3.shake_128,
        _sha3.shake_256,
        _blake2.blake2b,
        _blake2.blake2s,
    ):
        for n in (0, 1, 55, 64, 127, 128, 129, 333, 1000):
            h = f(data[:n])
            h.update(data[n:])
            note(
                (
                    h.name,
                    h.block_size,
                    h.copy().hexdigest(20) if "shake" in h.name else h.hexdigest(),
                )
            )
    for kw in (
        {"key": b"k", "salt": b"s"},
        {"person": b"p", "digest_size": 9},
        {
            "fanout": 2,
            "depth": 3,
            "leaf_size": 4,
            "node_depth": 1,
            "inner_size": 5,
            "last_node": True,
        },
        {"digest_size": 99},
    ):
        attempt(lambda: _blake2.blake2b(data, **kw).hexdigest())
        attempt(lambda: _blake2.blake2s(data, **kw).hexdigest())
    for level in range(-1, 10):
        for wbits in (15, -9, 31):
            c = zlib.compressobj(level, zlib.DEFLATED, wbits)
            packed = c.compress(data) + c.flush(zlib.Z_SYNC_FLUSH) + c.flush()
            d = zlib.decompressobj(wbits)
            note(d.decompress(packed, 100) + d.decompress(d.unconsumed_tail) + d.flush())
            attempt(zlib.decompress, packed[:-3], wbits)
    note((zlib.adler32(data), zlib.crc32(data, 5)))


def dates():
    zones = [None, dt.timezone.utc, dt.timezone(dt.timedelta(hours=-5, minutes=-30))]
    for y in (1, 1582, 1900, 1970, 2000, 2024, 9999):
        for z in zones:
            t = attempt(dt.datetime, y, 2, 28, 23, 59, 58, 999999, z)
            for f in (
                t.isoformat,
                t.ctime,
                t.timetuple,
                t.utctimetuple,
                t.date,
                t.timetz,
                t.weekday,
                t.isocalendar,
                t.toordinal,
                t.utcoffset,
                lambda: t + dt.timedelta(1, 5, 7),
                lambda: t - dt.datetime(1970, 1, 1, tzinfo=z),
                lambda: t.replace(month=12, day=31),
                lambda: t.astimezone(dt.timezone.utc),
                lambda: t.isoformat(" ", "milliseconds"),
                lambda: t.timestamp() if z else 0,
                lambda: dt.datetime.fromisoformat(t.isoformat()),
                lambda: t.strftime("%Y-%m-%d %H:%M:%S.%f %z %j %U %a %b"),
                lambda: t < dt.datetime(2000, 1, 1, tzinfo=z),
                lambda: dt.datetime.combine(t.date(), t.timetz()),
            ):
                attempt(f)
    for s in (
        "2024-02-29",
        "20240229T123456",
        "2024-W09-4",
        "2024-02-29T12:34:56.789+02:30",
        "2024-02-29 12",
        "2024-13-01",
        "x",
        "2024-02-29T24:00",
        "12:34:56Z",
        "T1234",
    ):
        for c in (dt.date, dt.time, dt.datetime):
            attempt(c.fromisoformat, s)
        attempt(dt.datetime.strptime, s, "%Y-%m-%d")
    for kw in (
        {"days": 1.5},
        {"hours": -3},
        {"weeks": 2, "seconds": 0.1},
        {"microseconds": 10**18},
        {"days": 10**10},
        {"milliseconds": 1.5},
    ):
        d = attempt(lambda: dt.timedelta(**kw))
        for f in (
            lambda: d * 3,
            lambda: d / 7,
            lambda: d // dt.timedelta(hours=5),
            lambda: divmod(d, dt.timedelta(minutes=7)),
            lambda: abs(-d),
            lambda: d.total_seconds(),
            lambda: d * 0.37,
        ):
            attempt(f)
    for args in ((0,), (1e9,), (-1e9,), (253402300800,)):
        for f in (
            time.gmtime,
            dt.date.fromordinal,
            dt.datetime.utcfromtimestamp,
            lambda x: time.strftime("%c %x %X %p %Z", time.gmtime(x)),
            lambda x: time.asctime(time.gmtime(x)),
        ):
            attempt(f, *args)


def texts():
    for pat in (
        r"(\w+)\s(?P<x>\d+)?",
        r"a(?=b)|a(?!c)",
        r"(?<=x)y|(?<!x)z",
        r"(a|b)*?c{2,3}",
        r"[^\W\d]+\b",
        r"(?i:straSSE)\Z",
        r"(?s).+?$",
        r"(?:x(y)?)++",
        r"(?>a+)b",
        r"(a)?(?(1)b|c)",
        r"[",
        r"(?P<n>.)(?P=n)",
        r"\u20ac+|[\U0001f600-\U0001f610]",
    ):
        for text in (
            "word 12 abc",
            "xyz aab acc bcc",
            "Stra\xdfe STRASSE\n",
            "aabb xyxy",
            "\u20ac\u20ac \U0001f601",
            "",
        ):
            for f in (re.findall, re.sub, re.split, re.fullmatch, re.search):
                attempt(
                    lambda: f(pat, "<>", text)
                    if f is re.sub
                    else getattr(f(pat, text), "groups", lambda: 0)()
                    if f in (re.fullmatch, re.search)
                    else f(pat, text)
                )
    rows = [["a", "b,c", 'q"q', 1, None, 2.5], [], ["line\nbreak", "tab\t"]]
    for kw in (
        {},
        {"delimiter": ";"},
        {"quoting": csv.QUOTE_ALL},
        {"quoting": csv.QUOTE_NONE, "escapechar": "\\"},
        {"quoting": csv.QUOTE_NONNUMERIC},
        {"doublequote": False, "escapechar": "!"},
        {"delimiter": "ab"},
        {"lineterminator": "X"},
    ):
        out = io.StringIO()
        attempt(lambda: csv.writer(out, **kw).writerows(rows))
        note(out.getvalue())
        attempt(lambda: list(csv.reader(out.getvalue().splitlines(True), strict=True, **kw)))
    for src in (
        '<a x="1"><b>t&amp;&#8364;</b><!-- c --><?pi d?><c/>tail</a>',
        "<a><b></a>",
        '<!DOCTYPE a [<!ENTITY e "v"><!ELEMENT a ANY><!ATTLIST a q CDATA "d">]><a>&e;</a>',
        '<n:a xmlns:n="u"><n:b n:c="d"/></n:a>',
        "",
        "<a>\x01</a>",
    ):
        e = attempt(lambda: ET.fromstring(src))
        if e is not None:
            note([ET.tostring(e, enc) for enc in ("us-ascii", "utf-8")])
            for f in (
                lambda: e.find("b").text,
                lambda: [x.tag for x in e.iter()],
                lambda: e.findtext(".//b", "none"),
                lambda: list(e.itertext()),
                lambda: e.insert(0, ET.Element("z")),
                lambda: e.remove(e[0]),
                lambda: e[0:2],
                lambda: e.items(),
                lambda: e.set("k", "v"),
                e.keys,
                e.clear,
            ):
                attempt(f)
        p = expat.ParserCreate(namespace_separator=" ")
        for h in dir(p):
            if h.endswith("Handler") and h not in (
                "ExternalEntityRefHandler",
                "NotStandaloneHandler",
                "UnknownEncodingHandler",
            ):
                setattr(
                    p, h, lambda *a, h=h: note((h, [x for x in a if isinstance(x, (str, int))]))
                )
        attempt(p.Parse, src, True)
        note((p.ErrorCode, p.CurrentLineNumber, p.CurrentColumnNumber, p.CurrentByteIndex))


CODE = """
import a.b as c, d
from .e import (f, g as h)
@deco(1)
class K(Base, meta=M):
    x: int = 3
    async def m(self, a, /, b=1, *c, d, e=2, **f) -> "r":
        async with a as b, c: await d
        async for i in j: yield i
        return [x async for x in y if z]
def gen(n):
    global G
    try:
        with open(n) as f: yield from f
    except* (A, B) as e: raise X from e
    else: pass
    finally: del n[1:2, ...], n.a
    lambda q=1, *r, s: (q, *r)
    for i, (j, *k) in enumerate(n): continue
    else: assert n, "m"
    while not (n := n - 1) < 3 <= 5 != 7: break
    match n:
        case 1 | "a" | None: pass
        case [x, y, *rest] if x: pass
        case {"k": v, **rest}: pass
        case P(a=1, b=Q()) as p: pass
        case -1.5 + 2j: pass
        case _: nonlocal_ = f"{n!r:>{w}} {n=} {{}}" rb"" b""
    return {**a, "b": 1, **{x: y for x in z}}, {1, *s}, a if b else c, ~a ** -b @ c // d << 2 & 3 ^ 4 | 5 and 6 or not 7 is not None
"""
BAD = [
    "f(",
    "x = = 1",
    "def f(a, a): 1",
    "return 1",
    "'unterminated",
    "if x:\npass",
    "a b",
    "1 = x",
    "f(a=1, 2)",
    "x +",
    "\tx\n  y",
    "0777",
    "1__0",
    "f'{'",
    "f'{a b}'",
    "class",
    "import",
    "for x y in z: 1",
    "match 1:\n case a, b:\n  1\n case",
    "del f()",
    "async x",
    "lambda: (yield)",
    "nonlocal x",
    "break",
    "from x import *,y",
    "\u20ac = 1",
    "'\\N{no}'",
    "print 1",
    "a, b += 1",
    "with x as 1: 2",
    "{1:2, 3}",
    "x: y: z",
    "(x for x in y, 1)",
    "*a",
]


def compiler():
    rf = CODE.replace('rb"" b""', "")
    for opt in (0, 1, 2):
        code = attempt(compile, rf, "x", "exec", 0, 1, opt)
    tree = ast.parse(rf)
    note(ast.dump(tree, include_attributes=True))
    note(ast.unparse(tree))
    attempt(compile, tree, "x", "exec")
    note(len(symtable.symtable(rf, "x", "exec").get_children()))
    note([t.string for t in tokenize.generate_tokens(io.StringIO(rf).readline)])
    for src in [*BAD, CODE]:
        for mode in ("exec", "eval", "single"):
            try:
                compile(src, "x", mode, ast.PyCF_TYPE_COMMENTS)
            except SyntaxError as e:
                note((e.msg, e.lineno, e.offset, e.end_offset))
            except Exception as e:
                note(type(e).__name__)
    for bad in (
        ast.Module([ast.Expr(ast.Name("x", ast.Store()))], []),
        ast.Module([ast.Pass()], []),
        ast.Expression(ast.Constant(object())),
        ast.Module([ast.FunctionDef("f")], []),
    ):
        attempt(compile, bad, "x", "eval" if isinstance(bad, ast.Expression) else "exec")


def system():
    os.mkdir("tour")
    fd = os.open("tour/f", os.O_RDWR | os.O_CREAT, 0o600)
    p, q = os.pipe()
    calls = [
        lambda: os.write(fd, b"0123456789"),
        lambda: os.pread(fd, 4, 2),
        lambda: os.pwrite(fd, b"x", 1),
        lambda: os.lseek(fd, 0, 0),
        lambda: os.read(fd, 5),
        lambda: os.readv(fd, [bytearray(2)]),
        lambda: os.writev(fd, [b"a", b"b"]),
        lambda: os.ftruncate(fd, 4),
        lambda: os.fstat(fd).st_size,
        lambda: os.stat("tour/f").st_mode,
        lambda: os.chmod("tour/f", 0o644),
        lambda: os.link("tour/f", "tour/g"),
        lambda: os.symlink("f", "tour/s"),
        lambda: os.readlink("tour/s"),
        lambda: os.rename("tour/g", "tour/h"),
        lambda: os.utime("tour/f", (1, 2)),
        lambda: os.utime("tour/f", ns=(10**9, 5)),
        lambda: sorted(os.listdir("tour")),
        lambda: sorted((e.name, e.is_dir(), e.is_symlink()) for e in os.scandir("tour")),
        lambda: os.access("tour/f", os.R_OK),
        lambda: os.mkfifo("tour/p"),
        lambda: os.unlink("tour/p"),
        lambda: os.makedirs("tour/a/b"),
        lambda: os.removedirs("tour/a/b"),
        lambda: os.fsync(fd),
        lambda: os.dup2(os.dup(fd), 40),
        lambda: os.close(40),
        lambda: os.set_inheritable(fd, True),
        lambda: os.get_blocking(q),
        lambda: os.isatty(fd),
        lambda: os.umask(0o22) * 0,
        lambda: os.sendfile(q, fd, 0, 4),
        lambda: select.select([p], [q], [], 0)[0] == [p],
        lambda: os.read(p, 4),
        lambda: os.posix_fallocate(fd, 0, 10),
        lambda: os.sysconf("SC_PAGESIZE"),
        lambda: os.strerror(2),
        lambda: os.WEXITSTATUS(os.system("exit 3")),
        lambda: os.waitstatus_to_exitcode(
            os.posix_spawn("/bin/true", ["true"], {}) and os.wait()[1]
        ),
        lambda: os.fspath("x"),
        lambda: os.fsencode("\udcff"),
        lambda: os.path.normpath("a//b/../c"),
        lambda: os.get_terminal_size(fd),
        lambda: os.putenv("TOUR", "1"),
        lambda: os.unsetenv("TOUR"),
        lambda: os.getxattr("tour/f", "user.x"),
        lambda: os.sched_get_priority_max(0),
        lambda: signal.strsignal(2),
        lambda: signal.sigpending(),
        lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [10]) and 0,
        lambda: signal.sigtimedwait([10], 0),
        lambda: signal.pthread_sigmask(signal.SIG_SETMASK, []) and 0,
        lambda: signal.raise_signal(0),
        lambda: signal.getitimer(0),
        lambda: socket.inet_pton(socket.AF_INET6, "::1"),
        lambda: socket.ntohs(80),
        lambda: [s.close() for s in socket.socketpair()],
        lambda: socket.if_nametoindex("lo"),
        lambda: select.poll().register(fd),
        lambda: select.epoll().close(),
        lambda: os.open("tour/none", 0),
        lambda: os.mkdir("tour"),
        lambda: os.rmdir("tour"),
        lambda: os.stat("x" * 5000),
        lambda: os.stat("a\0b"),
        lambda: os.stat(-1),
        lambda: os.pidfd_open(-1),
        lambda: os.memfd_create("t") * 0,
    ]
    for f in calls:
        attempt(f)
    for kw in (
        {"mode": "r+"},
        {"mode": "rb"},
        {"mode": "ab+", "buffering": 0},
        {"mode": "w+", "encoding": "utf-16", "newline": "\r\n"},
        {"mode": "w", "buffering": 1},
        {"mode": "x"},
        {"mode": "rw"},
        {"mode": "r", "errors": "ignore", "encoding": "ascii"},
    ):
        f = attempt(lambda: open("tour/f", **kw)) and open("tour/f", **kw)
        for g in (
            ()
            if not f
            else (
                lambda: f.write("t\u20ac\n" * 50),
                lambda: f.write(b"b" * 50),
                lambda: f.seek(3),
                lambda: f.readline(),
                lambda: f.tell(),
                lambda: f.read(7),
                lambda: f.readinto(bytearray(5)),
                lambda: f.peek(3),
                lambda: f.readlines(),
                lambda: f.truncate(5),
                lambda: f.flush(),
                lambda: list(f),
                lambda: f.reconfigure(line_buffering=True),
                lambda: f.isatty(),
                f.close,
                f.read,
            )
        ):
            attempt(g)


PARTS = (methods, operators, modules, encodings, storage, hashes, dates, texts, compiler, system)

sys.stdin.readline()
for part in PARTS:
    crc = 0
    part()
    print(part.__name__, crc, flush=True)
print("END-OF-RUN", flush=True)
sys.stdin.readline()
