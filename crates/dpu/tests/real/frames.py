"""Sends one frame of each of 18 kinds, with its name in it: five that its sender may send, and 13 that it may not.

Arguments: interface, its MAC address, its IPv4 and its IPv6 address. Prints the names, legal ones first.
"""
import ipaddress
import socket
import struct
import sys

interface, mac_text, four_text, six_text = sys.argv[1:5]
MAC = bytes.fromhex(mac_text.replace(":", ""))
OTHER_MAC = bytes.fromhex("02000000ffff")
ALL = b"\xff" * 6
FOUR = socket.inet_aton(four_text)
OTHER_FOUR = socket.inet_aton("10.0.9.9")
SIX = ipaddress.ip_address(six_text).packed
OTHER_SIX = ipaddress.ip_address("fd00::99").packed
NONE_SIX = bytes(16)
ALL_SIX = ipaddress.ip_address("ff02::1").packed


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def mark(name):
    return b"<" + name.encode() + b">"


def frame(kind, body, name, source=MAC):
    return ALL + source + struct.pack("!H", kind) + body + mark(name) + b"\0" * 30


def arp(name, mac=MAC, address=FOUR, source=MAC):
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + mac + address + b"\0" * 6 + FOUR
    return frame(0x0806, body, name, source)


# In packets the name is inside: what follows one is cut off where br_netfilter is loaded.
def udp(name):
    return struct.pack("!HHHH", 9, 9, 8 + len(mark(name)), 0) + mark(name)


def ip(address, name):
    data = udp(name)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(data), 1, 0, 64, 17, 0) + address + b"\xff" * 4
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + data


def ip6(address, protocol, data):
    return struct.pack("!IHBB", 6 << 28, len(data), protocol, 255) + address + ALL_SIX + data


def icmp6(address, kind, data, name):
    option = mark(name) + bytes(-(len(mark(name)) + 2) % 8)
    option = struct.pack("!BB", 200, (len(option) + 2) // 8) + option
    message = struct.pack("!BBH", kind, 0, 0) + data + option
    pseudo = address + ALL_SIX + struct.pack("!IBBBB", len(message), 0, 0, 0, 58)
    message = message[:2] + struct.pack("!H", checksum(pseudo + message)) + message[4:]
    return ip6(address, 58, message)


def tagged(kind, body):
    return struct.pack("!HH", 5, 0x0800) + body if kind == 0x8100 else struct.pack("!HHHH", 5, 0x8100, 6, 0x0800) + body


def packet4(name, address=FOUR, source=MAC):
    return frame(0x0800, ip(address, name), name, source)


def udp6(name, address):
    return frame(0x86DD, ip6(address, 17, udp(name)), name)


def discovery(name, address, kind, data):
    return frame(0x86DD, icmp6(address, kind, data, name), name)


LEGAL = {
    "arp": arp("arp"),
    "arp-probe": arp("arp-probe", address=bytes(4)),
    "ipv4": packet4("ipv4"),
    "nd-advert": discovery("nd-advert", SIX, 136, bytes(4) + SIX),
    "dad-solicit": discovery("dad-solicit", NONE_SIX, 135, bytes(4) + SIX),
}
ILLEGAL = {
    "other-mac": packet4("other-mac", source=OTHER_MAC),
    "arp-other-mac": arp("arp-other-mac", mac=OTHER_MAC),
    "arp-other-ip": arp("arp-other-ip", address=OTHER_FOUR),
    "ipv4-other": packet4("ipv4-other", OTHER_FOUR),
    "ipv6-other": udp6("ipv6-other", OTHER_SIX),
    "vlan": frame(0x8100, tagged(0x8100, ip(FOUR, "vlan")), "vlan"),
    "vlan-in-vlan": frame(0x88A8, tagged(0x88A8, ip(FOUR, "vlan-in-vlan")), "vlan-in-vlan"),
    "llc": frame(60, b"\x42\x42\x03" + bytes(20), "llc"),
    "unknown-type": frame(0x88B5, bytes(20), "unknown-type"),
    "router-advert": discovery("router-advert", SIX, 134, bytes(12)),
    "redirect": discovery("redirect", SIX, 137, bytes(4) + OTHER_SIX + OTHER_SIX),
    "nd-advert-other": discovery("nd-advert-other", SIX, 136, bytes(4) + OTHER_SIX),
    "unspecified-udp": udp6("unspecified-udp", NONE_SIX),
}

sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind((interface, 0))
for name, data in list(LEGAL.items()) + list(ILLEGAL.items()):
    sender.send(data)
    print("legal" if name in LEGAL else "illegal", name)
# What comes after all others, so that the receiver knows that nothing is under way.
sender.send(frame(0x0806, arp("x")[14:42], "end"))
