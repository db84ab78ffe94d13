"""Uses all of the module against the daemon that tests/python.rs plays, which answers as it says there."""

import gc
import select
import sys
import threading

import millrace
import numpy

LONG = 60


def say(word):
    print(word, flush=True)


def refuses(kind, part, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        assert part in str(error), f"'{part}' is not in: {error}"
    else:
        raise AssertionError(f"{call} raised nothing")


def receive(channel, wanted):
    packets = []
    while len(packets) < wanted:
        assert channel.wait(LONG)
        packets += channel.receive(wanted - len(packets))
    return packets


def opened(client):
    refuses(ValueError, "take: 'all'", client.open, take="all")
    refuses(ValueError, "spread: 'thin'", client.open, spread="thin")
    refuses(ValueError, "no IPv4 or IPv6 address", client.open, host="here")
    refuses(millrace.Error, "there are left and right", client.open, ["nowhere"])
    (own,) = client.open(queue=("left", 3))
    say("own")
    first, second = receive(own, 2)
    first.data[1] = 99
    assert own.send([first]) == 1
    del second
    assert own.receive(1) == []
    sys.stdin.readline()
    channel, other = client.open(
        ["left"], take="copy", channels=2, slots=8, capacity=100, protocol="udp",
        source="2001:db8::1", destination_port=53,
    )
    return channel, other


def packets(channel, other):
    """The daemon sends 10, 11, 12, 13 in packets of 60 bytes by port 1, then one of 250 bytes."""
    first, second, third, fourth = receive(channel, 4)
    view = first.data
    assert view.dtype == numpy.uint8 and view.shape == (60,) and (view == 10).all()
    assert (len(first), first.port, first.pieces, first.is_copy) == (60, 1, 1, False)
    view[1] = 99
    assert bytes(first)[:3] == bytes([10, 99, 10]) and memoryview(first)[1] == 99
    first.port = 0
    refuses(ValueError, "another channel", other.send, [first])
    assert channel.send([first, second]) == 2
    refuses(ValueError, "before", lambda: first.port)
    refuses(BufferError, "before", lambda: first.data)
    assert channel.send([first]) == 0, "it is gone"
    assert channel.give_back([third]) == 1
    channel.release([third, fourth])
    assert channel.send_bytes(b"own bytes", 1) and channel.give_bytes(b"to graph", 0)
    refuses(millrace.Error, "without bytes", channel.send_bytes, b"", 0)

    (long,) = receive(channel, 1)
    assert (len(long), long.pieces, len(long.data)) == (250, 3, 100)
    assert bytes(long) == bytes(range(250))
    assert channel.send([long]) == 1 and channel.flush(LONG)
    # A view keeps its packet's memory; the daemon finds no room there, and sends 77 where there is some.
    say("viewed")
    (other_packet,) = receive(channel, 1)
    assert (other_packet.data == 77).all()
    view[2] = 98
    assert view.tolist() == [10, 99, 98] + [10] * 57
    refuses(ValueError, "before", lambda: first.port)
    channel.release([other_packet])
    piece = view[5:7]
    del view
    say("sliced")
    sys.stdin.readline()
    assert piece.tolist() == [10, 10]
    del piece
    say("let go")
    # The same for one that is released.
    (packet,) = receive(channel, 1)
    memory = memoryview(packet)
    channel.release([packet])
    del packet
    say("released")
    sys.stdin.readline()
    assert memory[59] == 78
    memory.release()


def forgotten(channel):
    """The daemon sends twice as many packets as its ring has slots: what nothing refers to goes back."""
    for number in range(16):
        (packet,) = receive(channel, 1)
        assert packet.data[0] == number
        del packet
        gc.collect()


def threads(channel):
    """The daemon sends three times as many packets as its ring has slots: another thread drops them while this one waits."""
    held = []

    def drop():
        try:
            while True:
                channel.release([])
        except RuntimeError as error:
            assert "one at a time" in str(error)
        held.clear()

    for _ in range(2):
        held += receive(channel, 8)
        worker = threading.Thread(target=drop)
        worker.start()
        assert channel.wait(LONG)
        worker.join()
    channel.release(receive(channel, 8))


def main():
    refuses(millrace.Error, "/nowhere/attach.sock", millrace.Client, "python", "/nowhere/attach.sock")
    client = millrace.Client("python program")
    assert client.number == 7 and client.daemon_version == millrace.__version__
    ports = client.ports()
    assert [port.name for port in ports] == ["left", "right"]
    assert (ports[1].number, ports[1].mtu, bytes(ports[1].mac)) == (1, 1500, bytes([2, 0, 0, 0, 0, 1]))
    channel, other = opened(client)
    say("open")
    packets(channel, other)
    say("packets")
    forgotten(channel)
    say("forgotten")
    say("threads")
    threads(channel)
    sys.stdin.readline()
    sent = 0
    while channel.send_bytes(b"filler", 0):
        sent += 1
    assert sent == 8 and not channel.wait_for_room(0), sent
    assert channel.counters == {"received": 47, "sent": 14, "full": 1, "malformed": 0}, channel.counters
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    assert channel.arm() and not poll.poll(0)
    say("full")
    assert poll.poll(LONG * 1000) and len(channel.receive()) == 1
    say("end")
    refuses(millrace.DaemonGone, "attach again", lambda: all(channel.wait(LONG) or True for _ in range(1000)))
    assert client.is_gone()
    refuses(millrace.Error, "no daemon", client.reattach)
    say("done")


main()
