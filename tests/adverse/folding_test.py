"""Members that differ only by case folding, anywhere in a message, by every front: refused, nothing asked of tallyd, and
nothing sent. A server that folds case would see another tool or amount than the permit judged."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support/ground"))
from ground import MODERN, Agent, Ground, StdioAgent

# Two spellings of one member: as they stand, and with JSON's escapes.
PAIRS = [('"%s"' % a, '"%s"' % b) for a, b in (
    ("name", "Name"), ("name", "NAME"), ("amount", "Amount"), ("amount", "aMOUNT"), ("task", "ta\u017fk"),
    ("key", "\u212aey"), ("Key", "\u212aey"), ("stra\u00dfe", "STRA\u1e9eE"), ("\u00e9t\u00e9", "\u00c9T\u00c9"),
    ("\u03c3", "\u03c2"), ("amount", "amount"))] + [
    ('"amount"', '"\\u0041mount"'), ('"task"', '"ta\\u017fk"'), ('"key"', '"\\u212Aey"'), ('"name"', '"\\u006eame"')]
# Where both members stand; %s is `A: 1, B: 2`.
PLACES = {
    "arguments": '{"jsonrpc":"2.0","id":%ID,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"x",%s}%META}}',
    "deep in arguments": '{"jsonrpc":"2.0","id":%ID,"method":"tools/call","params":{"name":"led__append","arguments":'
                         '{"text":"x","a":[1,{"b":[[{"c":null,%s}]]}]}%META}}',
    "params": '{"jsonrpc":"2.0","id":%ID,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"x"},%s%META}}',
    "the message": '{"jsonrpc":"2.0","id":%ID,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"x"}%META},%s}',
    "_meta": '{"jsonrpc":"2.0","id":%ID,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"x"},'
             '"_meta":{"com.example/a":{%s}%INNER}}}',
}
# One more member that folds to one that has to be there.
SHADOWS = [
    '{"jsonrpc":"2.0","id":%ID,"method":"tools/call","params":{"name":"led__other","Name":"led__append","arguments":{"text":"x"}%META}}',
    '{"jsonrpc":"2.0","id":%ID,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"x"},"Arguments":{"text":"y"}%META}}',
    '{"jsonrpc":"2.0","id":%ID,"method":"tools/call","Params":{"name":"led__append"},"params":{"name":"led__append","arguments":{"text":"x"}%META}}',
    '{"jsonrpc":"2.0","id":%ID,"Method":"ping","method":"tools/call","params":{"name":"led__append","arguments":{"text":"x"}%META}}',
    '{"jsonrpc":"2.0","id":%ID,"ID":5,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"x"}%META}}',
    '{"jsonrpc":"2.0","id":%ID,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"x"},'
    '"_META":{"dev.tallystick/repeat":true},"_meta":{"a":1%INNER}}}',
    '{"jsonrpc":"2.0","id":%ID,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"x"},'
    '"_meta":{"dev.tallystick/idempotency-key":"a","dev.tallystick/Idempotency-Key":"b"%INNER}}}',
]
ERA_META = ('"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},'
            '"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}')


def messages(modern):
    texts = [(f"{a} and {b} in {place}", text.replace("%s", f"{a}:1,{b}:2"))
             for place, text in PLACES.items() for a, b in PAIRS]
    texts += [(f"shadow {i}", text) for i, text in enumerate(SHADOWS)]
    for i, (what, text) in enumerate(texts):
        text = text.replace("%META", f',"_meta":{{{ERA_META}}}' if modern else "").replace("%ID", str(100 + i))
        yield what, text.replace("%INNER", "," + ERA_META if modern else "").encode()


def main():
    with Ground() as ground:
        count = 0
        for transport in ("stdio", "http"):
            upstream = ground.stdio_upstream() if transport == "stdio" else ground.http_upstream()
            permit, token = ground.mint({"led__*": 'cap = 100\ncost = "none"'})
            gateway = ground.add_gateway(f"gateway-{transport}", upstream).start()
            for era in ("2025-11-25", MODERN):
                agent = Agent(gateway.port, token, era)
                head = {"Mcp-Method": "tools/call", "Mcp-Name": "led__append"} if era == MODERN else {}
                for what, text in messages(era == MODERN):
                    status, answers = agent.post(None, head, body=text)
                    ground.check(f"{era}, {what}", (status, [a.get("error", {}).get("code") for a in answers]),
                                 lambda v: v[0] == 400 and len(v[1]) == 1 and v[1][0] in (-32700, -32600, -32602, -32020))
                    count += 1
            gateway.stop()
            agent = StdioAgent(gateway, token)
            for what, text in messages(False):
                agent.send_raw(text + b"\n")
                answer = agent.next()
                ground.check(f"stdio, {what}", answer, lambda a: a.get("error", {}).get("code") in (-32700, -32600, -32602))
                count += 1
            # The front is as good as before.
            answer = agent.call("led__append", {"text": f"good-{transport}", "Amount": 1}, 7)
            ground.check("a good call", "result" in answer and not answer["result"].get("isError"), True)
            ground.check("how it ends", agent.end(), 0)
            ground.check("nothing was sent", ground.effects("x"), 0)
            ground.check("nothing was asked of tallyd", len(ground.calls(permit)), 1)
        print(f"{count} messages refused", flush=True)
        ground.check("effects", ground.effects(), ["good-stdio", "good-http"])
    return ground.report("folding")


sys.exit(main())
