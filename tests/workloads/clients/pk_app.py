#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A web application: each page asks the database."""
import asyncio
import sys

import psycopg2

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ndone\n"


async def main():
    connection = psycopg2.connect(sys.argv[2])
    connection.autocommit = True
    cursor = connection.cursor()

    async def serve(reader, writer):
        while await reader.readuntil(b"\r\n\r\n"):
            sum(range(5000))
            cursor.execute("select sum(i) from generate_series(1, 500) i")
            cursor.fetchall()
            writer.write(PAGE)
            await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    print("ready", flush=True)
    await server.serve_forever()


asyncio.run(main())
