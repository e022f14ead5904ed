"""Sends a legal frame with a number in it every two milliseconds, for ever."""
import socket
import struct
import sys
import time

interface, mac_text, address = sys.argv[1:4]
mac = bytes.fromhex(mac_text.replace(":", ""))
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind((interface, 0))
number = 0
print("ready", flush=True)
while True:
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + mac + socket.inet_aton(address) + bytes(6)
    frame = b"\xff" * 6 + mac + b"\x08\x06" + body + socket.inet_aton(address) + b"<%d>" % number + bytes(20)
    try:
        sender.send(frame)
        number += 1
    except OSError:
        # The other end of the cable is down.
        pass
    time.sleep(0.002)
