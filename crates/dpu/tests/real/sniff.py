"""Prints each frame that arrives at an interface: when (ns), and its bytes."""
import socket
import sys
import time

frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
frames.bind((sys.argv[1], 0))
print("ready", flush=True)
while True:
    data, where = frames.recvfrom(65536)
    # What this machine sent itself is not what it received.
    if where[2] != socket.PACKET_OUTGOING:
        print(time.monotonic_ns(), data.hex(), flush=True)
