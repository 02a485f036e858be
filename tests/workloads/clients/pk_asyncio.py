#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A server on an event loop: each line is a request."""
import asyncio
import sys


async def serve(reader, writer):
    while await reader.readline():
        sum(range(10000))
        writer.write(b"done\n")
        await writer.drain()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    print("ready", flush=True)
    await server.serve_forever()


asyncio.run(main())
