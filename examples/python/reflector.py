"""L2 reflector: sends every packet back by the port where it came in, MAC addresses swapped."""

import argparse
import sys

import millrace


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ports", metavar="PORT", nargs="*", help="names of ports (all)")
    arguments = parser.parse_args()
    client = millrace.Client("reflector")
    (channel,) = client.open(ports=arguments.ports)
    print("reflecting", flush=True)
    while True:
        channel.wait()
        packets = channel.receive()
        for packet in packets:
            frame = packet.data
            if len(frame) >= 12:
                frame[:12] = [*frame[6:12], *frame[:6]]
        channel.send(packets)
        # What found no room is dropped, as a network card would.
        channel.release(packets)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
    except millrace.Error as error:
        sys.exit(f"reflector: {error}")
