"""An upstream that answers a tools/call with what no server should send: raw HTTP on a port that it prints, or with --stdio
raw lines. It is honest about one thing: each call that reaches it is a line in LEDGER first.

What is sent is named by the argument `evil`; see ANSWERS and LINES. Everything else is answered as it should be.
"""
import json
import os
import select
import socket
import sys
import threading
import time

LEDGER = os.environ.get("LEDGER", "")
LOCK = threading.Lock()
ENDLESS = 64 << 20  # bytes; what nobody would take whole


def append(text):
    with LOCK, open(LEDGER, "a", encoding="utf-8") as ledger:
        ledger.write(text + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())


def ordinary(message):
    method = message["method"]
    if method == "initialize":
        return {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}, "logging": {}},
                "serverInfo": {"name": "villain", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("act", "big")]}
    return {"content": [{"type": "text", "text": "done"}]}


def answer_text(message, text="done"):
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": text}]}})


def stream(*parts):
    """An endless repetition of the last part, up to ENDLESS bytes."""
    def pieces():
        yield from parts[:-1]
        block = parts[-1] * max(1, 65536 // len(parts[-1]))
        for _ in range(ENDLESS // len(block)):
            yield block
    return pieces


def once(*parts):
    return lambda: iter(parts)


OK = b"HTTP/1.1 200 OK\r\n"
JSON = OK + b"Content-Type: application/json\r\n"
SSE = OK + b"Content-Type: text/event-stream\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


def answers(message):
    """What can be sent, by name: pieces of bytes, and what comes after: close, reset or hang."""
    good = answer_text(message).encode()
    size = b"Content-Length: %d\r\n\r\n" % len(good)
    wrong_id = good.replace(b'"id": %d' % message["id"], b'"id": 987654')
    note = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}\n\n' % (b"x" * 500)
    return {
        "no response": (once(), "close"),
        "reset": (once(), "reset"),
        "hang": (once(), "hang"),
        "garbage": (once(os.urandom(4096)), "close"),
        "half a status line": (once(b"HTTP/1.1 2"), "hang"),
        "status 999": (once(b"HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n"), "close"),
        "status 000": (once(b"HTTP/1.1 000 What\r\nContent-Length: 0\r\n\r\n"), "close"),
        "HTTP/0.9": (once(good), "close"),
        "HTTP/3.0": (once(b"HTTP/3.0 200 OK\r\nContent-Length: 0\r\n\r\n"), "close"),
        "100 for ever": (stream(b"HTTP/1.1 100 Continue\r\n\r\n"), "close"),
        "101": (once(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), "hang"),
        "204": (once(b"HTTP/1.1 204 No Content\r\n\r\n"), "close"),
        "202": (once(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"), "close"),
        "redirect": (once(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /mcp\r\nContent-Length: 0\r\n\r\n"), "close"),
        "redirect, 308": (once(b"HTTP/1.1 308 Permanent Redirect\r\nLocation: /mcp\r\nContent-Length: 0\r\n\r\n"), "close"),
        "retry after": (once(b"HTTP/1.1 503 Unavailable\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"), "close"),
        "408": (once(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), "close"),
        "425": (once(b"HTTP/1.1 425 Too Early\r\nContent-Length: 0\r\n\r\n"), "close"),
        "headers for ever": (stream(OK, b"X-A: bbbbbbbb\r\n"), "close"),
        "one header for ever": (stream(OK + b"X-A: ", b"b"), "close"),
        "headers with NUL": (once(OK + b"X-A: a\0b\r\n" + size + good), "close"),
        "two lengths": (once(JSON + b"Content-Length: 5\r\nContent-Length: 7\r\n\r\n" + good), "close"),
        "length below zero": (once(JSON + b"Content-Length: -1\r\n\r\n" + good), "close"),
        "length too large to be one": (once(JSON + b"Content-Length: 99999999999999999999999\r\n\r\n" + good), "close"),
        "length too long": (once(JSON + b"Content-Length: %d\r\n\r\n" % (len(good) + 1) + good), "close"),
        "length too short": (once(JSON + b"Content-Length: %d\r\n\r\n" % (len(good) - 2) + good), "close"),
        "length and for ever": (stream(JSON + b"Content-Length: 999999999999\r\n\r\n", b" "), "close"),
        "no length, cut": (once(JSON + b"Connection: close\r\n\r\n" + good[:-1]), "close"),
        "empty": (once(JSON + b"Content-Length: 0\r\n\r\n"), "close"),
        "body for ever": (stream(JSON + b"\r\n", b"["), "close"),
        "chunk without end": (once(JSON + CHUNKED + b"%x\r\n" % len(good) + good + b"\r\n"), "close"),
        "chunk too short": (once(JSON + CHUNKED + b"5\r\n" + good + b"\r\n0\r\n\r\n"), "close"),
        "chunk too long": (once(JSON + CHUNKED + b"%x\r\n" % (len(good) + 50) + good + b"\r\n0\r\n\r\n"), "close"),
        "chunk size too large to be one": (once(JSON + CHUNKED + b"fffffffffffffffff\r\n" + good), "close"),
        "chunk size largest": (stream(JSON + CHUNKED + b"ffffffffffffffff\r\n", b" "), "close"),
        "chunk size is none": (once(JSON + CHUNKED + b"zz\r\n" + good), "close"),
        "chunk size for ever": (stream(JSON + CHUNKED, b"0"), "close"),
        "chunk extension for ever": (stream(JSON + CHUNKED + b"5;a=", b"b"), "close"),
        "trailers for ever": (stream(JSON + CHUNKED + b"5\r\nabcde\r\n0\r\n", b"X-A: bbbbbbbb\r\n"), "close"),
        "chunked and length": (once(JSON + b"Content-Length: 3\r\n" + CHUNKED + b"2\r\n{}\r\n0\r\n\r\n"), "close"),
        "gzip": (once(JSON + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\0"), "close"),
        "html": (once(OK + b"Content-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>"), "close"),
        "not UTF-8": (once(JSON + b"Content-Length: %d\r\n\r\n" % len(good) + good.replace(b"done", b"d\xff\xfee")), "close"),
        "another id": (once(JSON + b"Content-Length: %d\r\n\r\n" % len(wrong_id) + wrong_id), "close"),
        "the id as text": (once(JSON + b"Content-Length: %d\r\n\r\n" % (len(good) + 2)
                               + good.replace(b'"id": %d' % message["id"], b'"id": "%d"' % message["id"])), "close"),
        "a batch": (once(JSON + b"Content-Length: %d\r\n\r\n" % (len(good) + 2) + b"[" + good + b"]"), "close"),
        "a request": (once(JSON + b'Content-Length: 40\r\n\r\n{"jsonrpc":"2.0","id":%d,"method":"ping"}    ' % message["id"]),
                      "close"),
        "deep": (once(JSON + b"\r\n" + b"[" * 1_000_000 + b"]" * 1_000_000), "close"),
        "ten megabytes and more": (once(JSON + b"\r\n", answer_text(message, "x" * (20 << 20)).encode()), "close"),
        "events without a line end": (stream(SSE + b"\r\n", b"data: xxxx"), "close"),
        "an event for ever": (stream(SSE + b"\r\n", b"data: xxxx\n"), "close"),
        "comments for ever": (stream(SSE + b"\r\n", b": xxxx\n\n"), "close"),
        "notifications for ever": (stream(SSE + b"\r\n", note), "close"),
        "ids for ever": (stream(SSE + b"\r\n", b"id: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"), "close"),
        "an event cut": (once(SSE + b"\r\n", b"data: " + good), "close"),
        "an event of garbage": (once(SSE + b"\r\n", b"data: \xff\xfe\x00{}\n\n"), "close"),
        "an event with another id": (once(SSE + b"\r\n", b"data: " + wrong_id + b"\n\n"), "close"),
        "a stream that may be taken up at once": (once(SSE + b"\r\n", b"retry: 0\nid: 1\ndata: \n\n"), "close"),
        "a stream with an id that is no header": (once(SSE + b"\r\n", b"retry: 0\nid: a\x01\x7f\xff\ndata: \n\n"), "close"),
        "dribble": (lambda: (time.sleep(0.05) or bytes([b]) for b in JSON * 4), "close"),
    }


class Connection:
    def __init__(self, client):
        self.client = client

    def serve(self):
        try:
            self.work()
        except (OSError, ValueError):
            pass
        finally:
            self.client.close()

    def work(self):
        file = self.client.makefile("rb")
        request = file.readline()
        length = 0
        while line := file.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        message = json.loads(file.read(length)) if length else {}
        if not request.startswith(b"POST"):
            append(f"# {request.split()[0].decode()}")
            return self.client.sendall(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
        if "id" not in message or "method" not in message:
            return self.client.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        arguments = message.get("params", {}).get("arguments", {})
        if message["method"] == "tools/call":
            append(arguments.get("text", ""))
        if "evil" not in arguments:
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": ordinary(message)}).encode()
            session = b"Mcp-Session-Id: s\r\n" if message["method"] == "initialize" else b""
            return self.client.sendall(JSON + session + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        pieces, then = answers(message)[arguments["evil"]]
        for piece in pieces():
            self.client.sendall(piece)
        if then == "reset":
            self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        if then == "hang":
            select.select([self.client], [], [], 120)
        return None


def http():
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", 0))
    server.listen(512)
    print(server.getsockname()[1], flush=True)
    while True:
        client, _ = server.accept()
        threading.Thread(target=Connection(client).serve, daemon=True).start()


def lines(message):
    """What can be written in place of a line, by name. An iterable of pieces."""
    good = answer_text(message).encode()
    note = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}\n' % (b"x" * 1000)
    return {
        "silence": [],
        "garbage": [os.urandom(4096).replace(b"\n", b""), b"\n"],
        "no JSON": [b"done\n"],
        "not UTF-8": [good.replace(b"done", b"d\xff\xfee"), b"\n"],
        "half a line": [good[:-1]],
        "ten megabytes and more": [answer_text(message, "x" * (20 << 20)).encode(), b"\n"],
        "a line for ever": stream(b'{"jsonrpc":"2.0","id":', b"1")(),
        "brackets for ever": stream(b"[")(),
        "notifications for ever": stream(note)(),
        "another id": [good.replace(b'"id": %d' % message["id"], b'"id": 987654'), b"\n"],
        "the id as text": [good.replace(b'"id": %d' % message["id"], b'"id": "%d"' % message["id"]), b"\n"],
        "a batch": [b"[", good, b"]\n"],
        "a result that is none": [b'{"jsonrpc":"2.0","id":%d,"result":[]}\n' % message["id"]],
        "an error that is none": [b'{"jsonrpc":"2.0","id":%d,"error":7}\n' % message["id"]],
        "both": [good[:-1], b',"error":{"code":-32602,"message":"m"}}\n'],
        "two results": [good[:-1], b',"result":{"isError":true,"content":[]}}\n'],
        "deep": [b'{"jsonrpc":"2.0","id":%d,"result":' % message["id"], b"[" * 1_000_000, b"]" * 1_000_000, b"}\n"],
        "NUL": [b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"a":"\0"}}\n' % message["id"]],
    }


def tool(name, size=0):
    return {"name": name, "description": "d" * size, "inputSchema": {"type": "object"}}


def deep(levels):
    value = {}
    for _ in range(levels):
        value = {"a": value}
    return value


# Lists of tools, by name: pages until None. Each is asked for with a cursor that is as good as any other.
LISTS = {
    "pages for ever": lambda page: {"tools": [tool(f"t{page}")], "nextCursor": f"c{page}"},
    "the same page for ever": lambda page: {"tools": [tool("t")], "nextCursor": "c"},
    "large pages for ever": lambda page: {"tools": [tool(f"t{page}-{i}", 10_000) for i in range(1000)],
                                          "nextCursor": f"c{page}"},
    "many in one": lambda page: {"tools": [tool(f"t{i}") for i in range(50_000)]},
    "one of megabytes": lambda page: {"tools": [tool("t", 8 << 20)]},
    "no tools": lambda page: {"tools": [1, None, "a", [], {}, {"name": 7}, {"name": None}, {"name": ""}]},
    "names": lambda page: {"tools": [tool(name) for name in (
        "a b", "a\nb", "a\0b", "\u202e", "\u00e9", "x" * 200, "..", "__", "tally__x", "ok", "ok", "OK", "a__b", '"', "\\")]},
    "no list": lambda page: {"tools": {"a": 1}},
    "nothing": lambda page: {},
    "a cursor that is none": lambda page: {"tools": [tool("ok")], "nextCursor": {"a": [1]}},
    "a cursor of megabytes": lambda page: {"tools": [tool(f"t{page}")], "nextCursor": str(page) + "c" * (1 << 20)},
    "deep": lambda page: {"tools": [{**tool("t"), "inputSchema": deep(300)}]},
}


def lister(kind):
    page = 0
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = ordinary(message)
        if message["method"] == "tools/list":
            page += 1
            result = LISTS[kind](page)
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
        sys.stdout.flush()


def stdio():
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        arguments = message.get("params", {}).get("arguments", {})
        if message["method"] == "tools/call":
            append(arguments.get("text", ""))
        if arguments.get("evil") == "deaf":
            time.sleep(600)
        if "evil" in arguments and arguments["evil"] != "big":
            pieces = lines(message)[arguments["evil"]]
        else:
            result = ordinary(message)
            if "bytes" in arguments:
                result["content"][0]["text"] = "x" * arguments["bytes"]
            pieces = [json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode(), b"\n"]
        for piece in pieces:
            out.write(piece)
        out.flush()


if __name__ == "__main__":
    if "--list" in sys.argv:
        lister(sys.argv[-1])
    elif "--stdio" in sys.argv:
        stdio()
    else:
        http()
