"""Bad input on real sockets and pipes: the gateway does not crash, its memory stays bounded, nobody else's calls wait, and
every call ends answered, refused or parked, with one effect at most.

usage: bad_input_test.py front|stdio|http|flood
  front   what clients send, over HTTP and on standard input
  stdio   what an upstream on pipes writes
  http    what an upstream over HTTP answers
  flood   an upstream that never stops talking to a client that does not read
"""
import json
import os
import pathlib
import random
import re
import socket
import struct
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support/ground"))
from ground import KEY, Agent, Ground, StdioAgent, text_of, verdict, wait_for
from villain import LISTS, answers, lines

MEGABYTE = 1 << 20
TOOL = 'timeout = "1s"\nlate_answer_window = "1s"'
GRANTS = {"led__append": 'cap = 100000\ncost = "none"', "bad__act": 'cap = 100000\ncost = "none"',
          "bad__big": 'cap = 100000\ncost = "none"'}
LIMITS = '[limits]\nrequest_timeout = "2s"\nanswer_bytes_max = 16777216\n'


def bound_kb(ground):
    """Generous: far below what is thrown at it. AddressSanitizer keeps what was freed."""
    with open(ground.gateway, "rb") as program:
        return (2048 if b"__asan_init" in program.read() else 400) * 1024


class Watched:
    """A gateway whose memory is bounded, and an agent of somebody else whose calls go through meanwhile."""

    def __init__(self, ground, gateway, token):
        self.ground, self.gateway, self.token = ground, gateway, token
        self.agent, self.count, self.most = Agent(gateway.port, token), 0, 0

    def others(self, what):
        """Another agent's call, carried out while all this goes on. Where the gateway gets so little of the machine that it
        does not hear tallyd in time, it refuses and sends nothing; the agent asks again then."""
        for _ in range(20):
            self.count += 1
            text = f"other-{self.gateway.name}-{self.count}"
            said = verdict(self.agent.call("led__append", {"text": text}))
            if said != "unavailable/AUTHORITY_DOWN":
                break
            self.ground.check(f"{what}: nothing of what was refused", self.ground.effects(text), 0)
        self.ground.check(f"{what}: another's call", (said, self.ground.effects(text)), ("done", 1))
        self.most = max(self.most, self.gateway.rss_kb())
        self.ground.check(f"{what}: it lives", self.gateway.process.poll(), None)

    def end(self, what):
        self.ground.check(f"{what}: memory, kB", self.most, lambda kb: kb < bound_kb(self.ground))
        print(f"{what}: at most {self.most // 1024} MB", flush=True)


