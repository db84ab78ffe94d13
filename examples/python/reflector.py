"""L2 reflector: sends every packet back by the port where it came in, MAC addresses swapped.

usage: reflector.py [PORT...]     names of ports; none: all
"""

import sys

import millrace


def main():
    client = millrace.Client("reflector")
    (channel,) = client.open(ports=sys.argv[1:])
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
    except millrace.Error as error:
        sys.exit(f"reflector: {error}")
