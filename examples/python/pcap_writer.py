"""pcap writer: writes copies of packets to a file that Wireshark and tcpdump read."""

import argparse
import struct
import sys
import time

import millrace


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("count", metavar="COUNT", type=int, nargs="?", default=0, help="packets to write (0: no end)")
    parser.add_argument("ports", metavar="PORT", nargs="*", help="names of ports (all)")
    arguments = parser.parse_args()
    count, written = arguments.count, 0
    client = millrace.Client("pcap writer")
    (channel,) = client.open(ports=arguments.ports, take="copy")
    with open(arguments.file, "wb") as file:
        # Nanoseconds, this machine's byte order, Ethernet frames of up to 65,535 bytes.
        file.write(struct.pack("=IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1))
        while not count or written < count:
            channel.wait()
            packets = channel.receive(256)
            seconds, nanoseconds = divmod(time.time_ns(), 10**9)
            for packet in packets[: count - written if count else None]:
                size = len(packet)
                file.write(struct.pack("=IIII", seconds, nanoseconds, size, size))
                file.write(bytes(packet))
                written += 1
            channel.release(packets)
            # Who looks at the file while it grows, or after the end of this program, sees whole packets.
            file.flush()
    print(f"{written} packets")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
    except (millrace.Error, OSError) as error:
        sys.exit(f"pcap_writer: {error}")