def talk(port, data, seconds=30, reset=False, half_close=True):
    """Bytes on a connection of their own, and all that comes back until the other side closes it."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as client:
        try:
            client.sendall(data)
            if reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if reset:
                return b""
            if half_close:
                client.shutdown(socket.SHUT_WR)
            got = b""
            while piece := client.recv(65536):
                got += piece
            return got
        except TimeoutError:
            return b"not answered in time"
        except OSError:
            return b""


def head_of(agent, **more):
    headers = {"Host": f"127.0.0.1:{agent.port}", **agent.headers(), **more}
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


BAD_BODIES = {
    "nothing": b"", "a byte": b"\xff", "NUL": b"\0" * 1000, "UTF-16": "{}".encode("utf-16"), "BOM": b"\xef\xbb\xbf{}",
    "overlong": b'{"jsonrpc":"2.0","id":1,"method":"\xc0\xafping"}', "surrogate": b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}',
    "lone escape": b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', "cut": b'{"jsonrpc":"2.0","id":1,"meth',
    "brackets": b"[" * 1_000_000, "braces": b'{"a":' * 300_000, "batch": b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    "empty batch": b"[]", "text": b'"ping"', "number": b"1" * 100_000, "spaces": b" " * 1_000_000,
    "two": b'{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}',
    "long number": b'{"jsonrpc":"2.0","id":' + b"9" * 100_000 + b',"method":"ping"}',
    "exponent": b'{"jsonrpc":"2.0","id":1e999999999,"method":"ping"}',
    "many members": b"{" + b",".join(b'"m%d":0' % i for i in range(200_000)) + b"}",
    "deep arguments": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"led__append","arguments":{"a":' + b"[" * 70
                      + b"]" * 70 + b"}}}",
    "large arguments": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"'
                       + b"x" * 300_000 + b'"}}}',
}
BAD_IDS = ["null", "true", "1.5", "1e3", "[]", "{}", "[1]", '{"a":1}', "-0.0", "1.0", "0x1", "01", "+1"]
GOOD_IDS = ["0", "-1", "9007199254740993", "9223372036854775807", '"x"', '""', '"\\u0041\\n\\"\\\\"', '"\u00e9\U0001f600"',
            '"' + "i" * 200 + '"']


def front_messages(ground, watched):
    agent = watched.agent
    for what, body in BAD_BODIES.items():
        status, _ = agent.post(None, body=body)
        ground.check(f"a body of {what}", status, lambda s: s in (200, 400, 413))
    for number in BAD_IDS:
        text = f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"led__append","arguments":{{"text":"id"}}}}}}'
        status, got = agent.post(None, body=text.encode())
        ground.check(f"id {number}", (status, [m.get("error", {}).get("code") for m in got]),
                     lambda v: v[0] == 400 and v[1] in ([-32600], [-32700]))
    for number in GOOD_IDS:
        status, got = agent.post(None, body=f'{{"jsonrpc":"2.0","id":{number},"method":"ping"}}'.encode())
        ground.check(f"id {number}", (status, [m.get("id") for m in got]), (200, [json.loads(number)]))
    watched.others("messages")
    ground.check("nothing of that was done", ground.effects("id") + ground.effects("x" * 300_000), 0)


def front_sizes(ground, watched):
    agent, port = watched.agent, watched.gateway.port
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"' + b"x" * (10 * MEGABYTE) + b'"}}'
    head = b"POST /mcp HTTP/1.1\r\n" + head_of(agent)
    for what, data in {
            "10 MB by length": head + b"Content-Length: %d\r\n\r\n" % len(body) + body,
            "10 MB in chunks": head + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(
                b"%x\r\n" % len(body[i:i + 65536]) + body[i:i + 65536] + b"\r\n" for i in range(0, len(body), 65536)) + b"0\r\n\r\n",
            "a length without a body": head + b"Content-Length: 99999999999\r\n\r\n",
            "10 MB asked for": head + b"Expect: 100-continue\r\nContent-Length: 10485760\r\n\r\n"}.items():
        got = talk(port, data)
        # The answer may be lost where the rest was still on its way; that it is refused and closed is what counts.
        ground.check(what, got[:12], lambda g: g in (b"", b"HTTP/1.1 413", b"HTTP/1.1 100"))
    watched.others("sizes")


def front_garbage(ground, watched):
    agent, port = watched.agent, watched.gateway.port
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    head, size = head_of(agent), b"Content-Length: %d\r\n\r\n" % len(ping)

    def call(text):
        return b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"%s"}}}' % text

    def whole(text):
        return b"POST /mcp HTTP/1.1\r\n" + head + b"Content-Length: %d\r\n\r\n" % len(call(text)) + call(text)

    act = call(b"half")
    noise = random.Random(1)
    cases = {
        "header flood": b"POST /mcp HTTP/1.1\r\n" + head + b"".join(b"X-%d: y\r\n" % i for i in range(100_000)) + size + ping,
        "one header of a megabyte": b"POST /mcp HTTP/1.1\r\n" + head + b"X: " + b"y" * MEGABYTE + b"\r\n" + size + ping,
        "a target of a megabyte": b"POST /" + b"a" * MEGABYTE + b" HTTP/1.1\r\n" + head + size + ping,
        "a method of a megabyte": b"P" * MEGABYTE + b" /mcp HTTP/1.1\r\n" + head + size + ping,
        "length below zero": b"POST /mcp HTTP/1.1\r\n" + head + b"Content-Length: -1\r\n\r\n" + act,
        "two lengths": b"POST /mcp HTTP/1.1\r\n" + head + b"Content-Length: 4\r\nContent-Length: %d\r\n\r\n" % len(act) + act,
        "a length that is none": b"POST /mcp HTTP/1.1\r\n" + head + b"Content-Length: 0x10\r\n\r\n" + act,
        "length and chunks": b"POST /mcp HTTP/1.1\r\n" + head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + whole(b"behind both"),
        "chunks by another name": b"POST /mcp HTTP/1.1\r\n" + head + b"Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n" + whole(b"behind xchunked"),
        "a chunk that lies": b"POST /mcp HTTP/1.1\r\n" + head + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + act,
        "NUL in a header": b"POST /mcp HTTP/1.1\r\n" + head + b"X: a\0b\r\n" + size + ping,
        "a folded header": b"POST /mcp HTTP/1.1\r\n" + head + b"X: a\r\n b\r\n" + size + ping,
        "no version": b"POST /mcp\r\n\r\n", "version 9": b"POST /mcp HTTP/9.9\r\n" + head + size + ping,
        "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 100, "TLS": b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + b"\0" * 200,
        "bare line feeds": b"POST /mcp HTTP/1.1\n" + head.replace(b"\r\n", b"\n") + size.replace(b"\r\n", b"\n") + ping,
        "an absolute target": b"POST http://elsewhere.example/mcp HTTP/1.1\r\n" + head + size + ping,
        **{f"noise {i}": noise.randbytes(2000) for i in range(50)},
        **{f"noise after a head {i}": b"POST /mcp HTTP/1.1\r\n" + head + noise.randbytes(500) + b"\r\n\r\n" for i in range(50)},
        **{f"cut at {i}": (b"POST /mcp HTTP/1.1\r\n" + head + b"Content-Length: %d\r\n\r\n" % len(act) + act)[:-i]
           for i in range(1, 400, 7)},
    }
    for what, data in cases.items():
        got = talk(port, data)
        ground.check(what, got[:9], lambda g: g in (b"", b"HTTP/1.1 "))
        talk(port, data, reset=True)
    # Two tokens in one request are none.
    double = b"POST /mcp HTTP/1.1\r\n" + head + b"Authorization: Bearer other\r\n" + size + ping
    ground.check("two tokens", talk(port, double)[:12], b"HTTP/1.1 401")
    pipelined = (b"POST /mcp HTTP/1.1\r\n" + head + size + ping) * 199 + b"POST /mcp HTTP/1.1\r\nConnection: close\r\n" + head + size + ping
    ground.check("200 in one piece", talk(port, pipelined, half_close=False).count(b"HTTP/1.1 200"), 200)
    watched.others("garbage")
    # Of a request whose end is in doubt nobody knows what stands behind it.
    for text in ("behind both", "behind xchunked", "half"):
        ground.check(f"nothing was smuggled in: {text}", ground.effects(text), 0)


def front_tokens(ground, watched):
    """What cannot be a permit token, and names that can be no tool's."""
    agent = watched.agent
    ping = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
    for token in ("", " ", "x", "\xff\xfe", "a b", "x" * 50_000, "\x01", agent.token + "x", agent.token[:-1], agent.token.upper()):
        for scheme in ("Bearer ", "bearer  ", "Basic ", ""):
            status, _ = agent.post(ping, {"Authorization": scheme + token, "Mcp-Session-Id": "none"})
            ground.check(f"a token of {token[:20]!r} after {scheme!r}", status, lambda s: s in (400, 401, 431))
    for name in ("", "led", "led__", "__append", "led__\u00e9", "led__" + "x" * 200, "led__a b", "led__\0", "tally__nothing", "x" * 100_000,
                 "led__append\n", "LED__append", "other__append"):
        answer = agent.call(name, {"text": "name"})
        ground.check(f"a tool named {name[:20]!r}", verdict(answer), lambda v: v.startswith(("denied/", "invalid/", "rpc -32")))
    for meta in ({KEY: ""}, {KEY: "k" * 256}, {KEY: "a\nb"}, {KEY: 7}, {"dev.tallystick/repeat": "yes"}, {"dev.tallystick/amount": "5"},
                 {"dev.tallystick/amount": -1}, {"dev.tallystick/intent": ""}, {"dev.tallystick/intent": "i" * 256}):
        answer = agent.call("led__append", {"text": "name"}, meta=meta)
        ground.check(f"_meta of {str(meta)[:60]}", verdict(answer), lambda v: v.startswith(("denied/", "invalid/", "rpc -32")))
    # The key is no header, either.
    for key in ("\xff", "a\tb", "k" * 256):
        answer = agent.request("tools/call", {"name": "led__append", "arguments": {"text": "name"}}, headers={"Idempotency-Key": key})
        ground.check(f"a key of {key[:20]!r}", verdict(answer), lambda v: v.startswith(("invalid/", "rpc -32")))
    ground.check("nothing of that was done", ground.effects("name"), 0)
    watched.others("tokens and names")


