#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A client of PostgreSQL's or of a message bus, so many requests a second on average."""
import argparse
import os
import random
import struct
import time


def postgres(where):
    import psycopg2

    connection = psycopg2.connect(where)
    connection.autocommit = True
    cursor = connection.cursor()

    def ask():
        cursor.execute("select sum(i) from generate_series(1, 500) i")
        cursor.fetchall()

    return ask


def bus(address):
    import dbus.bus

    daemon = dbus.bus.BusConnection(address).get_object("org.freedesktop.DBus", "/", introspect=False)
    return lambda: daemon.GetId(dbus_interface="org.freedesktop.DBus")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", help="a connection string")
    parser.add_argument("--bus", help="its address")
    parser.add_argument("--rate", type=float, required=True, help="requests a second")
    parser.add_argument("--truth", required=True, help="a file for how many answers there were")
    options = parser.parse_args()
    ask = postgres(options.postgres) if options.postgres else bus(options.bus)
    ask()
    truth = os.open(options.truth, os.O_WRONLY | os.O_CREAT, 0o644)
    print("ready", flush=True)
    following = time.monotonic()
    done = 0
    while True:
        following += random.expovariate(options.rate)
        time.sleep(max(0, following - time.monotonic()))
        ask()
        done += 1
        os.pwrite(truth, struct.pack("=qq", os.getpid(), done), 0)


main()
