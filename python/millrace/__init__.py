"""Packet functions in Python, fed by the Millrace daemon over shared memory.

    import millrace

    client = millrace.Client("reflector")
    (channel,) = client.open()
    while True:
        channel.wait()
        packets = channel.receive()
        for packet in packets:
            frame = packet.data                         # a numpy view, no copy
            frame[:12] = frame[[*range(6, 12), *range(6)]]
        channel.send(packets)                           # back by the port where each came in
        channel.release(packets)                        # what found no room is dropped
"""

from ._millrace import Channel, Client, DaemonGone, Error, Packet, Port, __version__

__all__ = ["Channel", "Client", "DaemonGone", "Error", "Packet", "Port", "__version__"]