def front_random(ground, watched):
    """Requests of the right form with anything in them: each is answered, and nobody is worse off."""
    agent, chance = Agent(watched.gateway.port, watched.token), random.Random(7)
    methods = ["ping", "tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list", "resources/subscribe",
               "resources/unsubscribe", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel", "initialize",
               "server/discover", "subscriptions/listen", "sampling/createMessage", "notifications/initialized", "tasks/get", "", "\u0000"]
    members = ["name", "arguments", "uri", "cursor", "_meta", "ref", "argument", "level", "protocolVersion", "capabilities", "clientInfo",
               "progressToken", "requestState", "inputResponses", "notifications", "requestId", "idempotencyKey", "task"]

    def anything(depth=0):
        kind = chance.randrange(9 if depth < 3 else 6)
        if kind == 6:
            return [anything(depth + 1) for _ in range(chance.randrange(4))]
        if kind > 6:
            return {chance.choice(members): anything(depth + 1) for _ in range(chance.randrange(5))}
        return [None, True, chance.randrange(-2**63, 2**63), chance.random(), chance.choice(["", "led__other", "x" * 300, "ledger://a",
                "\u0000", "\u202e", "2026-07-28", "1-1"]), 0][kind]

    for i in range(1500):
        message = {"jsonrpc": "2.0", "id": i + 10_000, "method": chance.choice(methods),
                   "params": {chance.choice(members): anything() for _ in range(chance.randrange(6))}}
        status, got = agent.post(message, timeout=30)
        ground.check(f"{json.dumps(message)[:300]}", (status, len(got)), lambda v: v[0] in (200, 202, 400, 404) and (v[0] != 200 or v[1] >= 1))
    watched.others("requests with anything in them")


