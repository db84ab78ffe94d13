"""pcap writer: writes copies of packets to a file that Wireshark and tcpdump read.

usage: pcap_writer.py FILE [COUNT [PORT...]]     ends after COUNT packets (0: never)
"""

import struct
import sys
import time

import millrace


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: pcap_writer.py FILE [COUNT [PORT...]]")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    written = 0
    client = millrace.Client("pcap writer")
    (channel,) = client.open(ports=sys.argv[3:], take="copy")
    with open(sys.argv[1], "wb") as file:
        # Nanoseconds, this machine's byte order, Ethernet frames of up to 65,535 bytes.
        file.write(struct.pack("=IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1))
        while not count or written < count:
            if not channel.wait(1.0):
                # Who looks at the file while it grows sees all there is.
                file.flush()
                continue
            packets = channel.receive(256)
            seconds, nanoseconds = divmod(time.time_ns(), 10**9)
            for packet in packets[: count - written if count else None]:
                size = len(packet)
                file.write(struct.pack("=IIII", seconds, nanoseconds, size, size))
                file.write(bytes(packet))
                written += 1
            channel.release(packets)
    print(f"{written} packets")


if __name__ == "__main__":
    try:
        main()
    except millrace.Error as error:
        sys.exit(f"pcap_writer: {error}")
