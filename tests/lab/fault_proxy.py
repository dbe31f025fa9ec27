"""The wire to the provider: passes bytes, writes down every tools/call that comes over it, and breaks the ones it is told to.

usage: fault_proxy.py FOLDER PORT

Prints its own port; PORT is the provider's. FOLDER/wire gets a line for each tools/call, on disk before a byte of it is
passed on: that, and nothing that anybody says, is a dispatch. One that was cut before its end is `partial`. FOLDER/faults.json,
read at each, says what happens to it: {CUSTOMER: [FAULT, …]}, the nth for the customer's nth; {} and none: nothing.

  request   "swallow": the provider never gets it; {"late": SECONDS}: gets it later, whoever has gone by then; "twice"
  answer    once the provider has answered (or at once, where the request was swallowed):
            "hang": nothing comes, and the connection stays; "reset": it is reset; "close": it ends without a byte;
            "502", "504": a page that says so; "garbage": what is no HTTP; {"cut": N}: N bytes of it, then a reset;
            {"late": SECONDS}; {"dribble": SECONDS}: a byte, a pause, and so on
"""
import json
import os
import select
import socket
import sys
import threading
import time

FOLDER, TARGET = sys.argv[1], ("127.0.0.1", int(sys.argv[2]))
LOCK = threading.Lock()
SEEN = {}
HANG_SECONDS_MAX = 180
PAGES = {"502": b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 19\r\n\r\n<h1>Bad Gateway</h1>"[:-1],
         "504": b"HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n",
         "garbage": bytes(range(128, 256)) * 8, "close": b""}


def note(line):
    data = (json.dumps(line) + "\n").encode()
    with LOCK:
        fd = os.open(os.path.join(FOLDER, "wire"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, data)
        os.fsync(fd)
        os.close(fd)


def fault_for(customer):
    with LOCK:
        number = SEEN[customer] = SEEN.get(customer, 0) + 1
    try:
        with open(os.path.join(FOLDER, "faults.json"), encoding="utf-8") as file:
            wanted = json.load(file).get(customer, [])
    except FileNotFoundError:
        wanted = []
    return number, wanted[number - 1] if number <= len(wanted) else {}


def read_request(client, before):
    """Bytes of one request, its body, headers, and what came after it; None at the end. A part that was cut is noted."""
    data = before
    while b"\r\n\r\n" not in data:
        more = client.recv(65536)
        if not more:
            return None
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    headers = {}
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        headers[name.strip().lower().decode("latin-1")] = value.strip().decode("latin-1")
    length = int(headers.get("content-length", 0))
    while len(rest) < length:
        more = client.recv(65536)
        if not more:
            if b"tools/call" in rest:
                note({"t": time.monotonic(), "partial": True, "bytes": len(head) + 4 + len(rest)})
            return None
        rest += more
    return head + b"\r\n\r\n" + rest[:length], rest[:length], headers, rest[length:]


def reset(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()


def wait_until_gone(client):
    poll = select.poll()
    poll.register(client, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
    poll.poll(HANG_SECONDS_MAX * 1000)


def pass_on(source, sink):
    """Bytes as they come, to the end of the connection."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def whole_answer(provider):
    """Of a provider that says how long it is."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = provider.recv(65536)
        if not more:
            return data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    while len(body) < length:
        more = provider.recv(65536)
        if not more:
            break
        body += more
    return head + b"\r\n\r\n" + body


def answer_with(client, how, answer):
    if how == "hang":
        wait_until_gone(client)
    elif how == "reset":
        reset(client)
    elif isinstance(how, str):
        client.sendall(PAGES[how])
    elif "cut" in how:
        client.sendall(answer[:how["cut"]])
        time.sleep(0.05)  # a reset overtakes what was not read yet
        reset(client)
    elif "late" in how:
        time.sleep(how["late"])
        client.sendall(answer)
    elif "dribble" in how:
        for i in range(len(answer)):
            client.sendall(answer[i:i + 1])
            time.sleep(how["dribble"])


def ask(request):
    provider = socket.create_connection(TARGET)
    provider.sendall(request)
    return whole_answer(provider)


def tools_call(client, request, body, headers):
    """True if it was dealt with here; else it is to be passed on."""
    arguments = json.loads(body).get("params", {}).get("arguments", {})
    customer = str(arguments.get("customer"))
    number, fault = fault_for(customer)
    note({"t": time.monotonic(), "customer": customer, "amount": arguments.get("amount"), "number": number,
          "key": headers.get("idempotency-key") or headers.get("x-payment-key", ""), "bytes": len(request), "fault": fault})
    if not fault:
        return False
    wanted, answer = fault.get("request", "pass"), b""
    if wanted == "twice":
        ask(request)
    if isinstance(wanted, dict):
        # Not by this thread: the client may go, and it lands all the same.
        late = threading.Timer(wanted["late"], ask, [request])
        late.start()
    elif wanted != "swallow":
        answer = ask(request)
    answer_with(client, fault.get("answer", {"late": 0}), answer)
    return True


def serve(client):
    provider = None
    try:
        rest = b""
        while True:
            got = read_request(client, rest)
            if got is None:
                break
            request, body, headers, rest = got
            if b'"tools/call"' in body and tools_call(client, request, body, headers):
                break
            if provider is None:
                provider = socket.create_connection(TARGET)
                threading.Thread(target=pass_on, args=(provider, client), daemon=True).start()
            provider.sendall(request)
    except (OSError, ValueError):
        pass
    for end in (client, provider):
        try:
            if end:
                end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
    client.close()


def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(512)
    print(listener.getsockname()[1], flush=True)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()


main()