def front_slow(ground, watched):
    """Slow writers: each connection says a byte at a time and never ends; half requests that stay."""
    agent, port = watched.agent, watched.gateway.port
    whole = b"POST /mcp HTTP/1.1\r\n" + head_of(agent) + b"Content-Length: 100\r\n\r\n" + b"{" * 50
    clients = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(300)]
    for i, client in enumerate(clients):
        client.sendall(whole[:1 + i * len(whole) // len(clients)])
    for _ in range(5):
        watched.others("slow writers")
        for client in clients:
            try:
                client.sendall(b"a")
            except OSError:
                pass
    closed = 0
    for client in clients:
        try:
            while client.recv(4096):
                pass
            closed += 1
        except ConnectionError:
            closed += 1
        except OSError:
            pass
        client.close()
    ground.check("slow writers are sent away in the end", closed, len(clients))
    watched.others("after slow writers")


def front_slow_readers(ground, watched):
    """Clients that ask for much and read nothing."""
    agent, port = watched.agent, watched.gateway.port
    ask = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    data = (b"POST /mcp HTTP/1.1\r\n" + head_of(agent) + b"Content-Length: %d\r\n\r\n" % len(ask) + ask)
    clients = []
    for _ in range(30):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(1)
        client.connect(("127.0.0.1", port))
        clients.append(client)
        try:
            for _ in range(1000):
                client.sendall(data)
        except OSError:
            pass  # the gateway takes no more from who takes nothing: as it should
    watched.others("slow readers")
    for client in clients:
        client.close()
    watched.others("after slow readers")


def front_stdio(ground, gateway, token):
    agent = StdioAgent(gateway, token)
    bad = [*BAD_BODIES.items()]
    for what, body in bad:
        if not body.strip():
            continue
        agent.send_raw(body + b"\n")
        answer = agent.next()
        ground.check(f"a line of {what}", answer, lambda a: "error" in a or a.get("result", {}).get("isError"))
    for number in BAD_IDS:
        agent.send_raw(f'{{"jsonrpc":"2.0","id":{number},"method":"ping"}}\n'.encode())
        ground.check(f"a line with id {number}", agent.next().get("error", {}).get("code"), lambda c: c in (-32600, -32700))
    for number in GOOD_IDS:
        agent.send_raw(f'{{"jsonrpc":"2.0","id":{number},"method":"ping"}}\n'.encode())
        ground.check(f"a line with id {number}", agent.next().get("id"), json.loads(number))
    for _ in range(3):
        agent.send_raw(b"x" * (10 * MEGABYTE) + b"\n")
        ground.check("a line of 10 MB", agent.next().get("error", {}).get("code"), -32600)
    answer = agent.call("led__append", {"text": "after"}, 500)
    ground.check("a call after all that", (verdict(answer), ground.effects("after")), ("done", 1))
    # Empty lines and line ends of the other kind are none of anybody's business.
    agent.send_raw(b'\n\r\n{"jsonrpc":"2.0","id":501,"method":"ping"}\r\n')
    ground.check("line ends", agent.next(lambda m: m.get("id") == 501).get("result"), {})
    most = agent.rss_kb()
    ground.check("memory, kB", most, lambda kb: kb < bound_kb(ground))
    agent.send_raw(b"y" * (5 * MEGABYTE))  # half a line, and the end
    ground.check("the end after half a line", agent.end(), 0)
    print(f"standard input: at most {most // 1024} MB", flush=True)


def front_stdio_unread(ground, gateway, token):
    """Asks and asks and does not read: the gateway takes no more from it than it can keep, and in the end all is answered."""
    agent = StdioAgent.__new__(StdioAgent)
    count = 150_000
    import subprocess  # pylint: disable=import-outside-toplevel
    process = ground.spawn([ground.gateway, "serve", "--stdio", gateway.config], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=open(gateway.folder / "unread.log", "ab"),  # pylint: disable=consider-using-with
                           env={**os.environ, "TALLY_PERMIT_TOKEN": token})
    agent.process = process
    begin = json.dumps({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}).encode() + b"\n"
    process.stdin.write(begin)
    process.stdin.flush()
    first = process.stdout.readline()
    ground.check("initialize", b'"result"' in first, True)

    def write():
        for i in range(count):
            process.stdin.write(b'{"jsonrpc":"2.0","id":"%0200d","method":"ping"}\n' % i)
        process.stdin.flush()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    writer.join(10)  # long enough for all of it, were it taken
    kept = agent.rss_kb()
    ground.check("memory while nothing is read, kB", kept, lambda kb: kb < bound_kb(ground))
    seen = sum(1 for _ in zip(range(count), iter(process.stdout.readline, b"")))
    writer.join(60)
    ground.check("all are answered in the end", seen, count)
    ground.check("the end", agent.end(), 0)
    print(f"standard output unread: {kept // 1024} MB", flush=True)


def front(ground):
    gateway = ground.add_gateway("front", ground.stdio_upstream(), top=LIMITS).start()
    _, token = ground.mint({"led__append": GRANTS["led__append"]})
    watched = Watched(ground, gateway, token)
    for part in (front_messages, front_tokens, front_random, front_sizes, front_garbage, front_slow, front_slow_readers):
        part(ground, watched)
    watched.end("the HTTP front")
    gateway.stop()
    front_stdio(ground, gateway, token)
    front_stdio_unread(ground, gateway, token)


def each_evil(ground, watched, names):
    """Each answer that is none, to a call of its own: parked, or an error; one effect; and never done again."""
    parked = {}
    for i, name in enumerate(sorted(names)):
        agent = Agent(watched.gateway.port, watched.token)
        text = f"evil {i} {name}"
        arguments = {"text": text, "evil": name}
        found = []
        thread = threading.Thread(target=lambda: found.append(agent.call("bad__act", arguments, key=text)), daemon=True)  # pylint: disable=cell-var-from-loop
        thread.start()
        watched.others(name)
        thread.join(90)
        if not ground.check(f"{name}: answered", len(found), 1):
            continue
        parked[name] = verdict(found[0])
        ground.check(f"{name}: told", parked[name], lambda v: v.startswith("delivery_uncertain/"))
        again = agent.call("bad__act", arguments, key=text)
        ground.check(f"{name}: asked again", verdict(again), lambda v: v.startswith("delivery_uncertain/"))
        ground.check(f"{name}: effects", ground.effects(text), 1)
    return parked


def upstream_stdio(ground):
    villain = (f'[upstreams.bad]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(HERE / "villain.py"))}, "--stdio"]\n'
               f'env = {{ LEDGER = {json.dumps(ground.ledger())} }}\n{TOOL}\n')
    villain += '[upstreams.bad.tools.big]\ntimeout = "60s"\n'
    gateway = ground.add_gateway("stdio", ground.stdio_upstream() + villain, top=LIMITS).start()
    permit, token = ground.mint(GRANTS)
    watched = Watched(ground, gateway, token)
    names = set(lines({"id": 1, "params": {}}))
    told = each_evil(ground, watched, names)
    ground.check("all are parked", len(ground.parked(permit)), len(told))
    # Answers that are large and good: passed on whole, whatever of it tallyd keeps.
    for size in (900_000, 3 * MEGABYTE, 5 * MEGABYTE, 10 * MEGABYTE):
        agent = Agent(gateway.port, token)
        text = f"big-{size}"
        answer = agent.call("bad__big", {"text": text, "evil": "big", "bytes": size}, key=text)
        ground.check(f"an answer of {size}", (verdict(answer), len(text_of(answer))), ("done", size))
        wait_for("committed", lambda: ground.calls(permit)[text]["state"] == "SUCCEEDED", 30)  # pylint: disable=cell-var-from-loop
        again = agent.call("bad__big", {"text": text, "evil": "big", "bytes": size}, key=text)
        ground.check(f"an answer of {size}, asked again", verdict(again),
                     "replayed" if size < MEGABYTE else lambda v: v.startswith("already_done/"))
        ground.check(f"an answer of {size}: effects", ground.effects(text), 1)
    deaf(ground, watched, permit, token)
    watched.end("upstreams on pipes")
    ground.check("it ends", gateway.stop(), 0)
    # The deaf one does not see the end of its input, and goes all the same.
    left = [pid for pid in os.listdir("/proc") if pid.isdigit() and ground.ledger() in environment_of(pid)]
    ground.check("no process of an upstream is left", left, [])
    tool_lists(ground)


def environment_of(pid):
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def tool_lists(ground):
    """Lists that never end, are far too long or no lists: the client gets one that ends, with the other servers' tools."""
    text = ground.stdio_upstream()
    for i, kind in enumerate(LISTS):
        text += (f'[upstreams.bad{i}]\ncommand = {json.dumps(sys.executable)}\ntimeout = "10s"\n'
                 f'args = [{json.dumps(str(HERE / "villain.py"))}, "--list", {json.dumps(kind)}]\n')
    gateway = ground.add_gateway("lists", text).start()
    _, token = ground.mint({"led__append": GRANTS["led__append"]})
    watched = Watched(ground, gateway, token)
    for i, kind in enumerate(LISTS):
        _, token = ground.mint({"led__append": GRANTS["led__append"], f"bad{i}__*": 'cap = 5\ncost = "none"'})
        agent, names, cursor = Agent(gateway.port, token), [], None
        for _ in range(1000):
            result = agent.request("tools/list", {"cursor": cursor} if cursor else {}).get("result", {})
            names += [tool["name"] for tool in result.get("tools", [])]
            cursor = result.get("nextCursor")
            if not cursor:
                break
        ground.check(f"{kind}: the list ends", cursor, None)
        ground.check(f"{kind}: the others' tools are there", [name for name in names if not name.startswith("bad")],
                     ["led__append", "tally__call_status", "tally__permit_status"])
        ground.check(f"{kind}: names", [name for name in names if not re.fullmatch(r"[A-Za-z0-9_.\-/]{1,128}", name)], [])
        ground.check(f"{kind}: each once", len(names), len(set(names)))
        watched.others(kind)
    watched.end("lists of tools")


def deaf(ground, watched, permit, token):
    """An upstream that reads nothing any more: what does not fit into its pipe is not sent, and said so."""
    agent = Agent(watched.gateway.port, token)
    threads, found = [], []

    def call(i):
        text = f"deaf-{i}"
        found.append((text, verdict(agent.call("bad__act", {
            "text": text, "evil": "deaf", "more": "x" * 200_000}, key=text))))

    for i in range(40):
        threads.append(threading.Thread(target=call, args=(i,), daemon=True))
        threads[-1].start()
    for thread in threads:
        thread.join(90)
    watched.others("a deaf upstream")
    ground.check("all are answered", len(found), 40)
    calls = ground.calls(permit)
    for text, told in found:
        state = calls[text]["state"]
        ground.check(f"{text}: told and kept", (told, state), lambda v: (v[0].startswith("delivery_uncertain/") and v[1] == "UNCERTAIN")
                     or (v[0] == "unavailable/NOT_SENT" and v[1] == "RELEASED"))
        ground.check(f"{text}: effects", ground.effects(text), lambda n: n <= (1 if state == "UNCERTAIN" else 0))  # pylint: disable=cell-var-from-loop
    ground.check("some were not sent", sum(told == "unavailable/NOT_SENT" for _, told in found), lambda n: n > 0)


def upstream_http(ground):
    process = ground.spawn([sys.executable, str(HERE / "villain.py")], stdout=-1, env={**os.environ, "LEDGER": ground.ledger()})
    villain = f'[upstreams.bad]\nurl = "http://127.0.0.1:{int(process.stdout.readline())}/mcp"\n{TOOL}\n'
    gateway = ground.add_gateway("http", ground.stdio_upstream() + villain, top=LIMITS).start()
    permit, token = ground.mint(GRANTS)
    watched = Watched(ground, gateway, token)
    names = set(answers({"id": 1, "params": {}}))
    told = each_evil(ground, watched, names)
    ground.check("all are parked", len(ground.parked(permit)), len(told))
    watched.end("upstreams over HTTP")


def flood(ground):
    villain = (f'[upstreams.bad]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(HERE / "villain.py"))}, "--stdio"]\n'
               f'env = {{ LEDGER = {json.dumps(ground.ledger())} }}\n{TOOL}\n')
    gateway = ground.add_gateway("flood", ground.stdio_upstream() + villain, top=LIMITS).start()
    permit, token = ground.mint(GRANTS)
    watched = Watched(ground, gateway, token)
    agents, sockets = [], []
    for i in range(4):
        agent = Agent(gateway.port, token)
        agents.append(agent)
        # Its general stream is open, and nobody reads it.
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", gateway.port))
        client.sendall(b"GET /mcp HTTP/1.1\r\n" + head_of(agent, Accept="text/event-stream") + b"\r\n")
        sockets.append(client)
        # And so is the call's own, which is asked for and not read.
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "bad__act", "arguments": {"text": f"flood-{i}", "evil": "notifications for ever"}}}).encode()
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", gateway.port))
        client.sendall(b"POST /mcp HTTP/1.1\r\n" + head_of(agent) + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        sockets.append(client)
    for i in range(4):
        wait_for("the flood begins", lambda: ground.effects(f"flood-{i}"))  # pylint: disable=cell-var-from-loop
    for _ in range(20):
        watched.others("a flood")
        time.sleep(0.1)
    for client in sockets:
        client.close()
    wait_for("the calls of those who did not read are parked", lambda: len(ground.parked(permit)) == 4)
    # The same sessions go on, once somebody reads.
    for agent in agents:
        answer = agent.request("ping")
        ground.check("a ping after the flood", answer.get("result"), {})
    watched.end("a flood")


def main():
    with Ground() as ground:
        {"front": front, "stdio": upstream_stdio, "http": upstream_http, "flood": flood}[sys.argv[1]](ground)
    return ground.report(f"bad input, {sys.argv[1]}")


if __name__ == "__main__":
    sys.exit(main())
