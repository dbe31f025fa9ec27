"""Python's mcp package, obeying the same orders as lines.mjs: 2025-11-25, or 2026-07-28 if asked to."""
import asyncio
import contextlib
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


class Session:
    """A client that lives in a task of its own: its scopes must be left by the task that entered them."""

    def __init__(self, order):
        self._over = asyncio.Event()
        self._ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(order))

    async def _live(self, order):
        try:
            async with contextlib.AsyncExitStack() as stack:
                http = await stack.enter_async_context(
                    httpx2.AsyncClient(headers={"Authorization": f"Bearer {order['token']}"}, timeout=90))
                transport = streamable_http_client(order["url"], http_client=http)
                mode = "2026-07-28" if order.get("era") == "modern" else "legacy"
                self._ready.set_result(await stack.enter_async_context(Client(transport, mode=mode)))
                await self._over.wait()
        except Exception as error:  # pylint: disable=broad-except
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def client(self):
        return await self._ready

    async def close(self):
        self._over.set()
        await self._task


sessions = {}


async def connect(order):
    session = Session(order)
    client = await session.client()
    sessions[order["session"]] = session
    return {"revision": client.session.protocol_version}


async def list_tools(order):
    client = await sessions[order["session"]].client()
    return {"tools": [tool.name for tool in (await client.list_tools()).tools]}


async def call(order):
    client = await sessions[order["session"]].client()
    result = await client.call_tool(order["name"], order["arguments"], meta=order.get("meta"),
                                    read_timeout_seconds=order.get("timeout_ms", 60_000) / 1000)
    return {"result": result.model_dump(by_alias=True, mode="json", exclude_none=True)}


async def close(order):
    await sessions.pop(order["session"]).close()
    return {}


ORDERS = {"connect": connect, "list": list_tools, "call": call, "close": close}


def innermost(error):
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


async def obey(line):
    order = json.loads(line)
    try:
        answer = await ORDERS[order["do"]](order)
    except Exception as error:  # pylint: disable=broad-except
        error = innermost(error)
        threw = {"type": type(error).__name__, "message": str(error)}
        if hasattr(error, "error"):
            threw |= {"code": error.error.code, "data": error.error.data}
        answer = {"threw": threw}
    print(json.dumps({"n": order["n"], **answer}), flush=True)


async def main():
    loop = asyncio.get_running_loop()
    tasks = set()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        task = asyncio.create_task(obey(line))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    for session in list(sessions.values()):
        await session.close()


asyncio.run(main())
