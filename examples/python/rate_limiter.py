"""Rate limiter: lets packets that come in by the ports go on up to a rate, and drops what is above (token bucket)."""

import argparse
import sys
import time

import millrace


class Bucket:
    """So many bytes may pass: refilled with time, up to the burst."""

    def __init__(self, bytes_per_second, burst):
        self.bytes_per_second = bytes_per_second
        self.burst = self.tokens = burst
        self.filled = time.monotonic()

    def refill(self):
        now = time.monotonic()
        self.tokens = min(self.burst, self.tokens + (now - self.filled) * self.bytes_per_second)
        self.filled = now

    def take(self, size):
        passes = self.tokens >= size
        if passes:
            self.tokens -= size
        return passes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rate", metavar="MBIT/S", type=float)
    parser.add_argument("burst", metavar="BURST-KB", type=float, help="what may pass at once")
    parser.add_argument("ports", metavar="PORT", nargs="*", help="names of ports (all)")
    arguments = parser.parse_args()
    bucket = Bucket(arguments.rate * 1e6 / 8, arguments.burst * 1e3)
    client = millrace.Client("rate limiter")
    (channel,) = client.open(ports=arguments.ports)
    passed = dropped = 0
    said = time.monotonic()
    while True:
        channel.wait(0.2)
        packets = channel.receive()
        bucket.refill()
        went = channel.give_back([packet for packet in packets if bucket.take(len(packet))])
        passed += went
        dropped += len(packets) - went
        channel.release(packets)
        if time.monotonic() - said >= 1:
            said = time.monotonic()
            print(f"{passed} passed, {dropped} dropped", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
    except millrace.Error as error:
        sys.exit(f"rate_limiter: {error}")
